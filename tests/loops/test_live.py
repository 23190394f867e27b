"""Loops that take their turns in live sessions: to the end, over every death, with permissions."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from acp_core.agents import registry
from acp_core.agents.live import answers, turn
from acp_core.agents.live.turn import Files
from acp_core.agents.loop_directory import LoopDirectory, place
from acp_core.agents.presets import Preset
from acp_core.agents.state import Phase
from acp_core.cli.loops import facts
from acp_core.cli.main import run as acp_main
from acp_core.loops import launch
from acp_core.model.clock import utc_now
from acp_core.person.permissions import Verdict
from tests.agents.live.support import left_of, words
from tests.agents.live_agent import MODES
from tests.agents.support import is_gone, wait_for
from tests.loops.support import (
    PEOPLE,
    behave,
    command,
    events,
    is_valid,
    log,
    make,
    prompt,
    spec,
    start,
    state,
    turns,
    wait_for_phase,
    wait_for_turns,
)


def live(folder: Path, *more: str, shape: str = "claude", behaviour: str = "") -> Preset:
    """The stand-in that can hold a live session, and can be run once as well."""
    folder.mkdir(exist_ok=True)
    return replace(
        command(folder, behave(folder, "act"), "--process"),
        live=words(folder, "--shape", shape, *more, behaviour=behaviour),
        ask_mode=MODES[shape],
    )


def where(folder: Path, participant: str) -> LoopDirectory:
    return place(str(folder), participant)


def agent(folder: Path, participant: str) -> int:
    """The process id of the agent that holds a participant's session."""
    held = Files(where(folder, participant)).load()
    assert held and held.agent
    return held.agent.pid


def runner(folder: Path, participant: str) -> int:
    """The process id of who holds a participant's session."""
    held = Files(where(folder, participant)).load()
    assert held
    return held.process.pid


def taken_session(folder: Path) -> str:
    """The agent's name for the session that server's turn was taken in."""
    held = Files(where(folder, "server")).load()
    assert held
    return held.session


def wait_for_request(folder: Path) -> answers.OpenRequest:
    """The request of a session that waits for a person."""
    wait_for(lambda: answers.waiting(str(folder)), "a request for permission")
    return answers.waiting(str(folder))[0]


def answer(request: answers.OpenRequest, verdict: Verdict, message: str = "") -> None:
    answers.answer(request, verdict, "ann", utc_now(), message)


def record() -> list[dict[str, str]]:
    """How requests were answered."""
    path = answers.root() / "answered.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_a_collaboration_completes_over_live_sessions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make(tmp_path / "cache")
    shapes = dict(zip(PEOPLE, ("claude", "codex", "qwen"), strict=True))
    for name, shape in shapes.items():
        start(folder, name, live(tmp_path / name, shape=shape), permissions="edits")
    for name in PEOPLE:
        wait_for_phase(folder, name, Phase.DONE)
    assert events(folder)[-1]["event"] == "completed"
    assert is_valid(folder)
    for name in PEOPLE:
        shown = state(folder, name).shown
        assert (shown.live, shown.restarts) == ("yes", 0)
        assert shown.cost == pytest.approx(0.01 * shown.turns)
        assert len({each["session"] for each in turns(folder, name)}) == 1
        assert left_of(where(folder, name)) == []
    assert {(each["state"], each["by"]) for each in record()} == {("allow", "acp")}
    assert len(record()) == len(events(folder)) - 1
    for name in PEOPLE:
        calls = [call for each in turns(folder, name) for call in each["calls"]]
        assert calls and {call["status"] for call in calls} == {"completed"}
    capsys.readouterr()
    assert acp_main(["ps", "--all", "--json"], lambda paths, settings: 99) == 0
    told = json.loads(capsys.readouterr().out)["loops"]
    assert {call["status"] for each in told for call in each["run"]["calls"]} == {"completed"}
    report = tmp_path / "report.md"
    words = ["report", str(folder), "--output", str(report)]
    assert acp_main(words, lambda paths, settings: 99) == 0
    text = report.read_text()
    assert "## What agents did" in text and "append" in text.partition("## What agents did")[2]


