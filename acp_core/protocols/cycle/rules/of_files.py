"""Rules on what agents leave behind: the plan, test results, PHASE_RESULT blocks, documents and logs.

By the specification a PHASE_RESULT is in no file of its own; judged are those that an orchestrator
kept. Source: development cycle specification, "Dependency Resolution" and "Conflict Resolution"
(plan, results), "Directory Structure" (files), "Progress Markdown Files" (logs).
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from acp_core.files.records import File
from acp_core.model import Finding
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.read.progress import (
    BOARD,
    DISCOVERIES,
    RESULT_STATUSES,
    SUPERSEDED,
    PhaseResult,
    parse_result,
)
from acp_core.protocols.cycle.schema import AGENTS, Cycle, LogRow, Object, parse_part
from acp_core.protocols.kit.findings import advice, error, warning

Findings = Iterator[Finding]


def _needs(cycle: Cycle) -> dict[str, tuple[str, ...]]:
    return {task.id: task.depends_on for task in state.tasks(cycle)}


def a50(cycle: Cycle) -> Findings:
    """Tasks depend on tasks that there are."""
    needs = _needs(cycle)
    if len(state.tasks(cycle)) >= schema.MANY:
        return  # not all of them were looked at
    for id, before in needs.items():
        for each in before:
            if each not in needs:
                message = f"{id} depends on {each}, which is not a task"
                yield error("A50", message, cycle.record.file)


def a51(cycle: Cycle) -> Findings:
    """A task is completed after those that it depends on."""
    states = {task.id: task.state for task in state.tasks(cycle)}
    for id, before in _needs(cycle).items():
        undone = [each for each in before if states.get(each) not in (None, "", "completed")]
        if states.get(id) == "completed" and undone:
            message = f"{id} is completed before {', '.join(undone)}"
            yield warning("A51", message, cycle.record.file)


def a52(cycle: Cycle) -> Findings:
    """No tasks wait for one another in a circle."""
    left = state.circle(_needs(cycle))
    if left:
        message = f"Tasks wait for each other: {', '.join(sorted(left))}"
        yield error("A52", message, cycle.record.file)


def a53(cycle: Cycle) -> Findings:
    """The plan's file has as many tasks as it says."""
    value = (cycle.plan_file.value if cycle.plan_file else None) or {}
    total, tasks = schema.count(value.get("total_tasks")), value.get("tasks")
    if cycle.plan_file and total is not None and isinstance(tasks, list) and total != len(tasks):
        message = f"total_tasks is {total}, there are {len(tasks)}"
        yield warning("A53", message, cycle.plan_file.file)


def a54(cycle: Cycle) -> Findings:
    """The critical path leads over tasks that there are."""
    ids = {task.id for task in (*state.tasks(cycle), *state.planned(cycle))}
    unknown = [each for each in state.critical_path(cycle) if each not in ids]
    if unknown and len(ids) < schema.MANY:
        message = f"The critical path contains unknown tasks: {', '.join(unknown[:5])}"
        yield warning("A54", message, cycle.record.file)


def a55(cycle: Cycle) -> Findings:
    """The state and the plan's file have the same tasks."""
    stated = {task.id for task in cycle.state.plan.tasks}
    held = {task.id for task in state.planned(cycle)}
    if stated and held and stated != held:
        parts = []
        if stated - held:
            parts.append(f"only in the state: {', '.join(sorted(stated - held)[:5])}")
        if held - stated:
            parts.append(f"only in the plan's file: {', '.join(sorted(held - stated)[:5])}")
        yield advice("A55", f"Tasks differ, {'; '.join(parts)}", cycle.record.file)
    differ = state.disputed(cycle)
    if differ:
        named = ", ".join(f"{id} ({said} and {other})" for id, said, other in differ[:5])
        sentence = f"State and ep/plan.json differ on tasks: {named}"
        yield warning("A55", sentence, cycle.record.file)


def a56(cycle: Cycle) -> Findings:
    """Efforts and states of tasks are known words."""
    odd = []
    for task in state.tasks(cycle):
        if task.effort and task.effort.lower() not in schema.EFFORTS:
            odd.append(f"effort {task.effort!r}")
        if task.state and task.state not in schema.TASK_STATUSES:
            odd.append(f"status {task.state!r}")
    if odd:
        message = f"Unknown words in the plan: {', '.join(list(dict.fromkeys(odd))[:5])}"
        yield advice("A56", message, cycle.record.file)


