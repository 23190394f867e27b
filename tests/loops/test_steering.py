"""A person steers a running turn and cancels it, with the acts that the dashboard and commands use."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest

from acp_core.agents.state import Phase
from acp_core.cli.main import run as acp_main
from acp_core.loops.acts.steering import bind_cancel, bind_nudge
from acp_core.loops.acts.table import CANCEL
from acp_core.model import OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.protocols.kit.binding import Location
from tests.agents.live.support import left_of
from tests.agents.support import is_gone, wait_for
from tests.diagnosis.test_remedies import Person
from tests.loops.support import (
    behave,
    command,
    events,
    log,
    make,
    prompt,
    start,
    state,
    wait_for_phase,
)
from tests.loops.test_live import agent, live, runner, where


def at_work(folder: Path) -> None:
    wait_for(lambda: (run := state(folder, "server").run) and run.tool, "the agent at work")


def preview(folder: Path, **given: str) -> Preview:
    action = bind_nudge(Location(str(folder)), utc_now())
    return action.preview(action.inputs(participant="server", **given))


def run(*words: str) -> tuple[int, dict[str, object]]:
    """A command and its JSON."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = acp_main([*words, "--json"], lambda paths, settings: 99)
    return code, json.loads(out.getvalue())


@pytest.mark.slow
def test_a_message_reaches_the_turn_at_once_where_the_agent_takes_messages(tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")
    start(folder, "server", live(tmp_path / "a", behaviour="listen"), permissions="edits")
    at_work(folder)
    assert "at once, in its running turn" in preview(folder, message="Look at question 3").sentence
    code, told = run("nudge", str(folder), "server", "Look at question 3")
    assert (code, told["sentence"]) == (0, "server: the agent got the message.")
    wait_for(lambda: len(events(folder)) == 2, "the proposal")
    wait_for(lambda: "You said: Look at question 3" in log(folder, "server"), "the agent's answer")
    assert "Look at question 3" not in prompt(folder, "server", 1)


@pytest.mark.slow
def test_a_message_waits_for_the_end_of_the_turn_where_the_agent_takes_none(tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")
    start(folder, "server", live(tmp_path / "a", shape="qwen", behaviour="hang"))
    at_work(folder)
    said = "after the current attempt has ended"
    assert said in preview(folder, message="Look at question 3").sentence
    code, told = run("nudge", str(folder), "server", "Look at question 3")
    assert code == 0 and "queued; the loop reads it after the current attempt" in str(
        told["sentence"]
    )
    assert run("cancel", str(folder), "server")[0] == 0
    wait_for(lambda: state(folder, "server").run.number == 2, "the next attempt")
    assert "Look at question 3" in prompt(folder, "server", 2)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["claude", "codex"])
def test_a_cancelled_turn_is_over_and_says_who_cancelled_it(tmp_path: Path, shape: str) -> None:
    folder = make(tmp_path / "cache")
    start(folder, "server", live(tmp_path / "a", shape=shape, behaviour="hang"))
    at_work(folder)
    held = agent(folder, "server")
    code, told = run("cancel", str(folder), "server")
    assert (code, told["done"]) == (0, True)
    assert told["sentence"] == "server: the turn is cancelled; its loop waits for you."
    wait_for_phase(folder, "server", Phase.GAVE_UP)
    assert set(left_of(where(folder, "server"))) == {held, runner(folder, "server")}
    assert len(events(folder)) == 1
    (cause,) = (each for each in Person(folder).look().causes if each.about.participant == "server")
    assert (cause.code, cause.remedy) == ("E8", "nudge")
    assert cause.sentence.endswith("cancelled the turn")


def test_an_agent_without_a_session_is_ended_and_not_started_again(tmp_path: Path) -> None:
    folder = make(tmp_path / "cache")
    (tmp_path / "a").mkdir()
    start(folder, "server", command(tmp_path / "a", behave(tmp_path / "a", "hang")))
    wait_for(lambda: state(folder, "server").program_alive, "the agent")
    pid = state(folder, "server").run.process.pid
    assert run("cancel", str(folder), "server")[0] == 0
    assert is_gone(pid)
    wait_for_phase(folder, "server", Phase.GAVE_UP)
    action = bind_cancel(Location(str(folder)), utc_now())
    assert not action.offered and action.name == CANCEL.name
    outcome = action.perform(action.inputs(participant="server"))
    assert (outcome.state, outcome.sentence) == (
        OutcomeState.REFUSED,
        "server's agent is not at work",
    )
