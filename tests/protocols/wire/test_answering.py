"""An agent that answers by running a program: real programs, real sockets."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from acp_core.agents import presets
from acp_core.protocols.wire.conduct.answering import Setup, SetupError, choose
from tests.protocols.wire.support import ROOT, Process, Served, served, until

ANSWERER = str(ROOT / "tests" / "protocols" / "wire" / "answerer.py")


def setup(tmp_path: Path, *words: str, **more: Any) -> Setup:
    """The stand-in with words of its own."""
    preset = presets.any_command([sys.executable, ANSWERER, *words])
    return Setup(preset, str(tmp_path), grace=0.3, **more)


def ask(agent: Served, text: str, **more: Any) -> dict[str, Any]:
    """Send it a message as another agent would over HTTP, and wait for the reply."""
    body = {"text": text, "from": "Asker", "sync": True, **more}
    response = agent.post("/message:send", body)
    assert response.status_code == 200, response.text
    content: dict[str, Any] = response.json()
    return content


def said(envelope: dict[str, Any]) -> str:
    """The text of a message."""
    return str(envelope["parts"][0]["content"])


def task_of(agent: Served, text: str, **more: Any) -> dict[str, Any]:
    """Give it a task, as another agent would over HTTP."""
    body = {"text": text, "from": "Asker", "create_task": True, **more}
    task: dict[str, Any] = agent.post("/message:send", body).json()["task"]
    return task


def settled(agent: Served, id: str) -> dict[str, Any]:
    """The task, once it is over or asks something."""
    return dict(agent.get(f"/tasks/{id}/wait", timeout=30)["task"])


def test_a_message_is_answered_with_what_the_program_prints(tmp_path: Path) -> None:
    with served(tmp_path, on_message=setup(tmp_path, "echo")) as agent:
        reply = ask(agent, "$(touch hacked) `x` ; 'héllo'", context_id="c1")["reply"]
        assert said(reply) == "you said: $(touch hacked) `x` ; 'héllo'"
        assert (reply["role"], reply["from"], reply["context_id"]) == ("agent", "A", "c1")
        assert not (tmp_path / "hacked").exists()


def test_a_peer_gets_the_reply_over_its_connection_and_two_agents_do_not_talk_forever(
    tmp_path: Path,
) -> None:
    both = setup(tmp_path, "echo")
    with served(tmp_path, "A", on_message=both) as a, served(tmp_path, "B", on_message=both) as b:
        b.meet(a)
        reply = b.post("/message:send", {"text": "hello", "sync": True}).json()["reply"]
        assert said(reply) == "you said: hello"
        b.post("/message:send", {"parts": [{"type": "text", "content": "fyi"}], "role": "agent"})
        until(lambda: a.get("/status")["messages_received"] == 2, "the second message")
        ask(a, "after it")
        assert [each["role"] for each in b.get("/messages")["messages"]] == [
            "user", "agent", "agent",
        ]  # fmt: skip


def test_a_task_passes_through_working_to_its_artifact_at_both_ends(tmp_path: Path) -> None:
    with served(tmp_path, "A", on_message=setup(tmp_path, "echo")) as a, served(tmp_path, "B") as b:
        b.meet(a)
        task = b.post("/tasks", {"text": "add", "delegate": True}).json()
        done = settled(b, task["id"])
        assert done["status"] == "completed"
        assert done["artifact"]["parts"] == [{"type": "text", "content": "you said: add"}]
        theirs = a.get(f"/tasks/{task['id']}")
        assert [each["status"] for each in theirs["history"]] == [
            "submitted", "working", "completed",
        ]  # fmt: skip
        own = a.post("/tasks", {"text": "by its owner"}).json()
        assert settled(a, own["id"])["status"] == "completed"


@pytest.mark.parametrize("way", ["ask", "json"])
def test_input_is_asked_for_and_the_answer_runs_it_again(tmp_path: Path, way: str) -> None:
    with served(tmp_path, "A", on_message=setup(tmp_path, way)) as a, served(tmp_path, "B") as b:
        b.meet(a)
        task = b.post("/tasks", {"text": "paint it", "delegate": True}).json()
        assert settled(b, task["id"])["status"] == "input_required"
        told = b.get("/messages", task_id=task["id"])["messages"][-1]
        assert told["role"] == "agent"
        assert said(told) == {"ask": "Which colour?", "json": "Which size?"}[way]
        if way == "json":
            return
        b.post(f"/tasks/{task['id']}:continue", {"text": "blue"})
        until(lambda: settled(b, task["id"])["status"] == "completed", "the end")
        done = settled(b, task["id"])
        assert said(done["artifact"]) == "painted blue, after ['paint it', 'Which colour?']"


def test_over_http_a_task_is_continued_too(tmp_path: Path) -> None:
    with served(tmp_path, on_message=setup(tmp_path, "ask")) as agent:
        task = task_of(agent, "paint it")
        assert settled(agent, task["id"])["status"] == "input_required"
        agent.post(f"/tasks/{task['id']}:continue", {"text": "blue"})
        until(lambda: settled(agent, task["id"])["status"] == "completed", "the end")


def test_a_failure_is_told_in_one_line_without_its_secrets(tmp_path: Path) -> None:
    with served(tmp_path, on_message=setup(tmp_path, "fail")) as agent:
        failed = settled(agent, task_of(agent, "do it")["id"])
        assert failed["status"] == "failed"
        assert failed["error"].startswith("exit code 3: no way")
        assert "0123456789" not in json.dumps(failed)
        reply = ask(agent, "do it")["reply"]
        assert said(reply).startswith("failed: exit code 3")
        assert reply["parts"][-1]["content"]["status"] == "failed"


@pytest.mark.parametrize(
    ("result", "status", "parts"),
    [
        ('{"status":"completed","data":[1]}', "completed", [{"type": "data", "content": [1]}]),
        ('{"status":"completed","text":"ok","more":1}', "completed", [{"type": "text", "content": "ok"}]),
        ('{"status":"failed","error":"no disk"}', "failed", None),
        ('{"status":"input_required","text":"?"}', "input_required", None),
        ('{"status":"bogus"}', "failed", None),
        ('{"status":"completed","parts":[{"type":"file","url":"file:///etc/passwd"}]}', "failed", None),
        ("[1", "failed", None),
        ("{" * 100_000, "failed", None),
        ("x" * 600_000, "failed", None),
    ],
)  # fmt: skip
def test_a_result_says_more_than_text(tmp_path: Path, result: str, status: str, parts: Any) -> None:
    long = setup(tmp_path, "result", result if len(result) < 90_000 else "X")
    if len(result) > 90_000:
        program = tmp_path / "long.py"
        program.write_text(
            f"import os\nopen(os.environ['ACP_RESULT_FILE'],'w').write({result[0]!r}*{len(result)})"
        )
        long = Setup(presets.any_command([sys.executable, str(program)]), str(tmp_path))
    with served(tmp_path, on_message=long) as agent:
        task = settled(agent, task_of(agent, "do it")["id"])
        assert task["status"] == status, task
        assert parts is None or task["artifact"]["parts"] == parts


def test_the_program_gets_no_token_and_no_secret_of_the_agent(tmp_path: Path) -> None:
    chosen = setup(tmp_path, "env")
    with served(tmp_path, on_message=chosen, secret="shared-secret") as agent:
        env = json.loads(said(ask(agent, "tell")["reply"]))
        folder = Path(env["ACP_MESSAGE_FILE"]).parent
        seen = json.dumps(env) + "".join(
            each.read_text() for each in folder.iterdir() if each.is_file()
        )
        for secret in (agent.agent.token, agent.agent.owner_token, "shared-secret"):
            assert secret not in seen
        assert folder.stat().st_mode & 0o077 == 0


def test_a_known_program_is_told_how_to_answer_and_its_last_words_count(tmp_path: Path) -> None:
    known = presets.bundled()["claude"]
    stand_in = replace(known, program=sys.executable, args=(ANSWERER, "claude"))
    with served(tmp_path, on_message=Setup(stand_in, str(tmp_path))) as agent:
        assert said(ask(agent, "hi")["reply"]) == "the prompt had 2 marks"


def test_only_so_many_run_at_once_and_too_many_that_wait_are_refused(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    slow = setup(tmp_path, "slow", str(notes), at_once=2, waiting=3)
    with served(tmp_path, on_message=slow) as agent:
        ids = [task_of(agent, f"number {n}")["id"] for n in range(2)]
        until(lambda: notes.exists() and notes.read_text().count("\n") == 2, "two")
        ids += [task_of(agent, f"number {n}")["id"] for n in range(2, 6)]
        last = settled(agent, ids[-1])
        assert (last["status"], "too many messages" in last["error"]) == ("failed", True)
        assert notes.read_text().count("\n") == 2
        Path(f"{notes}.go").touch()
        assert [settled(agent, id)["status"] for id in ids[:-1]] == ["completed"] * 5


def test_messages_of_one_conversation_are_answered_in_order(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    with served(tmp_path, on_message=setup(tmp_path, "count", str(notes))) as agent:
        for n in range(6):
            agent.post("/message:send", {"text": f"{n}", "from": "Asker", "context_id": "c"})
        until(lambda: agent.get("/context/c/messages")["total"] == 12, "all replies")
        assert notes.read_text().split() == ["0", "1", "2", "3", "4", "5"]


@pytest.mark.slow
def test_one_that_takes_too_long_or_whose_task_is_canceled_is_ended_for_good(
    tmp_path: Path,
) -> None:
    note = tmp_path / "pid"
    for seconds in (0.5, 5.0, 20.0):  # on a busy machine it has not even begun after so long
        limited = setup(tmp_path, "hang", str(note), seconds=seconds)
        with served(tmp_path, f"A{seconds}", on_message=limited) as agent:
            late = settled(agent, task_of(agent, "work")["id"])
            assert (late["status"], late["error"]) == ("failed", f"not through after {seconds:g} s")
        if note.exists() and note.read_text():
            break
    gone(int(note.read_text()))
    note.unlink()
    with served(tmp_path, "B", on_message=setup(tmp_path, "hang", str(note))) as agent:
        task = task_of(agent, "work")
        until(lambda: note.exists() and note.read_text(), "the start")
        agent.post(f"/tasks/{task['id']}:cancel")
        gone(int(note.read_text()))
        assert settled(agent, task["id"])["status"] == "canceled"
        note.unlink()
        task_of(agent, "work")
        until(lambda: note.exists() and note.read_text(), "the start")
    gone(int(note.read_text()))  # the agent was stopped


def gone(pid: int) -> None:
    """Wait until a process is no more."""

    def ended() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        try:
            return Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] == "Z"
        except FileNotFoundError:  # it is no more, or there is no such place here
            return False

    until(ended, "the end of the program")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill", "stop"])
def test_after_a_restart_nothing_is_repeated_and_nothing_forgotten(
    tmp_path: Path, how: str
) -> None:
    notes = tmp_path / "notes"
    command = f"{sys.executable} {ANSWERER} slow {notes}"
    agent = Process("Worker", "--port", "0", "--http-port", "0", "--on-message", command)
    with agent, served(tmp_path, "Asker") as asker:
        peer = asker.post("/peers/connect", {"link": agent.link}).json()["peer_id"]
        until(lambda: asker.get(f"/peer/{peer}")["connected"], "the connection")
        first = asker.post("/tasks", {"text": "first", "delegate": True}).json()
        until(lambda: notes.exists(), "the first start")
        second = asker.post("/tasks", {"text": "second", "delegate": True}).json()
        until(lambda: notes.read_text().count("\n") == 2, "the second start")
        port = agent.link.split(":")[2].split("/")[0]
        agent.kill() if how == "kill" else agent.stop()
        agent.options = ("--port", port, "--http-port", "0", "--on-message", command)
        if how == "kill":
            Path(f"{notes}.go").touch()  # both end while nobody watches, or are found running
        agent.start()
        if how == "stop":
            until(lambda: notes.read_text().count("\n") == 4, "both starts again")
            Path(f"{notes}.go").touch()
        for task, text in ((first, "first"), (second, "second")):
            done = settled(asker, task["id"])
            assert (done["status"], said(done["artifact"])) == ("completed", f"done: {text}")
        assert notes.read_text().count("first") == (1 if how == "kill" else 2)


def test_what_cannot_be_chosen_is_told_in_one_line(tmp_path: Path) -> None:
    for words, workdir, model, told in (
        ("no-such-program-anywhere", None, "", "not found on PATH"),
        ("", None, "", "the command is empty"),
        ("echo 'unclosed", None, "", "No closing quotation"),
        ("cat", str(tmp_path / "none"), "", "no folder"),
        ("cat", None, "m", "--model"),
    ):
        with pytest.raises(SetupError, match=told):
            choose(words, workdir, model)
    assert choose("cat", str(tmp_path)).preset.program.endswith("/cat")
