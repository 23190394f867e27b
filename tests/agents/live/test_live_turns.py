"""Turns in a live session: warm, continued after any death, and nobody left behind.

Source: sheet "Agent Client Protocol" is not public; the facts are those of five programs that
speak it, which the stand-in repeats.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from acp_core.agents import background, codec
from acp_core.agents.live import turn as live_turns
from acp_core.agents.live.turn import Files, Reply, Steering
from acp_core.agents.presets import parse
from acp_core.agents.program import Program
from acp_core.agents.state import Run
from acp_core.loops.process import Liveness
from acp_core.model.turn import TurnState
from tests.agents.live.support import Participant
from tests.agents.support import end_what_runs, wait_for


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    yield
    end_what_runs(tmp_path)


def journal(run: Run) -> list[dict]:
    return [json.loads(line) for line in Path(run.out).read_text().splitlines()]


def when_at_work(ann: Participant, act) -> object:
    """A check that does something once, when the agent has started its command."""
    done = []

    def check(run: Run) -> str:
        if not done and run.tool:
            done.append(True)
            return act() or ""
        return ""

    return check


@pytest.mark.slow
def test_the_agent_stays_for_the_next_turn_and_remembers(tmp_path: Path) -> None:
    ann = Participant(tmp_path, behaviour="chat chat")
    with ann.session:
        first = ann.take_turn()
        assert "1 prompts in s0, mode auto" in ann.said()
        agent = ann.held.agent
        second = ann.take_turn()
        assert "2 prompts in s0, mode auto" in ann.said()
        assert ann.held.agent == agent
        assert (first.exit_code, second.exit_code) == (0, 0)
        assert (second.session, second.version) == ("s0", "9.9.9")
        assert second.cost == pytest.approx(0.01)  # of this turn, not of the session
        assert (second.tokens_in, second.tokens_out) == (1000, 50)
        ann.session.end_strays()
    assert ann.processes() == []


@pytest.mark.slow
def test_it_is_put_into_the_mode_that_asks_and_again_when_it_goes_on(tmp_path: Path) -> None:
    ann = Participant(tmp_path, behaviour="chat chat", ask_mode="default")
    with ann.session:
        ann.take_turn()
        assert "1 prompts in s0, mode default" in ann.said()
        live_turns.stop(ann.session.where)
        ann.take_turn()
        assert "2 prompts in s0, mode default" in ann.said()


@pytest.mark.slow
def test_a_killed_runner_leaves_nobody_and_the_session_goes_on(tmp_path: Path) -> None:
    ann = Participant(tmp_path, behaviour="hang chat")
    with ann.session:
        run = ann.take_turn(
            when_at_work(ann, lambda: os.kill(ann.held.process.pid, signal.SIGKILL))
        )
        assert run.exit == "ended unseen"
        assert ann.processes() == []
        assert ann.take_turn().exit_code == 0
        assert "2 prompts in s0, mode auto" in ann.said()


@pytest.mark.slow
@pytest.mark.parametrize("launcher", [(), ("--launcher",)], ids=["agent", "launcher"])
def test_a_killed_agent_ends_the_turn_though_a_child_keeps_its_output_open(
    tmp_path: Path, launcher: tuple[str, ...]
) -> None:
    ann = Participant(tmp_path, *launcher, behaviour="hang chat")

    def kill() -> None:
        assert ann.held.agent
        os.kill(ann.held.agent.pid, signal.SIGKILL)

    with ann.session:
        run = ann.take_turn(when_at_work(ann, kill))
        assert (run.exit_code, run.error) == (1, "the agent ended by signal 9")
        assert ann.processes() == [ann.held.process.pid]
        assert ann.take_turn().exit_code == 0
        assert "2 prompts in s0, mode auto" in ann.said()


@pytest.mark.slow
def test_an_agent_that_closes_its_output_and_stays_is_ended(tmp_path: Path) -> None:
    ann = Participant(tmp_path, behaviour="closed chat")
    with ann.session:
        assert ann.take_turn().error == "the agent closed its output"
        assert ann.take_turn().exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize("how", ["hang", "deaf"])
def test_a_stopped_turn_takes_its_commands_along(tmp_path: Path, how: str) -> None:
    ann = Participant(tmp_path, behaviour=f"{how} chat")
    with ann.session:
        run = ann.take_turn(when_at_work(ann, lambda: "enough"))
        assert run.stopped == "enough"
        live_turns.stop(ann.session.where)
        assert ann.processes() == []
        assert ann.take_turn().exit_code == 0
        assert "2 prompts in s0, mode auto" in ann.said()


@pytest.mark.slow
def test_a_turn_whose_watcher_died_is_taken_over(tmp_path: Path) -> None:
    ann = Participant(tmp_path, behaviour="hang")
    ann.session.__enter__()
    watcher = os.fork()
    if not watcher:
        try:
            ann.take_turn()
        finally:
            os._exit(0)
    wait_for(lambda: Files(ann.session.where).load() and len(ann.processes()) > 2, "the command")
    time.sleep(0.5)
    os.kill(watcher, signal.SIGKILL)
    os.waitpid(watcher, 0)
    ann.session.__exit__(None, None, None)
    bob = Participant(tmp_path, behaviour="")
    with bob.session:
        run = bob.session.unfinished()
        assert run is not None and run.live and run.process.alive()
        ended = bob.session.take_over(run, lambda _: "enough")
        assert (ended.exit_code, ended.stopped) == (0, "enough")
        bob.session.end_strays()
    assert bob.processes() == []


def test_what_no_agent_should_send_harms_nothing(tmp_path: Path) -> None:
    ann = Participant(tmp_path, behaviour="odd")
    with ann.session:
        run = ann.take_turn()
        assert (run.exit_code, run.is_error, run.session) == (0, False, "s0")
        assert not (tmp_path / "home" / "forged").exists()
        notes = [each["message"].get("note") for each in journal(run)]
        assert notes.count("the agent printed a line that is not a message") == 3
        assert "x" * 1000 in Files(ann.session.where).errors.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        ("limit", "Internal error: Usage limit reached. Try again in 2 seconds."),
        ("trouble", "HTTP 500"),
        ("crash", "the agent ended with 3"),
    ],
)
def test_why_a_turn_failed(tmp_path: Path, behaviour: str, why: str) -> None:
    ann = Participant(tmp_path, behaviour=behaviour)
    with ann.session:
        run = ann.take_turn()
        assert (run.exit_code, run.is_error, run.error, run.unusable) == (1, True, why, "")


def test_another_version_of_the_protocol_is_refused(tmp_path: Path) -> None:
    ann = Participant(tmp_path, "--protocol", "2")
    with ann.session:
        assert ann.take_turn().unusable == "the agent speaks version 2 of the protocol, not 1"
        assert ann.processes() == [ann.held.process.pid]


@pytest.mark.slow
def test_a_program_that_starts_too_slowly_is_tried_again_at_the_next_turn(tmp_path: Path) -> None:
    ann = Participant(tmp_path, "--mute")
    ann.order = replace(ann.order, handshake=0.5)
    with ann.session:
        why = "the agent did not answer initialize within 0.5 s; the next turn retries"
        assert ann.take_turn().unusable == why
        assert ann.processes() == [ann.held.process.pid]
        preset = parse("mine", {"program": "x"})
        liveness = Liveness(ann.session, Program(preset, str(tmp_path), str(tmp_path), live=True))
        liveness.begin_turn(TurnState(waited=True, since_event="1"))
        assert ann.session.state.run is not None
        assert not liveness.ended(ann.session.state.run)  # no attempt of the turn
        liveness.begin_turn(TurnState(waited=True, since_event="1"))
        assert not liveness.program.live and ann.session.state.live == f"no: {why}"
        liveness.begin_turn(TurnState(waited=True, since_event="4"))
        assert liveness.program.live and ann.session.state.live == "yes"


def test_a_program_that_is_not_logged_in_is_not_unusable(tmp_path: Path) -> None:
    ann = Participant(tmp_path, "--login", "none", "--shape", "codex")
    with ann.session:
        run = ann.take_turn()
        assert (run.error, run.unusable) == ("Authentication required", "")


@pytest.mark.slow
def test_a_full_context_begins_a_new_session(tmp_path: Path) -> None:
    ann = Participant(tmp_path, "--used", "800", behaviour="chat chat")
    with ann.session:
        ann.take_turn()
        ann.take_turn()
        assert "1 prompts in s1, mode auto" in ann.said()


@pytest.mark.slow
def test_a_session_that_is_lost_costs_its_context_only(tmp_path: Path) -> None:
    ann = Participant(tmp_path, behaviour="chat chat")
    with ann.session:
        ann.take_turn()
        live_turns.stop(ann.session.where)
        (tmp_path / "home" / "s0").rename(tmp_path / "lost")
        assert ann.take_turn().exit_code == 0
        assert "1 prompts in s0, mode auto" in ann.said()


@pytest.mark.slow
def test_an_idle_session_ends(tmp_path: Path) -> None:
    ann = Participant(tmp_path, behaviour="chat chat")
    ann.order = replace(ann.order, idle=0.0)
    with ann.session:
        ann.take_turn()
        wait_for(lambda: ann.processes() == [], "the session to end")
        assert ann.take_turn().exit_code == 0
        assert "2 prompts in s0, mode auto" in ann.said()


@pytest.mark.slow
def test_an_unused_session_whose_participant_nobody_plays_ends_soon(tmp_path: Path) -> None:
    ann = Participant(tmp_path, behaviour="chat chat chat")
    ann.order = replace(ann.order, alone=0.0)
    with ann.session:
        ann.take_turn()
        agent = ann.held.agent
        for _ in range(3):  # whenever it looks, somebody holds the lock
            os.kill(ann.held.process.pid, signal.SIGUSR1)
            time.sleep(0.1)
        ann.take_turn()
        assert ann.held.agent == agent and agent is not None
    os.kill(ann.held.process.pid, signal.SIGUSR1)  # it looks now, not in some seconds
    wait_for(lambda: ann.processes() == [], "the session to end")


def test_a_session_whose_starter_was_killed_before_it_gave_a_turn_ends(tmp_path: Path) -> None:
    ann = Participant(tmp_path)
    ann.session.where.make()
    background.start(live_turns.RUNNER_MODULE, given=codec.encode(replace(ann.order, alone=0.0)))
    wait_for(lambda: ann.processes() == [], "the session to end")
    assert (ann.held.turns, ann.held.leaving) == (0, True)


@pytest.mark.slow
def test_a_session_that_goes_on_stands_in_the_record_of_its_turn(tmp_path: Path) -> None:
    ann = Participant(tmp_path, behaviour="chat chat chat")
    with ann.session:
        assert ann.take_turn().opened == ""
        assert ann.take_turn().opened == ""  # it stayed
        live_turns.stop(ann.session.where)
        run = ann.take_turn()
        assert run.opened == "resumed session s0"
        ann.session.record(run)
    [line] = ann.session.where.turns.read_text().splitlines()
    assert json.loads(line)["opened"] == "resumed session s0"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "lost", "why"),
    [
        ((), True, "the agent cannot resume session s0: Resource not found"),
        (("--no-resume",), False, "the agent cannot load a session again within a minute"),
        (("--used", "800"), None, "the context of the session was nearly full"),
    ],
)
def test_why_a_session_is_a_new_one_stands_there_too(
    tmp_path: Path, more: tuple[str, ...], lost: bool | None, why: str
) -> None:
    ann = Participant(tmp_path, *more, behaviour="chat chat chat")
    with ann.session:
        ann.take_turn()
        if lost is not None:
            live_turns.stop(ann.session.where)
        if lost:
            (tmp_path / "home" / "s0").rename(tmp_path / "lost")
        assert ann.take_turn().opened == f"new session with the turn's prompt, because {why}"
        ann.order = replace(ann.order, run_id="another")
        why = "the agent or its settings changed"
        assert ann.take_turn().opened == f"new session with the turn's prompt, because {why}"


def test_its_journal_is_private_and_masks_secrets(tmp_path: Path) -> None:
    ann = Participant(tmp_path, behaviour="chat")
    ann.order = replace(
        ann.order, env=ann.order.env | {"SECRET_KEY": "sk-ant-0123456789abcdef0123"}
    )
    with ann.session:
        (tmp_path / "prompt").write_text("The key is sk-ant-0123456789abcdef0123.")
        run = ann.take_turn()
        assert stat.S_IMODE(os.stat(run.out).st_mode) == 0o600
        ann.session.end_strays()
    for path in ann.session.where.folder.rglob("*"):
        if path.is_file() and path.suffix != ".prompt":
            assert "0123456789abcdef" not in path.read_text(errors="replace"), path


def test_a_message_reaches_the_running_turn(tmp_path: Path) -> None:
    ann = Participant(tmp_path, behaviour="listen")
    replies = []

    def say() -> None:
        where = ann.session.where
        assert live_turns.can_steer(where)
        replies.append(live_turns.steer(where, Steering(1, "Look at question 3", "bob")))
        replies.append(live_turns.steer(where, Steering(9, "This is for another turn", "bob")))

    with ann.session:
        run = ann.take_turn(when_at_work(ann, say))
        assert "You said: Look at question 3" in ann.said()
        assert "a person says: Look at question 3" in ann.said()
        assert replies == [Reply(True), Reply(False, "the turn was over")]
        assert run.exit_code == 0


@pytest.mark.slow
def test_an_agent_that_takes_no_messages_is_sent_none(tmp_path: Path) -> None:
    ann = Participant(tmp_path, "--shape", "qwen", behaviour="hang")
    replies = []

    def say() -> str:
        where = ann.session.where
        assert not live_turns.can_steer(where)
        replies.append(live_turns.steer(where, Steering(1, "Look at question 3", "bob")))
        return "enough"

    with ann.session:
        ann.take_turn(when_at_work(ann, say))
    assert replies == [Reply(False, "the agent takes no messages in the middle of a turn")]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["hang", "deaf"])
def test_a_cancelled_turn_leaves_no_command_and_the_session_goes_on(
    tmp_path: Path, how: str
) -> None:
    ann = Participant(tmp_path, behaviour=f"{how} chat")
    with ann.session:
        run = ann.take_turn(
            when_at_work(ann, lambda: live_turns.cancel(ann.session.where, 1, "bob"))
        )
        assert (run.cancelled, run.stopped) == ("bob", "cancelled by bob")
        assert not run.crashed
        left = {ann.held.process.pid} | ({ann.held.agent.pid} if ann.held.agent else set())
        assert set(ann.processes()) == left
        assert ann.take_turn().exit_code == 0
        assert "2 prompts in s0, mode auto" in ann.said()
        assert not ann.session.state.run.cancelled
