"""Everything that is read from one collaboration's folder, as plain data: what rules look at.

Source: folder protocol specification, "Files" and "Review Format" (reviews and their headings).
Each look costs only what changed: a file is read again only when it may have changed. One that
somebody seems to be writing just now keeps its last good content for a moment. Of a shared folder
also what gave way there because another host was first: the process that synchronizes it keeps such
texts in ``.acp/kept``, as NAME.TIME.HOST. Nothing here judges: see `rules`. Standard library only.
"""

from __future__ import annotations

import json
import os
import re
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

from acp_core.files import journal, markdown
from acp_core.files.reading import Stamp, Unreadable, just_changed, read_bounded, stamp
from acp_core.files.unseen import NOTHING, unseen_lines
from acp_core.model.errors import Refused
from acp_core.model.light import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar
from acp_core.person.paths import is_pinned
from acp_core.protocols.folder.read.log import History, is_full
from acp_core.protocols.folder.schema import deliverables, documents, records
from acp_core.protocols.folder.schema.deliverables import Content, Declaration, Deliverable, Root
from acp_core.protocols.folder.schema.documents import (
    Conclusion,
    Decisions,
    Readiness,
    Review,
    ReviewHeading,
)
from acp_core.protocols.folder.schema.records import BadLine, Entry

if TYPE_CHECKING:
    from acp_core.protocols.folder.read.log import History
    from acp_core.protocols.folder.schema.records import Entry

README = "README.md"

PATIENCE = 0.25  # seconds for which a command waits for a file that is being written

_PAUSE = 0.05


class Declared(NamedTuple):
    """A declared deliverable and its file."""

    item: Deliverable
    file: File[Content]


