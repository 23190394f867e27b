"""`acp doctor` says what keeps accounts that share a folder from changing what the others make."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from acp_core.cli.doctor import Check, Me, State, sharing

GID = os.getgid()
ME = Me(os.getuid(), "ben", (GID + 77, GID))
STRANGER = Me(os.getuid() + 1, "ben", (GID + 77,))


def checked(folder: Path, mode: int, me: Me = ME) -> list[Check]:
    folder.mkdir(exist_ok=True)
    folder.chmod(mode)
    return list(sharing((str(folder),), me))


def test_a_folder_of_ones_own_is_not_spoken_of(tmp_path: Path) -> None:
    assert checked(tmp_path / "c", 0o755) == []
    own = Me(os.getuid(), "ben", (GID,))
    assert checked(tmp_path / "c", 0o775, own) == []  # its group is the account's own


@pytest.mark.parametrize(
    ("mode", "lacks"),
    [(0o775, "(setgid)"), (0o2755, "is not writable by its group")],
)
def test_what_a_shared_folder_lacks_is_named_with_the_commands(
    tmp_path: Path, mode: int, lacks: str
) -> None:
    (check,) = checked(tmp_path / "c", mode)
    assert check.state is State.WARN and lacks in check.value
    for command in check.advice.removeprefix("as its owner: ").split("; ")[:2]:
        subprocess.run(shlex.split(command), check=True)
    (check,) = sharing((str(tmp_path / "c"),), ME)
    assert check.state is State.OK, check


def test_a_folder_in_it_that_is_not_shared_is_named(tmp_path: Path) -> None:
    assert checked(tmp_path / "c", 0o2770)[0].state is State.OK
    (tmp_path / "c/reviews").mkdir()
    (tmp_path / "c/reviews").chmod(0o755)
    (check,) = checked(tmp_path / "c", 0o2770)
    assert check.state is State.WARN and "such as reviews" in check.value


def test_who_is_not_in_the_group_is_told_how_to_get_in(tmp_path: Path) -> None:
    if STRANGER.uid == 0:
        pytest.skip("root needs no group")
    shared, group = checked(tmp_path / "c", 0o2770, STRANGER)
    assert shared.state is State.OK
    assert group.state is State.WARN and "ben is not in the group" in group.value
    assert group.advice.startswith("sudo usermod -aG ")
