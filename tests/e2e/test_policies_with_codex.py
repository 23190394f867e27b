"""What each policy binds with the real codex, whose model is a script: it runs commands in its sandbox unasked.

Seen with codex 0.169.0 and codex-acp 2.6.0. Its model overwrites a file of the working folder and one of
the collaboration, and takes its turn.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_core.agents.live import answers
from acp_core.person import paths
from tests.agents.live.commands import acp
from tests.e2e.test_real_programs import PATIENCE, allow_all, programs, record
from tests.loops.support import events, turns
from tests.support.real_programs import VARIABLE, Programs, installed
from tests.support.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1_800),
    pytest.mark.skipif(installed() is None, reason=f"{VARIABLE} names no folder of the programs"),
]
__all__ = ["programs"]
WORDS = ("--objective", "Choose how the cache is invalidated", "--completion", "It is agreed")


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder, with acp's own in it, that lies neither in /tmp nor in /dev: its sandbox has those of its own."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        folder = Path(made).resolve()
        for name in ("config", "state", "cache"):
            monkeypatch.setenv(f"ACP_{name.upper()}", str(folder / name))
        yield folder


def settings(policy: str, more: str = "") -> None:
    file = paths.config_folder() / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'[permissions]\npolicy = "{policy}"\n{more}')


def ended(folder: Path) -> bool:
    """Whether the only attempt of the server is over."""
    with contextlib.suppress(FileNotFoundError):
        return bool(turns(folder, "server"))
    return False


@pytest.mark.parametrize(
    ("policy", "writes", "takes_its_turn"),
    [
        ("none", {"repo": False, "folder": False}, False),
        ("ask", {"repo": False, "folder": True}, True),
        ("edits", {"repo": False, "folder": True}, True),
        ("all", {"repo": True, "folder": True}, True),
    ],
)
def test_what_codex_writes_unasked(
    beside: Path,
    programs: Programs,
    policy: str,
    writes: dict[str, bool],
    takes_its_turn: bool,
) -> None:
    folder, repo = beside / "choice", beside / "repo"
    repo.mkdir()
    (repo / "kept").write_text("kept\n")
    people = ["--participant", "server", "--participant", "reader"]
    assert acp("init", "--folder", folder, *people, *WORDS).returncode == 0
    places = {"repo": repo / "kept", "folder": folder / "made"}
    steps: list[list[object]] = [["run", f"echo lost > {each}"] for each in places.values()]
    programs.more(("You are `server`", steps))
    options = ("--workdir", repo, "--permissions", policy, "--retries", "0", "--yes")
    launched = acp("launch", folder, "server=codex", *options)
    assert launched.returncode == 0, launched.stderr
    said = "change nothing" if policy == "none" else "without asking inside its sandbox"
    assert said in launched.stdout, launched.stdout
    assert ("can only read" in launched.stdout) is (policy in ("ask", "edits"))
    until(lambda: ended(folder), "the end of the attempt", PATIENCE)
    lost = {name: each.exists() and each.read_text() == "lost\n" for name, each in places.items()}
    assert lost == writes
    assert (len(events(folder)) == 2) is takes_its_turn
    assert not answers.waiting(str(folder))


def test_the_policy_none_rejects_what_codex_asks_for(beside: Path, programs: Programs) -> None:
    folder, no = beside / "choice", beside / "no"
    people = ["--participant", "server", "--participant", "reader"]
    assert acp("init", "--folder", folder, *people, *WORDS).returncode == 0
    programs.more(("You are `server`", [["run", f"touch {no}", True]]))
    options = ("--permissions", "none", "--retries", "0", "--yes")
    assert acp("launch", folder, "server=codex", *options).returncode == 0
    until(lambda: ended(folder), "the end of the attempt", PATIENCE)
    assert not no.exists()
    assert [(each["state"], each["by"]) for each in record()] == [("reject", "acp")]


@pytest.mark.parametrize(("policy", "most"), [("edits", 0), ("ask", 3)])
def test_two_agents_decide_a_question(
    beside: Path, programs: Programs, policy: str, most: int
) -> None:
    folder = beside / "checkout"
    settings(policy)
    made = acp("new", folder, "server=codex", "reviewer=claude", *WORDS)
    assert made.returncode == 0, made.stdout + made.stderr
    allow_all(folder, lambda: events(folder)[-1]["event"] == "completed")
    file = answers.root() / "answered.jsonl"
    asked = [each for each in record() if each["by"] != "acp"] if file.exists() else []
    assert len(asked) <= most, asked
