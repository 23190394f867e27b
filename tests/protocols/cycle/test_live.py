"""A cycle whose agents stay in live sessions: by the real commands, over deaths, with feedback."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_core.agents import registry
from acp_core.agents.live import turn as live_turns
from acp_core.agents.live.turn import Steering, can_steer, steer
from acp_core.agents.loop_directory import place
from acp_core.person import paths
from acp_core.protocols.cycle.schema import AGENTS
from tests.agents.live.commands import acp, configure, decide, held, record, request
from tests.agents.live.support import left_of
from tests.agents.support import is_gone, wait_for
from tests.protocols.cycle.conducting import AGENT, ID, WHAT, end_all, state


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "project"
    root.mkdir()
    yield root
    end_all()
    for name in AGENTS:  # of an orchestrator that was made to end while it began a session
        live_turns.stop(place(str(root), name))


def begin(root: Path, behaviour: str, policy: str = "all", shape: str = "claude") -> None:
    """A cycle in the background whose agents are the stand-in."""
    configure(root.parent / "agent", AGENT, "--shape", shape, behaviour=behaviour)
    with (paths.config_folder() / "config.toml").open("a") as file:
        file.write('\n[[permissions.rules]]\nverdict = "ask"\ncommand = "touch *"\n')
    words = ("start", WHAT, "--cycle", ID, "--agent", "mine", "--permissions", policy)
    ended = acp("cycle", *words, "--folder", root)
    assert ended.returncode == 0, ended.stderr


def is_complete(root: Path) -> bool:
    return state(root)["status"] == "completed"


def left(root: Path) -> list[int]:
    return [each for name in AGENTS for each in left_of(place(str(root), name))]


@pytest.mark.slow
def test_a_cycle_completes_over_live_sessions_with_one_request_allowed_and_one_rejected(
    project: Path,
) -> None:
    begin(project, "both both")
    opened = decide(project, "reject", "touch")
    assert opened.participant == "ra"
    wait_for(lambda: state(project)["agents"]["ra"]["status"] == "completed", "what RA wrote", 120)
    assert not (project.parent / "agent" / "asked").exists()
    assert decide(project, "allow", "touch").participant == "ep"
    wait_for(lambda: is_complete(project), "the end of the cycle", 180)
    assert (project.parent / "agent" / "asked").exists()
    by_people = [verdict for verdict, command in record() if command == "touch"]
    assert by_people == ["reject", "allow"]
    for name in AGENTS:
        loop = registry.find(str(project), name)
        assert loop is not None and loop.shown.live == "yes"
    assert left(project) == []


@pytest.mark.slow
def test_feedback_reaches_an_agent_at_work(project: Path) -> None:
    begin(project, "act act listen")
    wait_for(lambda: state(project)["agents"]["cd"]["status"] == "running", "CD at work", 120)
    wait_for(lambda: can_steer(place(str(project), "cd")), "its session", 120)
    told = acp("cycle", "feedback", "cd", "Quote fields with commas", "--folder", project)
    assert told.returncode == 0, told.stderr
    wait_for(lambda: is_complete(project), "the end of the cycle", 180)
    (entry,) = state(project)["coordination"]["feedback_log"]
    assert (entry["run"], bool(entry["sent_at"])) == ("1-cd", True)
    loop = registry.find(str(project), "cd")
    assert loop is not None and loop.run is not None
    assert "Quote fields with commas" in Path(loop.log).read_text()
    assert loop.run.number == 1


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True], ids=["", "orchestrator-killed"])
def test_a_run_that_a_person_cancels_is_not_begun_again_until_they_decide(
    project: Path, killed: bool
) -> None:
    begin(project, "hang act act act act")
    wait_for(lambda: has_a_tool_in_use(project, "ra"), "RA's command", 120)
    conductor = registry.find(str(project), "orchestrator")
    assert conductor is not None
    if killed:
        os.kill(conductor.pid, signal.SIGKILL)
        wait_for(lambda: is_gone(conductor.pid), "the orchestrator's end")
    cancelled = acp("cancel", project, "ra")
    assert cancelled.returncode == 0, cancelled.stderr
    assert "loop" not in cancelled.stdout
    if killed:
        assert acp("cycle", "run", "--folder", project).returncode == 0
    wait_for(lambda: state(project)["status"] == "paused", "the question to the person", 120)
    (asked,) = state(project)["coordination"]["pending_decisions"]
    assert "RA: run 1-ra was cancelled by" in asked["description"]
    loop = registry.find(str(project), "ra")
    assert loop is not None and loop.run is not None and loop.run.number == 1
    assert left(project) == []
    again = acp("cycle", "decide", asked["id"], "1", "--folder", project)
    assert again.returncode == 0, again.stderr
    wait_for(lambda: is_complete(project), "the end of the cycle", 180)
    assert state(project)["agents"]["ra"]["run"] == "1-ra-2"


@pytest.mark.slow
def test_a_usage_limit_is_waited_for_in_the_same_run(project: Path) -> None:
    begin(project, "limit limit limit limit act act act act")
    wait_for(lambda: is_complete(project), "the end of the cycle", 240)
    loop = registry.find(str(project), "ra")
    assert loop is not None and loop.run is not None and loop.run.number == 5
    assert "the limit resets at" in Path(loop.log).read_text()
    assert state(project)["agents"]["ra"]["run"] == "1-ra"
    assert not state(project).get("phase_errors")


def has_a_tool_in_use(root: Path, name: str) -> bool:
    loop = registry.find(str(root), name)
    return loop is not None and loop.run is not None and bool(loop.run.tool)


@pytest.mark.slow
def test_a_message_to_an_agent_that_takes_none_in_a_run_is_refused_and_not_lost(
    project: Path,
) -> None:
    begin(project, "hang", shape="gemini")
    wait_for(lambda: has_a_tool_in_use(project, "ra"), "RA's command", 120)
    told = acp("nudge", project, "ra", "Be brief")
    assert told.returncode == 2
    assert "ra's agent takes no messages while it works" in told.stderr


@pytest.mark.slow
def test_feedback_that_a_killed_orchestrator_delivered_is_not_delivered_again(
    project: Path,
) -> None:
    begin(project, "act act listen")
    wait_for(lambda: can_steer(place(str(project), "cd")), "CD's session", 120)
    conductor = registry.find(str(project), "orchestrator")
    loop = registry.find(str(project), "cd")
    assert conductor is not None and loop is not None and loop.run is not None
    os.kill(conductor.pid, signal.SIGSTOP)
    told = acp("cycle", "feedback", "cd", "Quote fields with commas", "--folder", project)
    assert told.returncode == 0, told.stderr
    (entry,) = state(project)["coordination"]["feedback_log"]
    message = Steering(loop.run.number, "Quote fields with commas", "orchestrator", (entry["id"],))
    assert steer(place(str(project), "cd"), message).delivered  # what it did last
    os.kill(conductor.pid, signal.SIGKILL)
    wait_for(lambda: is_gone(conductor.pid), "the orchestrator's end")
    assert acp("cycle", "run", "--folder", project).returncode == 0
    wait_for(lambda: is_complete(project), "the end of the cycle", 180)
    (entry,) = state(project)["coordination"]["feedback_log"]
    assert (entry["run"], bool(entry["sent_at"])) == ("1-cd", True)
    assert Path(loop.log).read_text().count("a person says: ") == 1


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["conductor", "agent"])
def test_a_run_goes_on_whoever_is_killed(project: Path, killed: str) -> None:
    begin(project, "", "ask")
    request(project)
    session, conductor = held(project, "ra"), registry.find(str(project), "orchestrator")
    assert session.agent is not None and conductor is not None
    pid = conductor.pid if killed == "conductor" else session.agent.pid
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: is_gone(pid), "its end")
    if killed == "conductor":
        assert acp("cycle", "run", "--folder", project).returncode == 0
        assert held(project, "ra").agent == session.agent
    else:
        again = (None, session.agent)
        wait_for(lambda: held(project, "ra").agent not in again, "its session again")
    decide(project, "allow")
    wait_for(lambda: state(project)["agents"]["ra"]["status"] == "completed", "what RA wrote", 120)
    assert [verdict for verdict, _ in record()].count("allow") == 1
    assert acp("cycle", "stop", "--folder", project).returncode == 0
    wait_for(lambda: left(project) == [], "everybody's end")
