"""What became of a text, line by line and word by word."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from acp_core.history.diff import NEW, OLD, SAME, hunks, is_changed, lines, sections

TEXTS = st.lists(st.sampled_from(["# A", "## B", "one two three", "one 2 three", "x", ""])).map(
    "\n".join
)


def test_a_line_that_changed_shows_which_words() -> None:
    old = "# Title\n\nSessions live for seven days at most.\nThe end.\n"
    new = "# Title\n\nSessions live for thirty days.\nThe end.\n"
    changed = [line for line in lines(old, new) if line.sign != SAME]
    assert [(line.sign, line.old, line.new) for line in changed] == [(OLD, 3, None), (NEW, None, 3)]
    assert [text for text, is_new in changed[1].pieces if is_new] == ["thirty"]
    assert changed[0].text == "Sessions live for seven days at most."
    assert sections(lines(old, new)) == ["Title"]


def test_lines_with_little_in_common_are_wholly_other() -> None:
    found = lines("A cat.\n", "Something else entirely: 42 dogs!\n")
    assert all(len(line.pieces) == 1 and line.pieces[0][1] for line in found)


def test_hunks_join_where_their_context_meets() -> None:
    old = "\n".join(str(n) for n in range(40))
    new = old.replace("5", "five", 1).replace("8", "eight", 1) + "\nlast"
    found = hunks(lines(old, new))
    assert len(found) == 2
    assert [line.text for line in found[0]][:3] == ["2", "3", "4"]


@given(TEXTS, TEXTS)
def test_both_texts_can_be_had_back(old: str, new: str) -> None:
    found = lines(old, new)
    before = [line.text for line in found if line.sign != NEW]
    after = [line.text for line in found if line.sign != OLD]
    assert before == (old.split("\n")[:-1] if old.endswith("\n") or not old else old.split("\n"))
    assert after == (new.split("\n")[:-1] if new.endswith("\n") or not new else new.split("\n"))
    assert [line.old for line in found if line.old] == list(range(1, len(before) + 1))
    assert is_changed(found) == (before != after)
    assert {id(line) for hunk in hunks(found) for line in hunk} >= {
        id(line) for line in found if line.sign != SAME
    }
