"""Mending what `diagnose` found: under the lock, with a copy of everything that is changed.

The copies go to the user's state folder. What is done is what was shown: if the collaboration
changed in between, nothing is done. Standard library only.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from acp_core.files import atomic, markdown
from acp_core.files.locked import LockedLog, LogError, locked, locked_folder
from acp_core.files.markdown import normalise
from acp_core.files.reading import Unreadable, read_bounded, read_head
from acp_core.model.errors import Refused
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.read.log import NEWLINES, History
from acp_core.protocols.folder.rules.unrecoverable_log import full, hopeless
from acp_core.protocols.folder.schema import deliverables, records
from acp_core.protocols.folder.schema.records import DELIVERABLE_EVENTS, Entry, is_shared, path_of
from acp_core.protocols.folder.write import edits, init
from acp_core.protocols.folder.write.init import Charter, Primary
from acp_core.protocols.folder.write.opened import Opened, refuse_lockless, take, with_state

CHANGED = "the collaboration changed since acp checked it: nothing was done; run the repair again"

_OF_STORE = (records.LOG_FILE, records.PROTOCOL_FILE)  # where the folder is shared

_SHOWN = 1 << 16  # bytes of a file that a diff shows


class Repaired(NamedTuple):
    """What was mended; ``copies`` are the paths of what stood there before."""

    fixes: tuple[Fix, ...]
    copies: tuple[str, ...]


def repair(plan: Plan, *, force: bool = False) -> Repaired:
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
        now = datetime.now(UTC)
        if not _same(diagnose(folder, now), plan):
            raise Refused(CHANGED)
        copies = [_keep(folder, fix, now) for fix in plan.fixes if fix.before]
        for fix in plan.fixes:
            _apply(fix, log)
    protocol = records.decode_protocol(_content(path_of(folder, records.PROTOCOL_FILE)))
    edits.keep_charter(folder, protocol)
    return Repaired(plan.fixes, tuple(copies))


def _from_store(plan: Plan) -> Repaired:
    """Put the log and protocol.json of a shared folder back to what its store holds.

    Raises:
        Refused: the store cannot be reached, or they are damaged there, too.
    """
    from acp_core.protocols.registry import load

    kept = load("acp_core.protocols.folder.write.sharing:put_back")(plan.folder)
    left = [
        fix.sentence
        for fix in diagnose(plan.folder, datetime.now(UTC)).fixes
        if fix.name in _OF_STORE
    ]
    if left:
        raise Refused(
            f"the store holds the same damage ({'; '.join(left)}): `acp continue` starts a new collaboration"
        )
    return Repaired(tuple(fix for fix in plan.fixes if fix.name in _OF_STORE), tuple(kept))


@contextlib.contextmanager
def _lock(folder: str, force: bool) -> Iterator[LockedLog | None]:
    """The lock on the log, or on the folder where there is no log yet."""
    path = path_of(folder, records.LOG_FILE)
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
    return edits.keep(folder, f"torn-{name}" if fix.verb == CUT else name, fix.before, now)


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
        atomic.shared_folder(os.path.dirname(fix.path))
        atomic.create(fix.path, fix.after)
    else:
        atomic.replace(fix.path, fix.after)
    atomic.sweep(fix.path)


def _content(path: str) -> bytes:
    return atomic.read_bounded(path, records.MAX_PROTOCOL)


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


# Headings as every tool writes them give author and number at once, others their title.
_HEADING = re.compile(
    rb"^## (?:\S+ - ([A-Za-z0-9_.\-]+) - seq ([0-9]{1,15})|([^\n]*))$", re.MULTILINE
)

NOBODY = "protocol.json names no participants: add them by hand"

CREATE, REPLACE, FINISH, CUT = "create", "replace", "finish", "cut"

_STATE = ("currentPhase", "proposalOwner", "waitingFor")


class Fix(NamedTuple):
    """One change that mends something.

    ``before`` and ``after`` are the file's content; for the log (``FINISH``: its last line gets
    its newline, ``CUT``: its torn last line is dropped) only what follows byte ``offset``.
    ``name`` is the file as people know it.
    """

    sentence: str
    name: str
    path: str
    verb: str
    before: bytes
    after: bytes
    offset: int = 0


class Plan(NamedTuple):
    """What is broken: ``fixes`` in the order in which they are made, and what has no fix."""

    folder: str
    fixes: tuple[Fix, ...] = ()
    hopeless: tuple[str, ...] = ()


def diagnose(folder: str, now: datetime) -> Plan:
    """Look for damage.

    Raises:
        Refused: there is no collaboration, or its log is no readable file.
    """
    if not os.path.isdir(folder):
        raise Refused(f"{folder} is not a folder")
    broken, log = _read(folder, records.PROTOCOL_FILE), _read(folder, records.LOG_FILE)
    if broken is None and log is None:
        raise Refused(f"{folder} holds neither protocol.json nor events.jsonl")
    entries = [item for item in records.parse_lines(log or b"") if isinstance(item, Entry)]
    protocol, sources = _protocol(folder, broken or b"", entries)
    if protocol is None:
        text = "protocol.json cannot be read, and acp found no copy of it: restore the file from a backup, or run `acp init` in a new folder"
        return Plan(folder, hopeless=(text,))
    if records.dialect_of(protocol) == records.UNKNOWN_DIALECT:
        raise Refused(f"unknown schemaVersion {protocol['schemaVersion']!r}")
    return _Diagnosis(folder, protocol, broken, log, sources, now).plan()


def _protocol(
    folder: str, broken: bytes, entries: list[Entry]
) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    try:
        return records.decode_protocol(broken), ()
    except ValueError:
        rebuilt = rebuild(folder, broken, entries)
    return (rebuilt.protocol, rebuilt.sources) if rebuilt else (None, ())


def lacking_headings(seqs: Iterable[int]) -> str:
    """What is done about reviews of which review.md has no heading."""
    listed = ", ".join(map(str, seqs))
    return f"review.md has no heading for seq {listed}; acp adds a marked one"


def lag(protocol: dict[str, Any], fields: dict[str, Any]) -> str:
    """What is done about protocol.json where it lags behind the log, "" where it does not.

    Args:
        protocol: as it is.
        fields: as it must be after the log.
    """
    if all(fields[name] == protocol.get(name) for name in _STATE):
        return ""
    return (
        f"protocol.json is out of date with the log: it says {protocol.get('currentPhase')!r}, "
        f"the log {fields['currentPhase']!r}"
    )


class _Diagnosis:
    def __init__(
        self,
        folder: str,
        protocol: dict[str, Any],
        broken: bytes | None,
        log: bytes | None,
        sources: tuple[str, ...],
        now: datetime,
    ) -> None:
        self.folder, self.protocol, self.sources, self.now = folder, protocol, sources, now
        self.broken, self.log = broken, log
        self.fixes: list[Fix] = []
        self.hopeless: list[str] = []

    def plan(self) -> Plan:
        if self._is_full():
            return Plan(self.folder, hopeless=tuple(self.hopeless))
        missing = self._missing_files()
        log = self.log or next((f.data for f in missing if f.name == records.LOG_FILE), b"")
        opened = take(self.folder, self.protocol, log)
        if b"\r" in opened.tail:  # what the log tells is not known: nothing is derived from it
            self.hopeless.append(f"{records.LOG_FILE}: lines end in carriage returns: {NEWLINES}")
            return Plan(self.folder, tuple(self.fixes), tuple(self.hopeless))
        opened = self._mend_tail(opened)
        self._mend_reviews(opened, missing)
        self._mend_protocol(opened)
        self._note_hopeless(opened)
        return Plan(self.folder, tuple(self.fixes), tuple(self.hopeless))

    def _is_full(self) -> bool:
        """Whether no event can follow in the log: what it tells is not read to its end."""
        opened = take(self.folder, self.protocol, self.log or b"")
        found = full(self.folder, opened.history) if opened.full else None
        if found is not None:
            self.hopeless.append(f"{found.sentence}: {found.instruction}")
        return found is not None

    def _missing_files(self) -> list[init.File]:
        """What an interrupted start left unwritten, or what was removed since."""
        try:
            missing = init.missing_files(self.folder, self.protocol, self.now)
        except Refused as error:
            self.hopeless.append(str(error))
            return []
        for file in missing:
            if file.name != edits.REVIEW:  # its headings are added below
                sentence = f"{file.name} is missing; acp creates it as `acp init` does"
                self.fixes.append(Fix(sentence, file.name, file.path, CREATE, b"", file.data))
        return missing

    def _mend_tail(self, opened: Opened) -> Opened:
        """A last line without its newline: an event that counts, or the half of one."""
        tail, start = opened.tail, opened.size - len(opened.tail)
        if not tail:
            return opened
        path = path_of(self.folder, records.LOG_FILE)
        parsed = records.parse_line(tail, opened.lines + 1)
        if isinstance(parsed, Entry) and self._is_next(opened, parsed):
            sentence = f"the last event (seq {parsed.seq}) has no newline at its end; acp adds it"
            fix = Fix(sentence, records.LOG_FILE, path, FINISH, tail, tail + b"\n", start)
            self.fixes.append(fix)
            return opened._replace(history=opened.history.followed_by([parsed]))
        sentence = (
            "the last line of events.jsonl is incomplete: acp removes it and keeps it in the backup"
        )
        self.fixes.append(Fix(sentence, records.LOG_FILE, path, CUT, tail, b"", start))
        return opened

    def _is_next(self, opened: Opened, entry: Entry) -> bool:
        legal = not entry.faults and not opened.machine.problems(entry)
        known = entry.event in records.events_of(opened.dialect)
        return legal and known and entry.seq == opened.next_seq

    def _mend_reviews(self, opened: Opened, missing: list[init.File]) -> None:
        """Every review_submitted needs its heading: those that lack one get a marked place."""
        path = path_of(self.folder, edits.REVIEW)
        template = next((file.data for file in missing if file.name == edits.REVIEW), None)
        try:
            before = b"" if template is not None else read_bounded(path, records.MAX_DOCUMENT)
        except Unreadable as error:
            if not error.missing:
                self.hopeless.append(f"review.md: {error}")
            return
        text = template if template is not None else before
        there = headings(text)
        lacking = []
        for seq, author in opened.machine.reviews.items():
            if seq not in there:
                lacking.append(opened.history.with_seq(seq)[0])
            elif there[seq] != author:
                self.hopeless.append(
                    f"review.md heading seq {seq} names {there[seq]!r}, the event is from "
                    f"{author!r}: correct the heading by hand"
                )
        text = _with_headings(text, lacking, self.now)
        verb = CREATE if template is not None else REPLACE
        if lacking or template is not None:
            sentences = ["review.md is missing; acp creates it"] if template is not None else []
            if lacking:
                sentences.append(lacking_headings(entry.seq or 0 for entry in lacking))
            sentence = "; ".join(sentences)
            self.fixes.append(Fix(sentence, edits.REVIEW, path, verb, before, text))

    def _mend_protocol(self, opened: Opened) -> None:
        if not opened.participants:  # no owner, and nobody who is waited for, follows from the log
            self.hopeless.append(NOBODY)
            return
        fields = with_state(opened)
        path = path_of(self.folder, records.PROTOCOL_FILE)
        if self.sources:
            fields[MARK] = {
                "by": "acp repair",
                "at": records.format_time(self.now),
                "from": list(self.sources),
            }
            state = "is missing" if self.broken is None else "cannot be read"
            sentence = f"protocol.json {state}; acp rebuilds it from {', '.join(self.sources)}"
        else:
            sentence = lag(self.protocol, fields)
            if not sentence:
                return
        verb = CREATE if self.broken is None else REPLACE
        after = records.encode_protocol(fields)
        fix = Fix(sentence, records.PROTOCOL_FILE, path, verb, self.broken or b"", after)
        self.fixes.append(fix)

    def _note_hopeless(self, opened: Opened) -> None:
        """What only a new folder leads out of."""
        found = hopeless(self.folder, opened.history)
        if found is not None:
            self.hopeless.append(f"{found.sentence}: {found.instruction}")


def _with_headings(text: bytes, lacking: Sequence[Entry], now: datetime) -> bytes:
    """review.md with a marked heading for each of these events, where its seq belongs."""
    blocks = list(edits.blocks(text))
    put: dict[int, bytes] = {}  # place in the text -> what is put in before it
    tail, later = b"", 0
    for entry in sorted(lacking, key=lambda entry: entry.seq or 0):
        line = edits.heading(entry.at, entry.sender, entry.seq or 0)
        block = (
            f"{line}\n\n"
            f"(`acp repair` added this heading on {records.format_time(now)}: review.md had "
            f"none for the event. The event says: {_one_line(entry.summary)})\n"
        ).encode(errors="replace")
        while later < len(blocks) and blocks[later].seq <= (entry.seq or 0):
            later += 1
        if later < len(blocks):
            start = blocks[later].start
            put[start] = put.get(start, b"") + block + b"\n"
        else:
            end = tail or text
            whole = not end or end.endswith(b"\n\n")
            tail += (b"" if whole else b"\n" if end.endswith(b"\n") else b"\n\n") + block
    pieces, position = [], 0
    for start, there in put.items():
        pieces += [text[position:start], there]
        position = start
    return b"".join([*pieces, text[position:], tail])


def _one_line(text: str) -> str:
    return " ".join(text.split())


def headings(text: bytes) -> dict[int, str]:
    """Seq -> author of the reviews for which review.md has a heading."""
    found: dict[int, str] = {}
    for match in _HEADING.finditer(text):
        author, seq, other = match.groups()
        if other is None:
            found[int(seq)] = author.decode()
            continue
        parts = edits.parse_heading(f"## {other.decode(errors='replace')}")
        if parts:
            found[parts[2]] = parts[1]
    return found


def _read(folder: str, name: str) -> bytes | None:
    """A file's bytes, None where it is missing; of a log that is too large, how it begins.

    Raises:
        Refused: it is there and cannot be read.
    """
    limit = records.MAX_LOG if name == records.LOG_FILE else records.MAX_PROTOCOL
    try:
        return read_bounded(path_of(folder, name), limit)
    except Unreadable as error:
        if error.missing:
            return None
        if error.errno == errno.EFBIG and name == records.LOG_FILE:
            return read_head(path_of(folder, name), limit)
        raise Refused(f"{path_of(folder, name)}: {error}") from None


MARK = "rebuilt"

_BULLET = re.compile(r"^[^\S\n]*[-*] +(?:\[[ xX]\] +)?([^\n]+)$", re.MULTILINE)

_ID = re.compile(r"`([^`\n]{1,200})`")

_OBJECTIVE = re.compile(r"^(?:\*\*)?Objective(?:\*\*)?:[^\S\n]*([^\n]+)$", re.MULTILINE)

_EXISTS = re.compile(r"^Primary deliverable exists: `([^`\n]+)`", re.MULTILINE)

_TYPE = re.compile(r"^Primary deliverable has required `([^`\n]+)` sections", re.MULTILINE)

_GATE_SECTIONS = ("Completion Gates", "Objective Gates")


class Rebuilt(NamedTuple):
    """A protocol.json made again; ``sources`` says from what, in words."""

    protocol: dict[str, Any]
    sources: tuple[str, ...]


def rebuild(folder: str, broken: bytes, entries: list[Entry]) -> Rebuilt | None:
    """The static part of protocol.json from the best source there is; None where none will do.

    Args:
        folder: the collaboration.
        broken: what stands in protocol.json now.
        entries: the events of its log.
    """
    whole = _first_object(broken)
    if whole is not None:
        return Rebuilt(whole, ("the readable beginning of protocol.json",))
    kept = edits.kept_charter(folder)
    if kept is not None and _fits(kept, entries):
        return Rebuilt(kept, ("acp's copy of its last version",))
    return _from_documents(folder, entries)


def _first_object(broken: bytes) -> dict[str, Any] | None:
    """The object at the beginning of the file: two writers may have left the end of another."""
    text = broken.decode(errors="replace").lstrip()
    if len(broken) > records.MAX_PROTOCOL or records.too_deep(text):
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
        sound = records.decode_protocol(records.encode_protocol(value))
    except (ValueError, TypeError):
        return None
    complete = isinstance(value, dict) and value.get("objective") and records.participant_ids(sound)
    return sound if complete else None


def _fits(kept: dict[str, Any], entries: list[Entry]) -> bool:
    """Whether a kept copy can be that of this log: everybody who speaks in it takes part."""
    people = records.participant_ids(kept)
    return all(entry.sender in people for entry in entries)


def _from_documents(folder: str, entries: list[Entry]) -> Rebuilt | None:
    readme = _text(folder, "README.md")
    readiness = _text(folder, "readiness.md")
    proposal = _text(folder, "proposal.md")
    objective = (
        _section(readme, ("Objective",))
        or _match(_OBJECTIVE, readme)
        or _section(proposal, ("Purpose",))
    )
    participants = _participants(readme, entries)
    gates = _bullets(_section(readme, _GATE_SECTIONS)) or _bullets(
        _section(readiness, _GATE_SECTIONS)
    )
    if not objective or not participants or not gates:
        return None
    primary = _primary(readiness, folder)
    if primary is None and any(entry.event in DELIVERABLE_EVENTS for entry in entries):
        return None
    charter = Charter(objective, participants, gates, primary)
    return Rebuilt(charter.protocol(), ("README.md and readiness.md", "the log"))


def _participants(readme: str, entries: list[Entry]) -> tuple[str, ...]:
    """Those that README.md lists, and everybody who speaks in the log; the owner first."""
    listed = _section(readme, ("Participants",))
    names: dict[str, None] = {}
    if entries and entries[0].event == "initialized" and entries[0].sender:
        names[entries[0].sender] = None
    for bullet in _bullets(listed):
        quoted = _ID.search(bullet)
        name = quoted.group(1) if quoted else bullet.split()[0].strip(":,")
        if records.is_participant_id(name):
            names[name] = None
    for entry in entries:
        if entry.sender:
            names[entry.sender] = None
    return tuple(names)


def _primary(readiness: str, folder: str) -> Primary | None:
    """The primary deliverable as the generated gates in readiness.md name it (internal only)."""
    boxes = "\n".join(box.text for box in markdown.check_boxes(readiness))
    reference, kind = _match(_EXISTS, boxes), _match(_TYPE, boxes)
    if not kind or kind not in deliverables.TYPES or not deliverables.is_inside(reference):
        return None
    if reference.startswith("external:"):
        return None  # nothing but protocol.json says where the repository begins
    directory, _, file = reference.rpartition("/")
    directory, _, below = directory.partition("/")
    file = f"{below}/{file}" if below else file
    checklist: tuple[str, ...] = ()
    if kind == deliverables.CUSTOM:
        text = _text(folder, reference)
        checklist = tuple(
            heading.title for heading in markdown.headings(text) if heading.level == 2
        )
        if not checklist:
            return None
    return Primary(kind, file, checklist, deliverables.INTERNAL, directory)


def _text(folder: str, name: str) -> str:
    try:
        return normalise(
            read_bounded(os.path.join(folder, name), records.MAX_DOCUMENT).decode(errors="replace")
        )
    except Unreadable:
        return ""


def _section(text: str, titles: Iterable[str]) -> str:
    wanted = {title.lower() for title in titles}
    found = (
        part.body.strip() for part in markdown.sections(text, 2) if part.title.lower() in wanted
    )
    return next(found, "")


def _bullets(text: str) -> tuple[str, ...]:
    return tuple(match.group(1).strip() for match in _BULLET.finditer(text))


def _match(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match.group(1).strip() if match else ""


def opened(facts: Facts) -> Opened | None:
    """What a writer would find, without reading it again; None where that must be looked at."""
    doubt = facts.unsettled or facts.protocol_problem or facts.log_problem or facts.tail
    if doubt or facts.log_full or facts.protocol is None:
        return None
    if facts.dialect == records.UNKNOWN_DIALECT:
        return None
    return Opened(facts.folder, facts.protocol, facts.history, facts.log_size, facts.log_lines)


class Planned(NamedTuple):
    """A fix that a repair would make: the file's name, and the sentence that says what is done."""

    name: str
    sentence: str


