"""Reading files of strangers: up to a limit, without links or pipes, and with a plain reason."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from acp_core.files.locked import Mount, parse
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.unseen import unseen_lines


def test_a_file_as_large_as_may_be_is_read_and_a_larger_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "note"
    path.write_bytes(b"12345")
    assert read_bounded(path, 5) == b"12345"
    with pytest.raises(Unreadable, match="larger than 4 bytes"):
        read_bounded(path, 4)


@pytest.mark.parametrize(
    ("number", "passing"), [(None, False), (errno.ENOENT, False), (errno.EIO, True)]
)
def test_only_a_failure_of_the_disk_says_nothing_of_the_file(
    number: int | None, passing: bool
) -> None:
    assert Unreadable("why", number).passing is passing


def test_an_escape_in_json_hides_no_text_that_people_cannot_see() -> None:
    line = b'{"summary":"a\\u200bb"}\n'
    assert unseen_lines(line, json=True).lines == 1
    assert unseen_lines(line).lines == 0  # in plain text it stands there to be seen


def test_a_line_of_the_kernel_that_is_no_mount_is_left_out() -> None:
    whole = "36 35 98:0 / /mnt rw master:1 - ext4 /dev/sda rw"
    assert parse(f"nonsense\n36 35 - ext4\n\n36 35 98:0 / /mnt rw - \n{whole}\n") == (
        Mount("/mnt", "ext4"),
    )
