"""The beginning of a cycle, with its state file and its progress folder; and a lost state, made anew.

A state is made anew from the documents of the agents: what they do not tell is left unknown; it says
that it was rebuilt, and waits for a person. Source: development cycle specification, "Shared State"
and "Progress Markdown Files".
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from acp_core.files import atomic
from acp_core.model.errors import Refused
from acp_core.protocols.cycle import matters, schema
from acp_core.protocols.cycle.read import state_file
from acp_core.protocols.cycle.schema import (
    AGENTS,
    DOCUMENT_NAMES,
    START_ACT,
    Object,
    agent_in,
    iteration_of,
    plan_of,
)
from acp_core.protocols.cycle.state import failed_names, what_is_lacking
from acp_core.protocols.cycle.view import timeline
from acp_core.protocols.cycle.write import changes, layout
from acp_core.protocols.cycle.write.layout import note
from acp_core.protocols.cycle.write.store import Store, finish, stamp
from acp_core.protocols.kit.guard import check

ITERATIONS = 5
PREPARED = ("convergence", "phase_gates", "agent_focus", "source_refs")
_SIGNS = "abcdefghijklmnopqrstuvwxyz0123456789"


def new_id(now: datetime) -> str:
    """A name for a cycle that begins now."""
    word = "".join(secrets.choice(_SIGNS) for _ in range(8))
    return f"cycle-v1-{now.astimezone(schema.LOCAL):%Y%m%dT%H%M%S}-{word}"


def first_state(
    id: str,
    now: datetime,
    description: str,
    title: str = "",
    iterations: int = ITERATIONS,
    prepared: Object | None = None,
    messages: Sequence[str] = (),
) -> Object:
    """The state of a cycle that begins.

    Args:
        id: its name.
        now: when.
        description: what is to be built.
        title: "" for the beginning of the description.
        iterations: how many there are at most.
        prepared: the fields that the project's package fills.
        messages: what is said of that package in the timeline.

    Raises:
        Refused: there is nothing to do, or the limit is no number of iterations.
    """
    said = description.strip()
    if not said:
        raise Refused("give the task: what to build")
    if not 1 <= iterations <= changes.LIMIT:
        raise Refused(f"the iteration limit must be a number from 1 to {changes.LIMIT}")
    agents: Object = {
        name: {"status": "idle", "output_files": [], "iterations_completed": 0}
        for name in schema.AGENTS
    }
    state: Object = {
        "cycle_id": id,
        "title": " ".join((title.strip() or said).split())[:100],
        "description": said,
        "task_history": [said],
        "status": "running",
        "created_at": stamp(now),
        "updated_at": stamp(now),
        "max_iterations": iterations,
        "current_iteration": 0,
        "agents": agents,
        "current_phase": "init",
        "completed_phases": [],
        "phase_errors": [],
        "requirements": None,
        "exploration": None,
        "plan": None,
        "changes": [],
        "test_results": None,
        "iterations": [],
        "coordination": {"feedback_log": [], "pending_decisions": [], "blockers": []},
        "version": schema.FIRST_VERSION,
        **dict.fromkeys(PREPARED),
        **(prepared or {}),
    }
    note(state, now, "orchestrator", "created cycle")
    for each in messages:
        note(state, now, "orchestrator", each)
    finish(state, now)
    return state


def create(root: Path, state: Object) -> Store:
    """Make a cycle's folders and write its state.

    Raises:
        Refused: there is one of that name, or a symbolic link stands in the way.
        OSError: it cannot be written.
    """
    folder = root
    if not root.is_dir():
        raise Refused(f"{root}: no such folder")
    check(matters.of_disk(root), START_ACT)
    for name in schema.HOME:
        folder = folder / name
        if folder.is_symlink():
            raise Refused(f"{folder} is a symbolic link: acp does not follow links")
        atomic.shared_folder(folder)
    store = Store(root, schema.text(state.get("cycle_id")))
    if store.path.exists():
        raise Refused(f"{store.path.name} already exists")
    layout.make(store.progress)
    store.create(state)
    return store


_LOGS = ("changes.log", "code-changes.log", "debug-log.ndjson")
_MOST = 1_000  # iterations that are recorded


def rebuilt(progress: Path, id: str, now: datetime, old: Object | None = None) -> Object:
    """The state that the documents tell of.

    Args:
        progress: the cycle's progress folder.
        id: the cycle.
        now: when it is made.
        old: what can still be read of the old one: it is kept where the documents tell nothing.

    Raises:
        Refused: no agent has left a document, and the old state is whole or cannot be read.
    """
    is_partial = bool(old) and what_is_lacking(old or {}) != ""  # it is only not whole
    if not is_partial and not any(state_file.agent_documents(progress, name) for name in AGENTS):
        raise Refused(f"{progress.name} has no documents to rebuild from")
    state = first_state(id, now, _description(progress, id))
    state["coordination"] = {}  # no line says that it was created just now
    state |= {k: v for k, v in (old or {}).items() if k != "agents" and v is not None}
    state["cycle_id"] = id
    before = (old or {}) if is_partial else {}
    versions = [_preserved(state, before, n) or _agent(state, progress, n, now) for n in AGENTS]
    common = max(
        (each for each in versions if each), key=layout.parts, default=schema.FIRST_VERSION
    )
    state["version"] = common
    if not iteration_of(state):
        state["current_iteration"] = _iteration(progress) or max(1, layout.parts(common)[1] + 1)
    if not schema.objects(state.get("iterations")):
        numbers = range(1, int(str(state["current_iteration"])) + 1)
        state["iterations"] = [{"number": each, "agent_results": {}} for each in numbers[:_MOST]]
    limit = schema.count(state.get("max_iterations")) or 0
    state["max_iterations"] = max(limit, int(str(state["current_iteration"])))
    _plan(state, progress, now)
    _tests(state, progress, now)
    undone = [n for n in AGENTS if changes.agent_of(state, n).get("status") != "completed"]
    state["current_phase"] = undone[0] if undone else AGENTS[-1]
    state["status"] = "paused"
    state.pop("completed_at", None)
    state["rebuilt_at"] = stamp(now)
    note(state, now, "orchestrator", "the state was rebuilt from the agents' documents")
    return state


def _description(progress: Path, id: str) -> str:
    for line in layout.read(progress / "ra" / "requirements.md").splitlines():
        if line.startswith("#") and (said := line.lstrip("# ").strip()):
            return said[:500]
    return f"Rebuilt: {id}"


def _iteration(progress: Path) -> int:
    """The latest iteration of which the tests' results or a log tell; 0 for none."""
    rows = [layout.read_json(progress / "vas" / "test-results.json") or {}]
    for name in AGENTS:
        for log in _LOGS:
            rows += [row for _, row in timeline.numbered(layout.read(progress / name / log))]
    return max((schema.count(each.get("iteration")) or 0 for each in rows), default=0)


