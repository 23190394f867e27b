"""What stands in one cycle's progress folder: documents, board, coordination log, PHASE_RESULT, what was seen before.

The board is ``coordination/discoveries.ndjson``: a JSON object per line, with ``ts``, ``agent``,
``type`` and ``data``, only ever appended to. Where the specification is silent: a discovery of the
type ``blocker`` is a request to whoever can answer it when its severity is ``high``, or none of the
three that there are; one of ``medium`` or ``low`` severity is for the others to know.

An agent prints its PHASE_RESULT with line ends of any kind, in fences, in bold, more than once: the
last block counts. Values become what they mean ("[a, b]" a list, "92%" a number, "17/20" a `Ratio`,
"true" a truth); unknown keys are kept. Nothing in it can fail.

feedback.md of the coordination log has four sections; lines that others wrote into it stay.

What was seen of a cycle before must never go back, shrink or vanish: logs, entries of the state and
versions; main documents are rewritten for an iteration. Source: development cycle specification,
"Progress Markdown Files", "Coordination Log" (its later form), "Phase Result Format", "Shared State
File" (never delete existing data) and "Communication Best Practices" (append-only logs).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from acp_core.files.reading import Unreadable, read_head
from acp_core.files.records import File, read_record, read_text
from acp_core.model import Finding
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.schema import (
    AGENTS,
    Cycle,
    LogRow,
    Object,
    Version,
    agent_in,
    coordination_of,
    one_line,
    parse_object,
    parse_part,
)
from acp_core.protocols.kit.findings import error, warning

LIMIT = 4 << 20  # bytes of one file that are read

_TEXTS = 32 << 20  # bytes of logs that are read in all

_HEAD = 64 << 10  # bytes of an agent's document that are looked at

_HEADS = 100  # documents

_RESULTS = 200

_PAST = 30  # earlier test results

_READ = re.compile(r"/(?:coordination/(?:feedback|timeline)\.md|[a-z]+/[a-z-]+\.(?:log|ndjson))$")

_RESULT = re.compile(r"coordination/phase-results/[A-Za-z0-9._-]+\.(?:txt|md)")

_PAST_TESTS = re.compile(r"vas/history/test-results-v[0-9.]+\.json")


def filled(cycle: Cycle, before: Cycle | None, logs: bool) -> Cycle:
    """The cycle with what its files hold.

    Args:
        cycle: its state and its files.
        before: as it was read before: what has not changed since is not read again.
        logs: whether its logs, and what agents reported, are read too.
    """
    if before and before.files == cycle.files and before.whole >= logs:
        return replace(
            cycle,
            plan_file=before.plan_file,
            tests_file=before.tests_file,
            tests_past=before.tests_past,
            heads=before.heads,
            texts=before.texts,
            results=before.results,
            whole=before.whole,
        )
    by_name = {file.name.removeprefix(cycle.progress): file for file in cycle.files}
    plan, tests = by_name.get("ep/plan.json"), by_name.get("vas/test-results.json")
    past = [file for name, file in by_name.items() if _PAST_TESTS.fullmatch(name)]
    past.sort(key=lambda file: schema.version_in(file.path.stem) or (0, 0, 0))
    pages = [file for name, file in by_name.items() if _is_page(name)]
    return replace(
        cycle,
        plan_file=read_record(plan, LIMIT) if plan else None,
        tests_file=read_record(tests, LIMIT) if tests else None,
        tests_past=tuple(read_record(file, LIMIT) for file in past[-_PAST:]),
        heads={file.name: _head(file) for file in pages[:_HEADS]},
        texts=_texts(cycle) if logs else {},
        results=_results(by_name) if logs else {},
        whole=logs,
    )


def is_log(name: str) -> bool:
    """Whether a file is a log, or the coordination's timeline or feedback."""
    return _READ.search(name) is not None


def _texts(cycle: Cycle) -> dict[str, str]:
    """The logs and the coordination's documents; one that cannot be read is left out."""
    texts: dict[str, str] = {}
    left = _TEXTS
    for file in cycle.files:
        if is_log(file.name) and file.size <= left:
            text, problem = read_text(file, LIMIT)
            if not problem:
                texts[file.name] = text
                left -= file.size
    return texts


def _results(by_name: Mapping[str, File]) -> dict[str, str]:
    found = [f for name, f in by_name.items() if _RESULT.fullmatch(name)]
    return {file.name: read_text(file, LIMIT)[0] for file in found[-_RESULTS:]}


