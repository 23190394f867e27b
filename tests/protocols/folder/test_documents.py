"""What counts in the documents, and what only looks as if it did."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.protocols.folder.schema import deliverables, documents
from acp_core.protocols.folder.schema.documents import (
    scan_conclusion,
    scan_decisions,
    scan_readiness,
    scan_review,
)


def words(text: str) -> list[tuple[str, str]]:
    return [(item.word, item.text) for item in scan_readiness(text).items]


@pytest.mark.parametrize(
    "line",
    ["- [blocking] x", "  - [blocking] x", "\t- [blocking] x", "- [blocking]x", "- [blocking]   x"],
)
def test_a_blocking_item_counts_at_any_indent(line: str) -> None:
    assert words(f"text\n{line}\n") == [("blocking", "x")]
    assert scan_readiness(line).blocking[0].line == 1


@pytest.mark.parametrize(
    "line",
    [
        "* [blocking] x", "1. [blocking] x", "+ [blocking] x", "- [Blocking] x", "- **[blocking]** x",
        "- `[blocking]` x", "-  [blocking] x", "-[blocking] x", "- [open] x", "- [ blocking ] x",
    ],
)  # fmt: skip
def test_a_near_miss_does_not_count_and_is_kept_for_advice(line: str) -> None:
    found = scan_readiness(f"\n{line}\n")
    assert found.items == found.blocking == ()
    assert found.near == ((line, 2),)


@pytest.mark.parametrize(
    "line", ["- [x] done", "- [ ] open", "- [a](b)", "- text [blocking]", "[blocking] x"]
)
def test_other_lines_are_not_even_near(line: str) -> None:
    assert scan_readiness(line).near == ()


def test_items_in_fences_and_comments_count_like_any_other() -> None:
    assert words("```\n- [blocking] a\n```\n<!--\n- [unresolved] b\n-->\n") == [
        ("blocking", "a"),
        ("unresolved", "b"),
    ]


def test_a_bare_item_takes_the_next_line_as_its_text() -> None:
    found = scan_readiness("- [resolved]\n\n\n- [blocking] x\n- [blocking] y\n")
    assert [(item.text, item.line, item.text_line) for item in found.items] == [
        ("- [blocking] x", 1, 4),
        ("y", 5, 5),
    ]
    assert [item.line for item in found.swallowing] == [1]
    assert found.near == ()
    assert words("- [unresolved]") == [("unresolved", "")]


def test_what_counts_as_unresolved() -> None:
    text = (
        "- [resolved] fixed TBD wording\n- [resolved] tbd\n- [unresolved] x\n- TBD\n- [open] TBD\n"
    )
    assert [item.line for item in scan_readiness(text).unresolved] == [1, 3]


def test_what_counts_as_a_reason() -> None:
    text = (
        "- [deferred_nonblocking] a\n- [deferred_nonblocking] b. REASON: c\n"
        "- [deferred_nonblocking] d\n  Reason: e\n- [deferred_nonblocking] f reason:\n"
    )
    assert [item.line for item in scan_readiness(text).unreasoned] == [1, 3]


@pytest.mark.parametrize(
    ("line", "ready"),
    [
        ("- [x] Ready to implement", True), ("- [X] Ready to implement", True),
        ("- [x] Ready to implement (see below)", True), ("- [x] Ready to implementation", True),
        ("- [ ] Ready to implement", False), ("- [x] ready to implement", False),
        ("  - [x] Ready to implement", False), ("* [x] Ready to implement", False),
    ],
)  # fmt: skip
def test_ready_to_implement(line: str, ready: bool) -> None:
    assert scan_readiness(f"a\n{line}\n").ready == (2 if ready else None)


def test_a_gate_is_met_by_its_exact_text_only() -> None:
    text = "- [x] One gate\n- [ ] Two\n- [X] Three\n- [x] Four and more\n  - [x] Five\n"
    found = scan_readiness(text)
    assert found.checked == {"One gate": 1, "Four and more": 4}
    assert [(box.checked, box.text) for box in found.boxes] == [
        (True, "One gate"),
        (False, "Two"),
        (True, "Three"),
        (True, "Four and more"),
        (True, "Five"),
    ]


def test_free_text_under_blockers_is_kept_for_advice() -> None:
    text = "## Blocking Issues\n\n- Real blocker\n- None.\n- [blocking] x\n## Other\n- free\n"
    assert scan_readiness(text).under_blockers == (("Real blocker", 3),)


@pytest.mark.parametrize(
    ("heading", "found"),
    [
        ("## 2026-01-02T03:04:05Z - reader - seq 3", (3, "reader")),
        ("##   2026  -  reader  -  seq   3   ", (3, "reader")),
        ("## any thing - reader - seq 003", (3, "reader")),
        ("## t - c - seq 9 - seq 4", (4, "c - seq 9")),
        ("## t - two words - seq 4", (4, "two words")),
        ("## t - a - b - seq 4", (4, "a - b")),
        ("## 2026 - 01 - reader - seq 3", (3, "01 - reader")),
    ],
)
def test_a_review_heading(heading: str, found: tuple[int, str]) -> None:
    review = scan_review(f"# Reviews\n{heading}\n")
    assert [(h.seq, h.participant, h.line) for h in review.headings.values()] == [(*found, 2)]


@pytest.mark.parametrize(
    "heading",
    [
        "### t - a - seq 3", "# t - a - seq 3", "## t - a - seq", "## t - a - seq x", "## a - seq 3",
        "## t - a - seq 3.", "##t - a - seq 3", " ## t - a - seq 3", "## t a seq 3", "## t - a - Seq 3",
    ],
)  # fmt: skip
def test_no_review_heading(heading: str) -> None:
    assert scan_review(heading).headings == {}


def test_of_two_headings_with_one_number_the_last_counts() -> None:
    review = scan_review("## t - a - seq 3\n\n## t - b - seq 3\n## u - c - seq 12345678901234567\n")
    assert [(h.participant, h.line) for h in review.headings.values()] == [("b", 3)]
    assert review.repeated == ((3, 3),)
    assert review.huge == (("12345678901234567…", 4),)


def test_what_a_second_dialect_review_must_say() -> None:
    text = "Reviewed primary deliverable: `d/x.md`\nReview Scope:\n- Primary deliverable completeness\n"
    review = scan_review(text, "d/x.md")
    assert (review.reviewed, review.scope, review.completeness, review.referenced) == (True,) * 4
    other = scan_review("nothing", "d/x.md")
    assert (other.reviewed, other.scope, other.completeness, other.referenced) == (False,) * 4


@pytest.mark.parametrize(
    ("text", "outcomes"),
    [
        ("- [proceed] Yes", ["proceed"]), ("  - [defer] Later", ["defer"]),
        ("- [do_not_proceed]\n\nNo", ["do_not_proceed"]), ("- [proceed]", []), ("- [proceed]\n", []),
        ("- [Proceed] Yes", []), ("* [proceed] Yes", []), ("- [maybe] Yes", []),
        ("- [proceed] A\n- [defer] B", ["proceed", "defer"]),
        ("- [defer]\n- [proceed] B", ["defer"]), ("- [blocked] TBD", ["blocked"]),
    ],
)  # fmt: skip
def test_outcomes(text: str, outcomes: list[str]) -> None:
    assert [word for word, _ in scan_conclusion(text).outcomes] == outcomes


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("There are no unresolved questions.", True), ("TBD", True), ("a todo b", True), ("待定", True),
        ("待定。", True), ("stbd", False), ("TODOs", False), ("unresolvedly", False), ("尚待定中", False),
    ],
)  # fmt: skip
def test_placeholders_are_whole_words(text: str, found: bool) -> None:
    assert bool(scan_conclusion(text).placeholders) is found


def test_only_headings_of_level_two_are_sections() -> None:
    found = scan_conclusion("## Rationale\n\nx\n### Assumptions\n## Next Action   \n# Outcome\n")
    assert found.sections == {"Rationale": 1, "Next Action": 5}
    assert found.other_levels == {"Assumptions": 4, "Outcome": 6}
    assert found.empty == (("Next Action", 5),)
    assert scan_conclusion("尚待定中\n").hidden == (1,)
    assert scan_conclusion("* [proceed] x\n").near == (("* [proceed] x", 1),)


def test_decisions_of_the_second_dialect() -> None:
    text = (
        "# Accepted\n\n### D1. One\n\n- Decision: a\n- Reflected in: `deliverables/x.md`\n"
        "### D2. Two\n- Decision: b\n### Three\n### D4\n"
    )
    found = scan_decisions(text, ("deliverables/x.md",))
    assert [(d.number, d.line, d.decided, d.reflected, d.referenced) for d in found.decisions] == [
        (1, 3, True, True, True),
        (2, 7, True, False, False),
        (0, 9, False, False, False),
        (0, 10, False, False, False),
    ]


@pytest.mark.parametrize("text", ["", "# Accepted Decisions\n", "# A\n\n<!-- none -->\n## B\n"])
def test_decisions_that_say_nothing(text: str) -> None:
    assert scan_decisions(text).empty
    assert not scan_decisions(text + "x\n").empty


def test_the_text_of_a_deliverable() -> None:
    found = deliverables.scan(
        "# A\nStatus: In Review  \n## Goals\n\n## Problem\nx\n### Non-goals\n"
    )
    assert (found.status, found.status_line) == ("In Review", 2)
    assert found.sections == {"Goals": 3, "Problem": 5}
    assert found.empty == frozenset({"Goals"})
    assert found.other_levels == {"A": 1, "Non-goals": 7}
    for line in ("Status: Done", "status: Draft", "- Status: Draft", "Status: Draft now"):
        assert deliverables.scan(line).status == ""


HOSTILE = {
    "white space in a heading": "##" + " " * 400_000,
    "dashes in a heading": "## " + "a - " * 100_000,
    "half a heading": "## " + " - seq 1" * 50_000 + "x",
    "a number without end": "## t - a - seq " + "9" * 400_000,
    "blank lines": "\n" * 200_000,
    "one blank line": " " * 400_000,
    "bullets": "- [" * 130_000,
    "bare items": "- [resolved]\n\n" * 30_000,
    "items": "- [resolved] TBD\n" * 25_000,
    "headings": "## Blocking\n- a\n" * 25_000,
    "outcomes": "- [proceed]" + " \n" * 200_000,
    "decisions": "### D1. x\n" * 40_000,
    "hashes": "#" * 400_000,
    "fences": "```\n" * 100_000,
    "placeholders": "待定 TBD " * 50_000,
    "no line ends": "x" * 400_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_scanned_all_the_same(text: str) -> None:
    """Without linear scans each of these would take minutes or hours."""
    scan_readiness(text)
    scan_review(text, "deliverables/x.md")
    scan_conclusion(text, "deliverables/x.md")
    scan_decisions(text, ("deliverables/x.md",))
    deliverables.scan(text)


PIECES = [
    "- [",
    "blocking",
    "resolved",
    "]",
    " ",
    "\n",
    "x",
    "## ",
    " - ",
    "seq 3",
    "TBD",
    "#",
    "\t",
]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_lines_point_to_what_they_name(text: str) -> None:
    lines = text.split("\n")
    for item in scan_readiness(text).items:
        assert f"[{item.word}]" in lines[item.line - 1]
        assert item.text in lines[item.text_line - 1]
    for heading in scan_review(text).headings.values():
        assert heading.participant in lines[heading.line - 1]
    assert len(scan_readiness(text).near) <= documents.NEAR_MISSES


_LINES = st.sampled_from(
    ("", "#", "##", "## ", "##\t- a - seq 4", "### x - a - seq 4", " ## x - a - seq 4", "Done.",
     "## t - ana - seq 3", "## t - ana - seq 5 ", "## t - zoë.b - seq 12", "## a b - c d - seq 7",
     "## seq 9", "## t - ana - seq 0012345678901234567", "text ## t - ana - seq 8", "\x0c## x",
     "Questions:", "**Open questions:** why?", "- how far?", "  in days", "questions:", "QUESTION:",
     "Position:", "  Answer: far", "None")
)  # fmt: skip


@given(st.lists(_LINES, max_size=30), st.sampled_from(("", "\n", "\n\n")))
def test_a_review_says_what_its_lines_say(lines: list[str], end: str) -> None:
    """What is searched for fast in a long text is found in each line that holds it."""
    text = "\n".join(lines) + end
    found = scan_review(text)
    alone = {line: scan_review(line).headings for line in set(lines)}
    expected: dict[int, tuple[str, int]] = {}
    for number, line in enumerate(lines, 1):
        for heading in alone[line].values():
            expected[heading.seq] = (heading.participant, number)
    assert {h.seq: (h.participant, h.line) for h in found.headings.values()} == expected
    assert found.questions == _asked_line_by_line(text, found)


def _asked_line_by_line(text: str, review: documents.Review) -> tuple[documents.Asked, ...]:
    seqs = {heading.line: heading.seq for heading in review.headings.values()}
    found: list[documents.Asked] = []
    reading, asking = documents._Reading(text, {}, found), False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("## "):
            reading._seq = seqs.get(number)
        reading._line = number
        asking = not line.startswith("#") and reading._asks(line, asking)
    return tuple(each for each in found if not documents._NO_QUESTIONS.fullmatch(each.text.strip()))
