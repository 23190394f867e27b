"""Keeping a shared folder and its store the same: one look, and what people delete. Standard library only."""

from __future__ import annotations

from typing import NamedTuple

from acp_core.model.text import clean_line
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.list_summary import list_state
from acp_core.protocols.folder.write import Refused, shared
from acp_core.protocols.folder.write import shared_documents as documents
from acp_core.protocols.folder.write.opened import lock, open_locked
from acp_core.stores import base as manifests
from acp_core.stores import hosts
from acp_core.stores.base import Base, Entry, digest
from acp_core.stores.engine import Change, Engine, TipMoved
from acp_core.stores.materialise import Done, bring, changed_here
from acp_core.stores.tree import Tree

_TRIES = 5


class Synced(NamedTuple):
    """What one look at the store did: documents that came and that left, and sentences about it."""

    came: tuple[str, ...]
    left: tuple[str, ...]
    notes: tuple[str, ...]
    done: Done


def sync(folder: str, engine: Engine, *, publish: bool = True) -> Synced:
    """Look at the store once: bring what is new, and publish documents that may leave.

    Args:
        folder: the shared folder.
        engine: its store.
        publish: whether documents that were changed here leave, too.

    Raises:
        Refused: the store cannot be read, or what it holds is refused.
        OSError: a file could not be written.
    """
    host = hosts.this_host()
    came: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    with manifests.held(folder):
        for _ in range(_TRIES):
            base = manifests.read_base(folder)
            done = bring(folder, engine, base, host, documents.is_shared_name)
            came, notes = (*came, *done.written), (*notes, *done.notes)
            if not publish:
                return Synced(came, (), notes, done)
            try:
                return _publish(folder, engine, done, host, came, notes)
            except TipMoved:
                continue
    raise Refused("the store keeps moving on: try again")


def _publish(
    folder: str,
    engine: Engine,
    done: Done,
    host: str,
    came: tuple[str, ...],
    notes: tuple[str, ...],
) -> Synced:
    """Publish what a script appended, then documents whose participant acts here."""
    if done.rogue and not done.kept_log:
        done = shared.publish_rogue(folder, engine, done, host)
        notes = (*notes, done.notes[-1])
    with lock(folder) as held:
        opened = open_locked(folder, held.log)
    changed = changed_here(Tree(folder), done.base, documents.candidates(opened, None))
    me = (host, hosts.account())
    here = [p for p, lease in done.commit.leases.items() if (lease.host, lease.account) == me]
    allowed = set().union(*(documents.may_change(opened, each) for each in here))
    left = {name: data for name, data in changed.items() if name in allowed}
    notes = (*notes, *documents.held_back(changed, allowed, opened.machine.phase))
    if not left:
        return Synced(came, (), notes, done)
    machine = opened.machine
    change = Change(
        log=done.log, line=None, seq=opened.last_seq, protocol=done.commit.protocol, documents=left,
        words=f"documents: {', '.join(left)}", account=me[1], host=host, phase=machine.phase,
        waiting=tuple(machine.waiting), standing=list_state(opened.protocol, opened.history),
    )  # fmt: skip
    tip = engine.publish(done.base.tip, change)
    files = dict(done.base.files) | {n: Entry(digest(d), len(d)) for n, d in left.items()}
    base = Base(tip, files)
    manifests.write_base(folder, base)
    return Synced(came, tuple(left), notes, done._replace(base=base))


def delete(folder: str, engine: Engine, name: str) -> None:
    """Delete a document on all hosts.

    Raises:
        Refused: it is required, not shared, or the store refuses it.
    """
    if name in (*schema.REQUIRED_FILES, documents.README):
        raise Refused(f"{name} is required: it cannot be deleted")
    host = hosts.this_host()
    with manifests.held(folder):
        done = bring(folder, engine, manifests.read_base(folder), host, documents.is_shared_name)
        if name not in done.base.files:
            raise Refused(f"{clean_line(name, 200)} is not in the store")
        change = Change(
            log=done.log, line=None, seq=done.base.tip.seq, protocol=done.commit.protocol,
            documents={name: None}, words=f"documents: {name} deleted", account=hosts.account(), host=host,
        )  # fmt: skip
        tip = engine.publish(done.base.tip, change)
        Tree(folder).remove(name)
        files = {each: entry for each, entry in done.base.files.items() if each != name}
        manifests.write_base(folder, Base(tip, files))
