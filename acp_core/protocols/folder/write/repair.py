"""Mending what `damage` found: under the lock, with a copy of everything that is changed.

The copies go to the user's state folder. What is done is what was shown: if the collaboration
changed in between, nothing is done. Standard library only.
"""

from __future__ import annotations

import contextlib
import difflib
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from acp_core.files import atomic, modes
from acp_core.files.locked import LockedLog, LogError, locked, locked_folder
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.write import Refused, backups
from acp_core.protocols.folder.write.damage import CREATE, CUT, FINISH, Fix, Plan, diagnose
from acp_core.protocols.folder.write.opened import is_shared, path_of, refuse_lockless

CHANGED = "the collaboration changed since acp checked it: nothing was done; run the repair again"
_OF_STORE = (schema.LOG_FILE, schema.PROTOCOL_FILE)  # where the folder is shared
_SHOWN = 1 << 16  # bytes of a file that a diff shows


class Repaired(NamedTuple):
    """What was mended; ``copies`` are the paths of what stood there before."""

    fixes: tuple[Fix, ...]
    copies: tuple[str, ...]


def _now() -> datetime:
    return datetime.now(UTC)


def repair(plan: Plan, *, force: bool = False, now: Callable[[], datetime] = _now) -> Repaired:
    """Do what ``plan`` says.

    Raises:
        Refused: the collaboration changed since, or cannot be locked. Nothing was done.
        OSError: a copy or a file could not be written; running it again goes on from there.
    """
    folder = plan.folder
    refuse_lockless(folder, force)
    if is_shared(folder) and any(fix.name in _OF_STORE for fix in plan.fixes):
        return _from_store(plan)
    with _lock(folder, force) as log:
        if log is not None:
            log.is_torn()  # only what stays as it is, is torn
        if not _same(diagnose(folder, now()), plan):
            raise Refused(CHANGED)
        copies = [_keep(folder, fix, now()) for fix in plan.fixes if fix.before]
        for fix in plan.fixes:
            _apply(fix, log)
    protocol = schema.decode_protocol(_content(path_of(folder, schema.PROTOCOL_FILE)))
    backups.keep_charter(folder, protocol)
    return Repaired(plan.fixes, tuple(copies))


def _from_store(plan: Plan) -> Repaired:
    """Put the log and protocol.json of a shared folder back to what its store holds.

    Raises:
        Refused: the store cannot be reached, or they are damaged there, too.
    """
    from acp_core.protocols.registry import load

    kept = load("acp_core.protocols.folder.write.sharing:put_back")(plan.folder)
    left = [fix.sentence for fix in diagnose(plan.folder, _now()).fixes if fix.name in _OF_STORE]
    if left:
        raise Refused(
            f"the store holds the same damage ({'; '.join(left)}): `acp continue` starts a new collaboration"
        )
    return Repaired(tuple(fix for fix in plan.fixes if fix.name in _OF_STORE), tuple(kept))


@contextlib.contextmanager
def _lock(folder: str, force: bool) -> Iterator[LockedLog | None]:
    """The lock on the log, or on the folder where there is no log yet."""
    path = path_of(folder, schema.LOG_FILE)
    try:
        if os.path.lexists(path):
            with locked(path, force=force) as log:
                yield log
        else:
            with locked_folder(folder):
                yield None
    except LogError as error:
        raise Refused(str(error)) from None


def _same(found: Plan, shown: Plan) -> bool:
    """Whether it is still the same damage; only the times that fixes would write may differ."""
    return [fix[:5] + fix[6:] for fix in found.fixes] == [
        fix[:5] + fix[6:] for fix in shown.fixes
    ] and found.hopeless == shown.hopeless


def _keep(folder: str, fix: Fix, now: datetime) -> str:
    name = fix.name.replace("/", "_")
    return backups.keep(folder, f"torn-{name}" if fix.verb == CUT else name, fix.before, now)


def _apply(fix: Fix, log: LockedLog | None) -> None:
    if fix.verb in (FINISH, CUT):
        if log is None:
            raise Refused(CHANGED)
        size = fix.offset + len(fix.before)
        if fix.verb == FINISH:
            log.finish_line(size)
        else:
            log.cut(fix.offset, size)
    elif fix.verb == CREATE and os.path.lexists(fix.path) and not os.path.getsize(fix.path):
        atomic.replace(fix.path, fix.after)  # an empty file, left by a crash
    elif fix.verb == CREATE:
        modes.shared_folder(os.path.dirname(fix.path))
        atomic.create(fix.path, fix.after)
    else:
        atomic.replace(fix.path, fix.after)
    atomic.sweep(fix.path)


def _content(path: str) -> bytes:
    return atomic.read_bounded(path, schema.MAX_PROTOCOL)


def diff(fix: Fix) -> str:
    """What a fix changes, as a unified diff of the lines concerned."""
    before, after = _lines(fix.before), _lines(fix.after)
    old = "/dev/null" if fix.verb == CREATE else f"{fix.name} (now)"
    lines = difflib.unified_diff(before, after, old, f"{fix.name} (repaired)", lineterm="")
    return "\n".join(lines)


def _lines(data: bytes) -> list[str]:
    text = data[:_SHOWN].decode(errors="replace")
    if text and not text.endswith("\n"):
        text += "\n\\ no newline at the end\n" if len(data) <= _SHOWN else "\n(and more)\n"
    return text.split("\n")[:-1] if text else []
