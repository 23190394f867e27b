"""Appending where other hosts append, too: the store has the event before the folder has it.

The folder is brought to what the store holds, the event is checked against that with the documents
that were changed here, and published under exactly that tip; where somebody else was first, all of
it happens again. Only then are documents, log and protocol.json written here. Standard library
only.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import NamedTuple

from acp_core.files.locked import Moved
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.list_summary import list_state
from acp_core.protocols.folder.write import Refused, handover, pending, review
from acp_core.protocols.folder.write import shared_documents as documents
from acp_core.protocols.folder.write.append import (
    CONFLICT,
    Appended,
    Prepared,
    Request,
    existing_event,
    prepare,
    write_protocol,
)
from acp_core.protocols.folder.write.opened import Opened, lock, open_locked, take, with_state
from acp_core.stores import base as manifests
from acp_core.stores import hosts, silence
from acp_core.stores.address import Address
from acp_core.stores.base import Base, Entry, digest
from acp_core.stores.engine import Change, Engine, Lease, StoreUnreachable, Tip, TipMoved
from acp_core.stores.hosts import LeaseElsewhere
from acp_core.stores.known import Known
from acp_core.stores.materialise import Done, bring, changed_here
from acp_core.stores.opening import open_engine
from acp_core.stores.steps import reach
from acp_core.stores.tree import Tree

_TRIES = 20
_PATIENCE = 30.0  # seconds
_PAUSE = (0.02, 0.1)


class Ready(NamedTuple):
    """An event that can be published: what is read, what it writes, and what it changes."""

    done: Done
    opened: Opened
    prepared: Prepared
    change: Change | None


def append(
    request: Request,
    *,
    now: Callable[[], datetime],
    before_write: Callable[[], object],
) -> Appended:
    """Append an event to a shared collaboration.

    Raises:
        Refused: the event is not in the store (or, as `InDoubt` says, that is not known).
        OSError: a local file could not be written.
    """
    address = manifests.pinned_address(request.folder)
    if handover.is_synced(request.folder) and not request.edits:
        return handover.hand_over(request, Appended)
    with open_engine(address) as engine:
        return publish(request, address, engine, now=now, before_write=before_write)


def publish(
    request: Request,
    address: Address,
    engine: Engine,
    *,
    now: Callable[[], datetime],
    before_write: Callable[[], object],
) -> Appended:
    """Append an event by an engine that is open; see `append`."""
    host = hosts.this_host()
    until = time.monotonic() + _PATIENCE
    known = Known(address)
    with manifests.held(request.folder):
        for number in range(1, _TRIES + 1):
            try:
                ready = _first(request, engine, host, now, known if number == 1 else None)
                if ready.change is None:
                    return _already(request, ready)
                before_write()
                reach("before pending")
                pending.keep(request._replace(key=ready.prepared.entry.key))
                tip = engine.publish(ready.done.base.tip, ready.change)
            except TipMoved as error:
                if number == _TRIES or time.monotonic() > until:
                    raise Refused(f"not appended: {error}", CONFLICT) from None
                time.sleep(random.uniform(*_PAUSE))
                continue
            except StoreUnreachable as error:
                raise StoreUnreachable(
                    f"not appended: {error}. Your documents are untouched; run the same command again"
                ) from None
            leases = merged(ready.done.commit.leases, ready.change.leases)
            known.keep(tip, ready.change.protocol, leases)
            return _landed(request, engine, host, ready, tip)
    raise AssertionError("unreachable")


def _first(
    request: Request, engine: Engine, host: str, now: Callable[[], datetime], known: Known | None
) -> Ready:
    """Make the event under what is known; where that speaks against it, ask the store.

    Raises:
        Refused: as `_ready`.
    """
    base = manifests.read_base(request.folder)
    if known is not None and base is not None and known.at(base.tip) is not None:
        with contextlib.suppress(Refused):  # it may be allowed by now
            return _ready(request, engine, host, now(), known)
    return _ready(request, engine, host, now(), None)


def _ready(
    request: Request, engine: Engine, host: str, now: datetime, known: Known | None
) -> Ready:
    """Read what the store holds, and make the event under it. Publishes nothing.

    Raises:
        Refused: the event is not allowed, or its document was changed on both sides.
    """
    folder = request.folder
    base = manifests.read_base(folder)
    done = bring(folder, engine, base, host, documents.is_shared_name, known=known)
    if done.rogue and not done.kept_log:
        done = publish_rogue(folder, engine, done, host)
    if request.doc in done.kept:
        raise Refused(f"not appended: {done.notes[-1]}")
    tree = Tree(folder)
    with lock(folder, force=request.force, judged=True) as held:  # by who holds the folder
        opened = open_locked(folder, held.log)
    first = existing_event(opened, request)
    request = pending.keyed(request, opened)
    if first is None and request.event == "review_submitted" and request.review is None:
        renumbered = documents.renumber_review(folder, opened, request.participant)
        if renumbered is not None:
            tree.replace(review.REVIEW, renumbered)
    prepared = (
        Prepared(first, b"", b"", opened, existing=True)
        if first is not None
        else prepare(opened, request, now, _others(done.commit.leases, host))
    )
    prepared = prepared._replace(warnings=(*done.notes, *prepared.warnings))
    if prepared.existing:
        return Ready(done, opened, prepared, None)
    try:
        change, remarks = _change(request, done, opened, prepared, host)
    except LeaseElsewhere as error:
        raise silence.advised(error, manifests.pinned_address(folder), engine) from None
    prepared = prepared._replace(warnings=(*prepared.warnings, *remarks))
    return Ready(done, opened, prepared, change)


def _others(leases: Mapping[str, Lease], host: str) -> dict[str, str]:
    """Where participants act that do not act here."""
    return {who: each.host for who, each in leases.items() if each.host != host}


def _change(
    request: Request, done: Done, opened: Opened, prepared: Prepared, host: str
) -> tuple[Change, tuple[str, ...]]:
    """What the store is asked to take, and what is said about documents that stay here."""
    who, entry = request.participant, prepared.entry
    edits = {edit.name: edit.after for edit in prepared.edits}
    changed = changed_here(
        Tree(request.folder), done.base, documents.candidates(opened, request.doc)
    )
    allowed = documents.may_change(opened, who, request.doc)
    leaving: dict[str, bytes | None] = {n: data for n, data in changed.items() if n in allowed}
    remarks = documents.held_back(changed.keys() - edits.keys(), allowed, opened.machine.phase)
    machine = prepared.after.machine
    leases: dict[str, Lease | None] = {}
    lease = hosts.lease_for(done.commit.leases.get(who), who, "append", host, take=request.take)
    if lease is not None:
        leases[who] = lease
    if machine.phase == "completed":
        leases = dict.fromkeys([*done.commit.leases, *leases])
    change = Change(
        log=done.log + prepared.line,
        line=prepared.line,
        seq=entry.seq or 0,
        protocol=prepared.protocol,
        documents=leaving | edits,
        leases=leases,
        sender=who,
        key=entry.key or "",
        words=f"seq {entry.name} {entry.event}",
        account=hosts.account(),
        host=host,
        phase=machine.phase,
        waiting=tuple(machine.waiting),
        standing=list_state(prepared.after.protocol, prepared.after.history),
    )
    return change, remarks


def _landed(request: Request, engine: Engine, host: str, ready: Ready, tip: Tip) -> Appended:
    """The store has the event: write it here, too. What goes wrong from here on is a warning."""
    warnings = list(ready.prepared.warnings)
    try:
        _write(request, ready, tip)
    except (Moved, Refused, OSError) as error:
        try:
            base = manifests.read_base(request.folder)
            done = bring(request.folder, engine, base, host, documents.is_shared_name)
            warnings += done.notes
        except (Refused, OSError):
            reason = getattr(error, "strerror", None) or error
            warnings.append(
                f"the store has the event, this folder not yet ({reason}); `acp sync --once` brings it"
            )
    machine = ready.prepared.after.machine
    return Appended(
        ready.prepared.entry, machine.phase, tuple(machine.waiting), warnings=tuple(warnings)
    )


def _write(request: Request, ready: Ready, tip: Tip) -> None:
    """Documents first, then the log's line, then protocol.json, then the manifest."""
    prepared, change = ready.prepared, ready.change
    assert change is not None
    for edit in prepared.edits:
        reach("before document")
        edit.apply()
    with lock(request.folder, force=request.force, judged=True) as held:
        reach("before log")
        held.log.append(prepared.line, ready.opened.size)
        reach("before protocol")
        write_protocol(request.folder, prepared.protocol)
    files = dict(ready.done.base.files) | _entries(change)
    manifests.write_leases(request.folder, merged(ready.done.commit.leases, change.leases))
    reach("before base")
    manifests.write_base(request.folder, Base(tip, files))
    reach("after base")
    pending.settled(request)


