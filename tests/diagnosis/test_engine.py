"""How causes become the sentence on top, the needs, and the order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest

from acp_core.agents.state import Phase
from acp_core.diagnosis import engine
from acp_core.diagnosis.engine import Diagnosis, diagnose, with_standing
from acp_core.diagnosis.standing import standing
from acp_core.model import DocumentText, Matter, Snapshot, Status
from acp_core.model.matter import TIME, About, damage, decision, verdicts
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit.diagnosis import DiagnosisContext, Patience
from tests.diagnosis.support import after, case, ended, loop, run, snapshot


class Talk(Collaboration):
    """A collaboration with causes of its own."""

    protocol, key, has_turns = "talk", "/work/cache", True

    def __init__(self, *own: Matter, fails: bool = False) -> None:
        self.own, self.fails, self.asked = own, fails, 0

    def causes(self, case: DiagnosisContext) -> Sequence[Matter]:
        self.asked += 1
        if self.fails:
            raise ValueError("a fault")
        return self.own

    def refresh(self, now: datetime) -> Snapshot:
        return snapshot()

    def watched(self) -> frozenset[Path]:
        return frozenset()

    def load(self, document: str) -> DocumentText:
        raise KeyError(document)


def codes(causes: Sequence[Matter]) -> list[str]:
    """The codes of what stands, in order."""
    return [each.code for each in standing(snapshot(), causes)]


def test_decisions_go_first_then_damage_what_failed_and_what_does_not_run() -> None:
    own = (
        Matter("E1", "blocked"),
        Matter("D5", "a gate"),
        Matter("A4", "lagging"),
        Matter("A1", "half a line", move=TIME),
    )
    stopped = loop(Phase.STOPPED, alive=False)
    found = diagnose(Talk(*own), case(stopped, at=after(2)))
    assert codes(found) == ["D5", "E1", "A4", "A1", "B2"]


def test_codes_are_counted_not_spelled() -> None:
    own = (Matter("B10", "x"), Matter("B2", "y"), Matter("ZZ", "z"))
    assert codes(diagnose(Talk(*own), case(at=after(1)))) == ["B2", "B10", "ZZ"]


def test_the_reason_goes_before_what_follows_from_it() -> None:
    gave_up = loop(Phase.GAVE_UP, ended(refusals=("error: gates must be checked first",)))
    gate = Matter(
        "D5",
        "a gate is not checked",
        about=About(participant="reader"),
        root=True,
    )
    assert codes(diagnose(Talk(gate), case(gave_up, at=after(2)))) == ["D5", "B3"]
    torn = damage("A1", "half a line", "repair it", participant="reader")
    assert codes(diagnose(Talk(gate, torn), case(gave_up, at=after(2)))) == ["A1", "D5", "B3"]


def test_a_fault_in_a_protocol_s_causes_hides_no_other() -> None:
    stopped = loop(Phase.STOPPED, alive=False)
    assert codes(diagnose(Talk(fails=True), case(stopped, at=after(2)))) == ["B2"]


def test_a_protocol_knows_what_was_found_in_the_loops() -> None:
    class Curious(Talk):
        def causes(self, case: DiagnosisContext) -> Sequence[Matter]:
            return [Matter("D1", "late")] if case.caused("reader") else []

    stopped = loop(Phase.STOPPED, alive=False)
    assert codes(diagnose(Curious(), case(stopped, at=after(2)))) == ["B2", "D1"]
    assert codes(diagnose(Curious(), case(at=after(2)))) == []


def test_the_sentence_on_top_says_how_it_stands_why_and_what_to_do() -> None:
    stopped = loop(Phase.STOPPED, alive=False)
    seen = snapshot()
    told = with_standing(seen, diagnose(Talk(), case(stopped, at=after(2))), None)
    assert told.headline == (
        "reviewing. Waiting for reader — reader's loop was stopped, and it is reader's turn. "
        "What to do: restart it."
    )


def test_needs_are_the_wanted_causes_and_each_thing_is_one_need() -> None:
    seen = snapshot(
        needs=(
            decision("lagging:4", "lagging", "protocol.json lags"),
            decision("turn:ann:4", "turn", "ann is to review"),
        )
    )
    causes = (
        Matter(
            "A4",
            "it lags",
            verdicts=verdicts("repair"),
            key="lagging:4",
        ),
        Matter("A1", "torn", key="A1:4", explains=("lagging:4",)),
        Matter("B5", "it tries again", move=TIME, key="B5"),
    )
    told = with_standing(seen, causes, None)
    assert [each.key for each in told.needs] == ["turn:ann:4", "A1:4", "lagging:4"]
    assert told.needs[2].remedy == "repair"
    assert [each.key for each in told.matters] == ["turn:ann:4", "A1:4", "lagging:4", "B5"]


def test_what_cannot_be_done_before_damage_is_mended_follows_from_it() -> None:
    torn = damage("A1", "half a line", "repair it", frozenset({"repair"}), "repair")
    gate = Matter("D5", "a gate is not checked", "check it", verdicts=verdicts("check_gates"))
    start = Matter("E9", "nobody runs", "start it", verdicts=verdicts("launch"))
    asked = Matter("B17", "it asks", "answer it", verdicts=verdicts("answer_permission"))
    seen = snapshot(obstacles=(torn,))
    told = with_standing(seen, (start, gate, asked), None)
    assert [(each.code, each.because) for each in told.matters] == [
        ("A1", ""),
        ("B17", ""),
        ("D5", torn.key),
        ("E9", torn.key),
    ]
    assert [each.code for each in told.needs] == ["A1", "B17"]
    assert told.matters[2].verdicts == ()
    assert told.matters[2].instruction == "first repair it; then check it"


def test_a_blocked_one_is_not_said_twice() -> None:
    seen = snapshot(status=Status.BLOCKED, headline="blocked in reviewing by reader: no budget")
    why = Matter(
        "E1",
        "blocked in reviewing by reader: no budget",
        instruction="continue",
    )
    assert with_standing(seen, (why,), None).headline == (
        "blocked in reviewing by reader: no budget. What to do: continue."
    )


def test_without_a_cause_it_is_the_very_same_snapshot() -> None:
    seen = snapshot()
    assert with_standing(seen, (), None) is seen
    later = with_standing(seen, (), after(9))
    assert later.recheck_at == after(9)
    assert with_standing(later, (), after(10)) is later


class TestLookAfterLook:
    def test_the_same_object_as_long_as_nothing_is_different(self) -> None:
        seen, talk = snapshot(), Talk()
        diagnosis = Diagnosis(Patience())
        loops = (loop(Phase.STOPPED, alive=False),)
        first = diagnosis.diagnose(talk, seen, loops, (), after(2))
        assert codes(first.causes) == ["B2"]
        assert diagnosis.diagnose(talk, seen, loops, (), after(3)) is first
        assert talk.asked == 1

    def test_it_looks_again_when_it_is_time(self) -> None:
        seen, talk = snapshot(), Talk()
        diagnosis = Diagnosis(Patience())
        loops = (loop(run=run()),)
        first = diagnosis.diagnose(talk, seen, loops, (), after(1))
        assert first.causes == ()
        assert first.recheck_at == after(minutes=5, seconds=2)
        late = diagnosis.diagnose(talk, seen, loops, (), after(minutes=5, seconds=3))
        assert codes(late.causes) == ["B9"]
        assert late.recheck_at is None or late.recheck_at > after(minutes=5, seconds=3)

    def test_loops_that_change_are_seen_though_nothing_else_did(self) -> None:
        seen, talk = snapshot(), Talk()
        diagnosis = Diagnosis(Patience())
        parked = diagnosis.diagnose(talk, seen, (loop(run=run()),), (), after(1))
        dead = diagnosis.diagnose(talk, seen, (loop(run=run(), alive=False),), (), after(1))
        assert (codes(parked.causes), codes(dead.causes)) == ([], ["B2"])

    def test_what_stays_equal_stays_the_same_object(self) -> None:
        talk, diagnosis = Talk(), Diagnosis(Patience())
        loops = (loop(Phase.STOPPED, alive=False),)
        first = diagnosis.diagnose(talk, snapshot(), loops, (), after(2))
        second = diagnosis.diagnose(talk, snapshot(objective="Another"), loops, (), after(2))
        assert second is not first
        assert second.causes is first.causes
        assert second.needs is first.needs


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.BLOCKED, Status.UNKNOWN])
def test_loops_matter_only_while_something_goes_on(status: Status) -> None:
    over = snapshot(status=status)
    assert (
        list(engine.causes_of_turns(case(loop(Phase.WAITING), at=after(60), snapshot_=over))) == []
    )
