"""Where a cycle stands, derived from its files: what the status claims is not yet a verdict.

Source: development cycle specification, "Agent Dependencies" and "Escalation".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import combinations
from typing import NamedTuple

from acp_core.files.records import File
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.schema import (
    AGENTS,
    DEPENDS,
    STATUSES,
    Blocker,
    Cycle,
    Feedback,
    Object,
    Task,
    Version,
    count,
    iteration_of,
    plan_of,
    text,
)

OK, FAILURES, UNDECIDED, BLOCKED = "ok", "failures", "undecided", "blocked"
UNPROVEN, STALLED, UNDER_WAY = "not proven", "stalled", "under way"
UNREADABLE = "unreadable"
ACCEPTED = "accept"  # the kind of a decision by which a person takes a cycle as it is
HOLDERS = {"ra": "requirements", "ep": "plan", "cd": "implementation", "vas": "test_results"}
"""The part of the state that an agent's work is told in."""

DOCUMENTS = {
    "requirements": "ra/requirements.md",
    "exploration": "ep/exploration.md",
    "plan": "ep/plan.json",
    "implementation": "cd/implementation.md",
    "test_results": "vas/test-results.json",
    "validation": "vas/validation.md",
}
"""The document in which a part of the state is told in full."""


def agent_status(cycle: Cycle, name: str) -> str:
    """An agent's status in the schema's words; "unknown" where it is none of them."""
    said = cycle.agent(name).status.lower()
    word = schema.ALIASES.get(said, said)
    return word if word in schema.AGENT_STATUSES else "unknown"


def ready(cycle: Cycle, name: str) -> bool:
    """Whether the agent that it depends on has completed."""
    return not DEPENDS[name] or agent_status(cycle, DEPENDS[name]) == "completed"


def can_start(cycle: Cycle, name: str) -> bool:
    """Whether an agent could begin now: its dependency is done, and it has nothing to do yet."""
    free = agent_status(cycle, name) in ("idle", "waiting")
    return cycle.status == "running" and free and ready(cycle, name)


def dependency(cycle: Cycle, name: str) -> str:
    """What an agent's dependency means for it now, in words."""
    before = DEPENDS[name]
    if not before:
        return "no dependency"
    return f"{before} is done" if ready(cycle, name) else f"waits for {before}"


def running(cycle: Cycle) -> list[str]:
    """The agents at work."""
    return [name for name in AGENTS if agent_status(cycle, name) == "running"]


def is_to_be_conducted(cycle: Cycle) -> bool:
    """Whether an orchestrator has something to do: it goes on, or an agent works in a pause."""
    return cycle.status == "running" or (cycle.status == "paused" and bool(running(cycle)))


def current(cycle: Cycle) -> str:
    """The agent whose phase it is: one at work, else the first that has not completed."""
    if cycle.status == "completed":
        return AGENTS[-1]
    at_work = running(cycle)
    if at_work:
        return at_work[0]
    undone = [name for name in AGENTS if agent_status(cycle, name) != "completed"]
    return undone[0] if undone else AGENTS[-1]


class Reported(NamedTuple):
    """Something that blocks an agent, told outside of the state."""

    text: str
    by: str
    name: str
    line: int


def reported_blockers(cycle: Cycle) -> list[Reported]:
    """What the discoveries and issues.md tell as blocking, whether the state knows it or not."""
    name = f"{cycle.progress}coordination/discoveries.ndjson"
    found = []
    for number, row in schema.numbered_objects(cycle.texts.get(name, "")):
        what = schema.text(schema.obj(row.get("data")).get("issue"))
        if row.get("type") == "blocker" and what:
            found.append(Reported(what, schema.text(row.get("agent")), name, number))
    for item in read_issues(cycle.head("cd/issues.md")).blockers:
        if item.text:
            found.append(Reported(item.text, "cd", f"{cycle.progress}cd/issues.md", item.line))
    return found


def accepted(cycle: Cycle) -> bool:
    """Whether a person accepted the current iteration as it is."""
    return any(
        each.kind == ACCEPTED and each.iteration == cycle.iteration
        for each in cycle.state.decisions
    )


