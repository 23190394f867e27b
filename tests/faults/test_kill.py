"""A kill -9 at every file operation of every command that writes, and a run of the same again.

What is left must validate, or lag behind its log, or be finished by running the same command
again; and an event whose command ended with success is never lost.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.rules import checks
from acp_core.protocols.folder.schema import records
from tests.faults.shim import CHANGING, KILLED, Faults, Run
from tests.protocols.folder.support import make_v1, make_v2

VALID = ["ACP validation passed"]
BODY = "Position:\n- In favour, " + "and for good reasons " * 300 + "\n"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def sabotage(
    faults: Faults,
    kind: str,
    folder: Path,
    prepare: Callable[[Path], None],
    argv: list[str],
    env: dict[str, str],
) -> Iterator[tuple[int, Run]]:
    """Run a command again and again in a fresh folder, going wrong one operation later each time."""

    def begin() -> None:
        for place in (folder.parent, Path(env["ACP_STATE"])):
            shutil.rmtree(place, ignore_errors=True)
        folder.parent.mkdir(parents=True)
        prepare(folder)

    begin()
    whole = faults.run(*argv, env=env, kind="count")
    assert whole.code == 0, whole
    # A kill before a sync or a close leaves what one before the next operation leaves.
    wanted = {"write"} if kind == "tear" else {*CHANGING} - {"fsync", "fdatasync", "close"}
    chosen = [n for n, name in enumerate(whole.names, 1) if name in wanted]
    assert chosen
    for at in chosen:
        begin()
        run = faults.run(*argv, kind=kind, at=at, env=env)
        assert run.code == KILLED, (at, run)
        yield at, run


def events(folder: Path) -> list[dict[str, object]]:
    """The complete events of the log."""
    log = folder / "events.jsonl"
    lines = log.read_bytes().split(b"\n")[:-1] if log.exists() else []
    return [json.loads(line) for line in lines]


def verdict(folder: Path) -> list[str]:
    """What the validator says, without patience: nobody is writing any more."""
    facts = Facts(folder, grace=0.0)
    facts.refresh(time.time())
    return checks.judge(facts).lines()


def is_fine_or_lags(folder: Path) -> bool:
    """Whether it validates, or only protocol.json is behind the log."""
    return all(line.startswith("ERROR: protocol.json ") for line in verdict(folder)[1:])


V2 = ["--primary-deliverable-type", "adr"]
INIT = ["--participant", "server", "--participant", "reader", "--objective", "Decide",
        "--completion", "It is decided"]  # fmt: skip


@pytest.mark.parametrize("kind", [pytest.param("kill", marks=pytest.mark.slow), "tear"])
@pytest.mark.parametrize("more", [[], V2], ids=["v1", "v2"])
def test_a_killed_init_is_finished_by_running_it_again(
    faults: Faults, tmp_path: Path, state: Path, kind: str, more: list[str]
) -> None:
    folder = tmp_path / "work" / "run"
    argv = ["init", "--folder", str(folder), *INIT, *more]
    env = {"ACP_STATE": str(state)}
    for at, run in sabotage(faults, kind, folder, lambda _: None, argv, env):
        again = faults.run(*argv, "--resume", env=env)
        assert again.code == 0, (at, run, again)
        assert verdict(folder) == VALID, (at, verdict(folder))
        assert len(events(folder)) == 1


@pytest.mark.parametrize("make", [make_v1, make_v2], ids=["v1", "v2"])
def test_a_killed_append_is_whole_or_not_there(
    faults: Faults, tmp_path: Path, state: Path, make: Callable[..., Path]
) -> None:
    folder = tmp_path / "work" / "run"
    argv = ["append", "--folder", str(folder), "--participant", "server", "--event",
            "proposal_revised", "--summary", "Revised.", "--reply-to", "3", "--doc", "proposal.md"]  # fmt: skip
    env = {"ACP_STATE": str(state)}
    make(folder, "revising")
    count = len(events(folder))
    for at, run in sabotage(faults, "kill", folder, lambda f: make(f, "revising"), argv, env):
        assert len(events(folder)) - count in (0, 1), (at, run)
        assert is_fine_or_lags(folder), (at, verdict(folder))
        again = faults.run(*argv, env=env)
        assert again.code == 0, (at, again)
        assert len(events(folder)) == count + 1, at
        assert verdict(folder) == VALID, (at, verdict(folder))


def test_a_line_torn_by_a_kill_is_repaired(faults: Faults, tmp_path: Path, state: Path) -> None:
    folder = tmp_path / "work" / "run"
    argv = ["append", "--folder", str(folder), "--participant", "reader", "--event", "blocked",
            "--summary", "No budget.", "--reply-to", "2"]  # fmt: skip
    env = {"ACP_STATE": str(state)}
    torn = 0
    for at, _ in sabotage(faults, "tear", folder, lambda f: make_v1(f, "reviewing"), argv, env):
        log = (folder / "events.jsonl").read_bytes()
        if not log.endswith(b"\n"):
            torn += 1
            refused = faults.run(*argv, env=env)
            assert refused.code == 2 and "acp repair" in refused.err, (at, refused)
            repaired = faults.run("repair", "--folder", str(folder), "--yes", env=env)
            assert repaired.code == 0, (at, repaired)
            kept = [path.read_bytes() for path in state.rglob("*torn-events.jsonl")]
            assert any(copy and log.endswith(copy) for copy in kept)
        assert faults.run(*argv, env=env).code == 0, at
        assert [event["event"] for event in events(folder)].count("blocked") == 1
        assert verdict(folder) == VALID, at
    assert torn


@pytest.mark.parametrize("kind", ["kill", "tear"])
def test_a_killed_review_is_finished_and_nothing_stands_twice(
    faults: Faults, tmp_path: Path, state: Path, kind: str
) -> None:
    folder = tmp_path / "work" / "run"
    body = tmp_path / "body.md"
    body.write_text(BODY, encoding="utf-8")
    argv = ["append", "--folder", str(folder), "--participant", "reader", "--event",
            "review_submitted", "--summary", "Reviewed.", "--reply-to", "2", "--doc", "review.md",
            "--review-file", str(body)]  # fmt: skip
    env = {"ACP_STATE": str(state)}
    for at, run in sabotage(faults, kind, folder, lambda f: make_v1(f, "reviewing"), argv, env):
        if not (folder / "events.jsonl").read_bytes().endswith(b"\n"):
            # Not valid yet: the heading still waits for its event.
            assert faults.run("repair", str(folder), "--yes", env=env).code == 2
        again = faults.run(*argv, env=env)
        assert again.code == 0, (at, run, again)
        assert [event["seq"] for event in events(folder)] == [1, 2, 3], at
        text = (folder / "review.md").read_text(encoding="utf-8")
        assert text.count(BODY.strip()) == 1 and text.count("seq 3\n") == 1, (at, text[-300:])
        assert verdict(folder) == VALID, (at, verdict(folder))


def test_a_review_whose_number_somebody_else_took_moves_on(
    faults: Faults, tmp_path: Path, state: Path
) -> None:
    """Killed between heading and event; then another reviewer is first."""
    folder = tmp_path / "work" / "run"
    body, other = tmp_path / "body.md", tmp_path / "other.md"
    body.write_text(BODY, encoding="utf-8")
    other.write_text("Position:\n- Against it.\n", encoding="utf-8")

    def argv(who: str, file: Path) -> list[str]:
        return ["append", "--folder", str(folder), "--participant", who, "--event",
                "review_submitted", "--summary", "Reviewed.", "--reply-to", "2", "--doc",
                "review.md", "--review-file", str(file)]  # fmt: skip

    env = {"ACP_STATE": str(state)}
    orphans = 0
    mine = argv("reader", body)
    for at, _ in sabotage(faults, "kill", folder, lambda f: make_v1(f, "reviewing"), mine, env):
        orphans += len(events(folder)) == 2 and BODY.strip() in (folder / "review.md").read_text()
        assert faults.run(*argv("reviewer", other), env=env).code == 0, at
        assert faults.run(*mine, env=env).code in (0, 2), at  # 2: it was in the log before
        text = (folder / "review.md").read_text(encoding="utf-8")
        assert text.count(BODY.strip()) == 1 and text.count("Against it.") == 1, (at, text)
        assert [event["seq"] for event in events(folder)] == [1, 2, 3, 4]
        assert verdict(folder) == VALID, (at, verdict(folder))
    assert orphans


def break_protocol(folder: Path) -> None:
    make_v1(folder, "revising")
    (folder / "protocol.json").write_bytes(b"")
    text = (folder / "README.md").read_text()
    text += "\n## Participants\n\n- `server`\n- `reader`\n- `reviewer`\n\n## Completion Gates\n\n- It is decided\n"
    (folder / "README.md").write_text(text)


def break_much(folder: Path) -> None:
    make_v1(folder, "revising")
    whole = (folder / "review.md").read_text().partition("\n## ")[0]
    (folder / "review.md").write_text(whole + "\n")
    (folder / "decisions.md").unlink()
    with (folder / "events.jsonl").open("ab") as log:
        log.write(b'{"seq":5,"from":"ser')


@pytest.mark.parametrize(
    "damage", [break_protocol, pytest.param(break_much, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("kind", ["kill", "tear"])
def test_a_killed_repair_is_finished_by_running_it_again(
    faults: Faults, tmp_path: Path, state: Path, kind: str, damage: Callable[[Path], None]
) -> None:
    folder = tmp_path / "work" / "run"
    argv = ["repair", "--folder", str(folder), "--yes"]
    env = {"ACP_STATE": str(state)}
    for at, run in sabotage(faults, kind, folder, damage, argv, env):
        again = faults.run(*argv, env=env)
        assert again.code == 0, (at, run, again)
        assert [event["seq"] for event in events(folder)] == [1, 2, 3, 4]
        assert verdict(folder) == VALID, (at, verdict(folder))
        text = (folder / "review.md").read_text()
        assert text.count("seq 3\n") == text.count("seq 4\n") == 1, (at, text)


@pytest.mark.slow
@pytest.mark.parametrize(("make", "kind"), [(make_v1, "kill"), (make_v2, "tear")])
def test_a_killed_continue_is_finished_by_running_it_again(
    faults: Faults, tmp_path: Path, state: Path, make: Callable[..., Path], kind: str
) -> None:
    folder = tmp_path / "work" / "run"
    argv = ["continue", "--folder", str(folder), "--answer", "There is a budget now."]
    env = {"ACP_STATE": str(state)}

    def prepare(where: Path) -> None:
        make(where, "revising", blocked="No budget.")

    for at, run in sabotage(faults, kind, folder, prepare, argv, env):
        again = faults.run(*argv, env=env)
        assert again.code == 0, (at, run, again)
        new = folder.parent / "run-2"
        assert sorted(path.name for path in folder.parent.iterdir()) == ["run", "run-2"], at
        for where in (folder, new):
            assert verdict(where) == VALID, (at, verdict(where))
        assert len(events(new)) == 1
        old = records.decode_protocol((folder / "protocol.json").read_bytes())
        young = records.decode_protocol((new / "protocol.json").read_bytes())
        assert old["continued_by"]["path"] == "../run-2" and young["continues"]["path"] == "../run"
