"""What became of a text, line by line and word by word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.history.versions import (
    NEW,
    OLD,
    SAME,
    changed_sections,
    compare_lines,
    hunks,
    is_changed,
    unseen,
)

TEXTS = st.lists(st.sampled_from(["# A", "## B", "one two three", "one 2 three", "x", ""])).map(
    "\n".join
)


def test_a_line_that_changed_shows_which_words() -> None:
    old = "# Title\n\nSessions live for seven days at most.\nThe end.\n"
    new = "# Title\n\nSessions live for thirty days.\nThe end.\n"
    changed = [line for line in compare_lines(old, new) if line.sign != SAME]
    assert [(line.sign, line.old, line.new) for line in changed] == [(OLD, 3, None), (NEW, None, 3)]
    assert [text for text, is_new in changed[1].pieces if is_new] == ["thirty"]
    assert changed[0].text == "Sessions live for seven days at most."
    assert changed_sections(compare_lines(old, new)) == ["Title"]


def test_lines_with_little_in_common_are_wholly_other() -> None:
    found = compare_lines("A cat.\n", "Something else entirely: 42 dogs!\n")
    assert all(len(line.pieces) == 1 and line.pieces[0][1] for line in found)


def test_hunks_join_where_their_context_meets() -> None:
    old = "\n".join(str(n) for n in range(40))
    new = old.replace("5", "five", 1).replace("8", "eight", 1) + "\nlast"
    found = hunks(compare_lines(old, new))
    assert len(found) == 2
    assert [line.text for line in found[0]][:3] == ["2", "3", "4"]


@given(TEXTS, TEXTS)
def test_both_texts_can_be_had_back(old: str, new: str) -> None:
    found = compare_lines(old, new)
    before = [line.text for line in found if line.sign != NEW]
    after = [line.text for line in found if line.sign != OLD]
    assert before == (old.split("\n")[:-1] if old.endswith("\n") or not old else old.split("\n"))
    assert after == (new.split("\n")[:-1] if new.endswith("\n") or not new else new.split("\n"))
    assert [line.old for line in found if line.old] == list(range(1, len(before) + 1))
    assert is_changed(found) == (before != after)
    assert {id(line) for hunk in hunks(found) for line in hunk} >= {
        id(line) for line in found if line.sign != SAME
    }


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b"a\nb\n", b"a\r\nb\r\n", ["line ends: LF → CR LF"]),
        (b"a\nb\n", b"a\r\nb\n", ["line ends: LF → 1 LF and 1 CR LF"]),
        (b"a\rb\r", b"a\nb\n", ["line ends: CR → LF"]),
        (b"a\nb\n", b"a\nb", ["the last line no longer ends with a newline"]),
        (b"a\nb", b"a\nb\n", ["the last line now ends with a newline"]),
        (b"a\x80\n", b"a\x81\n", ["the files differ only in bytes that are not visible as text"]),
        (b"a\nb\n", b"a\nc\n", []),
        (b"", b"a\n", ["line ends: none → LF"]),
        (b"same\n", b"same\n", []),
    ],
)
def test_what_lines_do_not_show_is_said(old: bytes, new: bytes, said: list[str]) -> None:
    texts = [each.decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
             for each in (old, new)]  # fmt: skip
    assert unseen(old, new, compare_lines(*texts)) == said


@given(st.binary(max_size=12), st.binary(max_size=12))
def test_nothing_is_called_the_same_that_is_not(old: bytes, new: bytes) -> None:
    found = compare_lines(*(each.decode(errors="replace") for each in (old, new)))
    assert (old == new) is not (is_changed(found) or bool(unseen(old, new, found)))
