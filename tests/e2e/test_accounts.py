"""Two real accounts at the same collaborations: both act, nothing is doubled, nothing undone."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from acp_core.files import claims
from tests.agents.support import ROOT, is_gone, wait_for
from tests.support.accounts import Account, Shared
from tests.support.terminal import Terminal

pytestmark = pytest.mark.slow
HANGS = """
import sys, time
with open(sys.argv[1], "a") as file:
    print("begins", file=file)
time.sleep(600)
"""
CYCLE = "cycle-v1-20260302T180000-csvexprt"


def shared_folder(two: Shared, name: str) -> Path:
    """A folder that both can write, in the one that they share; anna made it."""
    folder = two.folder / name
    code, _, err = two.anna.run("mkdir", "-m", "2770", str(folder))
    assert code == 0, err
    return folder


def owner_of(folder: Path, name: str) -> claims.Owner:
    owner = claims.seen(folder, name).owner
    assert owner is not None
    return owner


def kill_and_forget(account: Account, folder: Path, name: str) -> None:
    """Whoever holds the claim is killed, and all that its account kept of it is removed."""
    pid = owner_of(folder, name).process.pid
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: is_gone(pid), "it to be gone")
    shutil.rmtree(account.state, ignore_errors=True)


def end_child(folder: Path, name: str) -> None:
    child = claims.seen(folder, name).child
    assert child is not None
    os.kill(child.pid, signal.SIGKILL)
    wait_for(lambda: is_gone(child.pid), "the program to end")


def begun(path: Path) -> int:
    return path.read_text().count("begins") if path.exists() else 0


def check_modes(folder: Path, group: int) -> None:
    """Whatever acp wrote can be written by both."""
    for path in folder.rglob("*"):
        if ".git" in path.relative_to(folder).parts:
            continue
        found = path.lstat()
        assert found.st_gid == group, path
        wanted = stat.S_IRGRP | stat.S_IWGRP
        assert found.st_mode & wanted == wanted or path.name == ".gitignore", path


def dashboards(two: Shared, folder: Path, text: str) -> None:
    """Both have it on their screen."""
    for account in (two.anna, two.ben):
        words = [account.python, "-P", "-m", "acp_tui", str(folder)]
        with Terminal([*account.as_words(), *words]) as screen:
            screen.wait_for(text, 60)


def test_a_folder_collaboration(two: Shared) -> None:
    anna, ben = two.anna, two.ben
    folder = shared_folder(two, "checkout")
    program, log = two.file("agent", HANGS), folder / "begun.log"
    words = ("--objective", "Agree on the key", "--completion", "The key is agreed")
    people = ("--participant", "server", "--participant", "reader")
    anna.acp("init", "--folder", folder, *words, *people)
    append = ("append", "--folder", folder, "--participant")
    anna.acp("launch", folder, "server", "--", anna.python, program, log)
    wait_for(lambda: begun(log) == 1, "the program to begin")
    dashboards(two, folder, "checkout")

    said = ben.acp("launch", folder, "server", "--", anna.python, program, log, codes=(1, 2))
    pid = owner_of(folder, "loops/server").process.pid
    assert f"{anna.name} plays server (pid {pid} on " in said
    assert begun(log) == 1
    anna.acp("launch", folder, "reader", "--", anna.python, program, log)
    waits = owner_of(folder, "loops/reader").process.pid
    (listed,) = [e for e in ben.json("ps", folder)["loops"] if e["participant"] == "server"]
    assert (listed["account"], listed["pid"], listed["alive"]) == (anna.name, pid, True)
    assert listed["note"].endswith(f": ask {anna.name}")
    (row,) = ben.json("status", folder)["collaborations"]
    assert {"participant": "server", "account": anna.name} in row["runners"]
    assert f"server (run by {anna.name})" in ben.acp("status", folder)
    assert "server (run by you)" in anna.acp("status", folder)
    said = ben.acp("nudge", folder, "server", "go on", codes=(2,))
    assert f"only {anna.name} can send a message to it" in said
    assert "shared with the group" in ben.acp("doctor", folder)
    parked = Path(f"/proc/{waits}/cmdline")
    wait_for(lambda: b"acp-parked" in parked.read_bytes(), "the reader's loop to be parked")
    ben.acp("stop", folder, "reader", codes=(0, 1))  # 1: asked for, and not answered yet
    wait_for(lambda: not claims.seen(folder, "loops/reader").held, "the reader's loop to end")
    ben.acp(*append, "server", "--event", "proposal_submitted", "--summary", "x", "--reply-to", "1")
    review = two.file("review.md", "Position:\n- Fine.\n", 0o644)
    review_words = ("--event", "review_submitted", "--review-file", review, "--reply-to", "2")
    anna.acp(*append, "reader", *review_words, "--summary", "Fine")
    check_modes(folder, anna.group)
    lines = (folder / "events.jsonl").read_text().splitlines()
    assert [json.loads(line)["seq"] for line in lines] == [1, 2, 3]
    for account in (anna, ben):
        account.acp("validate", folder)

    wait_for(lambda: begun(log) == 2 or claims.seen(folder, "loops/server").child, "the next turn")
    now = begun(log)
    if claims.seen(folder, "loops/server").child is None:
        wait_for(lambda: claims.seen(folder, "loops/server").child, "its program to be noted")
        now = begun(log)
    kill_and_forget(anna, folder, "loops/server")
    said = ben.acp("launch", folder, "server", "--", anna.python, program, log, codes=(1, 2))
    assert "is still running" in said and begun(log) == now
    end_child(folder, "loops/server")
    ben.acp("launch", folder, "server", "--", anna.python, program, log)
    wait_for(lambda: begun(log) == now + 1, "ben's program to begin")
    assert owner_of(folder, "loops/server").account == ben.name

    said = anna.acp("stop", folder, "server")
    wait_for(lambda: not claims.seen(folder, "loops/server").held, "ben's loop to stop on request")
    assert claims.seen(folder, "loops/server").child is None, said


def test_ones_own_ended_loop_hides_no_running_one_of_another(two: Shared) -> None:
    """ben ran the server and stopped; anna runs it now; ben looks, and stops what runs."""
    anna, ben = two.anna, two.ben
    folder = shared_folder(two, "cache")
    program, log = two.file("agent", HANGS), folder / "begun.log"
    words = ("--objective", "Agree on the key", "--completion", "The key is agreed")
    people = ("--participant", "server", "--participant", "reader")
    anna.acp("init", "--folder", folder, *words, *people)
    launch = ("launch", folder, "server", "--", anna.python, program, log)
    ben.acp(*launch)
    wait_for(lambda: begun(log) == 1, "ben's program to begin")
    assert "server: stopped" in ben.acp("stop", folder)
    anna.acp(*launch)
    wait_for(lambda: claims.seen(folder, "loops/server").child, "anna's program to be noted")
    pid = owner_of(folder, "loops/server").process.pid
    rows = {each["pid"]: each for each in ben.json("ps", folder)["loops"]}
    assert rows[pid]["alive"] and rows[pid]["account"] == anna.name
    assert "its loop was stopped" not in ben.acp("why", folder, codes=(0, 1))
    said = ben.acp("stop", folder, codes=(0, 1))  # 1: asked for, and not answered yet
    assert "No loops are running" not in said and "server: " in said, said
    wait_for(lambda: not claims.seen(folder, "loops/server").held, "anna's loop to stop on request")
    wait_for(lambda: is_gone(pid), "its process to end")
    assert begun(log) == 2


def test_agent_workspaces(two: Shared) -> None:
    anna, ben = two.anna, two.ben
    folder = shared_folder(two, "queues")
    program, log = two.file("agent", HANGS), folder / "begun.log"
    anna.acp("workspaces", "init", folder, "--task", "queues", "-a", "ann=Look", "-a", "bob=See")
    dispatch = ("workspaces", "dispatch", folder, "--limit", "1", "--detach")
    anna.acp(*dispatch, "--", anna.python, program, log)
    wait_for(lambda: begun(log) == 1, "ann to begin")
    wait_for(lambda: claims.seen(folder, "loops/ann").child, "its program to be noted")
    dashboards(two, folder, "queues")
    said = ben.acp(*dispatch, "--", anna.python, program, log, codes=(2,))
    assert f"{anna.name} plays ann (pid " in said and f"ask {anna.name} to stop" in said
    kill_and_forget(anna, folder, "loops/ann")
    said = ben.acp(*dispatch, "--", anna.python, program, log, codes=(0, 1, 2))
    assert "is still running" in said and begun(log) == 1
    end_child(folder, "loops/ann")
    ben.acp(*dispatch, "--", anna.python, program, log, codes=(0, 1))
    ben.acp("workspaces", "triage", folder, "ann", "gap", "--reason", "not needed")
    triage = folder / "agent-workspaces" / ".coord" / "triage.json"
    (decision,) = json.loads(triage.read_text())["decisions"]
    anna.acp("workspaces", "status", folder, codes=(0, 1))
    assert json.loads(triage.read_text())["decisions"] == [decision]
    assert decision["decision"] == "gap" and begun(log) <= 3


def test_a_governed_run(two: Shared) -> None:
    anna, ben = two.anna, two.ben
    folder = shared_folder(two, "lamp")
    program, log = two.file("agent", HANGS), two.folder / "begun.log"
    for account in (anna, ben):
        account.run("git", "config", "--global", "safe.directory", "*")
        account.run("git", "config", "--global", "user.email", f"{account.name}@example.org")
        account.run("git", "config", "--global", "user.name", account.name)
    anna.run("git", "init", "-q", "--shared=group", "-b", "main", str(folder))
    anna.run("git", "commit", "-q", "--allow-empty", "-m", "Begin", cwd=folder)
    anna.acp("governed", "init", folder, "--agent", f"pm={anna.python} {program} {log}")
    anna.run("git", "add", "-A", cwd=folder)
    anna.run("git", "commit", "-q", "-m", "Set up", cwd=folder)
    step = anna.start(*anna.words("governed", "step", folder))
    wait_for(lambda: begun(log) == 1, "the program to begin")
    (turn,) = json.loads((folder / ".agentxchain/state.json").read_text())["active_turns"]
    name = claims.of_turn(turn)
    wait_for(lambda: runs(folder, name, "agent"), "its program to be noted")
    dashboards(two, folder, "lamp")
    for codes in ((2,), (2,)):
        said = ben.acp("governed", "step", folder, codes=codes)
        runs_there = (
            f"the program of pm ({turn}) is still running, but {anna.name} controls this run"
        )
        assert runs_there in said and f"ask {anna.name} to stop it" in said
        assert runs_there in ben.acp("why", folder, codes=(0, 1))
    os.kill(step.pid, signal.SIGKILL)
    step.wait()
    shutil.rmtree(anna.state, ignore_errors=True)
    assert "is still running" in ben.acp("governed", "step", folder, codes=(2,))
    assert begun(log) == 1
    end_child(folder, name)
    again = ben.start(*ben.words("governed", "step", folder))
    wait_for(lambda: begun(log) == 2, "ben's program to begin")
    said = anna.acp("governed", "step", folder, codes=(2,))
    assert f"{ben.name} controls this run" in said
    os.kill(again.pid, signal.SIGKILL)
    again.wait()
    end_child(folder, name)
    decide = ("--reason", "nothing came", "--by", "ben", "--yes")
    ben.acp("governed", "reject-turn", folder, *decide)
    history = (folder / ".agentxchain/state.json").read_bytes()
    anna.acp("governed", "status", folder, codes=(0, 1))
    assert (folder / ".agentxchain/state.json").read_bytes() == history
    assert begun(log) == 2


def runs(folder: Path, name: str, word: str) -> bool:
    """Whether the program that is noted is the agent's own, not the process that starts it."""
    child = claims.seen(folder, name).child
    try:
        return (
            child is not None and word.encode() in Path(f"/proc/{child.pid}/cmdline").read_bytes()
        )
    except OSError:
        return False


