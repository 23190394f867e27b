"""Real loops on hosts that share a repository: who waits for whom, and when a lease goes back."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acp_core.files import claims
from acp_core.files.claims import Process
from tests.agents.support import wait_for
from tests.loops.support import stand_in
from tests.stores.hosts import Host, git, shared
from tests.stores.test_shared_folder import proposed


@pytest.fixture
def ended() -> Iterator[list[Host]]:
    """Hosts whose loops are stopped at the end."""
    hosts: list[Host] = []
    yield hosts
    for host in hosts:
        if (host.folder / "protocol.json").exists():
            host.acp_here("stop")


def launch(host: Host, who: str) -> None:
    host.done_here("launch", "--participant", who, "--", stand_in(host.home, "agent"))


@pytest.mark.slow
def test_a_loop_waits_where_its_participant_acts_elsewhere(
    tmp_path: Path, ended: list[Host]
) -> None:
    store, (a, b) = shared(tmp_path, "a", "b")
    ended.append(b)
    b.sync()
    a.write("proposal.md", "# P\n")
    a.appended("writer", "proposal_submitted", "--reply-to", "1")
    a.appended("reader", "review_submitted", "--reply-to", "2", "--review", "Change it.")
    b.sync()
    launch(b, "writer")

    def told() -> bool:
        return "writer acts on host a" in b.acp_here("ps", "--json").stdout

    wait_for(told, "the loop to say where the writer acts")
    assert len(b.log()) == 3
    a.sync("--release", "writer")
    wait_for(lambda: b.log()[-1]["event"] == "proposal_revised", "the loop to go on")
    leases = git(
        "-C", str(store), "cat-file", "-p", "refs/heads/acp/checkout/log:.acp/leases/writer.json"
    )
    assert '"host": "b"' in leases


@pytest.mark.slow
def test_a_lease_is_given_back_when_the_loop_ends(tmp_path: Path, ended: list[Host]) -> None:
    """Stopped by a person, at its own end, and where the store is away at that moment."""
    store, (a, b) = shared(tmp_path, "a", "b")
    ended.append(a)
    hang = tmp_path / "behaviour"
    program = ("--", stand_in(a.home, "agent"), f"--behaviour={hang}")

    def acts_here() -> bool:
        names = git("-C", str(store), "ls-tree", "-r", "--name-only", "refs/heads/acp/checkout/log")
        return ".acp/leases/writer.json" in names

    def launched() -> None:
        hang.write_text("hang hang hang", encoding="utf-8")
        a.done_here("launch", "--participant", "writer", *program)
        wait_for(acts_here, "the writer to act on a")

    launched()
    assert "writer: stopped" in a.done_here("stop")
    assert not acts_here()
    assert "writer acts here" in b.sync("--take", "writer")
    b.sync("--release", "writer")
    ran = a.acp_here("loop", "writer", "--deadline", "3s", *program)
    assert ran.returncode == 1 and "the deadline passed" in ran.stdout + ran.stderr
    assert not acts_here()
    launched()
    store.rename(tmp_path / "away.git")
    said = a.done_here("stop")
    assert "the other hosts do not know yet that writer can act elsewhere" in said
    (tmp_path / "away.git").rename(store)
    assert acts_here()
    assert "writer can act elsewhere" in a.sync("--release", "writer")
    assert not acts_here()


@pytest.mark.slow
def test_a_loop_pauses_while_the_store_is_away(tmp_path: Path, ended: list[Host]) -> None:
    """Else every attempt would run a program whose event is refused, until the loop gives up."""
    store, (a, b) = shared(tmp_path, "a", "b")
    ended.append(b)
    behaviour = tmp_path / "behaviour"
    behaviour.write_text("hang", encoding="utf-8")
    proposed(a)
    b.sync()
    program = (stand_in(b.home, "agent"), f"--behaviour={behaviour}")
    b.done_here("launch", "--participant", "reader", "--", *program)

    def child() -> Process | None:
        return claims.seen(b.folder, claims.of_participant("reader")).child

    wait_for(lambda: child() and not behaviour.read_text(), "the program to begin")
    store.rename(tmp_path / "away.git")
    note = b.folder / ".acp/run/sync.json"
    wait_for(lambda: note.exists() and b'"reached": false' in note.read_bytes(), "the notice")
    running = child()
    assert running is not None
    os.kill(running.pid, signal.SIGKILL)

    def seen() -> dict[str, Any]:
        (loop,) = json.loads(b.done_here("ps", "--json"))["loops"]
        return dict(loop)

    why = "cannot be reached (there is no such repository)"
    wait_for(lambda: why in seen()["note"], "the loop to say why it pauses")
    time.sleep(2.0)  # in which it would begin again, more than once
    assert (seen()["run"]["number"], seen()["failure"]) == (1, None), seen()
    (tmp_path / "away.git").rename(store)
    wait_for(lambda: b.log()[-1]["event"] == "review_submitted", "the loop to go on")
