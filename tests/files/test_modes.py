"""Modes and groups of what acp makes, in folders that several accounts share."""

from __future__ import annotations

import ast
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_core.files import atomic

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: groups of others are set")


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """The usual umask, under which nobody else may write."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder that every account can reach, as those of pytest are not."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chmod(name, 0o755)
        yield Path(name)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o2775)
    return folder


def test_a_new_file_of_a_shared_folder_can_be_written_by_its_group(tmp_path: Path) -> None:
    folder = shared(tmp_path)
    atomic.replace(folder / "replaced", b"x")
    atomic.create(folder / "created", b"x")
    assert mode(folder / "replaced") == mode(folder / "created") == 0o664


def test_a_new_file_elsewhere_has_the_mode_of_the_umask(tmp_path: Path) -> None:
    atomic.replace(tmp_path / "file", b"x")
    assert mode(tmp_path / "file") == 0o644


def test_a_program_that_works_in_a_shared_folder_leaves_its_files_to_the_group(
    tmp_path: Path,
) -> None:
    before = os.umask(0o077)
    try:
        assert atomic.umask_in(shared(tmp_path)) == 0o007
        assert atomic.umask_in(tmp_path) == atomic.umask_in(tmp_path / "nowhere") == -1
    finally:
        os.umask(before)


def test_a_folder_made_in_a_shared_one_is_shared_too(tmp_path: Path) -> None:
    folder = shared(tmp_path)
    atomic.shared_folder(folder / "deep" / "er")
    assert mode(folder / "deep") == mode(folder / "deep" / "er") == 0o2775
    atomic.shared_folder(tmp_path / "own")
    assert mode(tmp_path / "own") == 0o755


def test_what_is_private_is_the_owners_alone_even_if_it_was_not_before(tmp_path: Path) -> None:
    atomic.private_folder(tmp_path / "state" / "acp")
    assert mode(tmp_path / "state") == mode(tmp_path / "state" / "acp") == 0o700
    path = tmp_path / "state" / "acp" / "prompt"
    path.write_text("old")
    atomic.replace(path, b"new", private=True)
    assert mode(path) == 0o600
    (tmp_path / "state" / "acp").chmod(0o755)
    atomic.private_folder(tmp_path / "state" / "acp")
    assert mode(tmp_path / "state" / "acp") == 0o700


def test_something_else_in_the_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for make in (atomic.private_folder, atomic.shared_folder):
        with pytest.raises(OSError):
            make(tmp_path / "file")


@AS_ROOT
def test_a_replaced_file_keeps_its_group(tmp_path: Path) -> None:
    path = tmp_path / "protocol.json"
    path.write_text("old")
    os.chown(path, -1, 54321)
    path.chmod(0o660)
    assert atomic.replace(path, b"new") == ""
    assert (path.stat().st_gid, mode(path)) == (54321, 0o660)


@AS_ROOT
@pytest.mark.parametrize(("was", "becomes"), [(0o660, 0o600), (0o664, 0o644), (0o676, 0o666)])
def test_where_the_group_cannot_be_kept_that_is_said_and_no_other_group_gets_in(
    open_to_all: Path, was: int, becomes: int
) -> None:
    """The group that it gets instead may do what all others may, and no more."""
    path = open_to_all / "protocol.json"
    path.write_text("old")
    os.chown(open_to_all, 54001, 54001)
    os.chown(path, 54001, 54321)
    path.chmod(was)
    child = os.fork()
    if child == 0:  # another account, no member of the group
        code = 1
        try:
            os.setgroups([])
            os.setgid(54001)
            os.setuid(54001)
            code = 0 if "group (54321)" in atomic.replace(path, b"new") else 3
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert (path.stat().st_gid, mode(path), path.read_text()) == (54001, becomes, "new")


@pytest.mark.slow
def test_no_folder_is_private_below_one_that_is_made_open() -> None:
    """``mkdir`` gives the mode to the last folder alone: `modes.private_folder` makes all of them."""
    code = Path(atomic.__file__).parents[1]
    calls = (
        (path, each)
        for path in code.rglob("*.py")
        for each in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute)
    )
    both = [
        f"{path.relative_to(code)}:{call.lineno}"
        for path, call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr in ("mkdir", "makedirs")
        if {"parents", "mode"} <= {word.arg for word in call.keywords}
    ]
    assert [each.partition(":")[0] for each in both] == ["history/past.py"]  # a temporary folder
