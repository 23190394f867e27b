"""How long things usually take, from what was recorded and read; never from what still lasts."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.history.forecast import (
    LEAST,
    PHASE,
    TURN,
    Case,
    Forecast,
    cases_of,
    cases_of_recording,
)
from acp_core.history.schema import Seen, Span
from acp_core.model import Event, Phase, PhaseState, Snapshot, Status, Tone, Turn, Visit
from acp_core.model.past import PastTurn, Story

NOW = datetime(2026, 5, 3, 12, 0, tzinfo=UTC)
SECONDS = st.floats(1, 1e7, allow_nan=False)
MANY = st.lists(SECONDS, min_size=LEAST, max_size=40)


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def snapshot(status: Status = Status.ACTIVE, since: float = 31, *visits: Visit) -> Snapshot:
    stay = Visit(ago(since), None)
    return Snapshot(
        key="/work/one", protocol="folder", dialect="v2", name="one", objective="",
        location="/work/one", as_of=NOW, headline="", status=status, phase="reviewing",
        phases=(Phase("reviewing", "Reviewing", PhaseState.CURRENT, (*visits, stay)),),
        turns=(Turn("reader", "review", ago(since)),),
    )  # fmt: skip


def known(kind: str, *seconds: float) -> Forecast:
    return Forecast([("folder", [Case(kind, "reviewing", each) for each in seconds])])


def past_turn(seconds: float | None, event: str | None = "7") -> PastTurn:
    ended = None if seconds is None else ago(100) + timedelta(seconds=seconds)
    return PastTurn("reader", ago(100), "6", ended, event if ended else None, "x", "reviewing", 1)


@given(st.lists(SECONDS, max_size=LEAST - 1))
def test_fewer_than_five_cases_say_nothing(seconds: list[float]) -> None:
    forecast = Forecast(
        [("folder", [Case(kind, "reviewing", s) for kind in (TURN, PHASE) for s in seconds])]
    )
    outlook = forecast.outlook(snapshot(), NOW)
    assert not any(outlook.turns) and outlook.phase is None and outlook.ends is None


@given(MANY, st.randoms())
def test_the_order_in_which_histories_come_does_not_matter(
    seconds: list[float], dice: random.Random
) -> None:
    histories = [
        ("folder", (Case(TURN, "reviewing", each), Case(PHASE, "reviewing", each * 2)))
        for each in seconds
    ]
    first = Forecast(histories)
    dice.shuffle(histories)
    again = Forecast(histories)
    for kind in (TURN, PHASE):
        assert first.usual("folder", kind, "reviewing") == again.usual("folder", kind, "reviewing")
    assert first.outlook(snapshot(), NOW) == again.outlook(snapshot(), NOW)


@given(MANY)
def test_half_of_the_cases_lie_in_the_range_and_the_median_within_it(seconds: list[float]) -> None:
    usual = known(TURN, *seconds).usual("folder", TURN, "reviewing")
    assert usual is not None and usual.cases == len(seconds)
    assert min(seconds) <= usual.low <= usual.median <= usual.high <= max(seconds)
    assert sum(usual.low <= each <= usual.high for each in seconds) >= len(seconds) / 2 - 1


@given(MANY, st.floats(0, 1e5))
def test_what_probably_ends_ends_in_the_future(seconds: list[float], minutes: float) -> None:
    ends = known(PHASE, *seconds).outlook(snapshot(since=minutes), NOW).ends
    longer = [each for each in seconds if each > minutes * 60]
    if ends is None:
        assert len(longer) < LEAST
    else:
        assert NOW <= ends.early <= ends.likely <= ends.late and ends.cases == len(longer)


@given(st.lists(st.tuples(st.none() | st.floats(1, 5e3), st.sampled_from(["7", None]))))
def test_turns_that_last_or_were_cut_short_never_count(
    given_turns: list[tuple[float | None, str | None]],
) -> None:
    turns = tuple(past_turn(seconds, event) for seconds, event in given_turns)
    found = [case.seconds for case in cases_of(snapshot(), Story(turns)) if case.kind == TURN]
    wanted = [seconds for seconds, event in given_turns if seconds is not None and event]
    assert found == pytest.approx(wanted)


def test_a_phase_that_lasts_or_ended_by_a_block_is_no_case() -> None:
    stays = (Visit(ago(90), ago(80)), Visit(ago(70), ago(40)))
    running = snapshot(Status.ACTIVE, 31, *stays)
    assert [case.seconds for case in cases_of(running, Story())] == [600, 1800]
    last = Event("9", 9, "log", "blocked", Tone.BLOCKED, "reader", ago(40), "recorded", "")
    blocked = replace(running, status=Status.BLOCKED, events=(last,))
    assert [case.seconds for case in cases_of(blocked, Story())] == [600]


def test_a_wait_says_what_is_usual_and_when_the_phase_will_end() -> None:
    minutes = (10, 12, 14, 20, 28, 40, 50, 60, 70)
    cases = [Case(kind, "reviewing", m * 60) for kind in (TURN, PHASE) for m in minutes]
    outlook = Forecast([("folder", cases)]).outlook(snapshot(), NOW)
    assert outlook.words(0) == "usually 28 min"
    assert outlook.ends is None, "four cases lasted as long as this one: too few"
    outlook = Forecast([("folder", cases)]).outlook(snapshot(since=20), NOW)
    assert outlook.ends is not None
    assert outlook.ends.words(NOW) == "probably ends in 30 min (20 min to 40 min)"
    assert Forecast([("wire", cases)]).outlook(snapshot(), NOW).words(0) == "", "another protocol"


def look(
    at: float, phase: str, events: int, *waiting: tuple[str, float], status: str = "active"
) -> Seen:
    said = {
        "status": status, "phase": phase, "round": None, "events": events,
        "waiting": [
            [name, "x", datetime.fromtimestamp(since, UTC).isoformat()] for name, since in waiting
        ],
    }  # fmt: skip
    return Seen(at, json.dumps(said), "[]")


def test_a_recording_tells_turns_and_phases_that_it_saw_begin_and_end() -> None:
    observations = [
        look(100, "drafting", 1, ("writer", 90)),
        look(200, "reviewing", 2, ("reader", 199)),
        look(400, "revising", 3, ("writer", 399)),
    ]
    assert cases_of_recording(observations, []) == (
        Case(TURN, "drafting", 109),
        Case(TURN, "reviewing", 200),
        Case(PHASE, "reviewing", 200),
    )


def test_what_ended_while_nobody_looked_or_by_a_block_is_no_case() -> None:
    unseen = [look(100, "drafting", 1, ("writer", 90)), look(900, "completed", 2)]
    assert cases_of_recording(unseen, [Span("x", 0, 100), Span("x", 800, 1000)]) == ()
    assert cases_of_recording(unseen, [Span("x", 0, 1000)]) == (Case(TURN, "drafting", 810),)
    blocked = [unseen[0], look(900, "drafting", 2, status="blocked")]
    assert cases_of_recording(blocked, [Span("x", 0, 1000)]) == ()


@given(st.text() | st.sampled_from(["{}", "[]", "7", '{"waiting": [[1]]}']))
def test_what_is_no_recording_is_refused_without_a_fault(content: str) -> None:
    with pytest.raises(ValueError):
        cases_of_recording([Seen(1, content, "[]")], [])
