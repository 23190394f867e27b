"""Finding what is broken in a collaboration's files and can be mended, and how exactly.

Nothing here writes. History is never rewritten: numbers that are missing or stand twice, and
lines in the middle of the log that cannot be read, stay as they are. Standard library only.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from acp_core.files.reading import Unreadable, read_bounded, read_head
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.schema import Entry
from acp_core.protocols.folder.write import Refused, init, review
from acp_core.protocols.folder.write.hopeless import full, hopeless
from acp_core.protocols.folder.write.opened import NEWLINES, Opened, path_of, take, with_state
from acp_core.protocols.folder.write.rebuild import MARK, rebuild

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
    broken, log = _read(folder, schema.PROTOCOL_FILE), _read(folder, schema.LOG_FILE)
    if broken is None and log is None:
        raise Refused(f"{folder} holds neither protocol.json nor events.jsonl")
    entries = [item for item in schema.parse_lines(log or b"") if isinstance(item, Entry)]
    protocol, sources = _protocol(folder, broken or b"", entries)
    if protocol is None:
        text = "protocol.json cannot be read, and acp found no copy of it: restore the file from a backup, or run `acp init` in a new folder"
        return Plan(folder, hopeless=(text,))
    if schema.dialect_of(protocol) == schema.UNKNOWN_DIALECT:
        raise Refused(f"unknown schemaVersion {protocol['schemaVersion']!r}")
    return _Diagnosis(folder, protocol, broken, log, sources, now).plan()


def _protocol(
    folder: str, broken: bytes, entries: list[Entry]
) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    try:
        return schema.decode_protocol(broken), ()
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
        log = self.log or next((f.data for f in missing if f.name == schema.LOG_FILE), b"")
        opened = take(self.folder, self.protocol, log)
        if b"\r" in opened.tail:  # what the log tells is not known: nothing is derived from it
            self.hopeless.append(f"{schema.LOG_FILE}: lines end in carriage returns: {NEWLINES}")
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
            self.hopeless.append(f"{found.sentence}: {found.cure}")
        return found is not None

    def _missing_files(self) -> list[init.File]:
        """What an interrupted start left unwritten, or what was removed since."""
        try:
            missing = init.missing_files(self.folder, self.protocol, self.now)
        except Refused as error:
            self.hopeless.append(str(error))
            return []
        for file in missing:
            if file.name != review.REVIEW:  # its headings are added below
                sentence = f"{file.name} is missing; acp creates it as `acp init` does"
                self.fixes.append(Fix(sentence, file.name, file.path, CREATE, b"", file.data))
        return missing

    def _mend_tail(self, opened: Opened) -> Opened:
        """A last line without its newline: an event that counts, or the half of one."""
        tail, start = opened.tail, opened.size - len(opened.tail)
        if not tail:
            return opened
        path = path_of(self.folder, schema.LOG_FILE)
        parsed = schema.parse_line(tail, opened.lines + 1)
        if isinstance(parsed, Entry) and self._is_next(opened, parsed):
            sentence = f"the last event (seq {parsed.seq}) has no newline at its end; acp adds it"
            fix = Fix(sentence, schema.LOG_FILE, path, FINISH, tail, tail + b"\n", start)
            self.fixes.append(fix)
            return opened._replace(history=opened.history.followed_by([parsed]))
        sentence = (
            "the last line of events.jsonl is incomplete: acp removes it and keeps it in the backup"
        )
        self.fixes.append(Fix(sentence, schema.LOG_FILE, path, CUT, tail, b"", start))
        return opened

    def _is_next(self, opened: Opened, entry: Entry) -> bool:
        legal = not entry.faults and not opened.machine.problems(entry)
        known = entry.event in schema.events_of(opened.dialect)
        return legal and known and entry.seq == opened.next_seq

    def _mend_reviews(self, opened: Opened, missing: list[init.File]) -> None:
        """Every review_submitted needs its heading: those that lack one get a marked place."""
        path = path_of(self.folder, review.REVIEW)
        template = next((file.data for file in missing if file.name == review.REVIEW), None)
        try:
            before = b"" if template is not None else read_bounded(path, schema.MAX_DOCUMENT)
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
            self.fixes.append(Fix(sentence, review.REVIEW, path, verb, before, text))

    def _mend_protocol(self, opened: Opened) -> None:
        if not opened.participants:  # no owner, and nobody who is waited for, follows from the log
            self.hopeless.append(NOBODY)
            return
        fields = with_state(opened)
        path = path_of(self.folder, schema.PROTOCOL_FILE)
        if self.sources:
            fields[MARK] = {
                "by": "acp repair",
                "at": schema.format_time(self.now),
                "from": list(self.sources),
            }
            state = "is missing" if self.broken is None else "cannot be read"
            sentence = f"protocol.json {state}; acp rebuilds it from {', '.join(self.sources)}"
        else:
            sentence = lag(self.protocol, fields)
            if not sentence:
                return
        verb = CREATE if self.broken is None else REPLACE
        after = schema.encode_protocol(fields)
        fix = Fix(sentence, schema.PROTOCOL_FILE, path, verb, self.broken or b"", after)
        self.fixes.append(fix)

    def _note_hopeless(self, opened: Opened) -> None:
        """What only a new folder leads out of."""
        found = hopeless(self.folder, opened.history)
        if found is not None:
            self.hopeless.append(f"{found.sentence}: {found.cure}")


def _with_headings(text: bytes, lacking: Sequence[Entry], now: datetime) -> bytes:
    """review.md with a marked heading for each of these events, where its seq belongs."""
    blocks = list(review.blocks(text))
    put: dict[int, bytes] = {}  # place in the text -> what is put in before it
    tail, later = b"", 0
    for entry in sorted(lacking, key=lambda entry: entry.seq or 0):
        line = review.heading(entry.at, entry.sender, entry.seq or 0)
        block = (
            f"{line}\n\n"
            f"(`acp repair` added this heading on {schema.format_time(now)}: review.md had "
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
        parts = review.parse_heading(f"## {other.decode(errors='replace')}")
        if parts:
            found[parts[2]] = parts[1]
    return found


def _read(folder: str, name: str) -> bytes | None:
    """A file's bytes, None where it is missing; of a log that is too large, how it begins.

    Raises:
        Refused: it is there and cannot be read.
    """
    limit = schema.MAX_LOG if name == schema.LOG_FILE else schema.MAX_PROTOCOL
    try:
        return read_bounded(path_of(folder, name), limit)
    except Unreadable as error:
        if error.missing:
            return None
        if error.errno == errno.EFBIG and name == schema.LOG_FILE:
            return read_head(path_of(folder, name), limit)
        raise Refused(f"{path_of(folder, name)}: {error}") from None
