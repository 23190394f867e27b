"""Appending where other hosts append, too: the store has the event before the folder has it.

The folder is brought to what the store holds, the event is checked against that with the documents
that were changed here, and published under exactly that tip; where somebody else was first, all of
it happens again. Only then are documents, log and protocol.json written here. What was changed here
and on another host is settled by `settle`, `merge` and `again`: nothing is deleted, what gave way stays in ``.acp/kept``,
marked as settled. Standard library only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from acp_core.files import atomic
from acp_core.files.locked import Moved
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.person import settings
from acp_core.protocols.folder.read import following
from acp_core.protocols.folder.read.current_state import list_state
from acp_core.protocols.folder.schema import deliverables, records
from acp_core.protocols.folder.schema.records import Entry as LogEntry
from acp_core.protocols.folder.write import edits, handover
from acp_core.protocols.folder.write import edits as write_edits
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
from acp_core.stores import address as stores_address
from acp_core.stores import base as manifests
from acp_core.stores import hosts
from acp_core.stores import tree as stores_tree
from acp_core.stores.address import Address
from acp_core.stores.base import Base, Entry, TipCache, digest
from acp_core.stores.engine import (
    REFUSED,
    REWRITTEN,
    UNREACHABLE,
    Change,
    Engine,
    Lease,
    StoreUnreachable,
    Tip,
    TipMoved,
    fault_point,
)
from acp_core.stores.hosts import LeaseElsewhere, open_engine
from acp_core.stores.materialise import Done, bring, changed_here
from acp_core.stores.tree import SETTLED, Tree

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
    address = stores_address.pinned_address(request.folder)
    if following.is_synced(request.folder) and not request.edits:
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
    known = TipCache(address)
    with manifests.held(request.folder):
        for number in range(1, _TRIES + 1):
            try:
                ready = _first(request, engine, host, now, known if number == 1 else None)
                if ready.change is None:
                    return _already(request, ready)
                before_write()
                fault_point("before pending")
                keep(request._replace(key=ready.prepared.entry.key))
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
    request: Request, engine: Engine, host: str, now: Callable[[], datetime], known: TipCache | None
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
    request: Request, engine: Engine, host: str, now: datetime, known: TipCache | None
) -> Ready:
    """Read what the store holds, and make the event under it. Publishes nothing.

    Raises:
        Refused: the event is not allowed, or its document was changed on both sides.
    """
    folder = request.folder
    base = manifests.read_base(folder)
    done = bring(folder, engine, base, host, is_shared_name, known=known)
    if done.rogue and not done.kept_log:
        done = publish_rogue(folder, engine, done, host)
    if request.doc in done.kept:
        raise Refused(f"not appended: {done.notes[-1]}")
    tree = Tree(folder)
    with lock(folder, force=request.force, judged=True) as held:  # by who holds the folder
        opened = open_locked(folder, held.log)
    first = existing_event(opened, request)
    request = keyed(request, opened)
    if first is None and request.event == "review_submitted" and request.review is None:
        renumbered = renumber_review(folder, opened, request.participant)
        if renumbered is not None:
            tree.replace(write_edits.REVIEW, renumbered)
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
        raise hosts.advised(error, stores_address.pinned_address(folder), engine) from None
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
    changed = changed_here(Tree(request.folder), done.base, candidates(opened, request.doc))
    allowed = may_change(opened, who, request.doc)
    leaving: dict[str, bytes | None] = {n: data for n, data in changed.items() if n in allowed}
    remarks = held_back(changed.keys() - edits.keys(), allowed, opened.machine.phase)
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
            done = bring(request.folder, engine, base, host, is_shared_name)
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
        fault_point("before document")
        edit.apply()
    with lock(request.folder, force=request.force, judged=True) as held:
        fault_point("before log")
        held.log.append(prepared.line, ready.opened.size)
        fault_point("before protocol")
        write_protocol(request.folder, prepared.protocol)
    files = dict(ready.done.base.files) | _entries(change)
    manifests.write_leases(request.folder, merged(ready.done.commit.leases, change.leases))
    fault_point("before base")
    manifests.write_base(request.folder, Base(tip, files))
    fault_point("after base")
    settled(request)


def merged(before: Mapping[str, Lease], change: Mapping[str, Lease | None]) -> dict[str, Lease]:
    """The leases after a change."""
    return {who: lease for who, lease in {**before, **change}.items() if lease is not None}


def _entries(change: Change) -> dict[str, Entry]:
    """The manifest's entries for what a change holds."""
    there = {name: data for name, data in change.documents.items() if data is not None}
    there[records.PROTOCOL_FILE] = change.protocol
    return {name: Entry(digest(data), len(data)) for name, data in there.items()}