def _is_page(name: str) -> bool:
    """A document that an agent keeps itself, not one of its past."""
    folder, _, rest = name.partition("/")
    return folder in schema.AGENTS and "/" not in rest and rest.endswith(".md")


def _head(file: File) -> str:
    """How a document begins; "" where it cannot be read. Its lines end in line feeds."""
    if file.link:
        return ""
    try:
        text = read_head(file.path, _HEAD).decode("utf-8", "replace").removeprefix("\ufeff")
    except Unreadable:
        return ""
    return text.replace("\r\n", "\n").replace("\r", "\n")


BOARD = "coordination/discoveries.ndjson"

# Each type of a discovery, with the key of its data that tells two of a type apart ("": there
# is one of the type) and all keys that its data must have.
DISCOVERIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "tech_stack": ("", ()),
    "architecture": ("", ()),
    "code_convention": ("", ()),
    "test_command": ("", ()),
    "test_baseline": ("", ()),
    "test_pattern": ("", ()),
    "project_config": ("path", ("path",)),
    "existing_feature": ("name", ("name",)),
    "code_pattern": ("name", ("name",)),
    "utility": ("name", ("name",)),
    "integration_point": ("file", ("file",)),
    "similar_impl": ("feature", ("feature",)),
    "blocker": ("issue", ("issue", "severity", "impact")),
}

SUPERSEDED = "test_baseline"  # a newer line of this type takes the place of an older one

WRITTEN = {
    "ra": ("tech_stack", "project_config", "existing_feature"),
    "ep": ("architecture", "code_pattern", "integration_point", "similar_impl"),
    "cd": ("code_convention", "utility", "test_command", "blocker"),
    "vas": ("test_baseline", "test_pattern", "test_command", "blocker"),
}

_BOARD_LINES = 5_000

_LONG = 300  # characters of one discovery that are told to others


class Discovery(NamedTuple):
    """A row of the board: who found it, its type, and what it is about."""

    agent: str
    type: str
    data: Object


def read(text: str) -> list[Discovery]:
    """The discoveries of known types that have what their type needs; other lines are findings."""
    found = []
    for line in text.split("\n")[:_BOARD_LINES]:
        value = parse_object(line) or {}
        entry = parse_part(LogRow, value)
        kind, data = entry.type, entry.data
        if kind not in DISCOVERIES or not data:
            continue
        key, _ = DISCOVERIES[kind]
        if key and not schema.text(data.get(key)).strip():
            continue
        found.append(Discovery(entry.agent.lower(), kind, data))
    return found


def distinct(found: Iterable[Discovery]) -> list[Discovery]:
    """Each discovery once: the first of those that tell the same, the last where it is superseded."""
    known: dict[tuple[str, str], Discovery] = {}
    for each in found:
        key, _ = DISCOVERIES[each.type]
        place = each.type, schema.text(each.data.get(key)) if key else ""
        if place not in known or each.type == SUPERSEDED:
            known[place] = each
    return list(known.values())


def describe(found: Discovery) -> str:
    """A discovery in one line."""
    values = "; ".join(
        f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for key, value in found.data.items()
    )
    return " ".join(f"{found.type}: {values}".split())[:_LONG]


def blocks(found: Discovery) -> bool:
    """Whether it is a request, and not only for the others to know."""
    severity = schema.text(found.data.get("severity")).strip().lower()
    return found.type == "blocker" and severity not in ("medium", "low")


LISTS = ("feedback_log", "pending_decisions", "blockers")

_FINDINGS = 50  # findings that are remembered

_DECISIONS = 200  # decisions that are remembered