class Facts:
    """What is known of one collaboration. Call `refresh`, then read.

    Args:
        folder: The collaboration's folder.
        grace: Seconds for which a file that is empty, torn or gone is taken for one that
            somebody is writing.
        verify: Whether later reads must notice that the log was rewritten.

    Attributes:
        protocol: protocol.json as last read well, None before that.
        protocol_problem: why it cannot be read now (`MISSING` or a reason), "" where it can.
        dialect, participants, declaration, root: what follows from it.
        history: the log, with a complete last line that lacks its newline where that counts.
        log_problem: why the log cannot be read now, "" where it can.
        log_full: whether the log is larger than is read.
        rewritten: why the log no longer is what was read before, each with the time.
        tail_error: what is wrong with a last line that is not complete.
        tail_counts: whether the last event lacks its newline.
        tail_line: the number of that line.
        bare_returns: whether carriage returns alone end the log's lines.
        files: the five documents by name.
        others: README.md, protocol.json and events.jsonl by name: that they are there.
        obsolete: files that must not be there.
        kept: texts of a shared folder that gave way to another host's.
        newer_share: why only a newer acp can share the folder, where one has done so; else "".
        strange_share: why the store of the folder is not used, where a program changed what names it; else "".
        pairing: reviews in the log and their headings in review.md.
        deliverables: what protocol.json declares, with its files.
        unsettled: why the last look could not tell, "" where it could: a file is being
            written; what was read before still stands.
        recheck: when to look again although nothing changes, or None.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, grace: float = PATIENCE, verify: bool = True
    ) -> None:
        self.folder = os.fspath(folder)
        self._grace = grace
        self.protocol: dict[str, Any] | None = None
        self.protocol_problem = MISSING
        self.protocol_stamp: Stamp | None = None
        self._protocol_since: float | None = None
        self._protocol_again = True
        self.dialect = records.V1
        self.participants: list[str] = []
        self.declaration: Declaration = deliverables.declare({})
        self.root = Root(None)
        self._reader = journal.Reader(
            self.path(records.LOG_FILE),
            max_line=records.MAX_LINE,
            max_lines=records.MAX_LINES,
            max_size=records.MAX_LOG,
            grace=grace,
            verify=verify,
        )
        self._authors: dict[str, None] = {}  # only while there is no protocol.json
        self._lines = History((), records.V1)
        self.history = self._lines
        self.log_problem = MISSING
        self.log_unseen = NOTHING
        self.rewritten: list[tuple[float, str]] = []
        self._tail: tuple[bytes, History, int] = (b"", self._lines, 0)
        self.tail_error = ""
        self.tail_counts = False
        self.bare_returns = False
        self.files: dict[str, File[Any]] = {}
        self.others: dict[str, File[None]] = {
            name: File(name, self.path(name), self.folder)
            for name in (README, records.PROTOCOL_FILE, records.LOG_FILE)
        }
        self.obsolete: tuple[str, ...] = ()
        self.kept: tuple[KeptText, ...] = ()
        self.newer_share = ""
        self.strange_share = ""
        self.deliverables: tuple[Declared, ...] = ()
        self._deliverables_for: tuple[object, ...] = ()
        self.pairing = Pairing()
        self.unsettled = ""
        self.recheck: float | None = None
        self._scanned_for: tuple[object, ...] = ()

    def path(self, name: str) -> str:
        """A file of the folder."""
        return os.path.join(self.folder, name)

    def refresh(self, now: float) -> bool:
        """Read what changed; returns whether anything did. ``now``: seconds since 1970."""
        before = (
            self.unsettled,
            self.obsolete,
            self.kept,
            self.newer_share,
            self.strange_share,
        )
        self.recheck = None
        unsettled: list[str] = []
        changed = self._look_at_protocol(now, unsettled)
        changed |= self._look_at_log(now, unsettled)
        changed |= self._look_at_documents()
        changed |= self._look_at_deliverables()
        self.pairing.update(self.history, self.review)
        self.unsettled = "; ".join(unsettled)
        self.obsolete = tuple(
            name for name in records.OBSOLETE_FILES if os.path.lexists(self.path(name))
        )
        self.kept = read_kept(self.folder)
        self.newer_share = newer_share(self.folder)
        self.strange_share = strange_share(self.folder)
        after = (
            self.unsettled,
            self.obsolete,
            self.kept,
            self.newer_share,
            self.strange_share,
        )
        return changed or before != after

    def suppose(self, protocol: dict[str, Any], item: Entry, contents: Mapping[str, bytes]) -> None:
        """Take things as if an event had happened: to judge it before it is appended.

        Args:
            protocol: protocol.json as it would be.
            item: the event that would come next.
            contents: files that would change with it, by path.
        """
        self._take_protocol(protocol)
        self.history = self.history.followed_by([item])
        self._look_at_deliverables()
        for file in (*self.files.values(), *(declared.file for declared in self.deliverables)):
            if file.path is not None and file.path in contents:
                file.suppose(contents[file.path])
        self.pairing.update(self.history, self.review)

    @property
    def lines(self) -> History:
        """The log without a last line that lacks its newline."""
        return self._lines

    @property
    def readiness(self) -> Readiness | None:
        """readiness.md, None where it cannot be read."""
        return self.files["readiness.md"].scan

    @property
    def review(self) -> Review | None:
        """review.md, None where it cannot be read."""
        return self.files["review.md"].scan

    @property
    def decisions(self) -> Decisions | None:
        """decisions.md, None where it cannot be read."""
        return self.files["decisions.md"].scan

    @property
    def conclusion(self) -> Conclusion | None:
        """conclusion.md, None where it cannot be read."""
        return self.files["conclusion.md"].scan

    @property
    def primary(self) -> Declared | None:
        """The primary deliverable, None where none is declared."""
        return next((d for d in self.deliverables if d.item.role == "primary"), None)

    @property
    def log_full(self) -> bool:
        """Whether the log is larger than is read."""
        return self._reader.full

    @property
    def takes_no_more(self) -> bool:
        """Whether the log is so large that no event can follow."""
        return self.log_full or is_full(self.log_lines, self.log_size)

    @property
    def tail(self) -> bytes:
        """What stands in the log after the last newline."""
        return self._reader.tail

    @property
    def log_size(self) -> int:
        """The bytes of the log, as far as it was read."""
        return self._reader.offset + len(self._reader.tail)

    @property
    def log_lines(self) -> int:
        """The complete lines of the log."""
        return self._reader.lines

    @property
    def tail_line(self) -> int:
        """The line of the log that comes after the last newline."""
        return self._reader.lines + 1

    def _wait_until(self, moment: float) -> None:
        self.recheck = moment if self.recheck is None else min(self.recheck, moment)

    # protocol.json

    def _look_at_protocol(self, now: float, unsettled: list[str]) -> bool:
        path = self.path(records.PROTOCOL_FILE)
        found = stamp(path)
        if found == self.protocol_stamp and not self._protocol_again:
            return False
        first = self.protocol_stamp is None and self.protocol is None
        if found != self.protocol_stamp:
            since = min(now, found.modified / 1e9) if found and first else now
            self._protocol_since = since
        self.protocol_stamp = found
        before, self.protocol_problem = self.protocol_problem, ""
        self._protocol_again = False
        try:
            protocol = records.decode_protocol(read_bounded(path, records.MAX_PROTOCOL))
        except Unreadable as error:
            self.protocol_problem = MISSING if error.missing else error.reason
        except ValueError as error:
            self.protocol_problem = str(error)
        else:
            if found is not None and just_changed(found.modified / 1e9):
                self._protocol_again = True
            if protocol != self.protocol:
                self._take_protocol(protocol)
                return True
            return bool(before)
        return self._wait_for_protocol(now, unsettled) or before != self.protocol_problem

    def _wait_for_protocol(self, now: float, unsettled: list[str]) -> bool:
        """protocol.json cannot be read: perhaps somebody is writing it."""
        if self.protocol is None and self.protocol_problem == MISSING:
            return False  # nothing was ever there
        until = (self._protocol_since or now) + self._grace
        if now < until:
            unsettled.append(f"protocol.json is being written ({self.protocol_problem})")
            self._wait_until(until)
            self._protocol_again = True
        return False

    def _take_protocol(self, protocol: dict[str, Any]) -> None:
        self.protocol = protocol
        self.dialect = records.dialect_of(protocol)
        self.participants = records.participant_ids(protocol)
        self.declaration = deliverables.declare(protocol if self.dialect == records.V2 else {})

    # events.jsonl

    def _look_at_log(self, now: float, unsettled: list[str]) -> bool:
        poll = self._reader.poll(now)
        if poll.change == journal.UNSETTLED:
            unsettled.append(f"events.jsonl is being written ({poll.reason})")
            self._wait_until(self._reader.settles or now)
            return False
        changed = bool(poll.blocks)
        if poll.change == journal.RESTARTED:
            self.rewritten.append((now, poll.reason))
            self.log_unseen = NOTHING
            self._authors = {}
            self._lines = History(*self._taken_as())
            changed = True
        if self.protocol is None:
            self._authors |= dict.fromkeys(_authors(poll.blocks))
        participants, dialect = self._taken_as()
        if (self._lines.participants, self._lines.dialect) != (participants, dialect):
            self._lines = self._lines.again(participants, dialect)
            changed = True
        problem = poll.reason if poll.change == journal.UNREADABLE else ""
        changed |= problem != self.log_problem
        self.log_problem = problem
        for block in poll.blocks:
            self._lines.read(block)
            found = unseen_lines(block.data, block.first, json=True)
            self.log_unseen = self.log_unseen.then(found)
        return self._look_at_tail(now) or changed

    def _taken_as(self) -> tuple[tuple[str, ...], str]:
        """Participants and dialect; without protocol.json, whoever has said something."""
        if self.protocol is not None:
            return tuple(self.participants), self.dialect
        return tuple(self._authors), records.V1

    def _look_at_tail(self, now: float) -> bool:
        """Bytes after the last newline: half a line yet to come, or an event without its end."""
        tail = b"" if self.log_full or self.log_problem else self._reader.tail
        if tail and now < self._reader.since + self._grace:
            self._wait_until(self._reader.since + self._grace)
            tail = b""
        key = (tail, self._lines, len(self._lines.entries))
        if (tail == b"" and self.history is self._lines and not self.tail_error) or (
            tail and key[0] == self._tail[0] and key[1] is self._tail[1] and key[2] == self._tail[2]
        ):
            return False
        self._tail = key
        self.tail_error, self.tail_counts, self.history = "", False, self._lines
        self.bare_returns = b"\r" in tail
        lines = tail.split(b"\r") if self.bare_returns else [tail]
        items = [records.parse_line(line, self.tail_line + n) for n, line in enumerate(lines)]
        bad = next((item for item in items if isinstance(item, BadLine)), None)
        if bad:
            self.tail_error = bad.text
        elif tail:
            self.tail_counts = not tail.endswith(b"\r")
            self.history = self._lines.followed_by([i for i in items if isinstance(i, Entry)])
        return True

    # the documents

    def _look_at_documents(self) -> bool:
        declared = self.declaration
        needed = (declared.reference, tuple(item.reference for item in declared.all))
        if needed != self._scanned_for or not self.files:
            self._scanned_for = needed
            reference, references = needed
            scans: dict[str, Callable[[str], object]] = {
                "proposal.md": records.is_unwritten_proposal,
                "review.md": lambda text: documents.scan_review(text, reference),
                "decisions.md": lambda text: documents.scan_decisions(text, references),
                "readiness.md": documents.scan_readiness,
                "conclusion.md": lambda text: documents.scan_conclusion(text, reference),
            }
            self.files = {
                name: File(name, self.path(name), self.folder, scan) for name, scan in scans.items()
            }
        changes = [file.refresh() for file in (*self.files.values(), *self.others.values())]
        return any(changes)

    def _look_at_deliverables(self) -> bool:
        frozen = {entry.doc for entry in self.history.deliverables if entry.sha256 is not None}
        key = (self.declaration, frozenset(frozen))
        changed = key != self._deliverables_for
        if changed:
            self._deliverables_for = key
            self.root = deliverables.root_of(self.declaration, self.folder)
            self.deliverables = tuple(
                Declared(item, self._deliverable_file(item, item.reference in frozen))
                for item in self.declaration.all
            )
        changes = [declared.file.refresh() for declared in self.deliverables]
        return any(changes) or changed

    def _deliverable_file(self, item: Deliverable, digest: bool) -> File[Content]:
        path = deliverables.path_of(self.declaration, item, self.root)
        scan = None if item.role == "attachment" else deliverables.scan
        return File(item.reference, path, self.root.path or "", scan, digest=digest)


def _authors(blocks: Iterable[journal.Lines]) -> Iterator[str]:
    """Whoever says something in these lines."""
    for block in blocks:
        for item in records.parse_lines(block.data, block.first):
            if isinstance(item, Entry):
                yield item.sender


def gather(folder: str | os.PathLike[str]) -> Facts:
    """Look once, with a little patience where a file is being written just now."""
    facts = Facts(folder, verify=False)
    facts.refresh(time.time())
    while facts.recheck is not None:
        time.sleep(_PAUSE)
        facts.refresh(time.time())
    return facts


T = TypeVar("T")

MISSING = "missing"


class File(Generic[T]):
    """One file of the folder, and what a scan made of its text.

    Attributes:
        name: how findings and documents call it.
        path: where it lies; None for a deliverable whose place is not allowed.
        problem: "" where it was read, `MISSING`, or why it cannot be read.
        outside: whether it is a symbolic link that leads out of the folder.
        scan: what the scan gave, None where it was not read.
        stamp: of the state that was read.
        version: changes whenever the content may have changed.
        digest: SHA-256 of the content in hex, where asked for.
        unseen: what of its text people cannot see.
    """

    def __init__(
        self,
        name: str,
        path: str | None,
        root: str,
        scan: Callable[[str], T] | None = None,
        *,
        digest: bool = False,
    ) -> None:
        self.name = name
        self.path = path
        self.problem = MISSING
        self.outside = False
        self.scan: T | None = None
        self.stamp: Stamp | None = None
        self.version = ""
        self.digest = ""
        self.unseen = NOTHING
        self._root = root
        self._scan = scan
        self._wants_digest = digest
        self._looked = False
        self._again = False

    @property
    def modified(self) -> float | None:
        """When the file last changed, in seconds since 1970."""
        return self.stamp.modified / 1e9 if self.stamp else None

    @property
    def missing(self) -> bool:
        """Whether there is no such file."""
        return self.problem == MISSING

    def refresh(self) -> bool:
        """Read it if it may have changed; returns whether it did."""
        found = stamp(self.path) if self.path is not None else None
        if self._looked and found == self.stamp and not self._again:
            return False
        before = (self.version, self.problem)
        self._looked, self.stamp = True, found
        self._read()
        return before != (self.version, self.problem)

    def _read(self) -> None:
        self.scan, self.digest, self.unseen, self._again = None, "", NOTHING, False
        if self.path is None:
            self.problem = "its path points outside the folder of the deliverables"
            return
        self.outside = _leads_out(self.path, self._root)
        found = self.stamp
        self.version = f"{found.modified:x}.{found.size:x}.{found.inode:x}" if found else ""
        if self._scan is None:
            self.problem = "" if found else MISSING
            return
        try:
            data = read_bounded(self.path, records.MAX_DOCUMENT)
        except Unreadable as error:
            self.problem = MISSING if error.missing else error.reason
            return
        self._again = found is not None and just_changed(found.modified / 1e9)
        self.version += f".{zlib.crc32(data):x}"
        self.suppose(data)

    def suppose(self, data: bytes) -> None:
        """Take ``data`` for the content, whether or not it stands in the file (yet)."""
        self.problem = ""
        self.unseen = unseen_lines(data)
        try:
            text = markdown.normalise(data.decode())
        except UnicodeDecodeError as error:
            self.problem = f"not UTF-8 at byte {error.start + 1}"
            return
        self.scan = self._scan(text) if self._scan else None
        if self._wants_digest:
            from hashlib import sha256

            self.digest = sha256(data).hexdigest()


def _leads_out(path: str, root: str) -> bool:
    if not os.path.islink(path):
        return False
    within = os.path.realpath(root) if root else ""
    return not os.path.realpath(path).startswith(os.path.join(within, ""))


Mismatch = tuple[ReviewHeading, str, str]
"""A heading, and the event that bears its seq ("" for none) with its author."""


class Pairing:
    """Which reviews lack a heading, and which headings lack their review.

    Attributes:
        without_heading: ``review_submitted`` events that no heading names.
        without_review: headings that name no event, another event or another author's.
    """

    def __init__(self) -> None:
        self.without_heading: list[Entry] = []
        self.without_review: list[Mismatch] = []
        self._history: History | None = None
        self._review: Review | None = None
        self._reviews = 0  # events looked at
        self._entries = 0

    def update(self, history: History, review: Review | None) -> bool:
        """Look at what is new; returns whether anything changed."""
        if history is self._history and review is self._review:
            if len(history.entries) == self._entries:
                return False
            new = history.entries[self._entries].seq
            fresh = review is not None and history.check.regular and new is not None
        else:
            fresh = False
        before = (self.without_heading, self.without_review)
        if fresh and review is not None:
            self._add(history, review)
        else:
            self._restart(history, review)
        self._history, self._review = history, review
        self._entries, self._reviews = len(history.entries), len(history.review_at)
        return before != (self.without_heading, self.without_review)

    def _restart(self, history: History, review: Review | None) -> None:
        headings = review.headings if review else {}
        if history.check.regular:
            reviews = history.machine.reviews  # each event bears the number of its place
            lacking = reviews.keys() - headings.keys() if headings else reviews
            self.without_heading = [history.entries[seq - 1] for seq in sorted(lacking)]
            odd = [h for h in headings.values() if reviews.get(h.seq) != h.participant]
        else:
            self.without_heading = [e for e in history.reviews if e.seq not in headings]
            odd = list(headings.values())
        self.without_review = [
            mismatch for heading in odd if (mismatch := _mismatch(history, heading)) is not None
        ]

    def _add(self, history: History, review: Review) -> None:
        added = [history.entries[index] for index in history.review_at[self._reviews :]]
        new = [entry for entry in added if entry.seq not in review.headings]
        if new:
            self.without_heading = [*self.without_heading, *new]
        first = history.entries[self._entries].seq or 0
        if not any(heading.seq >= first for heading, _, _ in self.without_review):
            return
        self.without_review = [
            mismatch
            for heading, event, author in self.without_review
            if (
                mismatch := (
                    (heading, event, author) if heading.seq < first else _mismatch(history, heading)
                )
            )
            is not None
        ]


def _mismatch(history: History, heading: ReviewHeading) -> Mismatch | None:
    entries = history.with_seq(heading.seq)
    reviews = [entry for entry in entries if entry.event == "review_submitted"]
    if any(entry.sender == heading.participant for entry in reviews):
        return None
    if reviews:
        return heading, reviews[0].event, reviews[0].sender
    if entries:
        return heading, entries[0].event or "unknown", entries[0].sender
    return heading, "", ""


TOLERANCE = 2.0  # seconds between an event and the file times that belong to it

_TRUSTED = 10.0  # seconds that the log's own file time may differ from its last event's time

INFERRED = "by its file time"


def trusted_after(facts: Facts, last: datetime | None) -> float:
    """The moment after which file times say something.

    In a folder that was copied or checked out, all files bear the time of the copy, and so
    does the log, later than its last event: only what is newer than the log then counts.
    """
    log = facts.others[records.LOG_FILE].modified
    if log is None or last is None or log <= last.timestamp() + _TRUSTED:
        return 0.0
    return log + TOLERANCE


FOLDER = os.path.join(".acp", "kept")

_SHARE = os.path.join(".acp", "share.json")

_NAME = r"(.+)\.\d{8}T\d{6}Z\.[a-z0-9-]+(\.\d+)?"  # compiled where it is needed: seldom

_MOST = 100  # texts

_LIMIT = 1 << 16  # bytes of share.json


class KeptText(NamedTuple):
    """A text that gave way: of which document, and where it is, below the folder."""

    document: str
    file: str


def read_kept(folder: str) -> tuple[KeptText, ...]:
    """What gave way and was not settled, the latest text of each document."""
    if not os.path.lexists(os.path.join(folder, _SHARE)):
        return ()
    try:
        names = sorted(os.listdir(os.path.join(folder, FOLDER)))
    except OSError:
        return ()
    found: dict[str, KeptText] = {}
    for name in names:
        match = re.fullmatch(_NAME, name)
        if match and len(found) < _MOST:
            document = _document(folder, match[1])
            found[document] = KeptText(document, f".acp/kept/{name}")
    return tuple(found.values())


def newer_share(folder: str) -> str:
    """Why a folder that a newer acp has shared can only be looked at here; "" for any other."""
    path = os.path.join(folder, _SHARE)
    if not os.path.lexists(path):
        return ""
    from acp_core.stores import address  # late: most folders are not shared

    try:
        return address.newer_share(json.loads(read_bounded(path, _LIMIT)))
    except (Unreadable, ValueError, RecursionError):
        return ""  # whoever wants to publish says so


def strange_share(folder: str) -> str:
    """Why a folder that this account shares is not used with its store: what names that is not as agreed; else ""."""
    if not is_pinned(folder) or newer_share(folder):
        return ""
    from acp_core.stores import address as stores_address  # late: most folders are not shared

    try:
        stores_address.pinned_address(folder)
    except Refused as error:
        return str(error)
    return ""


def _document(folder: str, plain: str) -> str:
    """The document that a plain name stands for: one in a folder below has "__" for "/"."""
    below = plain.replace("__", "/")
    return below if below != plain and os.path.isfile(os.path.join(folder, below)) else plain
