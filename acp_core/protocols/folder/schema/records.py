"""What is in the files of a folder collaboration: names, limits, protocol.json and the log's lines.

Also what the rules say of them (`Finding`, `Report`), and the names of acts below the rooms that
describe them. Source: folder protocol specification, "Files", "Events", "Phases" and "Validation"
(dialect v1), and its successor with deliverables (dialect v2). Standard library only, and all of it is
named as `schema.NAME`: agents run this at every turn, and the portable skill is a copy of it.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache

from acp_core.model.light import Any, NamedTuple
from acp_core.model.text import clean_line
from acp_core.person.paths import is_pinned

PROTOCOL_FILE = "protocol.json"
LOG_FILE = "events.jsonl"
DOCUMENTS = ("proposal.md", "review.md", "decisions.md", "readiness.md", "conclusion.md")
REQUIRED_FILES = (PROTOCOL_FILE, LOG_FILE, *DOCUMENTS)
OBSOLETE_FILES = ("state.log", "discussion.md", "opinions.md")
V1, V2, UNKNOWN_DIALECT = "v1", "v2", "unknown"

PHASES = (
    "drafting",
    "reviewing",
    "revising",
    "decision_review",
    "readiness_check",
    "completed",
    "blocked",
)

EVENTS_V1 = (
    "initialized",
    "proposal_submitted",
    "review_submitted",
    "proposal_revised",
    "question_classified",
    "decision_proposed",
    "decision_accepted",
    "readiness_passed",
    "completed",
    "blocked",
)

DELIVERABLE_EVENTS = ("deliverable_drafted", "deliverable_revised", "deliverable_frozen")
EVENTS_V2 = (*EVENTS_V1, *DELIVERABLE_EVENTS)
REQUIRED_FIELDS = ("seq", "from", "event", "at", "summary")
FIELD_ORDER = (*REQUIRED_FIELDS, "doc", "reply_to", "role", "sha256", "key")
MAX_LINE = 1 << 20  # bytes of one line of the log
MAX_DEPTH = 32  # nesting of one line of the log, and of protocol.json
CLOCKS_DIFFER = 300.0  # seconds; an event further in the future comes from a wrong clock
MAX_DOCUMENT = 4 << 20  # bytes of one Markdown file
MAX_PROTOCOL = 4 << 20  # bytes of protocol.json
MAX_LOG = 1 << 28  # bytes of the whole log
MAX_LINES = 1_000_000  # lines of the whole log
MAX_PARTICIPANTS = 1_000  # that are taken part in; no run comes near it
MAX_SUMMARY = 2_000  # characters that our writer accepts
MAX_SEQ = (1 << 53) - 1  # what every JSON reader keeps exactly
_PARTICIPANT_ID = r"[^\W.\-][\w.\-]{0,63}|_[\w.\-]{0,63}"
_DIGEST = "[0-9a-f]{64}"

# U+0085, U+2028 and U+2029 end a line for `str.splitlines`: readers that use it can never
# read such a log again, so they are written as escapes and refused when found raw.
_HALF = "[\ud800-\udfff]"
_LINE_BREAKERS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}


class Fault(NamedTuple):
    """Something wrong with one line of the log: ``text`` has no "seq N" in front."""

    code: str
    text: str


class Entry(NamedTuple):
    """One event as it stands in the log, with what is wrong with it.

    Fields that are missing or of a wrong type are "" (texts) or None (numbers and optional
    fields); ``faults`` says so. ``line`` counts from 1. ``label`` is what the line gives as
    its seq, as text.
    """

    line: int
    seq: int | None
    sender: str
    event: str
    at: str
    summary: str
    doc: str | None
    reply_to: int | None
    role: str | None
    sha256: str | None
    key: str | None
    faults: tuple[Fault, ...] = ()
    label: str = ""

    @property
    def name(self) -> str:
        """The seq as texts name it."""
        return self.label or str(self.seq)


class BadLine(NamedTuple):
    """A line of the log that is no event at all; ``text`` is the whole message."""

    line: int
    code: str
    text: str


# A line as this program and the existing tools write it, without escapes: read at one go.
_TEXT = rb'"([^"\\\x00-\x1f]*+)"'
_NUMBER = rb"([1-9][0-9]{0,14}+)"

_CANONICAL = (
    rb'\{"seq":%(n)b,"from":%(t)b,"event":%(t)b,"at":%(t)b,"summary":%(t)b'
    rb'(?:,"doc":%(t)b)?+(?:,"reply_to":%(n)b)?+(?:,"role":%(t)b)?+(?:,"sha256":%(t)b)?+'
    rb'(?:,"key":%(t)b)?+\}' % {b"n": _NUMBER, b"t": _TEXT}
)

_canonical = cache(lambda: re.compile(_CANONICAL))  # takes as long as twenty lines without it
_NEL, _LINE_SEPARATOR, _PARAGRAPH_SEPARATOR = (chr(code).encode() for code in _LINE_BREAKERS)


class _Words(dict[bytes, str]):
    """Short texts that a log repeats (names, events, documents), decoded and kept once each."""

    def __missing__(self, raw: bytes) -> str:
        text = raw.decode()
        if len(raw) <= 100 and len(self) < 10_000:
            self[raw] = text
        return text


_words = _Words()


def parse_line(raw: bytes, line: int) -> Entry | BadLine | None:
    """One line of the log, without its newline. None for a blank line, which is allowed.

    Lines as every tool writes them take a fast path; everything else is read as JSON and
    checked field by field. Never raises.
    """
    match = _canonical().fullmatch(raw)
    if match is None or len(raw) > MAX_LINE or not (raw.isascii() or holds_no_breaker(raw)):
        return parse_any(raw, line)
    seq, sender, event, at, summary, doc, reply_to, role, sha256, key = match.groups()
    try:
        return tuple.__new__(  # as Entry(...), at half the cost
            Entry,
            (
                line,
                int(seq),
                _words[sender],
                _words[event],
                at.decode(),
                summary.decode(),
                _words[doc] if doc is not None else None,
                int(reply_to) if reply_to else None,
                _words[role] if role is not None else None,
                sha256.decode() if sha256 is not None else None,
                key.decode() if key is not None else None,
                (),
                "",
            ),
        )
    except UnicodeDecodeError:
        return parse_any(raw, line)


def holds_no_breaker(raw: bytes) -> bool:
    """Whether no U+0085, U+2028 or U+2029 stands in UTF-8 text."""
    return _NEL not in raw and _LINE_SEPARATOR not in raw and _PARAGRAPH_SEPARATOR not in raw


def parse_any(raw: bytes, line: int) -> Entry | BadLine | None:
    """The same as `parse_line`, without what makes many usual lines fast: for a few lines."""
    if len(raw) > MAX_LINE:
        return BadLine(line, "ACP203", f"{LOG_FILE} line {line}: longer than {MAX_LINE} bytes")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        text = f"{LOG_FILE} line {line}: invalid JSON: not UTF-8 at byte {error.start + 1}"
        return BadLine(line, "ACP201", text)
    return _parse_loosely(text, line)


def _parse_loosely(text: str, line: int) -> Entry | BadLine | None:
    text = text.removesuffix("\r")
    if not text.strip(" \t\r"):
        return None
    if not text.isascii() and any(chr(code) in text for code in _LINE_BREAKERS):
        return BadLine(
            line,
            "ACP204",
            f"{LOG_FILE} line {line}: holds a raw U+0085, U+2028 or U+2029, "
            "which other readers take for a line end",
        )
    duplicates: list[str] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            duplicates.append(next(k for k, _ in pairs if sum(k == o for o, _ in pairs) > 1))
        return result

    odd: list[str] = []

    def constant(name: str) -> float:
        odd.append(name)
        return float(name)

    if too_deep(text):
        return BadLine(line, "ACP203", f"{LOG_FILE} line {line}: nested deeper than {MAX_DEPTH}")
    try:
        value = json.loads(text, object_pairs_hook=collect, parse_constant=constant)
    except ValueError as error:  # includes numbers with too many digits
        return BadLine(line, "ACP201", f"{LOG_FILE} line {line}: invalid JSON: {_reason(error)}")
    if not isinstance(value, dict):
        return BadLine(line, "ACP202", f"{LOG_FILE} line {line}: event must be an object")
    entry = _entry(value, line, duplicates)
    if not odd:
        return entry
    fault = Fault("ACP954", f"{odd[0]} is a value that JSON does not know")
    return entry._replace(faults=(*entry.faults, fault))


def _reason(error: ValueError) -> str:
    return str(error).splitlines()[0]


def too_deep(text: str) -> bool:
    """Whether a JSON text nests deeper than `MAX_DEPTH`; linear, and safe on any text."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    depth = 0
    for match in re.finditer(_BRACKETS, text, re.DOTALL):
        token = match.group()
        if token in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif token in "]}":
            depth -= 1
    return False