class Log(NamedTuple):
    """How long a log was, and a digest of it."""

    length: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one cycle up to now.

    Attributes:
        versions: the latest version of each part of the state and of each document.
        logs: the logs, by the name of their file.
        entries: of each list of the state, the entries by what tells them apart.
        gone: decisions that no longer stand in the state, as they were seen last.
        violations: what went against the rules while we looked on.
    """

    versions: Mapping[str, Version] = field(default_factory=dict)
    logs: Mapping[str, Log] = field(default_factory=dict)
    entries: Mapping[str, Mapping[str, Object]] = field(default_factory=dict)
    gone: tuple[Object, ...] = ()
    violations: tuple[Finding, ...] = ()


def remember(cycle: Cycle, before: Seen | None) -> Seen:
    """What is known of a cycle after one more reading of it.

    A state that could not be read says nothing: what was known of it stays.
    """
    now = Seen(_versions(cycle), _logs(cycle), _entries(cycle))
    if before is None:
        return now
    readable = bool(cycle.value) and not cycle.record.stale
    entries = now.entries if readable else before.entries
    gone = _gone(before, entries)
    found = [*_fallen(cycle, before, now), *_shrunk(cycle, before, now)]
    found += _vanished(cycle, before, entries)
    new = [finding for finding in found if finding not in before.violations]
    return Seen(
        {**before.versions, **now.versions},
        {**before.logs, **now.logs},
        entries,
        gone[-_DECISIONS:],
        (*before.violations, *new)[-_FINDINGS:],
    )


def _versions(cycle: Cycle) -> dict[str, Version]:
    documents: dict[str, Version] = dict(state.document_versions(cycle))
    return {**state.versions(cycle), **documents}


def _logs(cycle: Cycle) -> dict[str, Log]:
    logs = {n: t for n, t in cycle.texts.items() if n.endswith((".log", ".ndjson"))}
    return {name: Log(len(text), _digest(text)) for name, text in logs.items()}


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _entries(cycle: Cycle) -> dict[str, dict[str, Object]]:
    found = {key: {_mark(e): e for e in cycle.coordination(key)} for key in LISTS}
    records = schema.objects(cycle.value.get("iterations"))
    found["iterations"] = {_mark(each): each for each in records}
    return found


def _mark(entry: Object) -> str:
    """What tells an entry apart from others: its id or number, else what it says and when."""
    for key in ("id", "number", "iteration"):
        if said := schema.text(entry.get(key)):
            return said
    keys = ("timestamp", "source", "target", "type", "content")
    return " ".join(schema.text(entry.get(key)) for key in keys)


def _gone(before: Seen, entries: Mapping[str, Mapping[str, Object]]) -> tuple[Object, ...]:
    """The decisions that were seen and are not there any more."""
    there = entries.get("pending_decisions", {})
    known = {_mark(each): each for each in before.gone}
    known |= before.entries.get("pending_decisions", {})
    return tuple(each for mark, each in known.items() if mark not in there)


def _fallen(cycle: Cycle, before: Seen, now: Seen) -> list[Finding]:
    found = []
    for name, version in now.versions.items():
        known = before.versions.get(name)
        if known and version < known:
            message = f"{name} went down from {schema.written(known)} to {schema.written(version)}"
            found.append(error("A48", message, cycle.record.file))
    return found


def _shrunk(cycle: Cycle, before: Seen, now: Seen) -> list[Finding]:
    if not cycle.whole:
        return []
    found = []
    there = {file.name for file in cycle.files}
    for name, known in before.logs.items():
        log, text = now.logs.get(name), cycle.texts.get(name, "")
        inside = name.removeprefix(cycle.progress)
        if name not in there:
            found.append(error("A49", f"The log {inside} is missing", cycle.record.file))
        elif log is None:
            continue  # it cannot be read now, or has become too long
        elif log.length < known.length:
            message = f"The log {inside} has shrunk; logs are only appended to"
            found.append(error("A49", message, cycle.file(inside)))
        elif log != known and _digest(text[: known.length]) != known.digest:
            message = f"Earlier lines of the log {inside} were changed; logs are only appended to"
            found.append(error("A49", message, cycle.file(inside)))
    return found


def _vanished(
    cycle: Cycle, before: Seen, entries: Mapping[str, Mapping[str, Object]]
) -> list[Finding]:
    found = []
    for key, known in before.entries.items():
        missing = [mark for mark in known if mark not in entries.get(key, {})]
        if missing:
            rest = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            message = f"Removed from {key}: {', '.join(missing[:3])}{rest}; the state only grows"
            found.append(warning("A49b", message, cycle.record.file))
    return found


RESULT_BYTES = 4 << 20  # characters that are looked at, the last ones

RESULT_STATUSES = ("success", "failed", "partial")

_BLOCK_LINES = 500  # of one block

_LONG_VALUE = 4_000  # characters of one value

_BLOCK_HEAD = re.compile(r"^[\s>*_#`]*PHASE_RESULT[*_`]*\s*:[\s*_`]*$")

_DETAILS = re.compile(r"^[\s>*_#`]*PHASE_DETAILS[*_`]*\s*:[\s*_`]*(.*)$")

_FENCE = re.compile(r"^\s*(?:```|~~~)")

_DASH = re.compile(r"^(\s*)(?:[-*+\u2022]|\d{1,3}[.)])\s+(.*)$")

_PAIR = re.compile(
    r"^[*_`]*([A-Za-z][A-Za-z0-9_ -]{0,60}?)[*_`]*\s*:(?:[*_`]+(?=\s|$))?(?:\s+(.*)|)$"
)

_RATIO = re.compile(r"(\d{1,9})\s*/\s*(\d{1,9})")

_PERCENT = re.compile(r"([+-]?\d{1,9}(?:\.\d{1,9})?)\s*%")

_INTEGER = re.compile(r"[+-]?\d{1,15}")

_DECIMAL = re.compile(r"[+-]?\d{1,15}\.\d{1,15}")

_NO_VALUE = ("", "none", "n/a", "-", "null", "no", "nothing")


class Ratio(NamedTuple):
    """``part`` of ``whole``, as in "17/20"."""

    part: int
    whole: int

    def __str__(self) -> str:
        return f"{self.part}/{self.whole}"


Value = str | int | float | bool | Ratio | list[str]


@dataclass(frozen=True, slots=True)
class PhaseResult:
    """One block, taken apart.

    Attributes:
        fields: every key with its value, in the order of the block.
        details: the text behind PHASE_DETAILS, "" where there is none.
        blocks: how many blocks the output held; this is the last one.
    """

    fields: Mapping[str, Value] = field(default_factory=dict)
    details: str = ""
    blocks: int = 1

    @property
    def phase(self) -> str:
        """The agent that it names, in small letters."""
        return self.word("phase").lower()

    @property
    def status(self) -> str:
        """Its status, in small letters: one of `STATUSES` where it is in order."""
        return self.word("status").lower()

    @property
    def summary(self) -> str:
        """The one-line summary."""
        return self.word("summary")

    def word(self, key: str) -> str:
        """A value as text; a list as its items with commas; "" where it is missing."""
        value = self.fields.get(key, "")
        return ", ".join(value) if isinstance(value, list) else str(value)

    def items(self, key: str) -> list[str]:
        """A value as a list: words like "none", and mere numbers, mean an empty one."""
        value = self.fields.get(key, "")
        if isinstance(value, list):
            return [each for each in value if each.strip().lower() not in _NO_VALUE]
        if not isinstance(value, str) or value.strip().lower() in _NO_VALUE:
            return []
        return [value]

    def number(self, key: str) -> float | None:
        """A number, or the percentage that a `Ratio` is; None for anything else."""
        value = self.fields.get(key)
        if isinstance(value, Ratio):
            return 100 * value.part / value.whole if value.whole else None
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value)

    def problems(self, agent: str = "") -> list[str]:
        """What is not as it should be, a sentence each; with ``agent``, also another's phase."""
        found = []
        if agent and self.phase != agent:
            found.append(f"phase is {self.phase!r}, not {agent!r}")
        elif self.phase not in AGENTS:
            found.append(f"phase {self.phase!r} is not one of {', '.join(AGENTS)}")
        if self.status not in RESULT_STATUSES:
            found.append(f"status {self.status!r} is not one of {', '.join(RESULT_STATUSES)}")
        missing = [key for key in ("files_written", "summary", "issues") if key not in self.fields]
        if missing:
            found.append(f"missing: {', '.join(missing)}")
        if self.blocks > 1:
            found.append(f"{self.blocks} blocks, the last one counts")
        unhappy = self.status in ("failed", "partial")
        reasons = (*self.items("issues"), *self.items("blockers"), *self.items("failed_tests"))
        if unhappy and not reasons:
            found.append(f"{self.status} without issues or blockers")
        return found

    def plain(self) -> dict[str, object]:
        """The fields ready for JSON: a `Ratio` as "17/20"."""
        return {k: str(v) if isinstance(v, Ratio) else v for k, v in self.fields.items()}


