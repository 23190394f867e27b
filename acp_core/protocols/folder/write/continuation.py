"""Going on in a new folder where a collaboration has ended: blocked, or completed.

No event leads out of ``blocked``, and none follows ``completed`` (folder protocol
specification, "Phases"): going on means a new collaboration that carries the documents and the
accepted decisions, with the blocker and its answer at the top of the proposal. Each folder
names the other in protocol.json. Standard library only.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from typing import Any, NamedTuple

from acp_core import __version__
from acp_core.files import atomic, claims
from acp_core.files.atomic import Unreadable, read_bounded
from acp_core.files.markdown import normalise
from acp_core.model.errors import Refused
from acp_core.protocols.folder.read.current_state import list_state
from acp_core.protocols.folder.schema import deliverables, documents, records
from acp_core.protocols.folder.schema.records import (
    Entry,
    id_in,
    is_shared,
    list_in,
    object_in,
    path_of,
    text_in,
)
from acp_core.protocols.folder.write import init, shared, sharing
from acp_core.protocols.folder.write.append import write_protocol
from acp_core.protocols.folder.write.init import Charter, Extras, File, charter_of, files, start
from acp_core.protocols.folder.write.opened import Opened, lock, open_locked, refuse_lockless
from acp_core.protocols.registry import load
from acp_core.stores import address as stores_address
from acp_core.stores import base as manifests
from acp_core.stores import hosts
from acp_core.stores.address import Address
from acp_core.stores.base import Base, digest
from acp_core.stores.base import Entry as StoredFile
from acp_core.stores.engine import Change, Engine, HostState, Lease, SharingError
from acp_core.stores.hosts import open_engine
from acp_core.stores.tree import Tree

_SHARED = "acp_core.protocols.folder.write.continuation"

_UNKNOWN = "unknown"

CONTINUES, CONTINUED_BY = "continues", "continued_by"

_NOT_CARRIED = (
    "currentPhase",
    "proposalOwner",
    "waitingFor",
    "createdAt",
    "updatedAt",
    "rebuilt",
    CONTINUES,
    CONTINUED_BY,
)

_NUMBERED = re.compile(r"(.+)-([1-9][0-9]{0,5})")


class Continued(NamedTuple):
    """The new folder; ``created`` are its files, ``existed`` says that it was finished before."""

    folder: str
    created: tuple[str, ...]
    existed: bool = False


class Plan(NamedTuple):
    """What continuing would write: the new folder's files, and the old one's protocol.json."""

    old: Opened
    folder: str
    charter: Charter
    files: list[File]
    old_protocol: bytes


def continue_in_new_folder(
    old: str,
    new: str | None,
    answer: str,
    *,
    objective: str = "",
    force: bool = False,
) -> Continued:
    """Start the new collaboration, and let each folder name the other.

    Args:
        old: the folder of a completed or blocked collaboration, or of one whose log is full.
        new: the new folder; None takes the old one's name with the next number.
        answer: what a person says to the blocker, or why it goes on; asked for when blocked.
        objective: a new objective; the old one where blank.
        force: insist on a file system where locks protect nothing.

    Raises:
        Refused: it cannot be continued, or not there.
        OSError: a file could not be written; running it again goes on from there.
    """
    if is_shared(old):
        load(f"{_SHARED}:before")(old)
    with lock(old, force=force) as held:
        opened = open_locked(old, held.log, full=True)
        plan = prepare(opened, new, answer, objective=objective, now=datetime.now(UTC))
        refuse_lockless(plan.folder, force)
        existed = os.path.lexists(path_of(plan.folder, records.PROTOCOL_FILE))
        created: tuple[str, ...] = ()
        if not existed:
            created = start(plan.folder, plan.charter, plan.files, resume=True).created
        if records.encode_protocol(opened.protocol) != plan.old_protocol:
            write_protocol(old, plan.old_protocol)
    if is_shared(old):
        load(f"{_SHARED}:after")(old, plan.folder)
    return Continued(plan.folder, created, existed)


def prepare(
    opened: Opened, new: str | None, answer: str, *, objective: str = "", now: datetime
) -> Plan:
    """What continuing would write. Writes nothing.

    Raises:
        Refused: it cannot be continued, or not there.
    """
    phase = left_in(opened)
    if not phase:
        raise Refused(
            "only a completed or blocked collaboration can be continued; "
            f"this one is in {opened.machine.phase or 'no phase'}"
        )
    if phase == "blocked" and not answer.strip():
        raise Refused("--answer must not be blank: it says how the blocker is resolved")
    folder = new_folder(opened, new)
    charter = _charter(opened, folder, objective)
    lineage = {"phase": phase, "at": records.format_time(now)}
    started = _started_before(opened.folder, folder)
    if started and started != _UNKNOWN:
        lineage["at"] = started
    texts = carried_texts(opened, charter, folder, answer)
    protocol = _protocol(opened, charter) | {
        CONTINUES: {"path": relative(opened.folder, folder), **lineage}
    }
    name = os.path.basename(os.path.realpath(opened.folder))
    extras = Extras(
        protocol,
        texts,
        tuple(deliverable_files(opened, charter, folder)),
        f"Continued from {name}",
    )
    made = files(charter, folder, now, extras)
    if not started:
        _refuse_strangers(folder, made)
    named = {CONTINUED_BY: {"path": relative(folder, opened.folder), **lineage}}
    return Plan(opened, folder, charter, made, records.encode_protocol(opened.protocol | named))


def left_in(opened: Opened) -> str:
    """The phase in which a collaboration is left for a new folder; "" where it goes on itself.

    It ended, or no event can follow: no participant can append one, not even ``blocked``.
    """
    machine = opened.machine
    return machine.ending or ((machine.phase or _UNKNOWN) if opened.full else "")


def new_folder(opened: Opened, new: str | None) -> str:
    """Where the new collaboration goes."""
    known = _known(opened)
    if new is None:
        new = known or _next_name(opened)
    elif known and os.path.realpath(known) != os.path.realpath(new):
        raise Refused(f"already continued in {known}")
    real, here = os.path.realpath(new), os.path.realpath(opened.folder)
    if real == here or real.startswith(here + os.sep):
        raise Refused("the new folder must not be inside the old one")
    return new


def _known(opened: Opened) -> str:
    """The folder in which it was continued before; "" where none says so itself.

    The path in protocol.json is data: it counts only if the collaboration there names this one.
    """
    path = text_in(object_in(opened.protocol, CONTINUED_BY), "path")
    if not path or "\0" in path:
        return ""
    folder = os.path.normpath(os.path.join(opened.folder, path))
    return folder if _started_before(opened.folder, folder) else ""


def _next_name(opened: Opened) -> str:
    """The folder's name with the next number that is free, or that a killed run began with."""
    real = os.path.realpath(opened.folder)
    numbered = _NUMBERED.fullmatch(os.path.basename(real))
    stem = numbered.group(1) if numbered else os.path.basename(real)
    number = int(numbered.group(2)) if numbered else 1
    while True:
        number += 1
        path = os.path.join(os.path.dirname(real), f"{stem}-{number}")
        if not os.path.lexists(path) or _started_before(opened.folder, path):
            return path
        if _is_half_made(opened, path):
            return path