def _already(request: Request, ready: Ready) -> Appended:
    """The event is in the store, and by now here, too."""
    machine = ready.opened.machine
    settled(request)
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
    protocol = records.encode_protocol(with_state(opened))
    changed = changed_here(Tree(folder), done.base, candidates(opened, None))
    allowed = set().union(*(may_change(known, e.sender, e.doc) for e in new))
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


README = "README.md"

_NOTES = (".md", ".txt")
"""Endings of documents that are shared because an event names them."""

_DOC = re.compile(rb'"doc"\s*:\s*("(?:[^"\\]|\\.)*")')

_OWNERS = frozenset({README, "proposal.md", "decisions.md", "readiness.md"})

_ALWAYS = frozenset({*records.DOCUMENTS, README})


def shared_names(protocol: Mapping[str, Any]) -> frozenset[str]:
    """The documents that are shared by what protocol.json says, without those that events name."""
    declared = deliverables.declare(dict(protocol))
    inside = declared.mode == deliverables.INTERNAL
    listed = [each.reference for each in declared.all] if inside else []
    return _ALWAYS | {name for name in listed if not stores_tree.against(name)}


def is_shared_name(protocol: bytes, log: bytes) -> Callable[[str], bool]:
    """Which names are shared, by protocol.json and the log as the store has them."""
    try:
        listed = shared_names(records.decode_protocol(protocol))
    except ValueError:
        listed = _ALWAYS

    def may(path: str) -> bool:
        if path in listed:
            return True
        return is_note(path) and path in _named(log)

    return may


def is_note(name: str) -> bool:
    """Whether a document may be shared because an event names it."""
    return name.lower().endswith(_NOTES) and not stores_tree.against(name)


def _named(log: bytes) -> set[str]:
    """The documents that events name."""
    found = set()
    for each in set(_DOC.findall(log)):
        try:
            found.add(str(json.loads(each)))
        except ValueError:
            continue
    return found


def candidates(opened: Opened, doc: str | None) -> set[str]:
    """The documents that may leave this host now, whoever changed them."""
    found = set(shared_names(opened.protocol))
    if doc and is_note(doc):
        found.add(doc)
    return found - {records.PROTOCOL_FILE, records.LOG_FILE}


def may_change(opened: Opened, participant: str, doc: str | None = None) -> frozenset[str]:
    """The documents that a participant may change in the present phase.

    Args:
        opened: the collaboration.
        participant: who changed them.
        doc: the document that the participant's event is about.
    """
    machine = opened.machine
    phase, owner = machine.phase, participant == machine.owner
    declared = deliverables.declare(opened.protocol)
    products = {each.reference for each in declared.all if declared.mode == deliverables.INTERNAL}
    named = {doc} if doc else set()
    if phase in ("drafting", "revising"):
        return frozenset((_OWNERS | products if owner else set()) | named)
    if phase == "reviewing":
        return frozenset(({edits.REVIEW} if not owner else set()) | named)
    if phase == "decision_review":
        mine = {"readiness.md", "decisions.md", *products} if owner else set()
        return frozenset(mine | {"readiness.md"} | named)
    if phase == "readiness_check":
        mine = {"conclusion.md", "decisions.md", *products} if owner else set()
        return frozenset(mine | {"readiness.md"} | named)
    return frozenset(named if phase == "blocked" else ())


def held_back(changed: Iterable[str], allowed: Iterable[str], phase: str) -> tuple[str, ...]:
    """What is said of documents that were changed and do not leave."""
    out = sorted(set(changed) - set(allowed))
    return tuple(f"{name} changed during {phase}: not shared" for name in out)


def renumber_review(folder: str, opened: Opened, participant: str) -> bytes | None:
    """review.md with the participant's new review under the seq that its event will have.

    Another host's event may have taken the seq that the reviewer had in mind.

    Returns:
        None where nothing is to be changed.
    """
    path = os.path.join(folder, edits.REVIEW)
    data = edits.content(edits.REVIEW, path)
    done = {
        e.seq for e in opened.entries if e.event == "review_submitted" and e.sender == participant
    }
    own = [
        each
        for each in edits.blocks(data)
        if each.participant == participant and each.seq not in done
    ]
    if not own or own[-1].seq == opened.next_seq:
        return None
    block = own[-1]
    end = data.find(b"\n", block.start)
    line = edits.heading(block.when, participant, opened.next_seq).encode()
    return data[: block.start] + line + data[end if end >= 0 else len(data) :]


_LEASE_TRIES = 5


