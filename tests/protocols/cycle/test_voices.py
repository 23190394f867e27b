"""What acp says of a cycle in its several voices agrees, and every cure that it offers works."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings

from acp_core.diagnosis import actions as offered
from acp_core.model import Action, Matter, OutcomeState, Severity, Snapshot, Verdict
from acp_core.model.errors import Refused
from acp_core.model.format import sentence_case
from acp_core.person import paths
from acp_core.protocols.cycle.schema import REBUILD_ACT, RUN_ACT, SELECT_ACT
from acp_core.protocols.kit.schema import fields
from tests.protocols.cycle.conducting import acp, diagnosed
from tests.protocols.cycle.reaching import CYCLES, make
from tests.support.examples import MANY, PATIENT

LACKING = {"A01", "A02", "A05", "A06", "A08"}  # errors of a state that is lost or not whole
pytestmark = pytest.mark.usefixtures("in_memory")
WORDS = {"choice": "1", "text": "More", "resolution": "It is gone", "iterations": 9}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acp_core.protocols.cycle.write.store._PATIENCE", 0.0)
    monkeypatch.setattr("acp_core.protocols.cycle.acts.steering._SETTLE", 0.0)
    monkeypatch.setattr("acp_core.diagnosis.actions._NOTICE", 0.0)


def answers(action: Action, given: dict[str, Any]) -> dict[str, Any]:
    """What is given, and something for what a person must choose."""
    made = dict(given)
    for each in fields(action):
        if each.required and each.name not in made:
            made[each.name] = WORDS.get(each.name) or each.default or each.choices[0]
    return made


def done_and_taken_back(
    root: Path, act: str, given: dict[str, Any]
) -> tuple[OutcomeState, str, Snapshot]:
    """Do an act, and take it back: how it ended, in words too, and what is said after it."""
    with taken_back(root), taken_back(paths.state_folder() / "cycles"):
        cycles, snapshot = diagnosed(root)
        action = offered.action(cycles, snapshot, act)
        assert action is not None, act
        outcome = action.perform(action.inputs(**answers(action, given)))
        return outcome.state, outcome.sentence, diagnosed(root)[1]


@contextlib.contextmanager
def taken_back(folder: Path) -> Iterator[None]:
    """Whatever becomes of a folder, it is as it was afterwards: times of files, too."""
    with tempfile.TemporaryDirectory() as place:
        kept = Path(place) / "kept"
        folder.mkdir(exist_ok=True)
        shutil.copytree(folder, kept)
        try:
            yield
        finally:
            shutil.rmtree(folder)
            shutil.copytree(kept, folder)


def names(cause: Matter) -> list[tuple[str, dict[str, Any]]]:
    """The acts that a cause offers, with what is given for them."""
    first = [(cause.remedy, dict(cause.given))] if cause.remedy else []
    return [*first, *((other, {}) for other in cause.others)]


def check_voices(told: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "project"
        root.mkdir()
        make(root, told)
        cycles, snapshot = diagnosed(root)
        damaged = [each for each in snapshot.obstacles if each.code == "A5"]
        errors = {e.code for e in snapshot.findings if e.severity is Severity.ERROR}
        assert bool(errors & LACKING) == bool(damaged), errors
        assert any(each.code == "A5" for each in snapshot.causes) == bool(damaged)
        assert not damaged or snapshot.verdict is Verdict.INVALID
        code, out, err = acp("status", str(root))
        assert code == 0, err
        assert all(sentence_case(each.sentence) in out for each in snapshot.obstacles)
        found = offered.actions(cycles, snapshot)
        acts = {each.name for each in found if not each.personal}
        assert not damaged or acts <= {REBUILD_ACT, SELECT_ACT}
        if damaged:
            _cured(root, snapshot.causes[0])
            return
        for cause in snapshot.causes:
            _works(root, cause, acts)
        for name in acts - {RUN_ACT, SELECT_ACT}:
            state, sentence, _ = done_and_taken_back(root, name, {})
            assert state is not OutcomeState.REFUSED, (name, sentence)


def _works(root: Path, cause: Matter, acts: set[str]) -> None:
    """Every act that a cause offers can be done, and its remedy changes it."""
    for name, said in names(cause):
        assert name in acts, (cause.sentence, name)
        if name == RUN_ACT:
            continue  # it needs programs, which a person chooses
        state, sentence, after = done_and_taken_back(root, name, said)
        assert state is not OutcomeState.REFUSED, (cause.sentence, name, sentence)
        if name == cause.remedy:
            left = {each.key for each in after.causes}
            assert cause.key not in left, (cause.sentence, name, sentence)


def _cured(root: Path, cause: Matter) -> None:
    """The command that a damaged state's cause prints works, or acp says what must be chosen."""
    if not cause.remedy:
        assert "from your own copy" in cause.instruction
        with pytest.raises(Refused):
            done_and_taken_back(root, REBUILD_ACT, {})
        return
    state, sentence, after = done_and_taken_back(root, cause.remedy, dict(cause.given))
    assert state is OutcomeState.DONE, sentence
    assert not after.obstacles
    errors = {e.code for e in after.findings if e.severity is Severity.ERROR}
    assert not errors & LACKING
    program, group, *words = shlex.split(cause.instruction)
    assert (program, group) == ("acp", "cycle")
    assert acp(*words)[0] == 0
    assert not diagnosed(root)[1].obstacles


QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


FAILED = {"history": [("work", "fails"), ("act", "decide")], "damage": "", "kept": False,
          "documents": False}  # fmt: skip


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=QUIET)
@given(CYCLES)
@example(FAILED | {"odd": "claims to be created"})
@example(FAILED | {"odd": "agents at work"})
@example(FAILED | {"history": [("act", "pause")], "odd": "agents at work"})
def test_all_voices_agree_and_every_cure_works(told: dict[str, Any]) -> None:
    check_voices(told)


@pytest.mark.slow
@PATIENT
@settings(max_examples=MANY, deadline=None, suppress_health_check=QUIET)
@given(CYCLES)
def test_all_voices_agree_and_every_cure_works_in_thousands_of_states(told: dict[str, Any]) -> None:
    check_voices(told)
