"""A day in the life: three hosts, two accounts, four protocols and the network, and all that goes wrong.

The agents are the real programs, two at a time; only their model is a script. A person acts from the
dashboard, from a shell and from a browser. In the end everything is completed, or blocked for the reason that
the day brought; nothing that was acknowledged is lost, and every need that anybody was told was true.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.day import (
    PATIENCE,
    Machine,
    Watcher,
    asked,
    by_keys,
    fill,
    small_disk,
    told,
)
from tests.e2e.page import Page
from tests.protocols.cycle.conducting import ID, WHAT
from tests.protocols.governed import playing
from tests.stores.hosts import repository
from tests.support.accounts import Shared
from tests.support.real_programs import VARIABLE, Programs, installed
from tests.support.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(installed() is None, reason=f"{VARIABLE} names no folder of the programs"),
]
CACHE = "Choose how the cache is invalidated"


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    found = installed()
    assert found is not None
    made = Programs(tmp_path / "programs", found)
    yield made
    made.close()


@pytest.fixture
def hosts(tmp_path: Path, programs: Programs) -> Iterator[tuple[Machine, ...]]:
    made = tuple(Machine(name, tmp_path, programs) for name in ("laptop", "attic", "desk"))
    yield made
    for host in made:
        host.lose_power()


def test_a_day(tmp_path: Path, programs: Programs, hosts: tuple[Machine, ...], two: Shared) -> None:
    with Watcher(PLANTED, PASSING) as watcher, small_disk(tmp_path / "disk", 32) as disk:
        morning(tmp_path, programs, hosts, watcher)
        noon(programs, hosts[2], two, watcher)
        afternoon(tmp_path, programs, hosts[0], disk, watcher)
        evening(tmp_path, programs, hosts[1], watcher)
        for host in hosts:
            recordings_replay(host)
    watcher.check()


CYCLE, RUN = WHAT, "lamp"
PLANTED = {
    ("c", "B17"),  # Claude asks for permission
    (RUN, "B17"),  # opencode does
    ("queues", "E20"),  # the disk is full
    (CYCLE, "B17"),  # Codex asks
    ("keys", "E1"),  # a person blocked it
}
"""What the day brings about: each must be told."""
PASSING = {
    ("c", "B1"),  # on the other hosts, before the server's first event tells where it acts
    ("c", "C1"),  # the outage came between the server's proposal and its event
    (RUN, "STEP"),  # between a decision and the next step
    (RUN, "STAGED"),  # until the other account accepts the result
    (RUN, "GATE"),  # until it approves
    (RUN, "B2"),  # the conductor was killed
    ("queues", "E56"),  # until the agents are started
    ("queues", "E57"),  # their outputs are there, and were not compared yet
    ("queues", "E59"),  # the draft is there, and was not finished yet
    (CYCLE, "B2"),  # the power was lost
}
"""What is true for a moment, and may have been seen then."""


def morning(
    tmp_path: Path, programs: Programs, hosts: tuple[Machine, ...], watcher: Watcher
) -> None:
    """A collaboration of three hosts: a permission, an outage, a limit, and a person who reviews."""
    laptop, attic, desk = hosts
    store, allowed = repository(tmp_path), tmp_path / "allowed"
    people = [w for each in ("server", "reader", "critic") for w in ("--participant", each)]
    laptop.done("init", "--folder", str(laptop.folder), *people, "--objective", CACHE, "--completion", "It is agreed")  # fmt: skip
    laptop.done("share", str(laptop.folder), str(store), "--id", "cache", "--yes")
    for host in (attic, desk):
        host.done("join", f"{store}#cache", str(host.folder))
    programs.more(("You are `server`", [["run", f"touch {allowed}"]]))
    with laptop.dashboard(laptop.folder) as at_laptop, desk.dashboard(desk.folder) as at_desk:
        at_desk.wait_for("Waiting for server", PATIENCE)
        laptop.done("launch", str(laptop.folder), "server=claude", "--permissions", "edits", "--yes")  # fmt: skip
        attic.done("launch", str(attic.folder), "reader=gemini", "--permissions", "all", "--yes")
        for host in hosts:
            watcher.also(host, host.folder)
        watcher.until_told("c", "touch")
        (programs.folder / "away").touch()  # the model service is away while the proposal is made
        by_keys(at_laptop, laptop, laptop.folder, "1", "touch")
        until(lambda: refused(programs), "somebody to meet the outage", PATIENCE)
        (programs.folder / "limited").write_text("GenerateContent")
        (programs.folder / "away").unlink()
        reaches(desk, "proposal_submitted")
        assert allowed.exists()
        desk.write("critic.md", "Position:\n- It is sound.\n\nRequired Changes:\n- None.\n")
        seq = last(desk, "proposal_submitted")["seq"]
        review = str(desk.folder / "critic.md")
        desk.appended("critic", "review_submitted", "--reply-to", str(seq), "--review-file", review)
        limited = until(lambda: loop_of(attic, "reader")["limited"], "the limit", PATIENCE)
        assert limited
        (programs.folder / "limited").unlink()  # somebody bought more
        attic.done("nudge", str(attic.folder), "reader", "There is more of it now.")
        reaches(desk, "question_classified")
        seq = last(desk, "question_classified")["seq"]
        desk.appended("critic", "decision_accepted", "--reply-to", str(seq))
        for screen in (at_laptop, at_desk):
            screen.wait_for("✓ completed", PATIENCE)
    until(lambda: len({host.read("events.jsonl") for host in hosts}) == 1, "the end", PATIENCE)
    for host in hosts:
        host.done("validate", str(host.folder))


def noon(programs: Programs, desk: Machine, two: Shared, watcher: Watcher) -> None:
    """A governed run that two accounts can write: its conductor is killed, and the other one decides."""
    ben, root, written = two.ben, two.folder / "lamp", programs.folder / "of-pm"
    playing.repository(root)
    playing.git(root, "config", "core.sharedRepository", "group")
    (programs.folder / "governed").write_text(playing.agent(programs.folder))
    programs.more(("# Execution Context", [["run", f"touch {written}"]]))
    roles = [word for role in ("pm", "dev", "qa") for word in ("--agent", f"{role}=opencode")]
    desk.done("governed", "init", str(root), "--goal", "Light the hall", *roles)
    share(root, two)
    ben.run("git", "config", "--global", "safe.directory", "*")
    watcher.also(desk, root)
    step = desk.begin("governed", "step", root)
    asked(desk, root, f"touch {written}", step)
    with Page(desk, root) as page:
        page.allow(lambda: not told(desk, root, f"touch {written}"))
    desk.allow_all(root, lambda: step.poll() is not None)
    assert step.returncode == 0, step.communicate()
    assert written.exists()
    decide(root, two, "approve-transition")

    step = desk.begin("governed", "step", root)
    asked(desk, root, "asks to run", step)  # a long command is cut: its end may be left out
    step.kill()
    step.wait()
    desk.allow_all(root, lambda: desk.acp("governed", "check", str(root)).returncode == 0)
    decide(root, two, "approve-transition")

    step = desk.begin("governed", "step", root)
    desk.allow_all(root, lambda: step.poll() is not None)
    assert step.returncode == 0, step.communicate()
    decide(root, two, "approve-completion")
    assert ben.json("governed", "status", root)["status"] == "completed"


def share(root: Path, two: Shared) -> None:
    """Let both accounts write whatever is in a folder."""
    for path in (root, *root.rglob("*")):
        shutil.chown(path, group=two.ben.group)
        path.chmod(0o2770 if path.is_dir() else path.stat().st_mode | 0o660)


def decide(root: Path, two: Shared, gate: str) -> None:
    """The other account accepts what is staged, and lets the run go on."""
    two.ben.acp("governed", "accept-turn", root)
    two.ben.acp("governed", gate, root, "--yes", "--by", "ben", "--comment", "Seen.")
    playing.git(root, "add", "-A")
    playing.git(root, "commit", "-qm", "A phase is done", "--allow-empty")


def afternoon(
    tmp_path: Path, programs: Programs, laptop: Machine, disk: Path, watcher: Watcher
) -> None:
    """Workspaces on a disk that is full, and a cycle whose machine loses its power."""
    root = disk / "queues"
    tasks = [word for name in ("ann", "ben") for word in ("--agent", f"{name}=Compare the queues.")]
    laptop.done("workspaces", "init", str(root), "--task", "a comparison", *tasks)
    watcher.also(laptop, root)
    films = fill(disk)
    team = ("--agent", "ann=qwen", "--agent", "ben=gemini", "--permissions", "all", "--jobs", "1")
    refused = laptop.acp("workspaces", "dispatch", str(root), *team)
    assert refused.returncode == 2 and "disk" in refused.stderr, refused.stderr
    watcher.until_told("queues", "disk")
    films.unlink()
    laptop.done("workspaces", "dispatch", str(root), *team)
    laptop.done("workspaces", "compare", str(root))
    laptop.done("workspaces", "synthesise", str(root), "--agent", "qwen")
    laptop.done("workspaces", "finish", str(root))

    project = tmp_path / "project"
    project.mkdir()
    touch = ("You are EP,", [["run", f"touch {tmp_path / 'by-ep'}", True]])
    programs.more(touch, touch)  # the second time after the power was lost
    agents = ("--agent", "codex", "--agent", "cd=claude", "--permissions", "edits")
    laptop.done("cycle", "start", WHAT, "--cycle", ID, *agents, "--folder", str(project))
    watcher.also(laptop, project)
    watcher.until_told(WHAT, "touch")
    laptop.lose_power(project)
    laptop.boot()
    laptop.record(laptop.folder, root, project)
    laptop.done("cycle", "run", "--folder", str(project))
    laptop.allow_all(project, lambda: cycle(project)["status"] == "completed")
    assert (tmp_path / "by-ep").exists()


def cycle(project: Path) -> dict[str, Any]:
    """The state of a cycle."""
    found: dict[str, Any] = json.loads((project / f".workflow/.cycle/{ID}.json").read_text())
    return found


def evening(tmp_path: Path, programs: Programs, attic: Machine, watcher: Watcher) -> None:
    """An agent on the network, and a collaboration that a person blocks."""
    options = ("--port", "0", "--http-port", "0", "--workdir", tmp_path, "--permissions", "all")
    agent = attic.begin("agent", "--name", "Answers", "--on-message", "qwen", *options)
    try:
        until(lambda: "Answers" in attic.acp("wire", "agents").stdout, "the agent", PATIENCE)
        answer = attic.done(
            "wire", "send", "Answers", "Say a word", "--to", "this agent", "--from", "Asker",
            "--new-task", "--wait", "5m",
        )  # fmt: skip
        assert "completed" in answer and "A title" in answer, answer  # its model says no more
    finally:
        agent.terminate()
        agent.communicate()

    keys = tmp_path / "keys"
    attic.done("init", "--folder", str(keys), "--participant", "server", "--participant", "reader",
               "--objective", "Choose the key", "--completion", "It is agreed")  # fmt: skip
    watcher.also(attic, keys)
    with attic.dashboard(keys) as screen:
        screen.wait_for("Waiting for server", PATIENCE)
        screen.send("b")
        screen.wait_for("Reason", PATIENCE)
        screen.send("The budget is not decided")
        screen.send("\x13")
        screen.wait_for("■ blocked", PATIENCE)
    watcher.until_told("keys", "The budget is not decided")


def recordings_replay(host: Machine) -> None:
    """Everything that was recorded on a host ends as it stands, and each moment of it can be shown."""
    listed = host.json("recordings")["recordings"]
    assert listed and not any(each["problem"] for each in listed), listed
    for each in listed:
        (now,) = (
            row
            for row in host.json("status", each["collaboration"])["collaborations"]
            if row["key"] == each["collaboration"]
        )
        assert now["status"] == ("blocked" if now["name"] == "keys" else "completed"), now
        replay = host.json("replay", each["collaboration"])
        assert replay["recorded"] and replay["snapshot"]["status"] == now["status"]
        moments = replay["moments"]
        assert replay["snapshot"]["event_count"] == now["event_count"]
        before = 0
        for moment in moments[:: max(1, len(moments) // 5)]:
            shown = host.json("replay", each["collaboration"], "--at", moment["id"])
            assert shown["snapshot"]["event_count"] >= before, (now["name"], moment)
            before = shown["snapshot"]["event_count"]


def refused(programs: Programs) -> list[dict[str, object]]:
    """The requests that the model service refused."""
    return [each for each in programs.requests() if each.get("refused")]


def reaches(host: Machine, event: str) -> None:
    """Wait until a host has an event."""
    until(lambda: any(each["event"] == event for each in host.log()), f"{event} on {host.name}", PATIENCE)  # fmt: skip


def last(host: Machine, event: str) -> dict[str, Any]:
    """The newest event of a kind that a host has."""
    return next(each for each in reversed(host.log()) if each["event"] == event)


def loop_of(host: Machine, participant: str) -> dict[str, Any]:
    """What `acp ps` says of a participant's loop."""
    loops = host.json("ps", host.folder)["loops"]
    return next(each for each in loops if each["participant"] == participant)