_BRACKETS = r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]'


def _entry(value: dict[str, Any], line: int, duplicates: list[str]) -> Entry:
    faults = [
        Fault("ACP210", f"missing required field {name}")
        for name in REQUIRED_FIELDS
        if name not in value
    ]
    faults.extend(Fault("ACP901", f"the line contains the key {key!r} twice") for key in duplicates)

    def text(name: str, code: str | None = None, message: str = "") -> str:
        found = value.get(name)
        if isinstance(found, str):
            return found
        if name in value and code:
            faults.append(Fault(code, message))
        return ""

    def optional(name: str) -> str | None:
        found = value.get(name)
        if found is not None and not isinstance(found, str):
            faults.append(Fault("ACP902", f"{name} is not a text"))
            return None
        return found

    def number(name: str) -> int | None:
        found = value.get(name)
        return found if type(found) is int and 1 <= found <= MAX_SEQ else None

    seq, reply_to = number("seq"), number("reply_to")
    if value.get("reply_to") is not None and reply_to is None:
        faults.append(Fault("ACP213", "reply_to must point to an earlier event"))
    return Entry(
        line=line,
        seq=seq,
        sender=text("from", "ACP212", "from must be a participant's id"),
        event=text("event", "ACP211", f"unknown event {_short(value.get('event'))}"),
        at=text("at", "ACP214", "at must be an ISO-8601 timestamp"),
        summary=text("summary", "ACP902", "summary is not a text"),
        doc=optional("doc"),
        reply_to=reply_to,
        role=optional("role"),
        sha256=optional("sha256"),
        key=optional("key"),
        faults=tuple(faults),
        label=_short(value["seq"]) if "seq" in value and seq is None else "",
    )