def _failed(tests: Object) -> list[str]:
    """The tests that failed: also those that are only counted."""
    names = failed_names(tests)
    count = schema.count(schema.obj(tests.get("summary")).get("failed")) or 0
    more = range(len(names) + 1, min(count, schema.MANY) + 1)
    return [*names, *(f"{each} of {count}, not named" for each in more)]


def _preserved(state: Object, before: Object, name: str) -> str:
    """What can still be read of an agent stays as it is: its version, "" where nothing can be."""
    held = agent_in(before, name)
    if schema.ALIASES.get(held.status, held.status) not in schema.AGENT_STATUSES:
        return ""
    agents = schema.obj(state.get("agents"))
    state["agents"] = agents | {name: held.raw}
    return held.version or schema.FIRST_VERSION


def _agent(state: Object, progress: Path, name: str, now: datetime) -> str:
    """What an agent has left: its first document says that it had its turn."""
    version = layout.version_of_agent(progress, name)
    there = state_file.is_regular(progress / name / DOCUMENT_NAMES[name][0])
    if name == "ep":
        there = there or state_file.is_regular(progress / name / "plan.json")
    if name == "vas":
        there = there or state_file.is_regular(progress / name / "test-results.json")
    made: Object = {
        "status": "completed" if there else "idle",
        "output_files": layout.listed(progress, name),
        "iterations_completed": 1 if there else 0,
    }
    if there:
        made |= {"version": version or schema.FIRST_VERSION, "completed_at": stamp(now)}
    agents = schema.obj(state.get("agents"))
    agents[name] = made
    state["agents"] = agents
    return version if there else ""


def _plan(state: Object, progress: Path, now: datetime) -> None:
    value = layout.read_json(progress / "ep" / "plan.json")
    if not value or plan_of(state.get("plan")).tasks:
        return
    found = plan_of(value)
    state["plan"] = {
        "version": found.version or schema.FIRST_VERSION,
        "tasks": [each.entry(each.status) for each in found.tasks],
        "critical_path": [*found.critical_path],
        "last_updated": stamp(now),
    }


def _tests(state: Object, progress: Path, now: datetime) -> None:
    tests = layout.read_json(progress / "vas" / "test-results.json")
    if not tests or state.get("test_results"):
        return
    summary = schema.obj(tests.get("summary"))
    coverage = tests.get("coverage")
    state["test_results"] = {
        "version": schema.text(tests.get("version")) or schema.FIRST_VERSION,
        "failed_tests": _failed(tests),
        "total_tests": schema.count(summary.get("total", tests.get("total_tests"))),
        "coverage": coverage.get("lines") if isinstance(coverage, dict) else coverage,
        "last_run": tests.get("timestamp") or stamp(now),
    }