def parse_result(output: str) -> PhaseResult | None:
    """The last block of an output; None where there is none.

    A block whose phase or status still lists the choices ("ra|ep|cd|vas") is a template that was
    repeated, not a result.
    """
    lines = output[-RESULT_BYTES:].replace("\r\n", "\n").replace("\r", "\n").split("\n")
    starts = [number for number, line in enumerate(lines) if _BLOCK_HEAD.match(line[:200])]
    found = [(start, _block(lines[start + 1 : start + 1 + _BLOCK_LINES])) for start in starts]
    real = [(start, each) for start, each in found if each and not _template(each)]
    if not real:
        return None
    start, fields = real[-1]
    return PhaseResult(fields, _details(lines[start + 1 :]), len(real))


def _template(fields: Mapping[str, Value]) -> bool:
    return any("|" in str(fields.get(key, "")) for key in ("phase", "status"))


def _block(lines: list[str]) -> dict[str, Value]:
    raw: dict[str, str | list[str]] = {}
    last, depth = "", 0
    for line in _body(lines):
        dash = _DASH.match(line)
        indent = len(dash[1]) if dash else len(line) - len(line.lstrip())
        said = (dash[2] if dash else line).strip()[:_LONG_VALUE]
        pair = _PAIR.match(said)
        held = raw.get(last)
        if pair and indent <= depth and not (isinstance(held, list) and held and indent > depth):
            last, depth = _key(pair[1]), indent
            raw[last] = (pair[2] or "").strip()
        elif last and dash:
            items = held if isinstance(held, list) else [held] if held else []
            raw[last] = [*items, _bare(said)]
        elif last and isinstance(held, list) and held:
            held[-1] = f"{held[-1]} {said}"[:_LONG_VALUE]
        elif last:
            raw[last] = f"{held} {said}".strip()[:_LONG_VALUE]
        elif pair:  # the first key stands further in than the head
            last, depth = _key(pair[1]), indent
            raw[last] = (pair[2] or "").strip()
    return {key: value if isinstance(value, list) else typed(value) for key, value in raw.items()}


