"""Whatever stands in a cycle's files, it is read, and nothing in it reaches the terminal."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from acp_core.model import Document, Snapshot
from acp_core.model.text import clean
from acp_core.protocols.cycle.collaboration import open_cycles
from tests.protocols.cycle.making import (
    HOME,
    NOW,
    PROGRESS,
    STATE,
    blocker,
    coordination,
    decision,
    state,
    task,
    write,
)

HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "a\u202egnp.exe",
    "\u2066hidden\u2069",
    "[bold red]markup[/]",
    "[@click=app.quit]here[/]",
    "line\u2028line\x85line\rline",
    "\x9b31m",
    "../../../etc/passwd",
    "\ud800",
    "\x00",
    "x" * 5_000,
]
WORDS = ["completed", "running", "done", "made", "open", "ra", "vas", "user", "1.2.0", "92%", ""]
TIMES = ["2026-03-02T18:00:00+08:00", "2026-03-02T18:00:00Z", "9999-12-31T23:59:59-23:59",
         "0001-01-01T00:00:00+23:00", "2026-03-02 10:45", "18:00"]  # fmt: skip
KEYS = ["id", "status", "version", "summary", "total", "failed", "coverage", "tasks", "depends_on",
        "timestamp", "number", "options", "target", "data", "\x1b[2J", "agent", "file", "type"]  # fmt: skip

leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(HOSTILE + WORDS + TIMES),
    st.text(max_size=8),
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=8,
)
texts = st.lists(
    st.one_of(
        values.map(json.dumps),
        st.sampled_from(HOSTILE),
        st.sampled_from(["# T - v1.1.0", "## Questions for RA", "- Q1: Why?", "- Blocker: Yes",
                         "- [18:00:00] RA: \x1b[31m", "- [x] TASK-1: \u202e", "PHASE_RESULT:",
                         "- status: partial", "- files_written: [../x]"]),
    ),
    max_size=6,
).map("\n".join)  # fmt: skip


def full() -> dict[str, Any]:
    """A state with something in each of its parts."""
    fed = {"timestamp": TIMES[0], "source": "vas", "target": "cd", "content": "Fix", "type": "x"}
    return state() | {
        "coordination": coordination(
            feedback_log=[fed], pending_decisions=[decision()], blockers=[blocker()]
        ),
        "iterations": [{"number": 1, "agent_results": {"ra": {"status": "completed"}}}],
        "phase_errors": [{"phase": "cd", "error": "x", "timestamp": TIMES[0]}],
        "changes": {"changes": [{"file": "a.py", "agent": "cd"}]},
        "plan": {"tasks": [task("T1"), task("T2", "pending", "T1")], "critical_path": ["T1"]},
        "requirements": {"version": "1.1.0"},
        "convergence": {"coverage": 80},
        "completed_phases": ["ra"],
        "task_history": ["x"],
    }


def places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to everything in a value."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from places(inner, (*path, number))


PLACES = list(places(full()))


def put(value: Any, path: tuple[Any, ...], new: object) -> None:
    for step in path[:-1]:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return
    if isinstance(value, dict) or (isinstance(value, list) and path[-1] in range(len(value))):
        value[path[-1]] = new


def strings(value: object) -> Iterator[str]:
    """Every text that a Snapshot shows; what names things for programs is left out."""
    if isinstance(value, str):
        yield value
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            if field.name not in ("key", "path") or not isinstance(value, Snapshot | Document):
                yield from strings(getattr(value, field.name))
    elif isinstance(value, tuple):
        for inner in value:
            yield from strings(inner)


def safe(snapshot: Snapshot) -> bool:
    return all(clean(text) == text and "\n" not in text for text in strings(snapshot))


def dumped(value: object) -> str:
    return json.dumps(value)


fuzzing = settings(
    max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


@fuzzing
@example(changes=[(("coordination", "blockers", 0, "id"), "\x1b[31mred\x1b[0m")])
@given(changes=st.lists(st.tuples(st.sampled_from(PLACES), values), min_size=1, max_size=4))
def test_anything_may_stand_anywhere_in_the_state(
    tmp_path: Path, changes: list[tuple[tuple[Any, ...], object]]
) -> None:
    value = full()
    for path, new in changes:
        put(value, path, new)
    write(tmp_path, STATE, dumped(value))
    opened = open_cycles(str(tmp_path))
    snapshot = opened.refresh(NOW)
    assert safe(snapshot)
    if snapshot.recheck_at:
        assert safe(opened.refresh(snapshot.recheck_at))


@fuzzing
@given(whole=values, plan=values, tests=values, prep=values)
def test_files_may_hold_any_json(
    tmp_path: Path, whole: object, plan: object, tests: object, prep: object
) -> None:
    write(tmp_path, f"{HOME}/cycle-v1-20260301T180000-other.json", dumped(whole))
    write(tmp_path, STATE, dumped(state(plan=None, test_results=None)))
    write(tmp_path, f"{PROGRESS}/ep/plan.json", dumped(plan))
    write(tmp_path, f"{PROGRESS}/vas/test-results.json", dumped(tests))
    write(tmp_path, f"{PROGRESS}/vas/history/test-results-v1.0.0.json", dumped(tests))
    write(tmp_path, f"{HOME}/prep-package.json", dumped(prep))
    assert safe(open_cycles(str(tmp_path)).refresh(NOW))


TEXTS = ("ra/requirements.md", "ep/plan.md", "cd/issues.md", "cd/code-changes.log", "ra/changes.log",
         "coordination/feedback.md", "coordination/timeline.md", "coordination/decisions.log",
         "coordination/discoveries.ndjson", "coordination/phase-results/1-cd.txt")  # fmt: skip


@fuzzing
@given(held=st.lists(texts, min_size=len(TEXTS), max_size=len(TEXTS)), again=texts)
def test_documents_and_logs_may_hold_any_text(tmp_path: Path, held: list[str], again: str) -> None:
    write(tmp_path, STATE, dumped(state(plan=None)))
    for name, text in zip(TEXTS, held, strict=True):
        raw(tmp_path, name, text)
    opened = open_cycles(str(tmp_path))
    snapshot = opened.refresh(NOW)
    assert safe(snapshot)
    for document in snapshot.documents:
        loaded = opened.load(document.id)
        assert clean(loaded.text) == loaded.text
    for name in TEXTS:
        raw(tmp_path, name, again)
    assert safe(opened.refresh(NOW))


def raw(root: Path, name: str, text: str) -> None:
    path = write(root, f"{PROGRESS}/{name}", "")
    path.write_bytes(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("name", [STATE, f"{PROGRESS}/ep/plan.json", f"{PROGRESS}/cd/changes.log"])
def test_a_file_may_end_anywhere(tmp_path: Path, name: str) -> None:
    whole = dumped(full()).encode()
    write(tmp_path, STATE, dumped(state(plan=None)))
    path = write(tmp_path, name, "")
    opened = open_cycles(str(tmp_path))
    for cut in range(0, len(whole), 37):
        path.write_bytes(whole[:cut] + b"\xff" * (cut % 2))
        assert safe(opened.refresh(NOW + timedelta(seconds=cut)))


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_is_shown_as_signs_in_every_place(tmp_path: Path, text: str) -> None:
    value = full()
    for path in PLACES:
        found: Any = value
        for step in path[:-1]:
            found = found[step]
        if isinstance(found[path[-1]], str) and path != ("cycle_id",):
            found[path[-1]] = text
    write(tmp_path, STATE, dumped(value))
    write(tmp_path, f"{PROGRESS}/ep/plan.json", dumped({"tasks": [task(text)], "version": text}))
    snapshot = open_cycles(str(tmp_path)).refresh(NOW)
    assert safe(snapshot)
    assert {panel.id for panel in snapshot.panels} >= {"plan", "decisions", "feedback"}
