"""The power goes at any moment: nothing that was acknowledged is missing, and the rest is finished."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.campaign import impatient
from tests.faults.disk import Disk, Step
from tests.faults.kills import Bench
from tests.faults.power import Powerless
from tests.faults.shim import Faults
from tests.faults.writing import ALL

QUICK = ("append", "append a review", "workspaces triage")
SLOW = (
    "init", "continue", "workspaces init", "workspaces integrate --draft",
    "workspaces integrate --finish", "governed step", "governed accept-turn", "governed reject-turn",
    "governed approve-transition", "governed unblock", "coordinator init", "coordinator step",
    "coordinator approve-barrier", "cycle start", "cycle decide", "cycle stop", "cycle rebuild",
)  # fmt: skip
BY_NAME = {writing.name: writing for writing in ALL}
LONG = ("governed accept-turn", "governed approve-transition", "workspaces integrate --finish", "init",
        "cycle decide")  # fmt: skip
SYNCS = [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in LONG)]
COMMANDS = [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]


@pytest.fixture
def powerless(
    request: pytest.FixtureRequest, faults: Faults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Powerless]:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    with impatient():
        yield Powerless(Bench(faults, tmp_path, BY_NAME[request.param]))


@pytest.mark.parametrize("powerless", COMMANDS, indirect=True)
def test_whatever_the_disk_kept_the_command_is_done_or_can_be_finished(
    powerless: Powerless,
) -> None:
    for done, tree in powerless.crashes():
        powerless.stands(done, tree)


@pytest.mark.slow
@pytest.mark.parametrize("powerless", SYNCS, indirect=True)
def test_no_sync_can_be_left_out(powerless: Powerless) -> None:
    for done, tree in powerless.crashes():
        powerless.stands(done, tree)  # what stands without a sync is not acted out again
    syncs = [number for number, step in enumerate(powerless.steps) if step.word == "sync"]
    needed = [number for number in syncs if not powerless.spared(number)]
    assert needed
    unnoticed = [powerless.steps[number] for number in needed if not powerless.bites(number)]
    assert not unnoticed, [str(step) for step in unnoticed]


# --- the disk itself -----------------------------------------------------------------------


def states(root: Path, *steps: Step) -> set[tuple[tuple[str, bytes | None], ...]]:
    """What a disk may hold after these calls, by the names in a folder."""
    disk = Disk(root)
    for step in steps:
        disk.take(step)
    return {
        tuple(sorted((path.removeprefix(f"{root}/"), data) for path, data in tree.items() if path != str(root)))
        for tree in disk.after_power_loss()
    }  # fmt: skip


def test_without_a_sync_a_write_may_be_lost_or_torn(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"one\n")
    log = str(tmp_path / "log")
    write = Step("write", log, data=b"two\n", at=4)
    found = states(tmp_path, write)
    assert found == {(("log", data),) for data in (b"one\n", b"one\ntwo\n", b"one\ntw")}
    assert states(tmp_path, write, Step("sync", log)) == {(("log", b"one\ntwo\n"),)}


def test_a_renamed_file_may_have_its_name_without_its_content(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"old")
    beside, state = str(tmp_path / "beside"), str(tmp_path / "state")
    steps = (
        Step("create", beside),
        Step("write", beside, data=b"new!"),
        Step("rename", beside, state),
    )
    found = {dict(each).get("state") for each in states(tmp_path, *steps)}
    assert found == {b"old", b"", b"ne", b"new!"}
    content = Step("sync", beside)
    synced = {dict(each).get("state") for each in states(tmp_path, *steps[:2], content, steps[2])}
    assert synced == {b"old", b"new!"}


@pytest.mark.slow
def test_a_folder_that_was_not_synced_takes_everything_below_it_along(tmp_path: Path) -> None:
    new, file = str(tmp_path / "new"), str(tmp_path / "new" / "file")
    steps = (Step("mkdir", new), Step("create", file), Step("sync", new))
    assert () in states(tmp_path, *steps)
    assert states(tmp_path, *steps, Step("sync", str(tmp_path))) == {
        (("new", None), ("new/file", b""))
    }
