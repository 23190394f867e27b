"""Whatever state a run is in: verdict, causes, offers and refusals agree, and every cure works."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from acp_core import model
from acp_core.diagnosis import actions
from acp_core.model.errors import Refused
from acp_core.protocols.kit import guard
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from tests.diagnosis.support import problems
from tests.protocols.governed import multi, states
from tests.protocols.governed.acting import (
    Governed,
    accept,
    approve_gate,
    coordinator,
    correct,
    dispatch,
    escalate,
    governed,
    mark_objection,
    open_folder,
    reject_gate,
    reject_turn,
    unblock,
)
from tests.protocols.governed.making import Object
from tests.protocols.governed.states import NOW, STATE
from tests.support import examples

ACTS: dict[str, Callable[[Path], object]] = {
    "step": lambda root: dispatch(root),
    "accept_turn": lambda root: accept(root),
    "correct_result": lambda root: correct(root, None),
    "approve_gate": lambda root: approve_gate(root),
    "reject_gate": lambda root: reject_gate(root, "No"),
    "reject_turn": lambda root: reject_turn(root, "No"),
    "escalate": lambda root: escalate(root, "Stop"),
    "unblock": lambda root: unblock(root),
    "mark_objection": lambda root: mark_objection(root, "OBJ-001", "acknowledged"),
}
"""What is done in a run, as every way to it ends: under the lock."""
COMMAND = re.compile(r"acp governed [^,;(`]+")
WORDS = {"reason": "Again.", "comment": "No test.", "text": "Hello.", "by": "Ann"}
"""What a human fills in where a form asks for words."""
DECIDED = ("mend-workstream", "trust", "unblock")

pytestmark = pytest.mark.usefixtures("in_memory")
damages = st.lists(st.sampled_from(sorted(states.DAMAGE)), max_size=3, unique=True)


def seen(root: Path) -> tuple[Governed, model.Snapshot, tuple[model.Matter, ...]]:
    collaboration = open_folder(root)
    snapshot = collaboration.refresh(NOW)
    return (
        collaboration,
        snapshot,
        problems(collaboration, DiagnosisContext(snapshot, Clock(NOW))),
    )


def content(root: Path) -> dict[str, bytes]:
    """What is in the run's files; locks say nothing."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git/" not in str(path) and "/locks/" not in str(path)
    }


def check(root: Path, whole: Path | None = None) -> None:
    """All that is said of a run agrees, and what is offered can be done."""
    collaboration, snapshot, causes = seen(root)
    keys = {cause.key for cause in causes}
    for obstacle in snapshot.obstacles:
        assert obstacle.key in keys or obstacle.key.startswith("A6"), obstacle
        of_files = not obstacle.key.startswith("obstacle:")
        if of_files and not obstacle.key.startswith("A6"):
            assert snapshot.verdict == model.Verdict.INVALID, obstacle
    found = actions.actions(collaboration, snapshot, NOW)
    offered = {each.name: each for each in found if not each.personal}
    for name, act in ACTS.items():
        blocking = guard.blocking(snapshot.obstacles, name)
        if blocking:
            assert name not in offered, (name, blocking)
            before = content(root)
            with pytest.raises(Refused):
                act(root)
            assert content(root) == before, name
    for name, action in offered.items():
        preview = action.preview(action.inputs(**filled(action)))
        chosen = "at observed" in preview.refused  # which files are not the agent's
        assert not preview.refused or chosen, (name, preview.refused)
    for cause in causes:
        cured(root, cause, whole)


def filled(action: model.Action) -> Object:
    """What a human fills in: the words that a form asks for."""
    names = {each.name for each in action.fields}
    return {name: words for name, words in WORDS.items() if name in names}