PLAN_RULES = (a50, a51, a52, a53, a54, a55, a56)
MINIMUM = {"test_pass_rate": 90.0, "coverage": 80.0}  # percent
_LABELS = {"test_pass_rate": "pass rate", "coverage": "coverage"}


def _sources(cycle: Cycle) -> Iterator[tuple[Object, File]]:
    own = cycle.state.test_results
    if own:
        yield own, cycle.record.file
    if cycle.tests_file and cycle.tests_file.value:
        yield cycle.tests_file.value, cycle.tests_file.file


def a41(cycle: Cycle) -> Findings:
    """Rates are percentages from 0 to 100."""
    for value, file in _sources(cycle):
        held = value.get("coverage")
        covered = held.get("lines") if isinstance(held, dict) else held
        for key, said in (("pass_rate", value.get("pass_rate")), ("coverage", covered)):
            if said in (None, ""):
                continue
            number = schema.percent(said)
            if number is None or not 0 <= number <= 100:
                yield error("A41", f"{key} is not a percentage from 0 to 100", file)
    fractions = [file for value, file in _sources(cycle) if state.Tests(value).fraction]
    if fractions:
        message = "pass_rate looks like a fraction: acp reads it as a share of 1"
        yield advice("A41", message, fractions[0])


def a60(cycle: Cycle) -> Findings:
    """What passed, failed and was skipped adds up to all."""
    for value, file in _sources(cycle):
        found = state.Tests(value)
        parts = (found.passed, found.failed, found.skipped or 0)
        if found.total is None or found.passed is None or found.failed is None:
            continue
        if sum(part or 0 for part in parts) != found.total:
            message = f"{found.passed} passed, {found.failed} failed and {parts[2]} skipped"
            yield error("A60", f"{message} do not add up to {found.total}", file)


def a61(cycle: Cycle) -> Findings:
    """The state tells the results that VAS's file holds."""
    own = cycle.state.test_results
    kept = (cycle.tests_file.value if cycle.tests_file else None) or {}
    if not own or not kept:
        return
    reported, held = state.Tests(own), state.Tests(kept)
    pairs = {
        "tests": (reported.total, held.total, 0.0),
        "failed": (reported.failed, held.failed, 0.0),
        "pass rate": (reported.rate, held.rate, 1.0),
    }
    differ = [
        f"{name} {said:g} and {kept:g}"
        for name, (said, kept, by) in pairs.items()
        if said is not None and kept is not None and abs(said - kept) > by
    ]
    if differ:
        sentence = f"State and vas/test-results.json differ: {', '.join(differ)}"
        yield warning("A61", sentence, cycle.record.file)


def a62(cycle: Cycle) -> Findings:
    """When VAS is done, the results reach the minimum, and what the cycle wants besides."""
    found = state.tests(cycle)
    over = cycle.status == "completed" or state.agent_status(cycle, "vas") == "completed"
    if not over or not found.proven or _first_steps(cycle):
        return
    wanted = schema.obj(cycle.value.get("convergence"))
    low = []
    for key, reached in (("test_pass_rate", found.rate), ("coverage", found.coverage)):
        least = schema.percent(wanted.get(key)) or MINIMUM[key]
        if reached is not None and reached < least:
            low.append(f"{_LABELS[key]} {reached:.0f} % of {least:.0f} %")
    critical = schema.count(cycle.state.test_results.get("critical_issues")) or 0
    if critical > (schema.count(wanted.get("max_critical_bugs")) or 0):
        low.append(f"{critical} critical issues")
    if low:
        yield advice("A62", f"Below the required minimum: {', '.join(low)}", cycle.record.file)


def _first_steps(cycle: Cycle) -> bool:
    """Whether the iteration is one of those in which it is enough that some test passes."""
    first = schema.obj(schema.obj(cycle.value.get("phase_gates")).get("zero_to_one"))
    numbers = first.get("iterations")
    return isinstance(numbers, list) and cycle.iteration in numbers


RESULT_RULES = (a41, a60, a61, a62)
_NAME = re.compile(r"(\d{1,6})-([a-z]+)(?:-(\d{1,6}))?(?:[.-].*)?", re.ASCII)
_FILES = ("files_written", "files_changed", "files_modified")
_REASONS = ("issues", "blockers", "failed_tests")