@pytest.mark.slow
def test_an_agent_takes_its_turn_by_tools_without_a_question(tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")
    preset = live(tmp_path / "a", behaviour="tools idle idle idle")
    start(folder, "server", preset, permissions="edits")
    wait_for(lambda: len(events(folder)) == 2, "the event")
    assert events(folder)[1]["event"] == "proposal_submitted"
    assert "allowed it" not in log(folder, "server")  # no person did
    assert "tools of the MCP server `acp` (" in prompt(folder, "server", 1)
    used = [(each["state"], each["by"], each["tool"], each["command"]) for each in record()]
    assert used == [("allow", "acp", "acp/append", "")]


@pytest.mark.slow
def test_a_person_allows_what_is_asked(tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")
    start(folder, "server", live(tmp_path / "a"))
    request = wait_for_request(folder)
    assert request.participant == "server" and " append " in (request.request.command or "")
    assert request.turn == "write proposal.md"
    assert len(events(folder)) == 1
    answer(request, Verdict.ALLOW)
    wait_for(lambda: len(events(folder)) == 2, "the event")
    assert [(each["state"], each["by"]) for each in record()] == [("allow", "ann")]
    wait_for(lambda: "ann allowed it: " in log(folder, "server"), "the line about it")


@pytest.mark.slow
def test_what_a_person_rejects_is_not_run_and_the_next_prompt_says_why(tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")
    start(folder, "server", live(tmp_path / "a", shape="codex", behaviour="ask idle"))
    request = wait_for_request(folder)
    answer(request, Verdict.REJECT, "touch nothing outside the folder")
    wait_for_turns(folder, "server", 2)
    assert not (tmp_path / "a" / "asked").exists()
    assert "touch nothing outside the folder" in prompt(folder, "server", 2)
    assert "not allowed: touch" in log(folder, "server")


@pytest.mark.parametrize("shape", ["claude", pytest.param("qwen", marks=pytest.mark.slow)])
def test_questions_of_an_agent_are_answered_by_a_command(tmp_path: Path, shape: str) -> None:
    folder = make(tmp_path / "cache")
    preset = live(tmp_path / "a", shape=shape, behaviour="wonder")
    start(folder, "server", preset, permissions="edits")
    first = wait_for_request(folder)
    assert [each.text for each in first.request.questions] == ["Which store?"]
    words = ["answer", str(folder), first.id, "reject", "--message", "postgres"]
    assert acp_main(words, lambda paths, settings: 99) == 0
    second = wait_for_request(folder)
    assert [each.text for each in second.request.questions] == ["Which colour?"]
    answer(second, Verdict.REJECT, "green")
    wait_for(lambda: len(events(folder)) == 2, "the event")
    answers_of = {
        "claude": {"action": "accept", "content": {"question_0": "postgres", "question_1_custom": "green"}},
        "qwen": {"answers": {"0": "postgres", "1": "green"}, "outcome": {"optionId": "proceed_once", "outcome": "selected"}},
    }  # fmt: skip
    wait_for_turns(folder, "server", 1)
    assert f"The answer: {json.dumps(answers_of[shape], sort_keys=True)}" in log(folder, "server")
    assert "answered: postgres" in log(folder, "server")
    assert [each["state"] for each in record()][:2] == ["answered", "answered"]


@pytest.mark.slow
def test_what_is_sent_as_a_notification_is_not_judged_in_place_of_the_next_request(
    tmp_path: Path,
) -> None:
    folder = make(tmp_path / "cache")
    proposal = folder / "proposal.md"
    preset = live(tmp_path / "a", behaviour=f"forge={proposal}")
    start(folder, "server", preset, permissions="edits")
    asked = wait_for_request(folder).request
    assert (asked.command or "").startswith("touch ") and asked.locations == ()
    assert not (tmp_path / "a" / "asked").exists()


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["loop", "runner", "agent"])
def test_a_request_is_answered_once_whoever_is_killed(tmp_path: Path, killed: str) -> None:
    folder = make(tmp_path / "cache")
    preset = live(tmp_path / "a")
    start(folder, "server", preset)
    first = wait_for_request(folder)
    left = (agent(folder, "server"), runner(folder, "server"))
    pids = {
        "loop": state(folder, "server").pid,
        "runner": runner(folder, "server"),
        "agent": agent(folder, "server"),
    }
    os.kill(pids[killed], signal.SIGKILL)
    if killed == "loop":
        wait_for(lambda: is_gone(pids["loop"]), "the loop's end")
        start(folder, "server", preset)
        assert agent(folder, "server") == left[0]
    else:
        wait_for(lambda: answers.waiting(str(folder)) not in ((), (first,)), "another request")
        assert is_gone(left[0])
    answer(wait_for_request(folder), Verdict.ALLOW)
    wait_for(lambda: len(events(folder)) == 2, "the event")
    assert [each["state"] for each in record()].count("allow") == 1
    resumed = f"The session {taken_session(folder)} is resumed." in log(folder, "server")
    assert resumed == (killed != "loop")
    taken = wait_for_turns(folder, "server", 1 if killed == "loop" else 2)
    assert len({each["session"] for each in taken if each["session"]}) == 1
    run = facts(state(folder, "server"))["run"]
    assert isinstance(run, dict)
    opened = "" if killed == "loop" else f"resumed session {taken_session(folder)}"
    assert (run["opened"], taken[-1]["opened"]) == (opened, opened)


@pytest.mark.slow
def test_a_parked_loop_finds_its_agent_again_and_stop_leaves_nobody(tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")
    for name in ("server", "reader"):
        start(folder, name, live(tmp_path / name), permissions="edits")
    wait_for(lambda: len(events(folder)) == 3, "the proposal and its review")
    held = [agent(folder, name) for name in ("server", "reader")]
    wait_for(lambda: "not their turn" in state(folder, "server").shown.note, "the parked loop")
    start(folder, "reviewer", live(tmp_path / "reviewer"), permissions="edits")
    for name in PEOPLE:
        wait_for_phase(folder, name, Phase.DONE)
    assert all(len({each["session"] for each in turns(folder, name)}) == 1 for name in PEOPLE)
    assert all(is_gone(pid) for pid in held)


@pytest.mark.slow
def test_stop_ends_a_parked_loop_with_its_session(tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")
    start(folder, "server", live(tmp_path / "a"), permissions="edits")
    wait_for(lambda: len(events(folder)) == 2, "the proposal")
    wait_for_phase(folder, "server", Phase.WAITING)
    assert left_of(where(folder, "server"))
    assert registry.stop(str(folder), "server").done
    assert left_of(where(folder, "server")) == []


def test_launch_says_before_whether_a_session_is_live(tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")
    preset = replace(live(tmp_path / "a"), caution="approves everything")

    def plan(**more: object) -> launch.Plan:
        return launch.plan(spec(folder, "server", **more), preset, ask_version=False)

    assert plan().live == preset.live and plan().warnings == ()
    once = plan(once=True)
    assert (once.live, once.not_live) == ((), "no: --once was given")
    assert once.warnings == ("Any command approves everything",)
    assert (
        plan(model="m").not_live
        == "no: a model was chosen, and a live session of this agent cannot set one"
    )
    missing = replace(preset, live=("no-such-agent", "--acp"))
    why = launch.plan(spec(folder, "server"), missing, ask_version=False).not_live
    assert why == "no: no-such-agent: not found on PATH"


def test_once_starts_the_agent_anew(tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")
    start(folder, "server", live(tmp_path / "a"), once=True)
    wait_for(lambda: len(events(folder)) == 2, "the proposal")
    assert state(folder, "server").shown.live == "no: --once was given"
    assert Files(where(folder, "server")).load() is None


def test_without_a_live_session_the_turn_is_taken_as_before_and_ps_says_so(tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")
    start(folder, "server", live(tmp_path / "a", "--protocol", "2"))
    wait_for(lambda: len(events(folder)) == 2, "the proposal")
    why = "the agent speaks version 2 of the protocol, not 1"
    assert facts(state(folder, "server"))["live"] == f"no: {why}"
    assert f"no live session: {why}" in log(folder, "server")
    wait_for_phase(folder, "server", Phase.WAITING)
    assert turns(folder, "server")[-1]["attempt"] == 1


@pytest.mark.slow
def test_a_limit_is_waited_for(tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")
    start(folder, "server", live(tmp_path / "a", behaviour="limit"), permissions="edits")
    wait_for(lambda: len(events(folder)) == 2, "the proposal after the limit")
    assert "the limit resets at" in log(folder, "server")
    assert turns(folder, "server")[-1]["attempt"] == 1


@pytest.mark.slow
def test_after_two_crashes_the_rest_of_the_turn_is_taken_without_a_session(tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")
    preset = live(tmp_path / "a", behaviour="crash crash")
    start(folder, "server", preset, permissions="edits")
    wait_for(lambda: len(events(folder)) == 2, "the proposal")
    assert "the live session crashed again" in log(folder, "server")
    assert [each["live"] for each in wait_for_turns(folder, "server", 3)] == [True, True, False]
    wait_for_phase(folder, "server", Phase.WAITING)
    wait_for(lambda: state(folder, "server").shown.live == "yes", "a session for the next turn")


@pytest.mark.slow
def test_a_cancelled_turn_waits_for_a_person_whose_message_begins_it_anew(tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")
    start(folder, "server", live(tmp_path / "a", behaviour="hang"), permissions="edits")
    wait_for(lambda: (run := state(folder, "server").run) and run.tool, "the agent at work")
    held = agent(folder, "server")
    turn.cancel(where(folder, "server"), 1, "ann")
    shown = wait_for_phase(folder, "server", Phase.GAVE_UP).shown
    assert "cancelled by ann" in shown.note
    assert agent(folder, "server") == held and len(events(folder)) == 1
    registry.nudge(str(folder), "server", "Write it now", utc_now())
    wait_for(lambda: len(events(folder)) == 2, "the proposal")
    assert "Write it now" in prompt(folder, "server", 2)
