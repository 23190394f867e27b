"""The five real agent programs in live sessions, each in one of the four protocols that run programs.

Their model is a script, their network has nothing but loopback (`tests.support.real_programs`).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from acp_core.agents import registry
from acp_core.agents.live import answers
from acp_core.agents.live.answers import OpenRequest
from acp_core.agents.live.turn import Files
from acp_core.agents.loop_directory import place
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.person.permissions import Verdict
from acp_core.protocols.cycle.schema import AGENTS
from tests.agents.live import commands
from tests.agents.live.commands import acp, begin
from tests.agents.live.support import left_of
from tests.agents.support import is_gone
from tests.e2e.dashboards import answer_by_key, dashboard
from tests.loops.support import events, is_valid, log, state, stop_all, turns
from tests.protocols.cycle.conducting import ID, WHAT, path
from tests.protocols.governed import playing
from tests.support.real_programs import VARIABLE, Programs, installed
from tests.support.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif(installed() is None, reason=f"{VARIABLE} names no folder of the programs"),
]
ONCE = {"ann": "claude", "ben": "codex", "cat": "opencode", "dan": "gemini", "eve": "qwen"}
PATIENCE = 600.0  # seconds; nothing passes or fails by being quicker


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Programs]:
    found = installed()
    assert found is not None
    made = Programs(tmp_path / "programs", found)
    monkeypatch.setenv("PATH", made.path)
    yield made
    stop_all()
    made.close()


@pytest.fixture
def beside() -> Iterator[Path]:
    """A folder that does not lie in /tmp, which one program's sandbox opens for everybody."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        yield Path(os.path.realpath(made))


def request(folder: Path, asks: str = "") -> OpenRequest:
    """The request that waits for a person, whose command holds some words."""
    return commands.request(folder, asks, PATIENCE)


def by_key(folder: Path, asks: str, key: str) -> None:
    """Answer a request on its card in the dashboard, by a key."""
    opened = request(folder, asks)
    with dashboard(folder) as terminal:
        answer_by_key(terminal, opened, key, PATIENCE)


def allow_all(folder: Path, over: Callable[[], bool]) -> None:
    """Allow whatever is asked until something is over."""

    def looks() -> bool:
        for each in answers.waiting(str(folder)):
            allow(each)
        return over()

    until(looks, "the end", PATIENCE)


def allow(opened: OpenRequest) -> None:
    with contextlib.suppress(Refused):  # its program was killed meanwhile
        answers.answer(opened, Verdict.ALLOW, "ann", utc_now())


def record() -> list[dict[str, str]]:
    path = answers.root() / "answered.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def answered_once() -> bool:
    """Whether no request of any program was answered twice."""
    given = [(each["session"], each["tool_call"]) for each in record() if each["state"] in ("allow", "reject")]  # fmt: skip
    return len(given) == len(set(given))


def cancel(folder: Path, participant: str, opened: OpenRequest) -> None:
    """Cancel a turn in which a request is open; nobody waits for its answer then."""
    ended = acp("cancel", folder, participant)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    until(lambda: not answers.is_published(opened), "the end of its request", PATIENCE)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    until(lambda: is_gone(pid), "its end")


def session(folder: Path, participant: str) -> tuple[int, int]:
    """The process that holds a session, and the agent in it."""

    def held() -> tuple[int, int] | None:
        found = Files(place(str(folder), participant)).load()
        return (found.process.pid, found.agent.pid) if found and found.agent else None

    pids = until(held, "a session", PATIENCE)
    assert pids is not None
    return pids