def _short(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # an integer with more digits than Python turns into text
        return "a number with too many digits"
    return text if len(text) <= 80 else text[:79] + "…"


def parse_lines(data: bytes, first_line: int = 1) -> Iterator[Entry | BadLine]:
    """Every event and bad line of ``data``, whose lines end in a newline each.

    Bytes after the last newline are ignored: they may be a line still being written.
    """
    lines = data.split(b"\n")
    lines.pop()
    for number, raw in enumerate(lines, first_line):
        parsed = parse_line(raw, number)
        if parsed is not None:
            yield parsed


def encode_event(fields: dict[str, object]) -> bytes:
    """One line of the log with its newline: compact, UTF-8, keys in `FIELD_ORDER`, None left out."""
    ordered = {name: fields[name] for name in FIELD_ORDER if fields.get(name) is not None}
    text = json.dumps(ordered, ensure_ascii=False, separators=(",", ":"))
    return text.translate(_LINE_BREAKERS).encode() + b"\n"


def encode_protocol(protocol: dict[str, Any]) -> bytes:
    """protocol.json as all tools write it: indent 2, sorted keys, UTF-8, final newline.

    A lone surrogate, which UTF-8 cannot hold, stays the escape that it was.
    """
    text = json.dumps(protocol, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
    return text.encode(errors="backslashreplace")


def decode_protocol(data: bytes) -> dict[str, Any]:
    """protocol.json from its bytes.

    Raises:
        ValueError: with one line that says what is wrong.
    """
    if len(data) > MAX_PROTOCOL:
        raise ValueError(f"larger than {MAX_PROTOCOL} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start + 1}") from None
    if too_deep(text):
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(_reason(error)) from None
    if not isinstance(value, dict):
        raise ValueError("must be an object")
    return value


def dialect_of(protocol: dict[str, Any]) -> str:
    """`V1`, `V2` or `UNKNOWN_DIALECT`, by ``schemaVersion``."""
    if "schemaVersion" not in protocol:
        return V1
    version = protocol["schemaVersion"]
    return V2 if type(version) is int and version == 2 else UNKNOWN_DIALECT


def list_in(fields: dict[str, Any], name: str) -> list[Any]:
    """A field that is a list; an empty one where it is of another kind."""
    found = fields.get(name)
    return found if isinstance(found, list) else []


def object_in(fields: dict[str, Any], name: str) -> dict[str, Any]:
    """A field that is an object; an empty one where it is of another kind."""
    found = fields.get(name)
    return found if isinstance(found, dict) else {}


def text_in(fields: dict[str, Any], name: str) -> str:
    """A field that is a text; "" where it is of another kind."""
    found = fields.get(name)
    return found if isinstance(found, str) else ""


def id_in(participant: object) -> object:
    """What stands for the id of an entry of ``participants``: such an entry is an object, or an id."""
    return participant.get("id") if isinstance(participant, dict) else participant


def participant_ids(protocol: dict[str, Any]) -> list[str]:
    """The participants' ids in order, each once; entries of another form are left out.

    At most `MAX_PARTICIPANTS`.
    """
    ids: dict[str, None] = {}
    for item in list_in(protocol, "participants"):
        name = id_in(item)
        if isinstance(name, str) and is_writable(name) and name and len(ids) < MAX_PARTICIPANTS:
            ids[name] = None
    return list(ids)


def is_writable(name: str) -> bool:
    """Whether UTF-8 can hold a name: one with half a surrogate pair nobody can write."""
    return name.isascii() or not re.search(_HALF, name)


def gate_texts(protocol: dict[str, Any]) -> list[str]:
    """The completion gates' texts in order, of either dialect; other forms are left out.

    Of an object in place of the list, the keys: that is how other tools read it.
    """
    listed = protocol.get("completionGates")
    texts = [
        item.get("text") if isinstance(item, dict) else item
        for item in (listed if isinstance(listed, list | dict) else [])
    ]
    return [text for text in texts if isinstance(text, str)]


def events_of(dialect: str) -> tuple[str, ...]:
    """The allowed event names of a dialect."""
    return EVENTS_V2 if dialect == V2 else EVENTS_V1


def is_digest(text: str | None) -> bool:
    """Whether a text is a SHA-256 in hex as every tool writes it: lower case."""
    return text is not None and re.fullmatch(_DIGEST, text) is not None


def is_participant_id(text: str) -> bool:
    """Whether a text has the form of a new participant's id."""
    return re.fullmatch(_PARTICIPANT_ID, text) is not None


def parse_time(at: str) -> datetime | None:
    """An event's ``at`` as an aware UTC time; None where it is no ISO-8601 timestamp.

    A time without an offset is taken as UTC.
    """
    try:
        moment = datetime.fromisoformat(at)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def format_time(moment: datetime) -> str:
    """A time as every tool writes it: UTC, whole seconds, ``Z``."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


ERROR, WARNING, ADVICE = "error", "warning", "advice"
VALID, WITH_WARNINGS, INVALID = 0, 1, 2
SHOWN = 100  # findings of one code that are listed; the rest is counted
_LINE = 4_000  # characters of one printed line

_VERDICTS = (
    "ACP validation passed",
    "ACP validation passed with warnings",
    "ACP validation failed",
)


class Finding(NamedTuple):
    """One thing that a rule says. Texts are raw: they are made safe when shown.

    ``file`` is relative to the collaboration's folder; ``line`` counts from 1; ``seq`` is
    that of the event it speaks of. Advice never changes the verdict, unless asked for.
    """

    code: str
    message: str
    severity: str = ERROR
    file: str | None = None
    line: int | None = None
    seq: int | None = None


class Report:
    """What all rules say of one collaboration.

    Attributes:
        findings: errors, then warnings, then advice; each in the order of the rules.
        verdict: `VALID`, `WITH_WARNINGS` or `INVALID`, as every validator would say.
    """

    def __init__(self, findings: Iterable[Finding]) -> None:
        listed = list(limited(findings))
        self.errors = tuple(f for f in listed if f.severity == ERROR)
        self.warnings = tuple(f for f in listed if f.severity == WARNING)
        self.advice = tuple(f for f in listed if f.severity == ADVICE)
        self.findings = (*self.errors, *self.warnings, *self.advice)
        self.verdict = INVALID if self.errors else WITH_WARNINGS if self.warnings else VALID

    def lines(self) -> list[str]:
        """The verdict, the errors and the warnings as text, safe to print; advice is not in it."""
        return [
            _VERDICTS[self.verdict],
            *(f"ERROR: {clean_line(finding.message, _LINE)}" for finding in self.errors),
            *(f"WARNING: {clean_line(finding.message, _LINE)}" for finding in self.warnings),
        ]

    def advice_lines(self) -> list[str]:
        """The advice as text, safe to print."""
        return [f"ADVICE: {clean_line(finding.message, _LINE)}" for finding in self.advice]

    def exit_code(self, strict: bool = False) -> int:
        """The verdict; with ``strict``, advice counts as a warning."""
        if strict and self.verdict == VALID and self.advice:
            return WITH_WARNINGS
        return self.verdict


def limited(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings, of each code at most `SHOWN`, and how many more there are."""
    seen: Counter[str] = Counter()
    severity: dict[str, str] = {}
    file: dict[str, str | None] = {}
    for finding in findings:
        seen[finding.code] += 1
        if seen[finding.code] <= SHOWN:
            severity[finding.code], file[finding.code] = finding.severity, finding.file
            yield finding
    for code, count in seen.items():
        if count > SHOWN:
            yield left_out(code, count - SHOWN, severity[code], file[code])


def left_out(code: str, count: int, severity: str, file: str | None) -> Finding:
    """The finding that stands for ``count`` more of ``code`` that are not listed."""
    return Finding("ACP290", f"{count:,} more findings {code} are not listed", severity, file)


CREATE = "create"
APPEND = "append"
REPAIR = "repair"
CONTINUE = "continue"
BLOCK = "block"
SETTLE_QUESTIONS = "settle_questions"
CHECK_GATES = "check_gates"
ANSWER_QUESTION = "answer_question"
SYNC = "sync"


class Script(NamedTuple):
    """A script: the command of acp that it is, that command's function, and what it does."""

    name: str
    command: str
    function: str
    summary: str


SCRIPTS = (
    Script("init_collaboration.py", "init", "init", "Start a collaboration in a folder"),
    Script("append_event.py", "append", "append", "Append an event to a collaboration's log"),
    Script("next_action.py", "next", "next_action", "Show what a participant should do now"),
    Script("wait_for_turn.py", "wait", "wait", "Wait until it is a participant's turn"),
    Script("validate_collaboration.py", "validate", "validate", "Check a collaboration"),
)

_PROPOSED = "Current Proposal"
_CONTENT = r"(?m)^(?![^\S\n]*(?:#|<!--|$))[^\n]+$"  # compiled where it is needed: by who submits
_INSTRUCTION = (
    r"the draft is in `[^`\n]*`\.?|what the reviewers should look at first\.?|#.*|"
    r"(?:add|capture|describe|list|record|write) [^\n]*|"
)
_UNWRITTEN = (
    r"(?:tbd|todo|none|nothing|none yet|nothing yet|pending|not written yet|not yet written|"
    r"to be (?:written|done|defined|determined)|<[^>\n]*>|[.…]*)\.?"
)


def is_unwritten_proposal(text: str) -> bool:
    """Whether proposal.md still says what it said when the collaboration began: nothing."""
    from acp_core.files import markdown  # late: only the proposal's owner and validators need it

    parts = list(markdown.sections(text, 2))
    if all(part.title != _PROPOSED for part in parts):
        return re.search(_CONTENT, text) is None
    for part in parts:
        form = _UNWRITTEN if part.title == _PROPOSED else f"(?:{_INSTRUCTION}{_UNWRITTEN})"
        words = (line.strip(" \t-*") for line in part.body.splitlines())
        if part.title != "Purpose" and not all(re.fullmatch(f"(?i){form}", line) for line in words):
            return False
    return True


SHARE = os.path.join(".acp", "share.json")
"""The file by which a folder says that it is shared with other hosts."""


def path_of(folder: str, name: str) -> str:
    """A file of the collaboration."""
    return os.path.join(folder, name)


def is_shared(folder: str) -> bool:
    """Whether the folder is shared with other hosts: then its store has the say.

    One that this account shares stays so, whatever a program removes there.
    """
    return os.path.lexists(path_of(folder, SHARE)) or is_pinned(folder)
