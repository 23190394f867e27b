"""Files that others write too are read safely, and Markdown is taken apart in linear time."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.files import markdown
from acp_core.files.markdown import CheckBox, Heading, Section
from acp_core.files.reading import Unreadable, read_bounded, stamp


def test_a_regular_file_is_read_whole(tmp_path: Path) -> None:
    for content in (b"", b"x", b"y" * 3_000_000):
        (tmp_path / "file").write_bytes(content)
        assert read_bounded(tmp_path / "file", 3_000_000) == content


def test_more_than_the_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    with pytest.raises(Unreadable, match="larger than 4 bytes"):
        read_bounded(tmp_path / "file", 4)


def test_what_is_no_regular_file_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    bound = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    try:
        os.chdir(tmp_path)  # a socket's path must be short
        bound.bind("socket")
    finally:
        os.chdir(here)
        bound.close()
    for name, kind in (
        ("pipe", "a pipe"),
        ("zero", "a device"),
        ("socket", "a socket"),
        (".", "a folder"),
    ):
        with pytest.raises(Unreadable, match=f"is {kind}, not a regular file") as caught:
            read_bounded(tmp_path / name, 10)
        assert not caught.value.missing


def test_what_is_not_there_is_missing(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").write_text("")
    for name in ("none", "dangling", "file/below", "nul\0"):
        with pytest.raises(Unreadable) as caught:
            read_bounded(tmp_path / name, 10)
        assert caught.value.missing, name
        assert stamp(tmp_path / name) is None
    with pytest.raises(Unreadable) as caught:
        read_bounded(tmp_path / "loop", 10)
    assert not caught.value.missing


def test_a_stamp_changes_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("one")
    first = stamp(path)
    assert stamp(path) == first
    os.utime(path, ns=(1, 1))
    touched = stamp(path)
    path.chmod(0o600)
    assert len({first, touched, stamp(path)}) == 3


TEXT = """# Title #
Intro
## One
```python
## not a heading
- [x] in a fence
```
### Below
text
## Two ##
   ## Three spaces
    ## four spaces
#hashtag
##
- [ ] open
* [X]  done\t
  - [x] deeper
"""


def test_headings_as_a_reader_sees_them() -> None:
    assert markdown.headings(TEXT) == (
        Heading(1, "Title", 1),
        Heading(2, "One", 3),
        Heading(3, "Below", 8),
        Heading(2, "Two", 10),
        Heading(2, "Three spaces", 11),
        Heading(2, "", 14),
    )


def test_sections_and_check_boxes_with_their_lines() -> None:
    assert list(markdown.sections("# T\n## A\nx\n### B\ny\n## C\n# D\nz", 2)) == [
        Section("A", 2, "\nx\n### B\ny\n"),
        Section("C", 6, "\n"),
    ]
    assert list(markdown.check_boxes(TEXT)) == [
        CheckBox(True, "in a fence", 6),
        CheckBox(False, "open", 15),
        CheckBox(True, "done", 16),
        CheckBox(True, "deeper", 17),
    ]


@given(st.text(st.sampled_from("#`~- x[]\n\t"), max_size=80))
def test_lines_are_right_whatever_the_text(text: str) -> None:
    lines = text.split("\n")
    for heading in markdown.headings(text):
        assert lines[heading.line - 1].lstrip(" ").startswith("#" * heading.level)
        assert heading.title.split(" ")[0] in lines[heading.line - 1]
    for box in markdown.check_boxes(text):
        assert "]" in lines[box.line - 1]
    for section in markdown.sections(text, 2):
        assert lines[section.line - 1].startswith("## ")
    assert markdown.normalise(text) == text
    assert markdown.normalise(text.replace("\n", "\r\n")) == text