def test_a_folder_with_claude_and_gemini(programs: Programs, tmp_path: Path) -> None:
    folder, people = tmp_path / "cache", ("server", "reader")
    named = [word for name in people for word in ("--participant", name)]
    words = ["--objective", "Choose how the cache is invalidated", "--completion", "It is agreed"]
    assert acp("init", "--folder", folder, *named, *words).returncode == 0
    no, yes = tmp_path / "no", tmp_path / "yes"
    programs.more(
        ("You are `server`", [["run", f"touch {no}"], ["run", f"touch {yes}"]]),
        ("You are `reader`", [["say", "word", 600]]),
    )
    launched = acp("launch", folder, "server=claude", "reader=gemini", "--permissions", "edits", "--yes")  # fmt: skip
    assert launched.returncode == 0, launched.stderr
    with dashboard(folder) as killed:  # while it shows the request
        request(folder, f"touch {no}")
        killed.wait_for("asks", PATIENCE)
        kill(killed.pid)
    by_key(folder, f"touch {no}", "2")
    opened = request(folder, f"touch {yes}")
    kill(
        state(folder, "server").pid
    )  # the loop: the agent waits on, and the next loop takes it over
    assert acp("launch", folder, "server=claude", "--permissions", "edits", "--yes").returncode == 0
    assert answers.is_published(opened)
    by_key(folder, f"touch {yes}", "1")
    until(lambda: len(events(folder)) == 2, "the proposal", PATIENCE)
    assert (no.exists(), yes.exists()) == (False, True)
    assert "allowed it: touch" in log(folder, "server")

    until(lambda: (run := state(folder, "reader").run) and run.first_output, "the reader's words", PATIENCE)  # fmt: skip
    assert acp("cancel", folder, "reader").returncode == 0
    until(lambda: state(folder, "reader").shown.note.startswith("cancelled"), "the cancelled turn", PATIENCE)  # fmt: skip
    assert acp("nudge", folder, "reader", "Review it now").returncode == 0
    request(folder)  # this program names the command in the title alone
    holder, agent = session(folder, "reader")
    kill(holder)
    until(lambda: is_gone(agent), "the agent's end", PATIENCE)
    allow_all(folder, lambda: events(folder)[-1]["event"] == "completed")
    until(lambda: is_valid(folder), "what follows from the last event", PATIENCE)
    assert answered_once()
    until(lambda: not any(left_of(place(str(folder), name)) for name in people), "everybody's end")
    for name in people:
        assert all(each["live"] for each in turns(folder, name)), name


