"""What acp wrote last into a cycle's state, where every account sees it that shares the project.

``.acp/run/last-written-ID.json`` lets an orchestrator that takes over tell a decision of another
account from a change by some other program. It informs, and authorises little: as long as an
orchestrator conducts, only what it knows itself counts; and nobody who writes with its own account
eases by it what is wanted of the cycle (`ownership.GUARDED`).
"""

from __future__ import annotations

import contextlib
import copy
import json
from pathlib import Path

from acp_core.files import atomic, modes
from acp_core.files.claims import ClaimError, prepare
from acp_core.protocols.cycle.read.state_file import (
    SharedCopy,
    digest,
    read_shared_copy,
    shared_copy_path,
)
from acp_core.protocols.cycle.schema import Object
from acp_core.protocols.cycle.write.ownership import GUARDED, Reconciled, reconcile

Known = tuple[tuple[str, str], Object]
"""The digests of the files that what was written last may stand in, and what it was."""


def remember_shared(root: Path, id: str, data: bytes, before: bytes) -> None:
    """Note what is about to be written, and sync it before that is; under the lock of the cycles.

    So a loss of power in between leaves a file of which it is known that acp wrote it.

    Args:
        root: the project's folder.
        id: the cycle.
        data: what is about to be written.
        before: what stands in the file until then.
    """
    record = {"digest": digest(data), "before": digest(before), "state": json.loads(data)}
    with contextlib.suppress(OSError, ClaimError):  # the file itself is right
        private = not modes.is_shared(prepare(root).stat())
        atomic.sweep(shared_copy_path(root, id))
        atomic.replace(shared_copy_path(root, id), json.dumps(record).encode(), private=private)


def settle(
    root: Path, id: str, disk: Object, data: bytes, own: Known | None, *, first: bool
) -> Reconciled:
    """Settle a state file that somebody else wrote.

    Args:
        root: the project's folder.
        id: the cycle.
        disk: what the file holds.
        data: its bytes.
        own: what this account wrote last.
        first: whether this is the first look of an orchestrator that begins.
    """
    now = digest(data)
    if own is not None and now in own[0]:
        return Reconciled(disk)
    if not first:
        return Reconciled(disk) if own is None else reconcile(own[1], disk)
    shared = read_shared_copy(root, id)
    if shared is None:  # as acp 0.1 left it: what it kept privately counts if it is the file's
        return Reconciled(disk)
    base, refused = _unguarded(disk, own, shared)
    if now in shared.known:
        return Reconciled(base, refused=refused)
    return reconcile(_unguarded(shared.state, own, shared)[0], disk)


def _unguarded(
    state: Object, own: Known | None, shared: SharedCopy
) -> tuple[Object, tuple[str, ...]]:
    """A state without what programs of this account may have eased, and what that was."""
    if own is None or not shared.mine:
        return state, ()
    eased = tuple(key for key in GUARDED if state.get(key) != own[1].get(key))
    if not eased:
        return state, ()
    state = copy.deepcopy(state)
    for key in eased:
        state.pop(key, None)
        if key in own[1]:
            state[key] = copy.deepcopy(own[1][key])
    return state, eased