def for_a_person(cycle: Cycle) -> list[Blocker]:
    """The open blockers for which nobody else cares.

    Not those that an agent was asked about while the cycle goes on, nor those that a pending
    decision is about: that is the same need.
    """
    asked = {each.blocker for each in cycle.state.open_decisions}
    return [
        each
        for each in cycle.state.open_blockers
        if each.id not in asked - {""}
        and not (cycle.status == "running" and each.routed_to in AGENTS)
    ]


def unknown_blockers(cycle: Cycle) -> list[Reported]:
    """What blocks somebody and is not among the blockers of the state."""
    known = [each.description.lower() for each in cycle.state.blockers]
    return [
        each
        for each in reported_blockers(cycle)
        if not any(each.text.lower() in k or (k and k in each.text.lower()) for k in known)
    ]


def answered(cycle: Cycle, feedback: Feedback) -> bool | None:
    """Whether the agent that feedback was sent to has run since; None where that is not known."""
    target, sent = feedback.target.lower(), feedback.reached
    if target not in AGENTS or sent is None:
        return None
    if feedback.is_answered:
        return True
    agent, part = cycle.agent(target), cycle.part(HOLDERS[target])
    signs = (agent.started_at, agent.completed_at, part.last_updated, part.last_run)
    return any(at >= sent for at in signs if at)


def is_late(cycle: Cycle, feedback: Feedback) -> bool:
    """Whether feedback has not been answered for longer than an agent is waited for."""
    sent = feedback.reached
    late = sent is not None and cycle.now - sent >= schema.STALL
    return late and answered(cycle, feedback) is False


def tasks(cycle: Cycle) -> tuple[Task, ...]:
    """The plan's tasks: the state's, else those of plan.json, else those of plan.md."""
    return cycle.state.plan.tasks or planned(cycle)


def planned(cycle: Cycle) -> tuple[Task, ...]:
    """The tasks of EP's own file."""
    if cycle.plan_file and cycle.plan_file.value is not None:
        return cycle.own_plan.tasks
    return plan_of({"tasks": tasks_in_text(cycle.head("ep/plan.md"))}).tasks


def undone(cycle: Cycle) -> list[Task]:
    """The plan's tasks that are told not to be completed."""
    return [each for each in tasks(cycle) if each.is_undone]


def disputed(cycle: Cycle) -> list[tuple[str, str, str]]:
    """The tasks that EP's file of the same version tells as done, the state not: id, ours, its.

    The other way round is usual: EP plans a task, and the state tells when CD has done it.
    """
    own = cycle.state.plan
    if len({own.version, cycle.own_plan.version} - {""}) > 1:
        return []
    theirs = {each.id: each.state for each in planned(cycle)}
    tasks = [(each.id, each.state, theirs.get(each.id, "")) for each in own.tasks]
    return [each for each in tasks if each[2] == "completed" and each[1] not in ("", each[2])]


def critical_path(cycle: Cycle) -> tuple[str, ...]:
    """The tasks on the critical path: the state's, else that of EP's own file."""
    plans = (cycle.state.plan, cycle.own_plan)
    paths = (path for each in plans for path in (each.critical_path, each.summary_path))
    return next(filter(None, paths), ())


def tests(cycle: Cycle) -> Tests:
    """The latest results: the state's, or VAS's own file's where more fail there; none else."""
    own = cycle.state.test_results
    kept = (cycle.tests_file.value if cycle.tests_file else None) or {}
    found, proof = Tests({**kept, **own} if own else kept), Tests(kept)
    if (proof.failed or 0) > (found.failed or 0):
        return proof
    if kept.get("executed") is False:
        found.executed = False
    return found


def is_witnessed(cycle: Cycle) -> bool:
    """Whether VAS's own file shows that tests ran, and not only the state claims it."""
    return cycle.tests_file is not None and Tests(cycle.tests_file.value or {}).proven


def versions(cycle: Cycle) -> dict[str, Version]:
    """The version of each part that the state tells."""
    stated = {part: cycle.part(part).version for part in DOCUMENTS}
    return {part: found for part, said in stated.items() if (found := schema.version(said))}


def document_versions(cycle: Cycle) -> dict[str, Version]:
    """The version that each of the agents' documents bears, by its name in the progress folder."""
    found = {
        name.removeprefix(cycle.progress): version
        for name, head in cycle.heads.items()
        if (version := schema.version_in(head))
    }
    for record in (cycle.plan_file, cycle.tests_file):
        version = schema.version((record.value or {}).get("version")) if record else None
        if record and version:
            found[record.file.name.removeprefix(cycle.progress)] = version
    return found