def _is_half_made(opened: Opened, folder: str) -> bool:
    """Whether a folder holds nothing, or some of our files but not the last one."""
    declared = deliverables.declare(opened.protocol).all
    ours = {init.README, *records.REQUIRED_FILES} - {records.PROTOCOL_FILE}
    ours.update(item.reference.partition("/")[0] for item in declared)
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    return all(name in ours or atomic.is_leftover(name) for name in names)


def _started_before(old: str, new: str) -> str:
    """When ``new`` was started as the continuation of ``old``; "" where it was not."""
    try:
        protocol = records.decode_protocol(
            read_bounded(path_of(new, records.PROTOCOL_FILE), records.MAX_PROTOCOL)
        )
    except (Unreadable, ValueError):
        return ""
    named = object_in(protocol, CONTINUES)
    path = text_in(named, "path")
    if not path or "\0" in path:
        return ""
    same = os.path.realpath(os.path.join(new, path)) == os.path.realpath(old)
    return (text_in(named, "at") or _UNKNOWN) if same else ""


def _refuse_strangers(folder: str, made: list[File]) -> None:
    """Refuse a folder with anything in it but what a killed run of this very command left."""
    if not os.path.lexists(folder):
        return
    ours = {os.path.normpath(file.path): file for file in made}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.normpath(os.path.join(parent, name))
            file = ours.get(path)
            if atomic.is_leftover(name):
                continue
            if file is None or not _is_ours(file):
                raise Refused(
                    f"{folder} holds other files ({name}): name another folder, or empty it"
                )


def _is_ours(file: File) -> bool:
    try:
        there = read_bounded(file.path, records.MAX_LOG)
    except Unreadable:
        return False
    if file.name != records.LOG_FILE:
        return there in (b"", file.data)
    found = [item for item in records.parse_lines(there) if isinstance(item, Entry)]
    wanted = records.parse_line(file.data.rstrip(b"\n"), 1)
    return (
        len(found) <= 1
        and isinstance(wanted, Entry)
        and all(
            (e.event, e.sender, e.summary) == (wanted.event, wanted.sender, wanted.summary)
            for e in found
        )
    )


