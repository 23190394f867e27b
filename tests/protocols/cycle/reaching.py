"""Cycles in states that are reached by what people and an orchestrator do, and damaged ones."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from acp_core.model.errors import Refused
from acp_core.protocols.cycle.conduct import results, steps
from acp_core.protocols.cycle.conduct.results import Facts
from acp_core.protocols.cycle.conduct.steps import Kind
from acp_core.protocols.cycle.read.progress import parse_result
from acp_core.protocols.cycle.schema import Object, objects, text
from acp_core.protocols.cycle.write import changes, store
from tests.protocols.cycle.conducting import ID, WHAT, forget, path, progress

AGO = 7_200.0  # seconds since which nobody has written
Acted = Callable[[Object, datetime], None]
ACTS: dict[str, Acted] = {
    "feedback": lambda s, n: changes.feedback(s, n, "cd", "Quote", "clarification"),
    "pause": changes.pause,
    "resume": changes.resume,
    "stop": changes.stop,
    "accept": changes.accept,
    "extend": lambda s, n: changes.extend(s, n, "More", 9),
    "rerun": lambda s, n: changes.rerun(s, n, "ep"),
    "limit": lambda s, n: changes.raise_limit(s, n, 1),
    "decide": lambda s, n: changes.decide(s, n, _first(s, "pending_decisions"), "1"),
    "last option": lambda s, n: changes.decide(s, n, _first(s, "pending_decisions"), "2"),
    "resolve": lambda s, n: changes.resolve(s, n, _first(s, "blockers"), "It is gone"),
}
SAID = {
    "well": "- status: success\n- summary: done",
    "asks ra": "- status: partial\n- blockers: [RA: which delimiter?]",
    "asks a person": "- status: partial\n- blockers:\n  - USER: large ones? | Stream | Refuse",
    "fails": "- status: failed\n- issues: [not logged in]",
}
DAMAGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "torn": lambda held: json.dumps(held)[:-40],
    "empty": lambda held: "",
    "a list": lambda held: "[]",
    "deep": lambda held: "[" * 50 + "]" * 50,
    "no agents": lambda held: held.pop("agents"),
    "agents are a list": lambda held: held.update(agents=[]),
    "one agent is gone": lambda held: held["agents"].pop("vas"),
    "no status": lambda held: held.pop("status"),
    "strange status": lambda held: held.update(status="in-progress"),
    "half an iteration": lambda held: held.update(current_iteration=0.5),
}
ODD: dict[str, Callable[[dict[str, Any]], object]] = {
    "no coordination": lambda held: held.pop("coordination"),
    "another id": lambda held: held.update(cycle_id="cycle-v1-20260302T180000-other"),
    "an agent that is coding": lambda held: held["agents"]["cd"].update(status="coding"),
    "a decision without an id": lambda held: _add(held, {"description": "So?"}),
    "claims to be completed": lambda held: held.update(status="completed"),
    "claims to be created": lambda held: held.update(status="created"),
    "agents at work": lambda held: held["agents"]["vas"].update(status="running"),
}


def _first(state: Object, key: str) -> str:
    held = objects(changes.section(state)[key])
    return next((text(each.get("id")) for each in held if each.get("status") in OPEN), "")


OPEN = ("pending", "open")


def _add(held: dict[str, Any], decision: dict[str, Any]) -> None:
    held.setdefault("coordination", {}).setdefault("pending_decisions", []).append(decision)


def _work(state: Object, now: datetime, how: str) -> None:
    """What an orchestrator does next, as if the agent at work had ended so."""
    steps.adopt(state, now)
    steps.begin_cycle(state, now)
    steps.pick_up(state, now)
    steps.apply_decisions(state, now)
    todo = steps.next_step(state)
    if todo.kind is Kind.PREPARE:
        steps.prepared(state, now, steps.next_version(state), ())
    elif todo.kind is Kind.EVALUATE:
        results.evaluate(state, now)
    elif todo.kind is Kind.WORK:
        name = todo.agents[0]
        if steps.status(state, name) != "running":
            steps.begin_run(state, now, name)
        if how in SAID:
            result = parse_result(f"PHASE_RESULT:\n- phase: {name}\n{SAID[how]}\n")
            assert result is not None
            results.ended_run(state, now, name, result, _facts(how), 1)
        elif how == "dies":
            results.failed_run(state, now, name, "exit code 3", 1)


def _facts(how: str) -> Facts:
    failed = 2 if how == "fails" else 0
    tests: Object = {"summary": {"total": 10, "passed": 10 - failed, "failed": failed}}
    return Facts("1.0.0", (), {"version": "1.0.0", "tasks": []}, tests)


HISTORIES = st.lists(
    st.one_of(
        st.sampled_from(["well", "well", "well", *SAID, "dies", "begins"]).map(
            lambda h: ("work", h)
        ),
        st.sampled_from(list(ACTS)).map(lambda name: ("act", name)),
    ),
    max_size=14,
)
CYCLES = st.fixed_dictionaries(
    {
        "history": HISTORIES,
        "odd": st.sampled_from(["", "", *ODD]),
        "damage": st.sampled_from(["", "", "", "gone", *DAMAGES]),
        "kept": st.booleans(),
        "documents": st.booleans(),
    }
)


def make(root: Path, told: dict[str, Any]) -> None:
    """A cycle with this history, left alone for `AGO` seconds."""
    now = datetime.now(UTC) - timedelta(seconds=AGO)
    state = store.first_state(ID, now, WHAT, iterations=2)
    for kind, what in told["history"]:
        now += timedelta(seconds=1)
        with contextlib.suppress(Refused):
            ACTS[what](state, now) if kind == "act" else _work(state, now, what)
    store.create_cycle(root, state)
    if told["documents"]:
        for name in ("ra/requirements.md", "cd/implementation.md"):
            (progress(root) / name).write_text("# Requirements - v1.0.0\n\nAs agreed\n")
    _damage(root, told)
    if not told["kept"]:
        forget(root)
    for each in _files(root):
        os.utime(each, (now.timestamp(), now.timestamp()))


def _damage(root: Path, told: dict[str, Any]) -> None:
    held = json.loads(path(root).read_text())
    for name, table in ((told["odd"], ODD), (told["damage"], DAMAGES)):
        made = table[name](held) if name in table else None
        if isinstance(made, str) and table is DAMAGES and name in RAW:
            path(root).write_text(made)
            return
    if told["damage"] == "gone":
        path(root).unlink()
    elif told["odd"] or told["damage"]:
        path(root).write_text(json.dumps(held))


RAW = ("torn", "empty", "a list", "deep")


def _files(root: Path) -> Iterator[Path]:
    return (each for each in root.rglob("*") if each.is_file())