def _body(lines: list[str]) -> Iterator[str]:
    """The lines of a block: up to a blank one, the end of a fence, or the next heading word."""
    begun = False
    for line in lines:
        if not line.strip():
            if begun:
                return
            continue
        if _DETAILS.match(line) or _BLOCK_HEAD.match(line):
            return
        if _FENCE.match(line):
            if begun:
                return
            continue
        begun = True
        yield line.expandtabs(4)[: _LONG_VALUE * 2].removeprefix("> ")


def _key(said: str) -> str:
    return re.sub(r"[ -]+", "_", said.strip().lower())


def _details(lines: list[str]) -> str:
    for number, line in enumerate(lines):
        if _BLOCK_HEAD.match(line):
            return ""
        head = _DETAILS.match(line)
        if head:
            rest = [head[1]] if head[1] else []
            for each in lines[number + 1 : number + _BLOCK_LINES]:
                if _FENCE.match(each):
                    break
                rest.append(each)
            return "\n".join(rest).strip()[: _LONG_VALUE * 4]
    return ""


def typed(said: str) -> Value:
    """A value as what it means; text stays text."""
    said = said.strip()
    if said.startswith("[") and said.endswith("]"):
        return _listed(said[1:-1])
    bare = _bare(said)
    small = bare.lower()
    if small in ("true", "false"):
        return small == "true"
    if match := _RATIO.fullmatch(bare):
        return Ratio(int(match[1]), int(match[2]))
    if match := _PERCENT.fullmatch(bare):
        return float(match[1])
    if _INTEGER.fullmatch(bare):
        return int(bare)
    if _DECIMAL.fullmatch(bare):
        return float(bare)
    return bare


def _bare(said: str) -> str:
    """Text without the quotes, backticks or stars around the whole of it."""
    said = said.strip()
    for sign in ("**", "`", '"', "'"):
        if len(said) >= 2 * len(sign) and said.startswith(sign) and said.endswith(sign):
            inside = said[len(sign) : -len(sign)]
            if sign not in inside:
                said = inside.strip()
    return said


def _listed(inside: str) -> list[str]:
    """The items of a list in brackets; a comma in quotes or in brackets parts nothing."""
    items, current, quote, depth = [], "", "", 0
    for number, sign in enumerate(inside):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'`" and not current.strip() and sign in inside[number + 1 :]:
            quote = sign
        elif sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth = max(0, depth - 1)
        elif sign == "," and not depth:
            items.append(current)
            current = ""
            continue
        current += sign
    items.append(current)
    return [bare for each in items if (bare := _bare(each)[:_LONG_VALUE])]


TIMELINE, DECISIONS, FEEDBACK = "timeline.md", "decisions.log", "feedback.md"

FEEDBACK_SECTIONS = (
    "Timeline",
    "Decision Records",
    "Blockers & Resolutions",
    "Cross-Agent Dependencies",
)

SEEN_AT = "seen_at"  # since when the orchestrator knows of what bears no time itself

_TIMES = ("asked_at", "reported_at", "timestamp", "created_at", SEEN_AT)