def _charter(opened: Opened, folder: str, objective: str) -> Charter:
    charter = charter_of(opened.protocol)
    owner = opened.machine.owner or charter.owner
    others = tuple(name for name in charter.participants if name != owner)
    charter = charter._replace(
        participants=(owner, *others), objective=objective.strip() or charter.objective
    )
    primary = charter.primary
    if primary and primary.repo_root is not None:
        root = os.path.realpath(os.path.join(opened.folder, primary.repo_root))
        charter = charter._replace(primary=primary._replace(repo_root=relative(root, folder)))
    return charter


def _protocol(opened: Opened, charter: Charter) -> dict[str, Any]:
    """The old protocol.json without what is over; keys that we do not know are carried."""
    kept = {key: value for key, value in opened.protocol.items() if key not in _NOT_CARRIED}
    listed = list_in(opened.protocol, "participants")
    kept["participants"] = [
        next((item for item in listed if id_in(item) == name), {"id": name})
        for name in charter.participants
    ]
    kept["objective"] = charter.objective
    if charter.primary is not None and isinstance(kept.get("deliverables"), dict):
        block = dict(kept["deliverables"])
        block["supporting"] = [
            item | {"frozen": False} if isinstance(item, dict) and "frozen" in item else item
            for item in list_in(block, "supporting")
        ]
        kept["deliverables"] = block
        if charter.primary.repo_root is not None:
            kept["repoRoot"] = charter.primary.repo_root
    return kept


_REVIEW = re.compile(r"^##(?=[ \t])", re.MULTILINE)

_FROZEN = re.compile(r"^Status:[ \t]*(?:Frozen|In Review)[ \t]*$", re.MULTILINE)

_AGAIN = (
    "- [unresolved] The questions below are those of the collaboration before: look at each "
    "again, then remove this line."
)

_FULL = "Its events.jsonl had reached the limit of acp: no event could follow."


def relative(target: str, start: str) -> str:
    """The way from one folder to another, for protocol.json and documents."""
    return os.path.relpath(os.path.realpath(target), os.path.realpath(start))


def carried_texts(opened: Opened, charter: Charter, folder: str, answer: str) -> dict[str, str]:
    """The documents of the new collaboration that are not those of a fresh one."""
    texts = {
        "proposal.md": _proposal(opened, charter, folder, answer),
        "review.md": _reviews(opened, charter),
        "readiness.md": _readiness(opened, charter),
    }
    decisions = _text(opened, "decisions.md")
    if decisions.strip():
        texts["decisions.md"] = decisions
    return texts


def _proposal(opened: Opened, charter: Charter, folder: str, answer: str) -> str:
    """The old proposal, and on top of it how the last collaboration ended and what is said to it."""
    phase = opened.machine.ending
    endings = [entry for entry in opened.entries if entry.event == phase]
    what = "\n\n".join(_ending(entry, phase) for entry in endings) or _FULL
    before = relative(opened.folder, folder)
    title = "Answer" if phase == "blocked" else "Why It Continues"
    told = answer.strip() or (
        "The work continues from its conclusion." if endings else "The work continues as it stood."
    )
    old = _without_title(_text(opened, "proposal.md"))
    return f"""\
# Proposal

## Continued From

This continues the collaboration in `{before}`. {what}

## {title}

{told}

## Purpose Now

{charter.objective}

## What Was Proposed Before

{_one_deeper(old).strip() or "Nothing."}
"""


def _ending(entry: Entry, phase: str) -> str:
    return f"It was {phase} by {entry.sender} (seq {entry.name}, {entry.at}):\n\n{_quoted(entry.summary)}"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines() or [""])


def _without_title(text: str) -> str:
    return re.sub(r"\A\s*# [^\n]*\n?", "", text)


def _one_deeper(text: str) -> str:
    """The same text with its headings one level further down."""
    return re.sub(r"^(#{1,5})(?=[ \t])", r"#\1", text, flags=re.MULTILINE)


def _reviews(opened: Opened, charter: Charter) -> str:
    """A fresh review.md, followed by the old reviews; their headings belong to no event here."""
    fresh = init.document(charter, "review.md")
    old = _without_title(_text(opened, "review.md"))
    headings = documents.scan_review(old).headings.values()
    if not headings:
        return fresh
    first = min(heading.line for heading in headings)
    reviews = "\n".join(old.split("\n")[first - 1 :])
    deeper = _REVIEW.sub("###", reviews).strip()
    return f"{fresh}\n## Reviews Of The Collaboration Before\n\n{deeper}\n"


