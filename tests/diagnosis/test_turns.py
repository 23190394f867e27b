"""Why the one whose turn it is does not take it, and what is no stall at all."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.agents.processes import Identity
from acp_core.agents.state import Phase, RunnerState
from acp_core.protocols.kit.diagnosis import Patience, UnmanagedProcess
from tests.diagnosis.support import (
    NOON,
    after,
    case,
    cause,
    causes,
    ended,
    loop,
    quick,
    run,
    snapshot,
)

HOURS = after(minutes=600)


class TestWhatIsNoStall:
    def test_a_parked_participant(self) -> None:
        parked = loop(Phase.WAITING, participant="reviewer")
        at_work = loop(run=run(last_output=after(minutes=9)))
        assert causes(parked, at_work, at=after(minutes=10)) == []

    def test_a_parked_participant_whose_loop_died(self) -> None:
        dead = loop(Phase.WAITING, participant="reviewer", alive=False)
        at_work = loop(run=run(last_output=after(minutes=9)))
        assert causes(dead, at_work, at=after(minutes=10)) == []

    def test_a_tool_in_use(self) -> None:
        case_ = {"busy": lambda _: "Bash: pytest"}
        assert causes(loop(run=run(tool="Bash: pytest")), at=after(minutes=18), **case_) == []

    def test_the_window_in_which_a_program_starts(self) -> None:
        silent = run(first_output=None, last_output=None, lines=())
        assert causes(loop(run=silent), at=after(seconds=80)) == []

    def test_a_loop_that_was_just_started(self) -> None:
        just = loop(Phase.STARTING, started=after(minutes=9), since=after(minutes=9))
        assert causes(just, at=after(minutes=9, seconds=3)) == []

    def test_a_loop_that_is_being_started_again(self) -> None:
        stopped = loop(Phase.STOPPED, alive=False, since=after(minutes=9))
        assert causes(stopped, at=after(minutes=9, seconds=3)) == []

    def test_a_turn_that_just_began(self) -> None:
        assert causes(loop(Phase.WAITING), at=after(seconds=3)) == []
        assert causes(at=after(minutes=5)) == []

    def test_a_collaboration_that_is_over(self) -> None:
        from acp_core.model import Status

        done = snapshot(status=Status.COMPLETED)
        assert causes(loop(Phase.WAITING), at=HOURS, snapshot_=done) == []

    def test_a_person_s_turn(self) -> None:
        assert causes(at=HOURS, snapshot_=snapshot(humans=("reader",))) == []

    def test_documents_that_change_are_progress(self) -> None:
        writes = snapshot(changed=after(minutes=8))
        assert causes(loop(run=run()), at=after(minutes=12), snapshot_=writes) == []


class TestNobodyKnownHere:
    def test_one_that_never_spoke_where_others_have_loops(self) -> None:
        other = loop(Phase.WAITING, participant="server")
        found = cause(other, at=after(seconds=20), snapshot_=snapshot(spoke=("server",)))
        assert (found.code, found.remedy, found.certain) == ("B1", "launch", False)
        assert dict(found.given) == {"participant": "reader"}

    def test_one_that_never_spoke_where_nothing_runs_here(self) -> None:
        silent = snapshot(spoke=("server",))
        assert causes(at=after(minutes=29), snapshot_=silent) == []
        assert cause(at=after(minutes=31), snapshot_=silent).code == "B1"

    def test_one_that_runs_elsewhere_is_never_called_dead(self) -> None:
        found = cause(at=after(minutes=31))
        assert found.code == "B14"
        assert "not run by acp here" in found.sentence
        words = " ".join((found.sentence, found.instruction, *found.evidence))
        assert not any(word in words for word in ("dead", "died", "crashed", "killed"))

    def test_its_usual_pace_counts(self) -> None:
        slow = {"durations": lambda name: (1200.0, 1800.0, 1500.0)}
        assert causes(at=after(minutes=60), **slow) == []
        assert cause(at=after(minutes=76), **slow).code == "B14"

    def test_days_without_anything(self) -> None:
        found = cause(at=NOON + timedelta(days=4))
        assert (found.code, found.wanted) == ("E9", True)

    def test_a_stranger_that_waits_although_it_is_its_turn(self) -> None:
        waiter = UnmanagedProcess(
            "reader", 77, NOON.timestamp(), "acp wait --participant reader", waits=True
        )
        assert causes(at=after(seconds=30), strangers=(waiter,)) == []
        found = cause(at=after(minutes=2), strangers=(waiter,))
        assert (found.code, found.certain) == ("B10", False)
        assert "process 77" in " ".join(found.evidence)


class TestALoopThatIsNoMore:
    def test_killed(self) -> None:
        found = cause(loop(Phase.RUNNING, run(), alive=False, program_alive=False), at=after(1))
        assert (found.code, found.remedy, found.certain) == ("B2", "relaunch", True)
        assert "killed" in found.sentence

    def test_killed_while_its_program_runs_on(self) -> None:
        found = cause(loop(Phase.RUNNING, run(), alive=False, program_alive=True), at=after(1))
        assert "is still running" in found.sentence
        assert "takes over the running agent" in found.instruction

    def test_stopped_by_a_person(self) -> None:
        found = cause(loop(Phase.STOPPED, alive=False), at=after(1))
        assert (found.code, found.remedy) == ("B2", "relaunch")
        assert "was stopped" in found.sentence

    def test_why_its_agent_failed_is_kept_when_it_is_stopped(self) -> None:
        failed = ended(exit_code=1, exit="exit code 1", is_error=True, error="Not logged in")
        stopped = loop(Phase.STOPPED, failed, alive=False, failure="login", program="claude")
        found = cause(stopped, at=after(2))
        assert (found.code, found.remedy) == ("B4", "login")
        assert "not logged in" in found.sentence
        assert "relaunch" in found.others

    def test_its_deadline_passed(self) -> None:
        late = loop(Phase.STOPPED, alive=False, deadline=after(1), note="the deadline passed")
        assert cause(late, at=after(2)).code == "E8"

    def test_it_gave_up_and_left(self) -> None:
        left = loop(Phase.GAVE_UP, ended(), alive=False, ended=after(1))
        found = cause(left, at=after(2))
        assert (found.code, found.remedy) == ("B3", "relaunch")


ENDINGS = [
    (ended(), "B3", "nudge", "without an event"),
    (ended(refused=("Bash: acp append",)), "B3", "hand_over", "denied a tool"),
    (
        ended(refusals=("error: completion gates must be checked first: A",)),
        "B3",
        "nudge",
        "completion gates must be checked first",
    ),
    (ended(exit_code=None, signal=9, exit="killed by SIGKILL"), "B2", "nudge", "killed by SIGKILL"),
    (ended(exit_code=3, exit="exit code 3"), "B2", "nudge", "failed with exit code 3"),
    (
        ended(exit_code=1, exit="exit code 1", is_error=True, error="Not logged in"),
        "B4",
        "login",
        "not logged in",
    ),
    (
        ended(exit_code=1, exit="exit code 1", complaints=("You have hit your usage limit",)),
        "B4",
        "hand_over",
        "usage limit",
    ),
    (
        ended(exit_code=1, exit="exit code 1", error_name="billing_error", is_error=True),
        "B4",
        "nudge",
        "no credit",
    ),
    (
        ended(exit_code=1, exit="exit code 1", error_status=529, is_error=True),
        "B5",
        "hand_over",
        "cannot use its model service",
    ),
    (
        ended(exit_code=1, exit="exit code 1", error_name="model_not_found", is_error=True),
        "B15",
        "relaunch",
        "a model that is not available",
    ),
    (
        ended(exit_code=1, exit="exit code 1", error="Prompt is too long", is_error=True),
        "B16",
        "relaunch",
        "ran out of context",
    ),
    (
        ended(exit_code=143, exit="exit code 143", stopped="the turn's deadline passed"),
        "E8",
        "nudge",
        "exceeded its time limit",
    ),
]


class TestAProgramThatEnded:
    @pytest.mark.parametrize(("run_", "code", "remedy", "words"), ENDINGS)
    def test_each_end_is_told_apart(self, run_: object, code: str, remedy: str, words: str) -> None:
        found = cause(loop(Phase.GAVE_UP, run_), at=after(2))  # type: ignore[arg-type]
        assert (found.code, found.remedy, found.wanted) == (code, remedy, True)
        assert words in found.sentence

    def test_while_the_loop_tries_again_nobody_is_wanted(self) -> None:
        pausing = loop(Phase.PAUSING, ended(), retry_at=after(2))
        found = cause(pausing, at=after(1))
        assert (found.code, found.wanted) == ("B3", False)
        assert "retries at" in found.evidence[0]

    def test_trouble_of_the_service_is_told_from_the_agent_s_and_asks_for_nobody(self) -> None:
        down = ended(exit_code=1, exit="exit code 1", error_status=529, is_error=True)
        pausing = loop(
            Phase.PAUSING, down, retry_at=after(20), failure="service", waits=4, troubled=after(1)
        )
        found = cause(pausing, at=after(2))
        assert (found.code, found.wanted) == ("B5", False)
        assert "cannot use its model service; retries at" in found.sentence
        assert "not the agent: no attempt was used" in " ".join(found.evidence)
        late = loop(
            Phase.PAUSING, down, retry_at=after(60 * 26), failure="service", troubled=after(1)
        )
        assert not cause(late, at=after(60 * 24)).wanted
        assert cause(late, at=after(60 * 25)).wanted

    def test_a_loop_that_should_have_tried_again_long_ago(self) -> None:
        pausing = loop(Phase.PAUSING, ended(), retry_at=after(2))
        assert cause(pausing, at=after(8)).wanted

    def test_refused_again_and_again(self) -> None:
        refused = ended(refusals=("error: seq 5: review submission is reserved for nobody",))
        found = cause(loop(Phase.GAVE_UP, refused, attempt=4), at=after(2))
        assert found.code == "B11"
        assert "4 times" in found.sentence
        assert "reserved for nobody" in dict(found.given)["message"]

    def test_a_waiter_that_ended(self) -> None:
        torn = ended(exit_code=2, exit="exit code 2", lines=("error: invalid protocol.json: x",))
        found = cause(loop(Phase.GAVE_UP, torn, mode="alone"), at=after(2))
        assert found.code == "B8"

    def test_what_an_exit_code_means_to_the_program(self) -> None:
        untrusted = ended(exit_code=55, exit="exit code 55", lines=())
        found = cause(loop(Phase.GAVE_UP, untrusted, program="gemini"), at=after(2))
        assert "the folder is not trusted" in found.sentence


class TestAProgramThatRuns:
    def test_nothing_comes_from_it(self) -> None:
        assert causes(loop(run=run()), at=after(minutes=5)) == []
        found = cause(loop(run=run()), at=after(minutes=5, seconds=3))
        assert (found.code, found.certain, found.remedy) == ("B9", False, "relaunch")

    def test_a_busy_tool_is_not_trusted_for_ever(self) -> None:
        hangs = loop(run=run(tool="Bash: sleep infinity"))
        found = cause(hangs, at=after(minutes=21), busy=lambda _: "Bash: sleep infinity")
        assert found.code == "B9"
        assert "tool in use since then: Bash: sleep infinity" in found.evidence

    def test_not_one_word(self) -> None:
        silent = run(first_output=None, last_output=None, lines=())
        found = cause(loop(run=silent), at=after(minutes=2))
        assert "has produced no output" in found.sentence

    def test_programs_that_print_at_the_end_only_may_be_silent(self) -> None:
        silent = run(first_output=None, last_output=None, lines=())
        plain = loop(run=silent, program="command")
        assert causes(plain, at=after(minutes=4)) == []
        assert cause(plain, at=after(minutes=6)).code == "B9"

    def test_talk_is_no_progress(self) -> None:
        talks = loop(run=run(last_output=after(minutes=21)))
        found = cause(talks, at=after(minutes=21, seconds=5))
        assert found.code == "B11"

    def test_it_cannot_reach_its_service(self) -> None:
        tries = run(
            retries=3,
            retrying_until=after(seconds=50),
            retry_reason="no answer",
            last_output=after(seconds=20),
        )
        found = cause(loop(run=tries), at=after(seconds=30))
        assert (found.code, found.wanted, found.remedy) == ("B5", False, "hand_over")
        assert "no answer" in found.sentence
        assert cause(loop(run=tries), at=after(minutes=6)).wanted

    def test_a_limit_that_lasts_for_hours(self) -> None:
        limited = run(
            retries=1, retrying_until=after(minutes=200), retry_reason="rate limit: rejected"
        )
        found = cause(loop(run=limited), at=after(seconds=30))
        assert (found.code, found.wanted) == ("B4", True)

    @pytest.mark.parametrize(
        ("line", "code"),
        [
            ("Do you want to proceed? (y/n)", "B6"),
            ("permission requested: bash", "B6"),
            ("Reading additional input from stdin...", "B7"),
        ],
    )
    def test_it_waits_for_somebody(self, line: str, code: str) -> None:
        asks = loop(run=run(lines=("Hello.", line)))
        assert causes(asks, at=after(seconds=20)) == []
        found = cause(asks, at=after(seconds=40))
        assert (found.code, found.certain) == (code, False)

    def test_it_is_through_and_stays(self) -> None:
        through = loop(run=run(finished=after(seconds=10)))
        assert causes(through, at=after(seconds=60)) == []
        found = cause(through, at=after(seconds=110))
        assert (found.code, found.certain, found.remedy) == ("B12", True, "stop_program")

    def test_it_is_through_and_stays_although_it_is_not_its_turn(self) -> None:
        through = loop(run=run(finished=after(seconds=10)), participant="reviewer")
        reader = loop(run=run(last_output=after(seconds=100)))
        found = cause(through, reader, at=after(seconds=110))
        assert (found.code, found.about.participant) == ("B12", "reviewer")


class TestWrongBelief:
    def test_a_program_that_waits_for_somebody_else(self) -> None:
        waits = run(lines=("waiting: waiting for server after seq 3",))
        found = cause(loop(run=waits, mode="alone"), at=after(seconds=10))
        assert (found.code, found.certain, found.remedy) == ("B10", False, "relaunch")
        assert "still waits for server" in found.sentence

    def test_one_that_waits_for_itself_among_others_is_about_to_begin(self) -> None:
        waits = run(lines=("waiting: waiting for reader, server after seq 3",))
        assert causes(loop(run=waits, mode="alone"), at=after(seconds=10)) == []

    def test_a_loop_that_does_not_notice(self) -> None:
        deaf = loop(Phase.WAITING, note="protocol.json: is being written")
        found = cause(deaf, at=after(seconds=10))
        assert (found.code, found.remedy) == ("B10", "relaunch")
        assert "protocol.json: is being written" in found.evidence[0]


class TestTwoOfThem:
    def stranger(self, pid: int) -> UnmanagedProcess:
        return UnmanagedProcess("reader", pid, NOON.timestamp(), "acp loop --participant reader")

    def test_ours_and_a_stranger(self) -> None:
        found = causes(loop(run=run()), at=after(1), strangers=(self.stranger(77),))
        assert [each.code for each in found] == ["B13"]
        assert found[0].remedy == "stop_duplicate"

    def test_two_strangers(self) -> None:
        found = causes(at=after(1), strangers=(self.stranger(77), self.stranger(78)))
        assert [each.code for each in found] == ["B13"]

    def test_one_stranger_is_nobody_s_twin(self) -> None:
        assert causes(at=after(1), strangers=(self.stranger(77),)) == []


def test_a_demo_is_as_impatient_as_it_is_fast() -> None:
    assert cause(loop(run=run()), at=after(seconds=20), patience=quick(20)).code == "B9"
    assert Patience(speed=1000).scaled(300) == 3.0


def test_it_says_when_to_look_again() -> None:
    seen = case(loop(run=run()), at=after(minutes=1))
    from acp_core.diagnosis import engine

    assert list(engine.causes_of_turns(seen)) == []
    assert seen.clock.recheck == after(minutes=5, seconds=2)


def test_evidence_never_tells_an_age() -> None:
    """A Snapshot is another one when its causes are: time alone must not make them so."""
    for found in STORIES:
        early, late = (causes(found, at=HOURS + timedelta(minutes=m)) for m in (0, 7))
        assert early == late


STORIES: list[RunnerState] = [
    *(loop(Phase.GAVE_UP, each[0]) for each in ENDINGS),
    *(loop(Phase.PAUSING, each[0], retry_at=after(2)) for each in ENDINGS),
    loop(run=run()),
    loop(run=run(tool="Bash: x")),
    loop(run=run(last_output=after(minutes=500))),
    loop(run=run(retries=2, retrying_until=after(3), retry_reason="no answer")),
    loop(run=run(retries=1, retrying_until=after(240), retry_reason="rate limit")),
    loop(run=run(finished=after(1))),
    loop(run=run(lines=("Continue? [y/N]",))),
    loop(run=run(lines=("waiting: waiting for server after seq 3",)), mode="alone"),
    loop(run=run(first_output=None, last_output=None, lines=())),
    loop(Phase.WAITING),
    loop(Phase.STARTING),
    loop(Phase.STOPPED, alive=False),
    loop(Phase.RUNNING, run(), alive=False, program_alive=False),
    loop(Phase.DONE, process=Identity(1, 1.0), alive=False),
]


@given(
    story=st.sampled_from([*STORIES, None]),
    first=st.floats(0, 10_000_000),
    more=st.floats(0, 10_000_000),
    speed=st.sampled_from([1.0, 20.0]),
    busy=st.sampled_from(["", "Bash: x"]),
)
def test_attention_never_ends_because_time_passes(
    story: RunnerState | None, first: float, more: float, speed: float, busy: str
) -> None:
    loops = [story] if story else []

    def wanted(at: datetime) -> bool:
        found = causes(*loops, at=at, patience=quick(speed), busy=lambda _: busy)
        return any(each.wanted for each in found)

    early = NOON + timedelta(seconds=first)
    if wanted(early):
        assert wanted(early + timedelta(seconds=more))
