"""Three hosts and a person: two collaborations at once, from init to completed, over every kind of store."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from acp_core.stores.address import parse
from tests.loops.support import stand_in
from tests.stores import ssh
from tests.stores.databases import prepared
from tests.stores.hosts import ROOT, Host, repository
from tests.support.postgres import Server
from tests.support.terminal import Terminal, emulator
from tests.support.waiting import until

PEOPLE = {"a": "writer", "b": "reader", "c": "critic"}
VERSIONS = {"one": (), "two": ("--primary-deliverable-type", "decision-memo", "--primary-deliverable-file", "decision.md")}  # fmt: skip
PATIENCE = 240.0  # seconds that one step may take on a busy machine
REVIEW = (
    "Position:\n- It is sound.\n\nRequired Changes:\n- None.\n\nQuestions:\n- What is the key?\n"
)


class Team:
    """The three hosts, their store, and a dashboard on each.

    Args:
        place: for their homes; short enough for the sockets of ssh.
        address: of the store.
        env: what is added to the environment of each.
    """

    def __init__(self, place: Path, address: str, env: dict[str, str]) -> None:
        self.address = address
        self.hosts = [Host(name, place) for name in PEOPLE]
        for host in self.hosts:
            host.env |= env
            config = host.home / "config" / "config.toml"
            config.write_text(f'humans = ["critic"]\n{config.read_text()}')
            (host.home / "work").mkdir()

    def at(self, host: Host, name: str) -> Path:
        """A host's folder of a collaboration."""
        return host.home / "work" / name

    def everywhere(self, name: str, holds: Callable[[Path], bool], what: str) -> None:
        """Wait until something holds of a collaboration's folder on every host."""
        for host in self.hosts:
            until(partial(holds, self.at(host, name)), f"{what} on {host.name}", PATIENCE)

    def joined(self, name: str, hosts: Sequence[Host]) -> None:
        """Hosts join a collaboration."""
        for host in hosts:
            host.done("join", f"{parse(self.address).link}#{name}", str(self.at(host, name)))

    def launched(self, name: str, *names: str) -> None:
        """Start the loops of hosts in a collaboration."""
        for host in self.hosts:
            if host.name in names:
                at, agent = str(self.at(host, name)), stand_in(host.home, "agent")
                host.done("launch", at, "--participant", PEOPLE[host.name], "--", agent)

    def digests(self, host: Host, name: str) -> dict[str, str]:
        """A host's files of a collaboration."""
        host.folder = self.at(host, name)
        return host.files()

    def ended(self) -> None:
        """Stop all loops, and let the processes that synchronize go."""
        for host in self.hosts:
            for folder in (host.home / "work").iterdir():
                host.acp("stop", str(folder))
                (folder / ".acp" / "share.json").unlink(missing_ok=True)


@pytest.fixture(params=["path", "ssh", "postgresql"])
def team(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Team]:
    """A team that has a store of this kind."""
    with contextlib.ExitStack() as stack:
        place = Path(
            stack.enter_context(
                tempfile.TemporaryDirectory(prefix="acp", dir="/tmp", ignore_cleanup_errors=True)
            )
        )
        env: dict[str, str] = {}
        if request.param == "path":
            address = str(repository(tmp_path))
        elif request.param == "ssh":
            if ssh.MISSING:
                pytest.skip(ssh.MISSING)
            server = stack.enter_context(ssh.server(tmp_path / "sshd"))
            env["GIT_SSH_COMMAND"] = server.command
            address = server.url(repository(tmp_path))
        else:
            postgres: Server = request.getfixturevalue("postgres")
            address = prepared(postgres.database())
        made = Team(place, address, env)
        stack.callback(made.ended)
        yield made


def shown(dashboard: Terminal, name: str, word: str) -> None:
    """Wait until a dashboard's row of a collaboration has a word."""

    def seen() -> bool:
        dashboard.pump(0.1)
        rows = [line for line in dashboard.text.splitlines() if f" {name} " in f"{line} "]
        return any(word in row for row in rows)

    until(seen, f"{name} to be {word} on a dashboard", PATIENCE)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not emulator(), reason="needs pyte")
def test_two_collaborations_from_init_to_completed(team: Team) -> None:
    first, second, third = team.hosts
    for name, more in VERSIONS.items():
        people = [word for each in PEOPLE.values() for word in ("--participant", each)]
        first.done("init", "--folder", str(team.at(first, name)), *people, "--objective", "Choose",
                   "--completion", "The key is agreed", *more)  # fmt: skip
        first.done("share", str(team.at(first, name)), team.address, "--id", name, "--yes")
        team.joined(name, (second, third))
    with contextlib.ExitStack() as stack:
        dashboards = [
            stack.enter_context(
                Terminal(
                    [sys.executable, "-m", "acp_tui", str(host.home / "work")],
                    env=host.env | {"PYTHONPATH": str(ROOT)},
                    cwd=host.home,
                    columns=160,
                )
            )
            for host in team.hosts
        ]

        def all_show(name: str, word: str) -> None:
            for each in dashboards:
                shown(each, name, word)

        for name in VERSIONS:
            all_show(name, "drafting")
        for name in VERSIONS:
            team.launched(name, "a")
        for name in VERSIONS:
            all_show(name, "reviewing")
        for name in VERSIONS:
            _asked_and_blocked(team, name)
        for name in VERSIONS:
            all_show(name, "blocked")
        for name in VERSIONS:
            _continued(team, name)
        for name in VERSIONS:
            team.launched(f"{name}-2", *PEOPLE)
        for name in VERSIONS:
            all_show(f"{name}-2", "completed")
    for name in VERSIONS:
        for at in (name, f"{name}-2"):
            files = [team.digests(host, at) for host in team.hosts]
            assert files[0] == files[1] == files[2], at
            assert all(host.acp_here("validate").returncode == 0 for host in team.hosts)
        acted = {each["from"] for each in third.log()}
        assert acted == set(PEOPLE.values())
        told = json.loads(third.done_here("hosts", "--json"))
        assert told["leases"] == [], "given back when it was completed"


def _asked_and_blocked(team: Team, name: str) -> None:
    """The second host's review asks; the person on the third answers, and then blocks."""
    _, second, third = team.hosts
    second.folder, at = team.at(second, name), str(team.at(third, name))
    review = second.home / "review.txt"
    review.write_text(REVIEW)
    second.appended("reader", "review_submitted", "--reply-to", "2", "--review-file", str(review))
    team.everywhere(name, lambda at: b"What is the key?" in (at / "review.md").read_bytes(), "the question")  # fmt: skip
    third.done("sync", at, "--take", "critic")
    third.done("act", at, "answer_question", "--answer", f"The path ({name}).", "--yes")
    team.everywhere(name, lambda at: f"The path ({name}).".encode() in (at / "review.md").read_bytes(), "the answer")  # fmt: skip
    third.done("act", at, "block", "--participant", "critic", "--reason", "Who pays?", "--yes")


def _continued(team: Team, name: str) -> None:
    """The person continues elsewhere; the others are told, and join there."""
    first, second, third = team.hosts
    new = str(team.at(third, f"{name}-2"))
    third.done("continue", str(team.at(third, name)), "--to", new, "--answer", "We do")
    team.everywhere(name, lambda at: b"continued_by" in (at / "protocol.json").read_bytes(), "where it goes on")  # fmt: skip
    team.joined(f"{name}-2", (first, second))