def test_a_development_cycle(two: Shared) -> None:
    anna, ben = two.anna, two.ben
    folder = shared_folder(two, "report")
    agent = f"{anna.python} {ROOT / 'tests/protocols/cycle/agent.py'}"
    anna.run("sh", "-c", f'umask 002; echo \'{{"ra": ["hold"]}}\' > {folder}/behave.json')
    here = ("--folder", folder)
    anna.acp("cycle", "start", "Export as CSV", "--cycle", CYCLE, "--command", agent, *here)
    state_file = folder / f".workflow/.cycle/{CYCLE}.json"

    def held() -> dict[str, Any]:
        value: dict[str, Any] = json.loads(state_file.read_text())
        return value

    def calls() -> list[str]:
        path = folder / "calls.log"
        lines = path.read_text().splitlines() if path.exists() else []
        return [" ".join(line.split(" ")[1:3]) for line in lines if line.startswith("start ")]

    wait_for(lambda: calls() == ["ra hold"], "ra to begin")
    wait_for(lambda: claims.seen(folder, "loops/ra").child, "its program to be noted")
    dashboards(two, folder, "report")
    said = ben.acp("cycle", "run", "--command", agent, *here, codes=(2,))
    assert f"{anna.name} controls this run (pid " in said and f"ask {anna.name} to stop" in said
    assert ben.json("cycle", "limit", "9", *here)["state"] == "done"
    assert ben.json("cycle", "feedback", "cd", "Quote commas", *here)["state"] == "done"
    wait_for(
        lambda: all(each.get("picked_up_at") for each in held()["coordination"]["requests"]),
        "anna's orchestrator to pick it up",
    )
    assert held()["max_iterations"] == 9 and "put back" not in state_file.read_text()
    assert anna.json("cycle", "limit", "8", *here)["state"] == "requested"

    kill_and_forget(anna, folder, claims.CONDUCT)
    assert ben.json("cycle", "limit", "7", *here)["state"] == "requested"
    ben.acp("cycle", "run", "--command", agent, *here)
    wait_for(lambda: owner_of(folder, claims.CONDUCT).account == ben.name, "ben to conduct")
    said = anna.acp("cycle", "run", "--command", agent, *here, codes=(2,))
    assert f"{ben.name} controls this run (pid " in said
    assert calls() == ["ra hold"]
    anna.run("sh", "-c", f"umask 002; touch {folder}/go")
    wait_for(lambda: not claims.seen(folder, claims.CONDUCT).held, "the cycle to end", 120)
    assert (held()["status"], held()["max_iterations"]) == ("completed", 7), calls()
    assert calls() == ["ra hold", "ra work", "ep work", "cd work", "vas work"]
    check_modes(folder, anna.group)