@pytest.mark.parametrize("agent", ONCE.values())
def test_a_turn_by_the_tools_of_acp(
    programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    folder, trusted = tmp_path / "cache", tmp_path / "trusted.json"
    trusted.write_text(json.dumps({str(tmp_path): "TRUST_FOLDER"}))
    monkeypatch.setenv("GEMINI_CLI_TRUSTED_FOLDERS_PATH", str(trusted))
    words = ["--objective", "Choose how the cache is invalidated", "--completion", "It is agreed"]
    named = ["--participant", "server", "--participant", "reader"]
    assert acp("init", "--folder", folder, *named, *words).returncode == 0
    (programs.folder / "tools").touch()
    launched = acp("launch", folder, f"server={agent}", "--permissions", "edits", "--yes")
    assert launched.returncode == 0, launched.stderr
    allow_all(folder, lambda: len(events(folder)) == 2)  # two do not say whose the tool is
    assert events(folder)[1]["event"] == "proposal_submitted"
    used = [str(each.get("use", "")) for each in programs.requests()]
    assert any("acp" in each and each.endswith("append") for each in used), used


def test_a_governed_run_with_opencode(programs: Programs, tmp_path: Path) -> None:
    root, no = playing.repository(tmp_path / "lamp"), tmp_path / "no"
    (programs.folder / "governed").write_text(playing.agent(tmp_path / "bin"))
    programs.more(
        ("# Execution Context", [["run", f"touch {tmp_path / 'cancelled'}"]]),
        ("# Execution Context", [["run", f"touch {no}"]]),
    )
    roles = [word for role in ("pm", "dev", "qa") for word in ("--agent", f"{role}=opencode")]
    assert acp("governed", "init", root, "--goal", "Light the hall", *roles).returncode == 0

    step = begin("governed", "step", root)
    cancel(root, "pm", request(root, "cancelled"))
    said, _ = step.communicate(timeout=PATIENCE)
    assert step.returncode == 1 and "cancelled by" in said, said
    assert not (tmp_path / "cancelled").exists()

    step = begin("governed", "step", root)
    by_key(root, f"touch {no}", "2")  # this program ends its turn then
    said, _ = step.communicate(timeout=PATIENCE)
    assert step.returncode == 1 and not no.exists(), said
    step = begin("governed", "step", root)
    opened = request(root, "agent.py")
    _, agent = session(root, "pm")
    kill(agent)  # its session is resumed
    until(lambda: not answers.is_published(opened), "the end of its request", PATIENCE)
    by_key(root, "agent.py", "1")
    said, _ = step.communicate(timeout=PATIENCE)
    assert step.returncode == 0, said
    accept(root, "approve-transition")

    step = begin("governed", "step", root)
    opened = request(root, "agent.py")
    kill(step.pid)
    step.wait()
    allow(opened)  # the agent works on without a conductor
    until(lambda: acp("governed", "check", root).returncode == 0, "the staged result", PATIENCE)
    accept(root, "approve-transition")

    step = begin("governed", "step", root)
    allow_all(root, lambda: step.poll() is not None)
    accept(root, "approve-completion")
    assert json.loads(acp("governed", "status", root, "--json").stdout)["status"] == "completed"
    assert answered_once()
    until(
        lambda: not any(left_of(place(str(root), role)) for role in ("pm", "dev", "qa")),
        "the end of everybody",
        PATIENCE,
    )


def accept(root: Path, gate: str) -> None:
    """Accept the result that is staged, and let the run go on."""
    accepted = acp("governed", "accept-turn", root)
    assert accepted.returncode == 0, accepted.stderr
    approved = acp("governed", gate, root, "--yes", "--by", "olga", "--comment", "Seen.")
    assert approved.returncode == 0, approved.stderr
    playing.git(root, "add", "-A")
    playing.git(root, "commit", "-qm", "A phase is done", "--allow-empty")


def test_workspaces_with_qwen_and_gemini(programs: Programs, tmp_path: Path) -> None:
    root, no, yes = tmp_path / "queues", tmp_path / "no", tmp_path / "yes"
    tasks = [word for name in ("ann", "ben") for word in ("--agent", f"{name}=Compare the queues.")]
    assert acp("workspaces", "init", root, "--task", "a comparison", *tasks).returncode == 0
    strange = root / "agent-workspaces/ann/of-ben.md"
    programs.more(
        ("AGENT NAME: ann", [["run", f"touch {yes}"]]),
        ("AGENT NAME: ben", [["run", f"touch {no}"], ["write", str(strange), "Mine.\n"]]),
    )
    team = ("--agent", "ann=qwen", "--agent", "ben=gemini", "--permissions", "edits", "--jobs", "1")
    going = begin("workspaces", "dispatch", root, *team)
    by_key(root, f"touch {yes}", "1")
    until(lambda: answers.waiting(str(root)), "what ben asks", PATIENCE)
    by_key(root, "", "2")
    allow_all(root, lambda: going.poll() is not None)
    said, _ = going.communicate()
    assert going.returncode == 0, said
    assert (no.exists(), yes.exists(), strange.exists()) == (False, True, False)
    entries = json.loads((root / "agent-workspaces/.coord/manifest.json").read_text())["agents"]
    assert [each["outside"] for each in entries] == [[], []]
    shown = acp("workspaces", "status", root)
    assert shown.stdout.count("success") >= 2, shown.stdout
    assert answered_once()
    until(
        lambda: not any(left_of(place(str(root), name)) for name in ("ann", "ben")),
        "the end of everybody",
        PATIENCE,
    )


def test_agents_that_are_started_for_each_attempt_change_files_in_their_workspaces_only(
    programs: Programs, beside: Path
) -> None:
    root = beside / "queues"
    tasks = [word for name in ONCE for word in ("--agent", f"{name}=Compare the queues.")]
    assert acp("workspaces", "init", root, "--task", "a comparison", *tasks).returncode == 0
    playing.git(root, "init", "-q")  # one program names files from the repository's root
    shared = root / "agent-workspaces/shared"
    shared.mkdir(exist_ok=True)
    strange = {name: [shared / f"{name}.md", root / f"{name}.md"] for name in ONCE}
    programs.more(
        *(
            (f"AGENT NAME: {name}", [["write", str(path), "Mine.\n"] for path in paths])
            for name, paths in strange.items()
        )
    )
    team = [word for name, preset in ONCE.items() for word in ("--agent", f"{name}={preset}")]
    ended = acp("workspaces", "dispatch", root, *team, "--once", "--jobs", "2")
    assert [str(each) for paths in strange.values() for each in paths if each.exists()] == []
    assert ended.returncode == 0, ended.stdout + ended.stderr
    entries = json.loads((root / "agent-workspaces/.coord/manifest.json").read_text())["agents"]
    assert [each["outside"] for each in entries] == [[]] * len(ONCE)


def test_a_cycle_with_codex_and_claude(programs: Programs, tmp_path: Path) -> None:
    root, no, yes = tmp_path / "project", tmp_path / "no", tmp_path / "yes"
    root.mkdir()
    programs.more(
        ("You are RA,", [["run", f"touch {tmp_path / 'cancelled'}", True]]),
        ("You are RA,", [["run", f"touch {no}", True]]),
        ("You are EP,", [["run", f"touch {yes}", True]]),
        ("You are CD,", [["run", f"touch {tmp_path / 'slow'} && sleep 6"]]),
    )
    agents = ("--agent", "codex", "--agent", "cd=claude", "--permissions", "edits")
    started = acp("cycle", "start", WHAT, "--cycle", ID, *agents, "--folder", root)
    assert started.returncode == 0, started.stderr
    cancel(root, "ra", request(root, "cancelled"))
    until(lambda: json.loads(path(root).read_text())["status"] == "paused", "the question", PATIENCE)  # fmt: skip
    (asked,) = json.loads(path(root).read_text())["coordination"]["pending_decisions"]
    assert acp("cycle", "decide", asked["id"], "1", "--folder", root).returncode == 0
    by_key(root, f"touch {no}", "2")  # this program ends its turn then: the run is made anew
    by_key(root, f"touch {yes}", "1")
    opened = request(root, "sleep 6")
    conductor = registry.find(str(root), "orchestrator")
    assert conductor is not None
    kill(conductor.pid)
    assert acp("cycle", "run", "--folder", root).returncode == 0
    assert answers.is_published(opened)
    allow(opened)
    told = acp("cycle", "feedback", "cd", "Quote fields with commas [[I quote]]", "--folder", root)
    assert told.returncode == 0, told.stderr
    allow_all(root, lambda: json.loads(path(root).read_text())["status"] == "completed")
    assert (no.exists(), yes.exists()) == (False, True)
    assert not (tmp_path / "cancelled").exists()
    (entry,) = json.loads(path(root).read_text())["coordination"]["feedback_log"]
    assert (entry["run"], bool(entry["sent_at"])) == ("1-cd", True)
    assert "I heard: I quote" in log(root, "cd")
    assert answered_once()
    until(lambda: not any(left_of(place(str(root), name)) for name in AGENTS), "everybody's end")


def test_tasks_of_a_cycle_at_the_same_time_with_claude(programs: Programs, tmp_path: Path) -> None:
    root, met = tmp_path / "project", [tmp_path / "first", tmp_path / "second"]
    root.mkdir()
    (programs.folder / "apart").touch()

    def meets(mine: int) -> list[list[object]]:
        wait = f"touch {met[mine]}; while [ ! -e {met[1 - mine]} ]; do sleep 0.1; done"
        return [["run", wait]]

    details = "Do only this task of the plan; plan.json contains its details:"
    programs.more(
        (f"{details} TASK-001", meets(0)),
        (f"{details} TASK-002", meets(1)),
    )
    agents = ("--agent", "claude", "--permissions", "edits", "--jobs", "2")
    started = acp("cycle", "start", WHAT, "--cycle", ID, *agents, "--folder", root)
    assert started.returncode == 0, started.stderr
    allow_all(root, lambda: json.loads(path(root).read_text())["status"] in ("completed", "paused"))
    held = json.loads(path(root).read_text())
    assert held["status"] == "completed"
    assert {each["status"] for each in held["plan"]["tasks"]} == {"completed"}
    names = [f"cd-{number}" for number in (1, 2, 3, 4)]
    assert all((root / f"TASK-00{number}.txt").exists() for number in (1, 2, 3, 4))
    assert answered_once()
    for name in (*AGENTS, *names):
        loop = registry.find(str(root), name)
        assert loop is not None and loop.shown.live == "yes", name
    until(
        lambda: not any(left_of(place(str(root), name)) for name in (*AGENTS, *names)),
        "everybody's end",
        PATIENCE,
    )


def test_questions_and_kills_with_qwen_and_claude(programs: Programs, tmp_path: Path) -> None:
    folder, yes = tmp_path / "cache", tmp_path / "yes"
    named = ["--participant", "server", "--participant", "reader"]
    words = ["--objective", "Choose how the cache is invalidated", "--completion", "It is agreed"]
    assert acp("init", "--folder", folder, *named, *words).returncode == 0
    choices = [{"label": "git", "description": "a"}, {"label": "postgres", "description": "b"}]
    asked = {"question": "Which store?", "header": "Store", "options": choices, "multiSelect": False}  # fmt: skip
    programs.more(
        ("You are `server`", [["use", "ask_user_question", {"questions": [asked]}], ["run", f"touch {yes}"]]),
        ("You are `reader`", [["use", "AskUserQuestion", {"questions": [asked]}]]),
    )  # fmt: skip
    team = ("server=qwen", "reader=claude", "--permissions", "edits", "--yes")
    assert acp("launch", folder, *team).returncode == 0
    answer_question(folder, "postgres")
    opened = request(folder, f"touch {yes}")
    until(lambda: has_heard(folder, "server", "postgres"), "the answer in its tool", PATIENCE)

    holder, agent = session(folder, "server")
    for pid in (agent, state(folder, "server").pid, holder):
        with contextlib.suppress(ProcessLookupError):
            kill(pid)
    with pytest.raises(Refused):
        answers.answer(opened, Verdict.ALLOW, "ann", utc_now())
    again = ("server=qwen", "--permissions", "edits", "--yes")
    assert acp("launch", folder, *again).returncode == 0
    until(lambda: any(each.participant == "server" for each in answers.waiting(str(folder))) or len(events(folder)) > 1, "the turn to go on", PATIENCE)  # fmt: skip
    allow_all(folder, lambda: len(events(folder)) > 1)
    assert [each["event"] for each in events(folder)[1:2]] == ["proposal_submitted"]

    answer_question(folder, "git, with a mirror")
    allow_all(folder, lambda: len(events(folder)) > 2)
    until(lambda: has_heard(folder, "reader", "git, with a mirror"), "the answer in its tool", PATIENCE)  # fmt: skip
    until(lambda: is_valid(folder), "what follows from the last event", PATIENCE)
    assert answered_once()


def has_heard(folder: Path, participant: str, answer: str) -> bool:
    """Whether an answer is in what the agent's own tool gave to its model."""
    lines = log(folder, participant).splitlines()
    return any(answer in each and not each.endswith(f"answered: {answer}") for each in lines)


def answer_question(folder: Path, answer: str) -> None:
    """Answer the question that an agent asks; whatever else is asked before is allowed."""

    def asked() -> OpenRequest | None:
        found = answers.waiting(str(folder))
        for each in found:
            if not each.request.questions:
                allow(each)
        return next((each for each in found if each.request.questions), None)

    opened = until(asked, "a question", PATIENCE)
    assert opened is not None
    ended = acp("answer", folder, opened.id, "reject", "--message", answer)
    assert ended.returncode == 0, ended.stderr