def merged(before: Mapping[str, Lease], change: Mapping[str, Lease | None]) -> dict[str, Lease]:
    """The leases after a change."""
    return {who: lease for who, lease in {**before, **change}.items() if lease is not None}


def _entries(change: Change) -> dict[str, Entry]:
    """The manifest's entries for what a change holds."""
    there = {name: data for name, data in change.documents.items() if data is not None}
    there[schema.PROTOCOL_FILE] = change.protocol
    return {name: Entry(digest(data), len(data)) for name, data in there.items()}


def _already(request: Request, ready: Ready) -> Appended:
    """The event is in the store, and by now here, too."""
    machine = ready.opened.machine
    pending.settled(request)
    return Appended(
        ready.prepared.entry,
        machine.phase,
        tuple(machine.waiting),
        existing=True,
        warnings=ready.prepared.warnings,
    )


def publish_rogue(folder: str, engine: Engine, done: Done, host: str) -> Done:
    """Publish lines that a script appended here without acp, if nothing else has happened since.

    Raises:
        Refused: they are no legal continuation; they still stand in the local log.
        TipMoved: the store has moved on.
    """
    with lock(folder) as held:
        opened = open_locked(folder, held.log)
    known = take(folder, opened.protocol, done.log)
    new = list(opened.entries)[len(known.entries) :]
    problems = _problems(known, opened)
    if problems or not new:
        reason = "; ".join(problems) or "they are not events"
        raise Refused(
            f"events.jsonl has lines here that the store does not have, and cannot take ({reason}): remove them; "
            "append with `acp append`"
        )
    machine = opened.machine
    protocol = schema.encode_protocol(with_state(opened))
    changed = changed_here(Tree(folder), done.base, documents.candidates(opened, None))
    allowed = set().union(*(documents.may_change(known, e.sender, e.doc) for e in new))
    last = new[-1]
    whole = done.log + done.rogue
    leases: dict[str, Lease | None] = {}
    for sender in {each.sender for each in new}:
        lease = hosts.lease_for(done.commit.leases.get(sender), sender, "a script", host)
        if lease is not None:
            leases[sender] = lease
    change = Change(
        log=whole, line=done.rogue, seq=last.seq or 0, protocol=protocol,
        documents={n: data for n, data in changed.items() if n in allowed}, leases=leases,
        sender=last.sender, key=last.key or "", words=f"seq {last.name} {last.event}, appended by a script",
        account=hosts.account(), host=host, phase=machine.phase, waiting=tuple(machine.waiting),
        standing=list_state(opened.protocol, opened.history),
    )  # fmt: skip
    tip = engine.publish(done.base.tip, change)
    base = Base(tip, dict(done.base.files) | _entries(change))
    write_protocol(folder, protocol)
    held_now = merged(done.commit.leases, leases)
    manifests.write_leases(folder, held_now)
    manifests.write_base(folder, base)
    note = f"seq {last.name} was appended here without acp: it is published as it is"
    commit = done.commit._replace(tip=tip, leases=held_now)
    return done._replace(base=base, commit=commit, log=whole, rogue=b"", notes=(*done.notes, note))


def _problems(known: Opened, opened: Opened) -> list[str]:
    """What is wrong with the lines that were added."""
    new = opened.history.findings[len(known.history.findings) :]
    return [each.message for each in new if each.severity == "error"]
