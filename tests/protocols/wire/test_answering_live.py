"""An agent that answers in live sessions: one for each sender and conversation, warm, and never shared."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from acp_core.agents import presets
from acp_core.agents.live import answers
from acp_core.agents.live.turn import MARK
from acp_core.model.clock import utc_now
from acp_core.person.permissions import Verdict
from acp_core.protocols.wire.conduct import answering
from acp_core.protocols.wire.conduct.answering import Setup
from acp_core.protocols.wire.network import agent_directory
from tests.agents.live.commands import acp, configure
from tests.agents.live.support import words
from tests.agents.support import end_what_runs, is_gone
from tests.protocols.wire.support import Process, Served, served, until
from tests.protocols.wire.test_answering import ask, said, settled, task_of

MANY = "chat " * 20


@pytest.fixture(autouse=True)
def nobody_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    yield
    end_what_runs(tmp_path)


def live(folder: Path, *more: str, behaviour: str = MANY, **settings: Any) -> Setup:
    """The stand-in that holds live sessions; run once, it says so."""
    folder.mkdir(exist_ok=True)
    once = presets.any_command([str(shutil.which("echo")), "I was started for this."])
    held = words(folder, *more, behaviour=behaviour)
    preset = replace(once, name="mine", live=held, ask_mode="default")
    return Setup(preset, str(folder), **settings)


def held(folder: Path) -> list[int]:
    """The processes of sessions whose places lie below a folder."""
    found = []
    for process in psutil.process_iter():
        try:
            marked = process.environ().get(MARK, "").startswith(str(folder))
            if marked and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def answer(agent: Served, sender: str, context: str) -> str:
    return said(ask(agent, "hello", context_id=context, **{"from": sender})["reply"])


@pytest.mark.slow
def test_a_conversation_is_one_warm_session_and_no_other_sender_is_in_it(tmp_path: Path) -> None:
    with served(tmp_path, on_message=live(tmp_path / "a")) as agent:
        assert answer(agent, "Ann", "c1") == "1 prompts in s0, mode default"
        [first] = held(tmp_path)
        assert answer(agent, "Ann", "c1") == "2 prompts in s0, mode default"
        assert held(tmp_path) == [first]
        assert answer(agent, "Ben", "c1") == "1 prompts in s1, mode default"
        assert answer(agent, "Ann", "c2") == "1 prompts in s2, mode default"
        assert answer(agent, "Ann", "c1") == "3 prompts in s0, mode default"
        assert len(held(tmp_path)) == 3
    assert held(tmp_path) == []
    with served(tmp_path, on_message=live(tmp_path / "a")) as agent:  # the same agent again
        assert answer(agent, "Ann", "c1") == "4 prompts in s0, mode default"


@pytest.mark.slow
def test_what_belongs_to_no_conversation_leaves_no_session_and_only_some_stay_warm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "WARM", 1)
    with served(tmp_path, on_message=live(tmp_path / "a")) as agent:
        assert said(ask(agent, "hello")["reply"]) == "1 prompts in s0, mode default"
        done = settled(agent, task_of(agent, "do it")["id"])
        assert said(done["artifact"]) == "1 prompts in s1, mode default"
        until(lambda: held(tmp_path) == [], "the end of both")
        for context in ("c0", "c1"):
            answer(agent, "Ann", context)
        until(lambda: len(held(tmp_path)) == 1, "the end of the older one")
        assert answer(agent, "Ann", "c0") == "2 prompts in s2, mode default"  # resumed


@pytest.mark.slow
def test_what_strangers_make_it_ask_for_is_rejected(tmp_path: Path) -> None:
    with served(tmp_path, on_message=live(tmp_path / "a", behaviour="ask")) as agent:
        failed = settled(agent, task_of(agent, "touch something")["id"])
    why = "the agent was not allowed to do what it needed for this"
    assert (failed["status"], failed["error"]) == ("failed", why)
    assert not (tmp_path / "a" / "asked").exists()


def test_the_owner_reads_why_no_live_session_is_held(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    setup = live(tmp_path / "a")
    gone = replace(setup, preset=replace(setup.preset, live=("no-such-agent",)))
    with served(tmp_path, "A", on_message=gone) as agent:
        assert answer(agent, "Ann", "c1") == "I was started for this."
    assert "no live session: no-such-agent: not found on PATH" in caplog.text


@pytest.mark.slow
def test_a_program_that_can_hold_no_session_is_started_for_each_answer(tmp_path: Path) -> None:
    other = live(tmp_path / "a", "--protocol", "2", permissions="edits")
    with served(tmp_path, "A", on_message=other) as agent:
        assert answer(agent, "Ann", "c1") == "I was started for this."
    with served(tmp_path, "B", on_message=replace(live(tmp_path / "b"), once=True)) as agent:
        assert answer(agent, "Ann", "c1") == "I was started for this."
    crashing = live(tmp_path / "c", behaviour=f"crash {MANY}")
    with served(tmp_path, "C", on_message=crashing) as agent:
        assert answer(agent, "Ann", "c1") == "2 prompts in s0, mode default"  # it is resumed
    crashing = live(tmp_path / "d", behaviour="crash crash", permissions="edits")
    with served(tmp_path, "D", on_message=crashing) as agent:
        assert answer(agent, "Ann", "c1") == "I was started for this."


@pytest.mark.slow
@pytest.mark.parametrize("more", [("--protocol", "2"), ()])
def test_a_program_is_not_started_without_a_session_where_all_is_rejected(
    tmp_path: Path, more: tuple[str, ...]
) -> None:
    setup = live(tmp_path / "a", *more, behaviour="crash crash")
    with served(tmp_path, "A", on_message=setup) as agent:
        assert "the policy 'none' cannot bind the program" in answer(agent, "Ann", "c1")


@pytest.mark.slow
def test_a_canceled_task_ends_its_session_with_all_that_it_started(tmp_path: Path) -> None:
    with served(tmp_path, on_message=live(tmp_path / "a", behaviour="hang")) as agent:
        task = task_of(agent, "work")
        until(lambda: len(held(tmp_path)) > 1, "the command")
        agent.post(f"/tasks/{task['id']}:cancel")
        until(lambda: held(tmp_path) == [], "everybody's end")


@pytest.mark.slow
def test_a_request_is_a_need_of_the_agent_and_outlives_it(tmp_path: Path) -> None:
    configure(tmp_path / "a", "true", behaviour="ask")
    options = ("--port", "0", "--http-port", "0", "--on-message", "mine", "--permissions", "ask", "--workdir", str(tmp_path))  # fmt: skip
    with Process("Writer", *options) as agent, served(tmp_path, "Asker") as asker:
        folder = agent_directory.folder_of("Writer")
        peer = asker.post("/peers/connect", {"link": agent.link}).json()["peer_id"]
        until(lambda: asker.get(f"/peer/{peer}")["connected"], "the connection")
        task = asker.post("/tasks", {"text": "touch it", "delegate": True}).json()
        until(lambda: answers.waiting(str(folder)), "the request")
        [opened] = answers.waiting(str(folder))
        assert (opened.participant, opened.turn) == ("Writer", "answer Asker")
        told = acp("why", folder)
        assert "Writer's agent asks to run: touch" in told.stdout, told.stdout + told.stderr
        port, before = agent.link.split(":")[2].split("/")[0], agent.pid
        agent.kill()
        until(lambda: is_gone(before), "its end")
        agent.options = ("--port", port, *options[2:])
        agent.start()
        assert answers.is_published(opened)
        answers.answer(opened, Verdict.ALLOW, "ann", utc_now())
        assert settled(asker, task["id"])["status"] == "completed"
        assert (tmp_path / "a" / "asked").exists()
        assert len(list((tmp_path / "a" / "home").iterdir())) == 1  # it was asked once
        agent.stop()
    assert held(Path(os.environ["ACP_STATE"])) == []