def cured(root: Path, cause: model.Matter, whole: Path | None) -> None:
    """Every command that a cause prints, and the act that it names, changes it; on a copy."""
    obstacles = seen(root)[1].obstacles
    first = cause.key in {each.key for each in obstacles}
    if not first and guard.blocking(obstacles, cause.remedy or "step"):
        return  # another cure comes first
    if any(each.code == "A1" and each.key != cause.key for each in obstacles):
        return  # so does one in words: a file to be mended by hand
    for words in map(shlex.split, COMMAND.findall(cause.instruction)):
        with tempfile.TemporaryDirectory() as place:
            copy = copied(whole or root, Path(place)) / (root.relative_to(whole) if whole else "")
            words = [each.replace(str(whole or root), f"{place}/work") for each in words[2:]]
            of_whole = words[0] == "coordinator"
            main, words = (coordinator, words[1:]) if of_whole else (governed, words)
            with contextlib.chdir(copy):
                code = main([*words, *(("--by", "Ann", "--yes") if words[0] in DECIDED else ())])
            assert code == 0, (cause, words)
            assert changed(copy, cause), (cause, words)
    if cause.remedy and whole is None:
        with tempfile.TemporaryDirectory() as place:
            copy = copied(root, Path(place))
            collaboration, snapshot, _ = seen(copy)
            action = collaboration.action(cause.remedy, NOW)
            if action is None or guard.blocking(snapshot.obstacles, cause.remedy):
                return  # it is no act of a run, or another cure comes first
            outcome = action.perform(action.inputs(**filled(action) | dict(cause.given)))
            assert outcome.state == model.OutcomeState.DONE, (cause, outcome.sentence)


def copied(root: Path, place: Path) -> Path:
    shutil.copytree(root, place / "work", symlinks=True)
    return place / "work"


def changed(copy: Path, cause: model.Matter) -> bool:
    """Whether a cause is gone, or is another one now."""
    return cause not in seen(copy)[2]


def run_of(name: str, wrong: list[str]) -> None:
    with tempfile.TemporaryDirectory() as place:
        root = states.run_in(Path(place) / "work", name)
        for each in wrong:
            states.DAMAGE[each](root)
        check(root)


def initiative_of(name: str, wrong: list[str]) -> None:
    """The same of a workstream, and of the initiative above it."""
    with tempfile.TemporaryDirectory() as place:
        root = states.initiative_in(Path(place) / "work", name)
        for each in wrong:
            states.DAMAGE[each](root / "web")
        check(root / "web", root)
        collaboration, snapshot, causes = seen(root)
        keys = {cause.key for cause in causes}
        assert {each.key for each in snapshot.obstacles} <= keys
        found = actions.actions(collaboration, snapshot, NOW)
        for action in (each for each in found if not each.personal):
            preview = action.preview(action.inputs(**filled(action)))
            assert not preview.refused, (action.name, preview.refused)
        if guard.blocking(snapshot.obstacles, "approve_barrier"):
            before = (
                (root / ".coordinator/state.json").read_bytes(),
                (root / "auth" / STATE).read_bytes(),
            )
            with pytest.raises(Refused):
                multi.approve(root)
            now = (
                (root / ".coordinator/state.json").read_bytes(),
                (root / "auth" / STATE).read_bytes(),
            )
            assert now[1] == before[1]


ONE = settings(max_examples=25, derandomize=True, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=examples.MANY, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@ONE
@given(st.sampled_from(sorted(states.RUNS)), damages)
def test_verdict_causes_offers_and_refusals_of_a_run_agree(name: str, wrong: list[str]) -> None:
    run_of(name, wrong)


@pytest.mark.slow
@settings(ONE, max_examples=10)
@given(st.sampled_from(sorted(states.INITIATIVES)), damages)
@example("gate open", ["seal gone", "paused"])
@example("gate open", ["seal gone", "no phase"])
def test_verdict_causes_offers_and_refusals_of_an_initiative_agree(
    name: str, wrong: list[str]
) -> None:
    initiative_of(name, wrong)


@pytest.mark.slow
@examples.PATIENT
@MANY
@given(st.sampled_from(sorted(states.RUNS)), damages)
def test_they_agree_in_many_states_of_runs(name: str, wrong: list[str]) -> None:
    run_of(name, wrong)


@pytest.mark.slow
@examples.PATIENT
@MANY
@given(st.sampled_from(sorted(states.INITIATIVES)), damages)
def test_they_agree_in_many_states_of_initiatives(name: str, wrong: list[str]) -> None:
    initiative_of(name, wrong)
