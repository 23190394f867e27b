"""Files that are replaced whole: nothing is left beside them, and nothing of others is removed."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from acp_core.files import atomic
from acp_core.files.atomic import sync_folder
from tests.files.descriptors import open_below


def full(*args: Any, **more: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_only_what_was_left_of_this_very_file_is_swept(tmp_path: Path) -> None:
    """Another file of the folder may be written at this moment, under a lock of its own."""
    own, other = (tmp_path / f".{name}.{'0' * 16}.acp-tmp" for name in ("mine", "theirs"))
    for path in (own, other):
        path.write_text("half")
    assert atomic.sweep(tmp_path / "mine") == 1
    assert list(tmp_path.iterdir()) == [other]


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_what_cannot_be_replaced_leaves_the_old_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space"):
        atomic.replace(path, b"new")
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"file": b"old"}


@pytest.mark.parametrize("call", ["write", "fsync", "link"])
def test_what_cannot_be_made_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space"):
        atomic.create(tmp_path / "file", b"new")
    assert list(tmp_path.iterdir()) == []


def test_what_is_made_never_takes_anothers_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither where the file system has links, nor where it has none."""
    path = tmp_path / "file"
    path.write_text("theirs")
    for _ in range(2):
        with pytest.raises(FileExistsError):
            atomic.create(path, b"mine")
        assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"file": b"theirs"}
        monkeypatch.setattr(os, "link", _no_links)


def _no_links(*args: Any, **more: Any) -> None:
    raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))


def test_a_sync_leaves_no_file_open(tmp_path: Path) -> None:
    """A dashboard or a loop that runs for weeks would come to an end of them."""
    sync_folder(str(tmp_path))
    assert open_below(tmp_path) == []
