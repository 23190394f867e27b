"""A disk that fails or is full at every file operation: no traceback, and an honest exit code.

A command that ends with another code than 0 (or 4) has not put its event into the log; one that
ends with 0 has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.shim import CHANGING, READING, Faults, Run
from tests.faults.test_kill import BODY, INIT, V2, VALID, events, verdict
from tests.protocols.folder.support import make_v1

pytestmark = pytest.mark.slow


def each_failure(
    faults: Faults,
    kind: str,
    prepare: Callable[[int], list[str]],
    env: dict[str, str],
    *,
    reading: bool = False,
) -> Iterator[tuple[int, str, Run, list[str]]]:
    """Run a command in fresh folders, one more operation failing each time.

    Operations that only read are among them where ``reading`` asks for it.
    """
    whole = faults.run(*prepare(0), kind="count" if kind == "short" else "list", env=env)
    assert whole.code == 0, whole
    wanted = {"write"} if kind == "short" else {*CHANGING, *(READING if reading else ())}
    for at, name in enumerate(whole.names, 1):
        if name not in wanted:
            continue
        argv = prepare(at)
        run = faults.run(*argv, kind=kind, at=at, env=env)
        assert "TRACEBACK" not in run.err and run.code in (0, 2), (at, name, run)
        said = run.err.startswith(("error: ", "warning: ")) or "not repaired: " in run.out
        assert run.code == 0 or said, (at, name, run)
        yield at, name, run, argv


@pytest.mark.parametrize(
    ("kind", "review"),
    [
        ("EIO", False),
        ("EIO", True),
        ("ENOSPC", True),
        ("EINTR", False),
        ("short", False),
        ("short", True),
    ],
)
def test_the_exit_code_says_whether_the_event_is_in_the_log(
    faults: Faults, tmp_path: Path, kind: str, review: bool
) -> None:
    body = tmp_path / "body.md"
    body.write_text(BODY, encoding="utf-8")
    env = {"ACP_STATE": str(tmp_path / "state")}

    def prepare(number: int) -> list[str]:
        folder = make_v1(tmp_path / str(number), "reviewing")
        more = ["--review-file", str(body)] if review else []
        return ["append", "--folder", str(folder), "--participant", "reader", "--event",
                "review_submitted", "--summary", "Reviewed.", "--reply-to", "2", "--doc",
                "review.md", *more]  # fmt: skip

    failed = 0
    for at, name, run, argv in each_failure(faults, kind, prepare, env, reading=True):
        folder = tmp_path / str(at)
        there = [event["event"] for event in events(folder)].count("review_submitted")
        assert there == (run.code == 0), (at, name, run)
        failed += run.code != 0
        if review and run.code:
            assert BODY.strip() not in (folder / "review.md").read_text(), (at, name, run)
        if not (folder / "events.jsonl").read_bytes().endswith(b"\n"):
            faults.run("repair", str(folder), "--yes", env=env)
        again = faults.run(*argv, env=env)
        assert again.code == 0, (at, name, run, again)
        assert [event["seq"] for event in events(folder)] == [1, 2, 3], (at, name)
        if review:
            assert verdict(folder) == VALID, (at, name, verdict(folder))
            assert (folder / "review.md").read_text().count(BODY.strip()) == 1, (at, name)
    assert failed


@pytest.mark.parametrize("kind", ["EIO", "short"])
def test_an_init_on_a_failing_disk_can_be_finished(
    faults: Faults, tmp_path: Path, kind: str
) -> None:
    env = {"ACP_STATE": str(tmp_path / "state")}

    def prepare(number: int) -> list[str]:
        return ["init", "--folder", str(tmp_path / str(number)), *INIT, *V2]

    failed = 0
    for at, name, run, argv in each_failure(faults, kind, prepare, env):
        if run.code:
            failed += 1
            assert faults.run(*argv, "--resume", env=env).code == 0, (at, name, run)
        assert verdict(tmp_path / str(at)) == VALID, (at, name, run)
    assert failed or kind == "short"


@pytest.mark.parametrize("kind", ["EIO", "short"])
def test_a_repair_on_a_failing_disk_can_be_finished(
    faults: Faults, tmp_path: Path, kind: str
) -> None:
    env = {"ACP_STATE": str(tmp_path / "state")}

    def prepare(number: int) -> list[str]:
        folder = make_v1(tmp_path / str(number), "revising")
        text = (folder / "protocol.json").read_text()
        (folder / "protocol.json").write_text(text.replace('"revising"', '"reviewing"'))
        (folder / "decisions.md").unlink()
        with (folder / "events.jsonl").open("ab") as log:
            log.write(b'{"seq":5,')
        return ["repair", "--folder", str(folder), "--yes"]

    for at, name, run, argv in each_failure(faults, kind, prepare, env):
        again = faults.run(*argv, env=env)
        assert again.code == 0, (at, name, run, again)
        assert verdict(tmp_path / str(at)) == VALID, (at, name, run)
        assert [event["seq"] for event in events(tmp_path / str(at))] == [1, 2, 3, 4]


@pytest.mark.parametrize("kind", [pytest.param("EIO", marks=pytest.mark.slow), "short"])
def test_a_continue_on_a_failing_disk_can_be_finished(
    faults: Faults, tmp_path: Path, kind: str
) -> None:
    env = {"ACP_STATE": str(tmp_path / "state")}

    def prepare(number: int) -> list[str]:
        folder = make_v1(tmp_path / str(number) / "run", "revising", blocked="No budget.")
        return ["continue", str(folder), "--answer", "There is a budget now."]

    for at, name, run, argv in each_failure(faults, kind, prepare, env):
        again = faults.run(*argv, env=env)
        assert again.code == 0, (at, name, run, again)
        for folder in ("run", "run-2"):
            assert verdict(tmp_path / str(at) / folder) == VALID, (at, name, run)
        assert not (tmp_path / str(at) / "run-3").exists()