class _Report(NamedTuple):
    iteration: int
    run: int  # of the agent, in this iteration
    agent: str
    file: File
    result: PhaseResult | None


def _reports(cycle: Cycle) -> list[_Report]:
    """Each agent's last report of each iteration, oldest first: it replaces those before."""
    found = []
    for name, text in cycle.results.items():
        inside = name.removeprefix(cycle.progress)
        match = _NAME.match(inside.rpartition("/")[2])
        agent = match[2] if match and match[2] in AGENTS else ""
        file = cycle.file(inside)
        iteration, run = (int(match[1]), int(match[3] or 1)) if match else (0, 1)
        found.append(_Report(iteration, run, agent, file, parse_result(text)))
    found.sort(key=lambda report: report[:2])
    last = {(each.iteration, each.agent or each.file.name): each for each in found}
    return list(last.values())


def _read(cycle: Cycle) -> Iterator[tuple[_Report, PhaseResult]]:
    return ((each, each.result) for each in _reports(cycle) if each.result)


def a70(cycle: Cycle) -> Findings:
    """A report holds the block."""
    for report in _reports(cycle):
        if report.result is None:
            yield error("A70", f"{report.file.path.name} has no PHASE_RESULT", report.file)


def a71(cycle: Cycle) -> Findings:
    """It is of the agent that it is kept for."""
    for report, result in _read(cycle):
        if result.phase != (report.agent or result.phase) or result.phase not in AGENTS:
            message = f"PHASE_RESULT names phase {result.phase!r}, but is stored for {report.agent or 'no agent'}"
            yield error("A71", message, report.file)


def a72(cycle: Cycle) -> Findings:
    """Its status is a known word."""
    for report, result in _read(cycle):
        if result.status not in RESULT_STATUSES:
            yield error("A72", f"The status {result.status!r} is unknown", report.file)


def a73(cycle: Cycle) -> Findings:
    """It says which files were written, and sums up."""
    for report, result in _read(cycle):
        missing = [] if any(key in result.fields for key in _FILES) else ["files_written"]
        missing += [] if result.summary else ["summary"]
        if missing:
            message = f"PHASE_RESULT of {report.agent} has no {' and no '.join(missing)}"
            yield warning("A73", message, report.file)


def a74(cycle: Cycle) -> Findings:
    """The files that it lists are there; those of the project itself are not looked for."""
    there = {file.name.removeprefix(cycle.progress) for file in cycle.files}
    for report, result in _read(cycle):
        listed = [written.replace("\\", "/") for written in result.items("files_written")]
        missing = [name for name in listed if not _is_there(cycle, report.agent, name, there)]
        if missing:
            message = (
                f"PHASE_RESULT of {report.agent} lists missing files: {', '.join(missing[:5])}"
            )
            yield warning("A74", message, report.file)


def _is_there(cycle: Cycle, agent: str, name: str, there: set[str]) -> bool:
    _, inside, tail = name.partition(f"{cycle.id}.progress/")
    if inside:
        return tail in there
    if "/" in name and name.split("/")[0] not in (*AGENTS, "history", "coordination"):
        return True  # a file of the project
    if "." not in name and "/" not in name:
        return True  # a word such as "all", or a sentence
    return name in there or f"{agent}/{name}" in there


def a75(cycle: Cycle) -> Findings:
    """Where it is not a success, it says why."""
    for report, result in _read(cycle):
        why = [reason for key in _REASONS for reason in result.items(key)]
        if result.status in ("failed", "partial") and not why:
            message = (
                f"PHASE_RESULT of {report.agent} is {result.status} without issues or blockers"
            )
            yield warning("A75", message, report.file)


def a76(cycle: Cycle) -> Findings:
    """It stands there once; of several the last one counts."""
    for report, result in _read(cycle):
        if result.blocks > 1:
            message = f"{result.blocks} blocks PHASE_RESULT: the last one counts"
            yield advice("A76", message, report.file)