def release(folder: str, engine: Engine, participants: Sequence[str] = ()) -> tuple[str, ...]:
    """Give back the leases that this account has on this host; those of all where none is named.

    Raises:
        Refused: the store cannot be reached, or refuses it.
    """
    host, account = hosts.this_host(), hosts.account()

    def given_back(held: Mapping[str, Lease]) -> dict[str, Lease | None]:
        mine = (who for who, each in held.items() if (each.host, each.account) == (host, account))
        return {who: None for who in mine if not participants or who in participants}

    return tuple(_lease(folder, engine, given_back, "given back"))


def take_lease(
    folder: str, engine: Engine, participant: str, by: str, *, take: bool = False
) -> None:
    """Have a participant act on this host, unless it acts on another one.

    Args:
        folder: the shared folder.
        engine: its store.
        participant: who is to act.
        by: the command that takes it.
        take: move it here from wherever it acts.

    Raises:
        LeaseElsewhere: it acts on another host, and is not to be moved.
        Refused: the store cannot be reached, or refuses it.
    """

    def taken(held: Mapping[str, Lease]) -> dict[str, Lease | None]:
        lease = hosts.lease_for(
            held.get(participant), participant, by, hosts.this_host(), take=take
        )
        return {participant: lease} if lease else {}

    _lease(folder, engine, taken, "acts here")


def _lease(
    folder: str,
    engine: Engine,
    wanted: Callable[[Mapping[str, Lease]], dict[str, Lease | None]],
    words: str,
) -> dict[str, Lease | None]:
    """Change leases as the store's own demand; what was changed."""
    host = hosts.this_host()
    with manifests.held(folder):
        for _ in range(_LEASE_TRIES):
            base = manifests.read_base(folder)
            done = bring(folder, engine, base, host, is_shared_name)
            leases = wanted(done.commit.leases)
            if not leases:
                return {}
            change = _without_event(done, f"{words}: {', '.join(leases)}")._replace(leases=leases)
            try:
                tip = engine.publish(done.base.tip, change)
            except TipMoved:
                continue
            after = {**done.commit.leases, **leases}
            manifests.write_leases(folder, {k: v for k, v in after.items() if v is not None})
            manifests.write_base(folder, Base(tip, done.base.files))
            return leases
    raise Refused("the store keeps moving on: try again")


def _without_event(done: Done, words: str) -> Change:
    """A change in which the log stays as it is."""
    return Change(
        log=done.log, line=None, seq=done.base.tip.seq, protocol=done.commit.protocol, words=words,
        account=hosts.account(), host=hosts.this_host(),
    )  # fmt: skip


FILE = os.path.join(".acp", "run", "pending.json")

_LIMIT = 1 << 20


def keyed(request: Request, opened: Opened) -> Request:
    """The request with a key: its own, that of an unsettled call of the same words, or a new one.

    Whoever writes in the folder can write down any key. One that the log has for something else is
    not taken: the event would be said to be appended, and no log would have it.
    """
    if request.key is not None:
        return request
    known = _read(request.folder).get(request.participant)
    if isinstance(known, dict) and known.get("words") == _words(request):
        key = known.get("key")
        if isinstance(key, str) and key and _is_of(request._replace(key=key), opened):
            return request._replace(key=key)
    return request._replace(key=f"acp-{os.urandom(8).hex()}")


def _is_of(request: Request, opened: Opened) -> bool:
    """Whether the log has a request's key for nothing else than the request."""
    found = existing_event(opened, request)
    if found is None:
        return True
    asked = (request.event, request.summary, request.doc, request.reply_to, request.role)
    return (found.event, found.summary, found.doc, found.reply_to, found.role) == asked


def keep(request: Request) -> None:
    """Keep the key of a request that is published now; the caller holds the folder.

    Raises:
        OSError: it cannot be kept; then nothing may be published.
    """
    value = _read(request.folder)
    value[request.participant] = {"words": _words(request._replace(key=None)), "key": request.key}
    _write_pending(request.folder, value, sync=True)


def settled(request: Request) -> None:
    """It is known what came of the participant's request."""
    value = _read(request.folder)
    if value.pop(request.participant, None) is not None:
        _write_pending(request.folder, value, sync=False)