def circle(needs: Mapping[str, Iterable[str]]) -> set[str]:
    """Those that wait for one another in a circle, or for one that does; {} where none do."""
    left = {id: {each for each in before if each in needs} for id, before in needs.items()}
    while free := [id for id, before in left.items() if not before]:
        for id in free:
            del left[id]
        for before in left.values():
            before.difference_update(free)
    return set(left)


def is_at_limit(cycle: Cycle) -> bool:
    """Whether the last iteration that is allowed ended with failing tests, and a person must decide."""
    limit = cycle.state.max_iterations
    if limit is None or cycle.iteration < limit or cycle.state.open_decisions:
        return False
    through = all(agent_status(cycle, name) == "completed" for name in AGENTS)
    return through and bool(tests(cycle).failed)


def stalled(cycle: Cycle) -> bool:
    """It is said to run, and nothing was written for longer than an agent is waited for.

    At its limit it is not: there is nothing that anybody would write.
    """
    late = cycle.status == "running" and cycle.now - cycle.last_write >= schema.STALL
    return late and not is_at_limit(cycle)


def verdict(cycle: Cycle) -> str:
    """What the files show, whatever the status claims."""
    if not cycle.value:
        return UNREADABLE
    found, ended = tests(cycle), cycle.status in ("completed", "failed")
    if cycle.state.open_decisions:
        return UNDECIDED
    if for_a_person(cycle) and (ended or not running(cycle)):
        return BLOCKED
    if stalled(cycle):
        return STALLED
    if cycle.status == "running" and is_at_limit(cycle):
        return FAILURES
    if not ended:
        return UNDER_WAY
    if cycle.status == "failed" or found.failed:
        return FAILURES
    if any(agent_status(cycle, name) == "failed" for name in AGENTS):
        return FAILURES
    if undone(cycle):
        return UNPROVEN
    return OK if found.proven and is_witnessed(cycle) else UNPROVEN


def unproven(cycle: Cycle) -> str:
    """Why what is completed is not proven, in words."""
    left = undone(cycle)
    if left:
        verb = "is" if len(left) == 1 else "are"
        other = ", although ep/plan.json says otherwise" if disputed(cycle) else ""
        return f"{len(left)} of {len(tasks(cycle))} tasks of the plan {verb} not done{other}"
    if tests(cycle).proven:
        return "only the state claims that tests ran; vas/test-results.json does not confirm it"
    return "no tests ran"


def recheck(cycle: Cycle) -> datetime | None:
    """When something is late unless somebody writes before: an agent, or an answer to feedback."""
    sent = [
        at
        for each in cycle.state.feedback
        if answered(cycle, each) is False and (at := each.reached)
    ]
    begun = [*sent, *([cycle.last_write] if cycle.status == "running" else [])]
    return min((at + schema.STALL for at in begun if at + schema.STALL > cycle.now), default=None)


def what_is_lacking(value: Object) -> str:
    """What a state lacks without which nobody can go on, behind its name; "" where it is whole."""
    agents = value.get("agents")
    if not isinstance(agents, dict):
        return "has no agents"
    missing = [name for name in AGENTS if not isinstance(agents.get(name), dict)]
    if missing:
        return f"does not hold the agent {missing[0]}"
    status = text(value.get("status"))
    if status not in STATUSES:
        return f"has the unknown status {status[:40]!r}" if status else "has no status"
    iteration = value.get("current_iteration")
    if iteration is not None and count(iteration) is None:
        return "has an iteration count that is not a whole number"
    return ""


def state_problem(cycle: Cycle) -> str:
    """Why nothing is written over a cycle's state file; "" where it is there and whole."""
    return cycle.record.problem or what_is_lacking(cycle.value)


RATE, COVERAGE, CRITICAL = "test_pass_rate", "coverage", "max_critical_bugs"


class Criteria(NamedTuple):
    """What is wanted: percentages of tests that pass and of lines that are covered.

    None where the state says nothing that can be used; then every test has to pass, and coverage
    is not looked at. ``critical`` issues may be left, none unless the state says else.
    """

    rate: float | None = None
    coverage: float | None = None
    critical: int = 0


