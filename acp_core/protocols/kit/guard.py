"""The guard before every write: nothing is written over damage that was seen.

A protocol says in one place what stands in the way (its ``write/guard``). Its writes ask `check`
under the lock; its Snapshot carries the same obstacles, of which actions are refused and causes
are made for every protocol alike. Standard library only.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from acp_core.model.errors import Refused
from acp_core.model.matter import Matter, Move, Mover, damage
from acp_core.model.text import clean_line

if TYPE_CHECKING:
    from acp_core.files.claims import Seen

CODE_OF_DISK = "E20"
CODE_OF_CONDUCTOR = "E24"
_LEAST_FREE = 64 << 10  # bytes: less than a state and its journal may need


def check(obstacles: Iterable[Matter], act: str) -> None:
    """Let an act pass, or refuse it.

    Args:
        obstacles: what stands in the way of writes.
        act: the name of the act that is to be done.

    Raises:
        Refused: something stands in its way; one line says what, and what mends it.
    """
    left = blocking(obstacles, act)
    if left:
        raise Refused(refusal(left))


def blocking(obstacles: Iterable[Matter], act: str) -> tuple[Matter, ...]:
    """The obstacles that an act must not step over."""
    return tuple(each for each in obstacles if each.refuses is not None and act not in each.refuses)


def refusal(obstacles: Iterable[Matter]) -> str:
    """All obstacles in one line: what is wrong, and what mends it."""
    return "; ".join(f"{each.sentence}: {each.instruction}" for each in obstacles)


def disk(folder: Path | str) -> Matter | None:
    """Whether nothing can be written into a folder, and why; None where it can.

    It asks the system and writes nothing. A folder that is not there is no obstacle of the disk.
    """
    try:
        system = os.statvfs(folder)
    except OSError:
        return None
    if system.f_flag & os.ST_RDONLY:
        return _no_writing(folder, os.strerror(errno.EROFS), "mount the disk writable")
    if not os.access(
        folder, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids
    ):
        return _no_writing(folder, os.strerror(errno.EACCES), "give this account write access")
    if system.f_blocks > 0 and system.f_bavail * system.f_frsize < _LEAST_FREE:
        return _no_writing(folder, os.strerror(errno.ENOSPC), "free some space")
    return None


def conductor(seen: Seen, allowed: frozenset[str] = frozenset()) -> Matter:
    """Somebody else conducts the run: who starts agents is refused with the name of the first.

    Args:
        seen: their claim.
        allowed: names of the acts that are done beside them, or that they are asked for.
    """
    started = f"process {seen.owner.process.pid}" if seen.owner else "the process"
    if seen.mine:
        cure = f"stop {started} first, or take over after it has ended"
    else:
        who = seen.owner.account if seen.owner else "its owner"
        cure = f"ask {clean_line(who, 80)} to stop, or take over after it has ended"
    return damage(
        CODE_OF_CONDUCTOR, seen.sentence, cure, allowed, key=f"obstacle:conductor:{seen.name}",
        evidence=(seen.sentence,), move=Move(Mover.ACCOUNT),
    )  # fmt: skip


def _no_writing(folder: Path | str, reason: str, cure: str) -> Matter:
    sentence = f"acp cannot write to {clean_line(str(folder), 200)} ({reason.lower()})"
    return damage(CODE_OF_DISK, sentence, cure, key="obstacle:disk", evidence=(sentence,))