def _words(request: Request) -> str:
    """What makes two calls one: all that a participant says, without the key."""
    said = [request.participant, request.event, request.summary, request.doc, request.reply_to,
            request.role, request.sha256, request.review]  # fmt: skip
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _read(folder: str) -> dict[str, Any]:
    try:
        value = json.loads(read_bounded(os.path.join(folder, FILE), _LIMIT))
    except (Unreadable, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _write_pending(folder: str, value: dict[str, Any], *, sync: bool) -> None:
    atomic.replace(os.path.join(folder, FILE), json.dumps(value).encode() + b"\n", sync=sync)


_SYNC_TRIES = 5


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
        for _ in range(_SYNC_TRIES):
            base = manifests.read_base(folder)
            done = bring(folder, engine, base, host, is_shared_name)
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
        done = publish_rogue(folder, engine, done, host)
        notes = (*notes, done.notes[-1])
    with lock(folder) as held:
        opened = open_locked(folder, held.log)
    changed = changed_here(Tree(folder), done.base, candidates(opened, None))
    me = (host, hosts.account())
    here = [p for p, lease in done.commit.leases.items() if (lease.host, lease.account) == me]
    allowed = set().union(*(may_change(opened, each) for each in here))
    left = {name: data for name, data in changed.items() if name in allowed}
    notes = (*notes, *held_back(changed, allowed, opened.machine.phase))
    if not left:
        return Synced(came, (), notes, done)
    machine = opened.machine
    change = _without_event(done, f"documents: {', '.join(left)}")._replace(
        seq=opened.last_seq, documents=left, phase=machine.phase, waiting=tuple(machine.waiting),
        standing=list_state(opened.protocol, opened.history),
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
    if name in (*records.REQUIRED_FILES, README):
        raise Refused(f"{name} is required: it cannot be deleted")
    host = hosts.this_host()
    with manifests.held(folder):
        done = bring(folder, engine, manifests.read_base(folder), host, is_shared_name)
        if name not in done.base.files:
            raise Refused(f"{clean_line(name, 200)} is not in the store")
        change = _without_event(done, f"documents: {name} deleted")
        change = change._replace(documents={name: None})
        tip = engine.publish(done.base.tip, change)
        Tree(folder).remove(name)
        files = {each: entry for each, entry in done.base.files.items() if each != name}
        manifests.write_base(folder, Base(tip, files))


_MARKS = (b"<<<<<<< ", b">>>>>>> ")

_FALLBACKS = ("nano", "vim", "vi")


def _nothing() -> None:
    pass


def settle(folder: str, name: str, *, mine: bool) -> str:
    """Settle a document that was changed on both sides; a sentence on it.

    Args:
        folder: the shared folder.
        name: the document.
        mine: take the local text that gave way; else the store's, which stands there.

    Raises:
        Refused: nothing was kept of it.
        OSError: it cannot be written.
    """
    tree = Tree(folder)
    kept = _kept_names(tree, name)
    if mine and name in (records.LOG_FILE, records.PROTOCOL_FILE):
        raise Refused(
            f"{name} is always the store's; `acp sync --again` appends the events again that are still allowed"
        )
    with manifests.held(folder):
        data = tree.read(kept[-1])
        if mine and data is not None:
            tree.replace(name, data)
        _mark(folder, kept)
    return (
        f"{name} is yours again; it is published with the next event"
        if mine
        else f"{name} stays as the store has it"
    )


def _kept_names(tree: Tree, name: str) -> list[str]:
    """What is kept of a document.

    Raises:
        Refused: nothing is, or the name is none.
    """
    if reason := stores_tree.against(name):
        raise Refused(f"{clean_line(name, 200)} is not shared: {reason}")
    kept = tree.kept_copies(name)
    if not kept:
        raise Refused(f"acp kept no copy of {clean_line(name, 200)}")
    return kept


def _mark(folder: str, kept: list[str]) -> None:
    for each in kept:
        os.rename(os.path.join(folder, each), os.path.join(folder, f"{each}{SETTLED}"))


def merge(folder: str, name: str) -> str:
    """Have a person merge a document that was changed on both sides, in an editor; a sentence on it.

    The editor opens four files: the document, to be edited (merged as far as git can), then the
    local text, the one before both changes, and the store's.

    Raises:
        Refused: nothing was kept of it, there is no editor, or the person did not finish.
        OSError: it cannot be written.
    """
    tree = Tree(folder)
    kept = _kept_names(tree, name)
    if name in (records.LOG_FILE, records.PROTOCOL_FILE):
        raise Refused(f"{name} cannot be merged: it is always the store's")
    command = _editor()
    theirs = tree.read(name) or b""
    texts = {
        "yours": tree.read(kept[-1]) or b"",
        "before": tree.read(tree.before(kept[-1])) or b"",
        "store": theirs,
    }
    place = tempfile.mkdtemp(prefix="acp-merge-")
    paths = {each: os.path.join(place, f"{each}.md") for each in texts}
    for each, data in texts.items():
        _write_file(paths[each], data)
    draft = os.path.join(place, f"merged-{os.path.basename(name)}")
    _write_file(draft, _draft(paths, texts))
    ended = subprocess.run([*command, draft, *paths.values()], check=False).returncode
    with open(draft, "rb") as file:
        merged = file.read()
    if ended:
        raise Refused(f"{command[0]} ended with {ended}: nothing was changed; the draft is {draft}")
    if any(line.startswith(_MARKS) for line in merged.splitlines()):
        raise Refused(f"the draft still has conflict marks: nothing was changed; it is {draft}")
    with manifests.held(folder):
        if (tree.read(name) or b"") != theirs:
            raise Refused(
                f"{name} has changed meanwhile: nothing was changed; the draft is {draft}"
            )
        tree.replace(name, merged)
        _mark(folder, kept)
    shutil.rmtree(place, ignore_errors=True)
    return f"{name} is merged; it is published with the next event"


def _write_file(path: str, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)


def _draft(paths: Mapping[str, str], texts: Mapping[str, bytes]) -> bytes:
    """Both changes in one text, with marks where they touch; the store's text where git cannot."""
    labels = [word for each in paths for word in ("-L", each)]
    command = ["git", "merge-file", "-p", *labels, *paths.values()]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    try:
        done = subprocess.run(command, capture_output=True, check=False, env=kept, cwd="/")
    except OSError:
        return texts["store"]
    return done.stdout if done.returncode < 128 else texts["store"]


def _editor() -> list[str]:
    """The person's editor.

    Raises:
        Refused: none is named, and none of the usual ones is there.
    """
    try:
        named = settings.load().editor
    except settings.SettingsError as error:
        raise Refused(str(error)) from None
    for text in (named, os.environ.get("VISUAL"), os.environ.get("EDITOR")):
        if text and text.strip():
            try:
                return shlex.split(text)
            except ValueError as error:
                raise Refused(f"the editor's command cannot be read: {error}") from None
    for name in _FALLBACKS:
        if path := shutil.which(name):
            return [path]
    raise Refused("no editor: set VISUAL or EDITOR, or editor in config.toml")


class Again(NamedTuple):
    """What came of events that were appended again: a sentence each, and whether one was refused."""

    lines: tuple[str, ...]
    refused: bool


def again(folder: str) -> Again:
    """Append the events again that a script appended here without acp, and that gave way.

    Each gets a new seq and time; what it replied to stays, unless that gave way, too. Each has a
    key, so that the same call again repeats none.

    Raises:
        Refused: nothing is kept, or the store cannot be reached.
    """
    tree = Tree(folder)
    kept = tree.kept_copies(records.LOG_FILE)
    if not kept:
        raise Refused("no events were moved away here")
    lines: list[str] = []
    refused = False
    for each in kept:
        data = tree.read(each) or b""
        found = _append_all(folder, data if data.endswith(b"\n") else data + b"\n")
        lines += found.lines
        refused |= found.refused
        if not found.refused:
            _mark(folder, [each])
    return Again(tuple(lines), refused)


def _append_all(folder: str, data: bytes) -> Again:
    lines: list[str] = []
    refused = False
    numbers: dict[int, int | None] = {}
    for raw in data.splitlines():
        entry = records.parse_line(raw, len(lines) + 1)
        if not isinstance(entry, LogEntry):
            if entry is not None:
                lines.append("not appended: a line is not an event")
                refused = True
            continue
        said = clean_line(f"seq {entry.name} {entry.event} from {entry.sender}", 300)
        seq: int | None = None
        try:
            seq = _append(folder, entry, digest(raw), numbers)
            lines.append(f"{said}: appended as seq {seq}")
        except Refused as error:
            if error.code in (UNREACHABLE, REFUSED, REWRITTEN):
                raise
            refused = True
            lines.append(f"{said}: {clean_line(str(error), 500)}")
        if entry.seq is not None:
            numbers[entry.seq] = seq
    return Again(tuple(lines), refused)


def _append(
    folder: str, entry: LogEntry, name: str, numbers: Mapping[int, int | None]
) -> int | None:
    """Append one event again; its new seq."""
    reply_to = entry.reply_to
    if reply_to is not None and reply_to in numbers:
        reply_to = numbers[reply_to]
        if reply_to is None:
            raise Refused("not appended: it replies to an event that was not appended")
    request = Request(
        folder,
        entry.sender,
        entry.event,
        entry.summary or "",
        doc=entry.doc,
        reply_to=reply_to,
        role=entry.role,
        sha256=entry.sha256,
        key=entry.key or f"again-{name[:24]}",
    )
    done = append(request, now=_now, before_write=_nothing)
    return done.entry.seq


def _now() -> datetime:
    return datetime.now(UTC)