def criteria(state: Object) -> Criteria:
    """What is wanted of a cycle."""
    held = schema.obj(state.get("convergence"))
    return Criteria(
        _percentage(held.get(RATE)),
        _percentage(held.get(COVERAGE)),
        schema.count(held.get(CRITICAL)) or 0,
    )


def describe_goal(state: Object) -> str:
    """When a cycle is done, as its state says; "" where it says nothing."""
    found = criteria(state)
    parts = []
    if found.rate is not None:
        parts.append(f"{found.rate:g} % of the tests pass")
    if found.coverage is not None:
        parts.append(f"{found.coverage:g} % of the lines are covered")
    if not parts:
        return ""
    return f"done when {', '.join(parts)}, no more than {found.critical} critical issues are left"


def _percentage(value: object) -> float | None:
    found = schema.percent(value)
    return found if found is not None and 0 < found <= 100 else None


def phase_of_iteration(state: Object) -> str:
    """The phase of the current iteration: zero_to_one, one_to_hundred, or "" for none."""
    current = iteration_of(state)
    for name in ("zero_to_one", "one_to_hundred"):
        if current in iterations_of(state, name):
            return name
    return ""


def iterations_of(state: Object, name: str) -> tuple[int, ...]:
    """The iterations of a phase."""
    held = schema.obj(schema.obj(state.get("phase_gates")).get(name)).get("iterations")
    counted = (schema.count(each) for each in (held if isinstance(held, list) else [])[:1_000])
    return tuple(each for each in counted if each)


def leaves_first_phase(state: Object) -> bool:
    """Whether the current iteration is the last one of zero_to_one."""
    current = iteration_of(state)
    return current > 0 and current == max(iterations_of(state, "zero_to_one"), default=0)


class Tests:
    """The results of the tests, in whichever form they were written.

    Attributes:
        total, failed: numbers of tests, None where not told.
        rate: the share that passed, in percent; None where not told.
        coverage: in percent; None where it was not collected.
    """

    def __init__(self, value: Object) -> None:
        summary = schema.obj(value.get("summary"))
        names = value.get("failed_tests")
        self.names = schema.words(names) or [
            schema.text(test.get("name"))
            for suite in schema.objects(value.get("by_suite"))
            for test in schema.objects(suite.get("tests"))
            if schema.text(test.get("status")).lower() == "failed" and test.get("name")
        ]
        self.total = schema.count(summary.get("total", value.get("total_tests")))
        self.passed = schema.count(summary.get("passed"))
        self.skipped = schema.count(summary.get("skipped"))
        self.failed = schema.count(summary.get("failed"))
        if self.failed is None:
            self.failed = len(names) if isinstance(names, list) else schema.count(names)
        self.executed = value.get("executed") is not False
        said = schema.percent(value.get("pass_rate", summary.get("pass_rate")))
        self.fraction = self._is_fraction(said)
        if said is not None and self.fraction:
            said *= 100
        if said is None and self.passed is not None and self.total:
            said = 100 * self.passed / self.total
        self.rate = said
        held = value.get("coverage", summary.get("coverage"))
        lines = held.get("lines") if isinstance(held, dict) else held
        covered = schema.percent(lines) or None  # 0 means that nobody collected it
        self.coverage = 100 * covered if covered and covered < 1 else covered

    def _is_fraction(self, rate: float | None) -> bool:
        """Whether a rate is a share of 1: one of exactly 1 is 1 % only where so many failed."""
        if rate is None or not 0 < rate <= 1:
            return False
        return rate < 1 or not (self.failed and self.total and self.failed / self.total > 0.9)

    @property
    def proven(self) -> bool:
        """Tests ran."""
        return bool(self.total) and self.executed

    @property
    def covered(self) -> str:
        """How much of the code the tests reach, in words."""
        return "not collected" if self.coverage is None else f"{self.coverage:g} %"

    def __str__(self) -> str:
        if not self.proven:
            return "no tests ran"
        failed = "" if self.failed is None else f", {self.failed} failed"
        rate = "" if self.rate is None else f", {self.rate:.0f} %"
        return f"{self.total} tests{failed}{rate}"


_MOST = 200  # tasks that are looked at