_ENTRY_ID = re.compile(r"^- (?:\[\S*\] )?(?:Blocker: )?([\w.-]+): ")

_SECTION_HEADING = re.compile(r"^## +(.+?) *$")


def feedback_text(held: str, timeline: str, state: Object) -> str:
    """feedback.md as it should stand: its four sections, and every line that others wrote."""
    fresh = {
        "Timeline": [bracketed(line) for line in timeline.splitlines() if line.startswith("- ")],
        "Decision Records": _decision_lines(state),
        "Blockers & Resolutions": _blocker_lines(state),
        "Cross-Agent Dependencies": _dependency_lines(state),
    }
    own = _sections(held)
    above = [line for line in own.pop("", []) if not line.startswith("# Feedback")]
    parts = [f"# Feedback & Coordination Log - Version {documents_version(state)}", "", *above]
    for name in FEEDBACK_SECTIONS:
        kept = own.pop(name, [])
        if name == "Timeline":
            ours = set(fresh[name])
            lines = [line for line in kept if line not in ours] + fresh[name]
        else:
            lines = _joined(kept, fresh[name])
        parts += [f"## {name}", *lines, ""]
    for name, lines in own.items():
        parts += [f"## {name}", *lines, ""]
    return "\n".join(parts)


def bracketed(line: str) -> str:
    """A line of timeline.md as feedback.md has it: with its time in brackets, its date too."""
    return re.sub(r"^- (\d\S*) ", r"- [\1] ", line)


def _sections(text: str) -> dict[str, list[str]]:
    """The lines below each heading that are not blank; those above the first one under ""."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        heading = _SECTION_HEADING.match(line)
        if heading:
            name = heading[1]
            found.setdefault(name, [])
        elif line.strip():
            found.setdefault(name, []).append(line)
    return found


def _joined(kept: list[str], fresh: list[str]) -> list[str]:
    """Entries of ours, each a line with indented ones below, in place of older forms of them."""
    ours = {_entry_key(entry) for entry in _entries_of(fresh)}
    others = [
        line for entry in _entries_of(kept) if _entry_key(entry) not in ours for line in entry
    ]
    return others + fresh


def _entry_key(entry: list[str]) -> str:
    """What an entry is about: the id in it, or its beginning."""
    found = _ENTRY_ID.match(entry[0])
    return found[1] if found else entry[0].split(": ")[0]


def _entries_of(lines: list[str]) -> list[list[str]]:
    found: list[list[str]] = []
    for line in lines:
        if found and line[:1] in (" ", "\t"):
            found[-1].append(line)
        else:
            found.append([line])
    return found


def time_of(entry: Object) -> str:
    """When a decision was asked for, or a blocker reported; "" where nobody said it."""
    return next((said for key in _TIMES if (said := one_line(schema.text(entry.get(key))))), "")


def _bracketed_time(entry: Object) -> str:
    at = time_of(entry)
    return f"[{at}] " if at else ""


def _decision_lines(state: Object) -> list[str]:
    lines = []
    for each in coordination_of(state).decisions:
        lines.append(
            f"- {_bracketed_time(each.raw)}{one_line(each.id)}: {one_line(each.description)}"
        )
        lines.append(f"  - Decision: {one_line(each.chosen_option) or 'pending'}")
        for name in ("rationale", "impact", "made_by"):
            if told := one_line(schema.text(each.raw.get(name))):
                lines.append(f"  - {name.replace('_', ' ').capitalize()}: {told}")
    return lines


def _blocker_lines(state: Object) -> list[str]:
    lines = []
    for each in coordination_of(state).blockers:
        about = f"{one_line(each.id)}: {one_line(each.description)}"
        lines.append(f"- {_bracketed_time(each.raw)}Blocker: {about}")
        lines.append(f"  - Reported by: {one_line(each.reported_by).upper()}")
        lines.append(f"  - Resolution: {one_line(each.resolution) or '-'}")
        lines.append(f"  - Status: {(one_line(each.status) or 'open').capitalize()}")
    return lines


def _dependency_lines(state: Object) -> list[str]:
    lines = []
    for name, needs in schema.DEPENDS.items():
        if needs:
            at = one_line(agent_in(state, needs).version)
            of = f" (v{at})" if at else ""
            lines.append(f"- {name.upper()} depends on: {needs.upper()}{of}")
    return lines


def documents_version(state: Object) -> str:
    """The version that the iteration's documents have."""
    return one_line(schema.text(state.get("version"))) or "1.0.0"