def _readiness(opened: Opened, charter: Charter) -> str:
    """A fresh readiness.md with the questions that were listed before; gates are open again."""
    fresh = init.document(charter, "readiness.md")
    items = documents.scan_readiness(_text(opened, "readiness.md")).items
    if not items:
        return fresh
    carried = "\n".join(f"- [{item.word}] {item.text}".rstrip() for item in items)
    line = next(line for line in fresh.split("\n") if line.startswith("- [unresolved]"))
    return fresh.replace(line, f"{_AGAIN}\n{carried}", 1)


def deliverable_files(opened: Opened, charter: Charter, folder: str) -> list[File]:
    """The deliverables that lie in the old folder, to be worked on further."""
    declaration = deliverables.declare(opened.protocol)
    if charter.primary is None or declaration.mode != deliverables.INTERNAL:
        return []  # external ones stay where they are
    root = deliverables.root_of(declaration, opened.folder)
    here = deliverables.Root(os.path.realpath(folder))
    carried = []
    for item in declaration.all:
        path = deliverables.path_of(declaration, item, root)
        target = deliverables.path_of(declaration, item, here)
        if path is None or target is None:
            continue
        try:
            data = read_bounded(path, records.MAX_DOCUMENT)
        except Unreadable:
            continue
        if item.role != "attachment":
            data = _FROZEN.sub("Status: Draft", data.decode(errors="replace")).encode()
        carried.append(File(item.reference, target, data))
    return carried


def _text(opened: Opened, name: str) -> str:
    """A document of the old folder, "" where it cannot be read."""
    try:
        data = read_bounded(path_of(opened.folder, name), records.MAX_DOCUMENT)
    except Unreadable:
        return ""
    return normalise(data.decode(errors="replace"))


_MOST = 20  # names that are tried in the store


def before(old: str) -> None:
    """Bring the old folder to what its store holds: what is continued is what all have.

    Raises:
        Refused: the store cannot be read.
    """
    with open_engine(stores_address.pinned_address(old)) as engine:
        shared.sync(old, engine)


def after(old: str, new: str) -> None:
    """Share the new folder in the same store, and tell the others.

    Raises:
        Refused: that did not work; the new folder is there, and the same command goes on from there.
    """
    address = stores_address.pinned_address(old)
    try:
        with open_engine(address) as engine:
            leases = _publish_protocol(old, engine)
            there = (
                stores_address.pinned_address(new)
                if stores_address.is_shared(new)
                else _share(new, address, leases)
            )
            engine.tell(
                HostState(
                    hosts.this_host(),
                    hosts.account(),
                    claims.boot(),
                    __version__,
                    continued=there.text,
                )
            )
    except SharingError as error:
        raise Refused(
            f"continued in {new}, but the others do not know: {error}; run the same command again",
            error.code,
        ) from None


def _publish_protocol(old: str, engine: Engine) -> dict[str, Lease]:
    """Publish that the old collaboration goes on elsewhere; the leases that it has."""
    host = hosts.this_host()
    with manifests.held(old):
        base = manifests.read_base(old)
        named = Tree(old).read(records.PROTOCOL_FILE) or b""
        commit = engine.read(base.tip if base else None)
        if base is None or commit.tip != base.tip:
            raise SharingError("another host changed it at the same moment")
        if named != commit.protocol:
            with lock(old) as held:
                opened = open_locked(old, held.log)
                log = held.log.read(records.MAX_LOG)
            machine = opened.machine
            change = Change(
                log=log, line=None, seq=opened.last_seq, protocol=named, words="continued elsewhere",
                account=hosts.account(), host=host, phase=machine.phase, waiting=tuple(machine.waiting),
                standing=list_state(opened.protocol, opened.history),
            )  # fmt: skip
            tip = engine.publish(base.tip, change)
            entry = {records.PROTOCOL_FILE: StoredFile(digest(named), len(named))}
            manifests.write_base(old, Base(tip, {**base.files, **entry}))
        return dict(commit.leases)


def _share(new: str, address: Address, leases: dict[str, Lease]) -> Address:
    """Share the new folder under its own name, or the next one that is free in the store."""
    name = sharing.plain_id(os.path.basename(os.path.realpath(new)))
    for number in range(1, _MOST):
        id = name if number == 1 else f"{name[:60]}-{number}"
        try:
            return sharing.share(new, address._replace(id="").text, id, leases).address
        except sharing.AlreadyThere:
            continue
    raise SharingError(f"the store has many collaborations named {name}")