def independent_tasks(tasks: Sequence[Task]) -> tuple[Task, ...]:
    """The undone tasks that can be given out one by one, in the order of the plan.

    None of them waits for something that is no task, or in a circle.

    Args:
        tasks: of the plan.

    Returns:
        The tasks; () where no two of them could ever be at work at the same time.
    """
    known: dict[str, Task] = {}
    for each in tasks[:_MOST]:
        if each.id:
            known.setdefault(each.id, each)
    stuck = circle({id: each.depends_on for id, each in known.items()})
    left = {id for id, each in known.items() if id not in stuck and each.state != "completed"}
    done = {id for id, each in known.items() if each.state == "completed"}
    while lost := {id for id in left if not left | done >= set(known[id].depends_on)}:
        left -= lost
    found = tuple(each for id, each in known.items() if id in left)
    before = {each.id: _all_before(each.id, known) for each in found}
    for one, other in combinations(found, 2):
        in_order = one.id in before[other.id] or other.id in before[one.id]
        if not in_order and not share_a_file(one, other):
            return found
    return ()


def startable(
    waiting: Sequence[Task], done: Collection[str], at_work: Collection[Task]
) -> list[Task]:
    """The tasks that can begin now, beside those at work and beside each other, in their order.

    Args:
        waiting: that nobody works on.
        done: the ids of those that are done.
        at_work: that somebody works on.
    """
    beside = list(at_work)
    found = []
    for each in waiting:
        if set(each.depends_on) <= set(done) and not any(share_a_file(each, b) for b in beside):
            found.append(each)
            beside.append(each)
    return found


def share_a_file(one: Task, other: Task) -> bool:
    """Whether two tasks name the same file, or one names a folder in which the other's file is."""
    mine, theirs = (list(map(_path, each.files)) for each in (one, other))
    return any(_overlap(a, b) for a in mine for b in theirs)


def _overlap(one: list[str], other: list[str]) -> bool:
    common = min(len(one), len(other))
    return bool(common) and one[:common] == other[:common]


def _path(name: str) -> list[str]:
    parts = name.replace("\\", "/").split("/")
    return [each for each in parts if each not in ("", ".")]


def _all_before(id: str, known: dict[str, Task]) -> set[str]:
    """The ids of all tasks that one depends on, directly or through others."""
    found: set[str] = set()
    pending = list(known[id].depends_on)
    while pending:
        each = pending.pop()
        if each not in found and each in known:
            found.add(each)
            pending += known[each].depends_on
    return found


_ISSUE_HEADING = re.compile(r"^(#{1,6})[ \t]+(.*)$")
_ISSUE = re.compile(r"^(?:issue\s*#?\d+\s*[:.-]\s*)?(.*)$", re.IGNORECASE)
_BLOCKER = re.compile(r"^[\s*_-]*blocker[\s*_]*:[\s*_]*(yes|true)\b", re.IGNORECASE)
_ITEM = re.compile(r"^\s{0,3}(?:[-*+]|\d{1,3}[.)])[ \t]+(.*)$")
_ASKED = re.compile(r"^(?:Q\d+|FR-\d+)\s*[:.-]\s*(.*)$")
_TICKED = ("[x]", "[X]", "✓", "✅", "~~")
_NO_ISSUE = ("none", "none.", "-", "n/a", "nothing")
_MANY_ISSUES = 200


class Item(NamedTuple):
    """A text and the line in which it stands."""

    text: str
    line: int


class Issues(NamedTuple):
    """What is open: ``blockers`` by the titles of their issues, and ``questions`` for RA."""

    blockers: tuple[Item, ...] = ()
    questions: tuple[Item, ...] = ()


def lines_of(text: str) -> list[str]:
    """A document's lines; where it is one line with ``\\n`` spelled out, those that were meant."""
    if "\n" not in text.strip() and "\\n" in text:
        text = text.replace("\\r\\n", "\n").replace("\\n", "\n")
    return text.split("\n")


