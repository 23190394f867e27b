"""Rules on the logs: rows of JSON, what was discovered, and who writes where.

Source: development cycle specification, "Progress Markdown Files" and "Single Writer Per Field".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from acp_core.model import Finding
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.read.board import BOARD, DISCOVERIES, SUPERSEDED
from acp_core.protocols.cycle.read.board import row as row_of
from acp_core.protocols.cycle.schema import AGENTS, Cycle, LogRow, Object, parse_part
from acp_core.protocols.kit.findings import advice, error, warning

Findings = Iterator[Finding]
Row = tuple[int, Object]


def rows(cycle: Cycle, inside: str) -> list[Row]:
    """The rows of a log, each with its line; what is no row is left out."""
    found = []
    for number, line in enumerate(cycle.texts.get(f"{cycle.progress}{inside}", "").split("\n"), 1):
        value = row_of(line)
        if value is not None:
            found.append((number, value))
    return found


def a80(cycle: Cycle) -> Findings:
    """Every line of a log of rows is a JSON object; the last one may still be being written."""
    for name, content in cycle.texts.items():
        if not name.endswith(".ndjson") and not _is_rows(name, content):
            continue
        file = cycle.file(name.removeprefix(cycle.progress))
        lines = content.split("\n")
        bad = [n for n, line in enumerate(lines, 1) if line.strip() and row_of(line) is None]
        if bad and bad[-1] == len(lines):
            bad.pop()
            message = f"Line {len(lines)} is still being written"
            yield advice("A80", message, file, len(lines))
        if bad:
            message = f"{len(bad)} lines are not JSON objects, the first is {bad[0]}"
            yield warning("A80", message, file, bad[0])


def _is_rows(name: str, content: str) -> bool:
    """Whether a log that may be plain text holds rows."""
    return name.endswith(".log") and content.lstrip().startswith("{")


def a81(cycle: Cycle) -> Findings:
    """Discoveries are of known types, have what their type needs, and stand once."""
    file = cycle.file(BOARD)
    seen: Counter[tuple[str, str]] = Counter()
    unknown, lacking, twice = [], [], []
    for number, row in rows(cycle, BOARD):
        found = parse_part(LogRow, row)
        kind, data = found.type, found.data
        if kind not in DISCOVERIES:
            unknown.append((number, kind or "none"))
            continue
        key, needed = DISCOVERIES[kind]
        missing = [each for each in needed if not schema.text(data.get(each))]
        if missing or not isinstance(row.get("data"), dict):
            lacking.append((number, f"{kind} has no {', '.join(missing) or 'data'}"))
        place = (kind, schema.text(data.get(key)) if key else "")
        seen[place] += 1
        if seen[place] > 1 and kind != SUPERSEDED:
            twice.append((number, " ".join(filter(None, place))))
    if unknown:
        message = f"Unknown types of discoveries: {_first(unknown)}"
        yield advice("A81", message, file, unknown[0][0])
    if lacking:
        yield warning("A81", f"Discoveries lack data: {_first(lacking)}", file, lacking[0][0])
    if twice:
        yield advice("A81", f"Duplicate discoveries: {_first(twice)}", file, twice[0][0])


def _first(found: list[tuple[int, str]]) -> str:
    several = list(dict.fromkeys(what for _, what in found))
    rest = f" and {len(several) - 4} more" if len(several) > 4 else ""
    return ", ".join(several[:4]) + rest


def a96(cycle: Cycle) -> Findings:
    """Nobody writes into the folder of another: as far as the logs tell who wrote."""
    for name in cycle.texts:
        holder, _, log = name.removeprefix(cycle.progress).partition("/")
        if holder not in AGENTS or not log.endswith((".log", ".ndjson")):
            continue
        for number, row in rows(cycle, f"{holder}/{log}"):
            change = parse_part(LogRow, row)
            writer = change.agent.lower()
            if writer in AGENTS and writer != holder:
                message = f"{writer} wrote into {holder}/{log}, which belongs to {holder}"
                yield error("A96", message, cycle.file(f"{holder}/{log}"), number)
            touched = _folder_of(cycle, change.file)
            if touched and touched != (writer or holder):
                message = f"{writer or holder} changed {change.file}, {touched}'s"
                yield error("A96", message, cycle.file(f"{holder}/{log}"), number)
    changes = cycle.value.get("changes")
    listed = changes if isinstance(changes, list) else schema.obj(changes).get("changes")
    for change in (parse_part(LogRow, each) for each in schema.objects(listed)):
        writer, touched = change.agent.lower(), _folder_of(cycle, change.file)
        if writer in AGENTS and touched and touched != writer:
            message = f"{writer} changed {change.file}, which is {touched}'s"
            yield error("A96", message, cycle.record.file)
    for change in (parse_part(LogRow, each) for each in cycle.coordination("overwrites")):
        message = f"{change.by} changed {change.file}, which only {change.owner} writes"
        if change.is_put_back:
            yield warning("A96", f"{message}; acp restored it", cycle.record.file)
        else:
            yield error("A96", f"{message}; acp could not restore it", cycle.record.file)


def _folder_of(cycle: Cycle, path: str) -> str:
    """The agent into whose folder a path leads, "" for none."""
    _, found, inside = path.replace("\\", "/").partition(f"{cycle.id}.progress/")
    holder = inside.split("/")[0] if found else ""
    return holder if holder in AGENTS else ""


RULES = (a80, a81, a96)