class Outlook:
    """The fixes that `diagnose` would plan for one collaboration."""

    def __init__(self) -> None:
        self._history: History | None = None
        self._taken = 0  # reviews that were looked at
        self._version = ""  # of review.md
        self._there: dict[int, str] = {}
        self._lacking: list[int] = []

    def planned(self, facts: Facts, now: datetime) -> tuple[Planned, ...]:
        """What a repair would do after the last look of ``facts``.

        Raises:
            Refused: there is no collaboration, or its log is no readable file.
        """
        here = opened(facts)
        if here is None or not facts.log_size or self._lacks_files(here, now):
            return self._asked(facts, now)
        lacking = self._without_heading(facts)
        if lacking is None:
            return self._asked(facts, now)
        fixes = [Planned(edits.REVIEW, lacking_headings(lacking))] if lacking else []
        if here.participants:  # else no state follows from the log
            sentence = lag(here.protocol, with_state(here))
            fixes += [Planned(records.PROTOCOL_FILE, sentence)] if sentence else []
        return tuple(fixes)

    def _asked(self, facts: Facts, now: datetime) -> tuple[Planned, ...]:
        fixes = diagnose(facts.folder, now).fixes
        return tuple(Planned(fix.name, fix.sentence) for fix in fixes)

    def _lacks_files(self, here: Opened, now: datetime) -> bool:
        try:
            return bool(init.missing_files(here.folder, here.protocol, now))
        except Refused:
            return True

    def _without_heading(self, facts: Facts) -> list[int] | None:
        """The seqs of reviews without a heading; None where review.md cannot be read."""
        file, history = facts.files[edits.REVIEW], facts.history
        if file.problem or file.path is None:
            return None
        if file.version != self._version:
            try:
                text = read_bounded(file.path, records.MAX_DOCUMENT)
            except Unreadable:
                return None
            self._there, self._version, self._history = headings(text), file.version, None
        if history is not self._history or not history.check.regular:
            reviews = history.machine.reviews
            self._lacking = [seq for seq in reviews if seq not in self._there]
        else:
            for index in history.review_at[self._taken :]:
                if index + 1 not in self._there:
                    self._lacking.append(index + 1)
        self._history, self._taken = history, len(history.review_at)
        return self._lacking