def a77(cycle: Cycle) -> Findings:
    """The state tells of an agent what its latest report says.

    Where VAS reports failure and the state tells of the tests that failed, both say the same.
    """
    latest = {report.agent: (report, result) for report, result in _read(cycle)}
    for name, (report, result) in latest.items():
        word = state.agent_status(cycle, name) if name else ""
        against = {("completed", "failed"), ("failed", "success")}
        if name == "vas" and word == "completed" and state.tests(cycle).failed:
            continue
        if report.iteration == cycle.iteration and (word, result.status) in against:
            message = f"{name} reported {result.status}, but the state says {word}"
            yield warning("A77", message, report.file)


REPORT_RULES = (a70, a71, a72, a73, a74, a75, a76, a77)


def _listed(cycle: Cycle) -> Iterator[tuple[str, str, str]]:
    """Each path that is listed: by whom, as written, and inside the progress folder ("" if out).

    A path may lead from the root of another machine; what counts is what follows the folder.
    """
    folder = f"{cycle.id}.progress/"
    for name in AGENTS:
        for written in _written(cycle, name)[:500]:
            path = written.replace("\\", "/")
            at = path.find(folder)
            tail = path[at + len(folder) :] if at >= 0 else path
            inside = posixpath.normpath(tail)
            out = inside.startswith(("/", "../")) or inside == ".."
            yield name, written, "" if out else inside


def _written(cycle: Cycle, name: str) -> list[str]:
    """The paths that an agent lists, and those that stand for the parts that are told by it."""
    agent = cycle.agent(name).raw
    found = [*schema.words(agent.get("output_files")), schema.text(agent.get("output_file"))]
    for part, inside in state.DOCUMENTS.items():
        held = schema.obj(cycle.value.get(part))
        several = held.get("output_files")
        named = list(several.values()) if isinstance(several, dict) else several
        if inside.startswith(f"{name}/"):
            found += [*schema.words(named), schema.text(held.get("output_file"))]
    return list(dict.fromkeys(filter(None, found)))


def a15(cycle: Cycle) -> Findings:
    """Paths have forward slashes."""
    if any("\\" in written for _, written, _ in _listed(cycle)):
        yield advice("A15", "Output files are listed with backslashes", cycle.record.file)


def a17(cycle: Cycle) -> Findings:
    """Listed files are there, in the progress folder."""
    there = {file.name.removeprefix(cycle.progress) for file in cycle.files}
    missing = []
    for name, written, inside in _listed(cycle):
        if not inside:
            message = f"{name} lists {written!r}, outside the progress folder"
            yield error("A17", message, cycle.record.file)
        elif inside not in there and f"{name}/{inside}" not in there:
            missing.append(inside)
    if missing:
        message = f"{len(missing)} listed output files are missing: {', '.join(missing[:5])}"
        yield warning("A17", message, cycle.record.file)


def a97(cycle: Cycle) -> Findings:
    """Links are not followed."""
    for file in cycle.files:
        if file.link:
            yield warning("A97", f"{file.path.name} is not a regular file: not read", file)


def a98(cycle: Cycle) -> Findings:
    """The plan and the test results can be read."""
    for record in (cycle.plan_file, cycle.tests_file):
        if record and record.problem:
            yield warning("A98", f"{record.file.path.name} {record.problem}", record.file)


FILE_RULES = (a15, a17, a97, a98)
Row = tuple[int, Object]


def rows(cycle: Cycle, inside: str) -> list[Row]:
    """The rows of a log, each with its line; what is no row is left out."""
    return [*schema.numbered_objects(cycle.texts.get(f"{cycle.progress}{inside}", ""))]


def a80(cycle: Cycle) -> Findings:
    """Every line of a log of rows is a JSON object; the last one may still be being written."""
    for name, content in cycle.texts.items():
        if not name.endswith(".ndjson") and not (
            name.endswith(".log") and content.lstrip().startswith("{")
        ):
            continue  # a log that is plain text
        file = cycle.file(name.removeprefix(cycle.progress))
        lines = content.split("\n")
        bad = [
            n
            for n, line in enumerate(lines, 1)
            if line.strip() and schema.parse_object(line) is None
        ]
        if bad and bad[-1] == len(lines):
            bad.pop()
            message = f"Line {len(lines)} is still being written"
            yield advice("A80", message, file, len(lines))
        if bad:
            message = f"{len(bad)} lines are not JSON objects, the first is {bad[0]}"
            yield warning("A80", message, file, bad[0])


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


LOG_RULES = (a80, a81, a96)