def read_issues(text: str) -> Issues:
    """What is open in ``text``."""
    blockers: list[Item] = []
    questions: list[Item] = []
    issue = Item("", 0)
    settled, asking = 0, 0  # levels of the headings under which we are; 0: under none
    for number, line in enumerate(lines_of(text), 1):
        heading = _ISSUE_HEADING.match(line[:1_000])
        if heading:
            level, title = len(heading[1]), heading[2].strip()
            settled = settled if settled and level > settled else 0
            asking = asking if asking and level > asking else 0
            if "resolved" in title.lower() and "unresolved" not in title.lower():
                settled = level
            if title.lower().startswith("questions"):
                asking = level
            match = _ISSUE.match(title)
            issue = Item(match[1] if match else title, number)
        elif settled:
            continue
        elif _BLOCKER.match(line[:200]):
            blockers.append(issue)
        elif asking and (item := _ITEM.match(line[:1_000])):
            said = item[1].strip()
            if not said.startswith(_TICKED) and said.lower() not in _NO_ISSUE:
                asked = _ASKED.match(said)
                questions.append(Item(asked[1] if asked else said, number))
    return Issues(tuple(blockers[:_MANY_ISSUES]), tuple(questions[:_MANY_ISSUES]))


_MANY_TASKS = 1_000
_TASK_ID = r"[A-Z][A-Z0-9]{0,15}(?:-[A-Z0-9]{1,15})*-\d{1,6}"

_TASK = re.compile(
    rf"^\s*(?:\||#{{1,6}}|[-*+]|\d{{1,3}}[.)])\s*(?:\[(?P<mark>[ xX])\]\s*)?(?P<tick>[✓✅]\s*)?"
    rf"[*`_]*(?P<id>{_TASK_ID})[*`_]*\s*[:|.-]?[*`_]*\s*(?P<title>[^|]*)"
)

_NEEDS = re.compile(r"^\s*[-*+]?\s*[*_]*depends[ _]on[*_]*\s*:\s*(.*)$", re.IGNORECASE)


def tasks_in_text(text: str) -> list[Object]:
    """Its tasks in the form of plan.json: ``id``, ``title``, ``status``, ``depends_on``.

    A task is a heading, an item or a table's row that begins with an id such as TASK-001; the
    status is told only where the item is ticked, or has an empty box.
    """
    found: dict[str, Object] = {}
    latest: Object = {}
    for line in lines_of(text):
        match = _TASK.match(line[:1_000])
        needs = _NEEDS.match(line[:1_000])
        if match and len(found) < _MANY_TASKS:
            ticked = bool(match["tick"]) or (match["mark"] or "").lower() == "x"
            status = "completed" if ticked else "pending" if match["mark"] else ""
            made: Object = {"id": match["id"], "title": match["title"].strip(), "depends_on": []}
            latest = found.setdefault(match["id"], made)
            if status:
                latest["status"] = status
        elif needs and latest:
            latest["depends_on"] = re.findall(_TASK_ID, needs[1])
    return list(found.values())


def failed_names(tests: Object) -> list[str]:
    """The tests that failed, by name, in whichever form results were written."""
    names = schema.words(tests.get("failed_tests"))
    for suite in schema.objects(tests.get("by_suite")):
        for each in schema.objects(suite.get("tests")):
            if schema.text(each.get("status")).lower() in ("failed", "error"):
                names.append(schema.text(each.get("name")) or "an unnamed test")
    return list(dict.fromkeys(names))[:500]


_NEAR = 4  # letters by which the name of an earlier version is known
History = dict[tuple[str, str], list[tuple[str, Version, File]]]
"""Copies of earlier versions by folder and ending: stem, version, file."""


def history(cycle: Cycle) -> History:
    """What the ``history/`` folders hold."""
    found: History = {}
    for file in cycle.files:
        folder, _, rest = file.name.removeprefix(cycle.progress).partition("/history/")
        stem, sign, said = file.path.stem.rpartition("-v")
        if sign and rest and "/" not in rest:
            version = schema.version_in(said) or (0, 0, 0)
            found.setdefault((folder, file.path.suffix), []).append((stem, version, file))
    return found


def earlier(cycle: Cycle, inside: str, known: History | None = None) -> list[tuple[Version, File]]:
    """The earlier versions of a document in ``history/``, oldest first; also shortened names.

    Args:
        cycle: the cycle.
        inside: the document's name in the progress folder.
        known: what `history` tells, where it is asked for many documents.
    """
    folder, _, name = inside.partition("/")
    stem, dot, ending = name.rpartition(".")
    copies = (history(cycle) if known is None else known).get((folder, f"{dot}{ending}"), [])
    found = [
        (version, file)
        for kept, version, file in copies
        if kept == stem or (len(kept) >= _NEAR and stem.startswith(kept))
    ]
    return sorted(found, key=lambda each: (each[0], each[1].changed, each[1].name))
