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
from acp_core.model.matter import OWNER, TIME, About, Matter, verdicts
from acp_core.model.snapshot import Obstacle
from acp_core.model.text import clean_line

if TYPE_CHECKING:
    from acp_core.files.claims import Seen

CODE_OF_DISK = "E20"
CODE_OF_CONDUCTOR = "E24"
_LEAST_FREE = 64 << 10  # bytes: less than a state and its journal may need


def check(obstacles: Iterable[Obstacle], act: str) -> None:
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


def blocking(obstacles: Iterable[Obstacle], act: str) -> tuple[Obstacle, ...]:
    """The obstacles that an act must not step over."""
    return tuple(each for each in obstacles if act not in each.allowed)


def refusal(obstacles: Iterable[Obstacle]) -> str:
    """All obstacles in one line: what is wrong, and what mends it."""
    return "; ".join(f"{each.sentence}: {each.cure}" for each in obstacles)


def cause(obstacle: Obstacle) -> Matter:
    """The obstacle as the reason why a collaboration does not go on."""
    return Matter(
        obstacle.code,
        obstacle.sentence,
        instruction=obstacle.cure,
        move=OWNER if obstacle.wanted else TIME,
        evidence=obstacle.evidence,
        verdicts=verdicts(obstacle.remedy or None, obstacle.given),
        about=About(
            participant=obstacle.participant, document=obstacle.document, line=obstacle.line
        ),
        key=obstacle.key or f"obstacle:{obstacle.code}:{obstacle.participant or ''}",
        root=obstacle.wanted,
    )


def disk(folder: Path | str) -> Obstacle | None:
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


def conductor(seen: Seen, allowed: frozenset[str] = frozenset()) -> Obstacle:
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
    return Obstacle(
        CODE_OF_CONDUCTOR, seen.sentence, cure, allowed, key=f"obstacle:conductor:{seen.name}",
        evidence=(seen.sentence,), wanted=False,
    )  # fmt: skip


def _no_writing(folder: Path | str, reason: str, cure: str) -> Obstacle:
    sentence = f"acp cannot write to {clean_line(str(folder), 200)} ({reason.lower()})"
    return Obstacle(CODE_OF_DISK, sentence, cure, key="obstacle:disk", evidence=(sentence,))
