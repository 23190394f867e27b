"""Documents as other programs begin them: their legends, slots and instructions are no mistakes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from acp_core.protocols.folder.rules.checks import validate
from acp_core.protocols.folder.schema.documents import scan_conclusion, scan_readiness, scan_review
from tests.protocols.folder.acting import acp
from tests.protocols.folder.support import age, extend, make_v1, make_v2

READINESS = """
## How questions are marked

- `[resolved]`: it has its answer.
- `[deferred_nonblocking]`: it can wait. Say the `Reason: ...`.
- `[blocking]`: nobody can go on.
- `[unresolved]`: nobody has looked at it.
- [resolved | deferred_nonblocking | blocking] <the question>
- [<class>] <the question>

## Blocking Issues

- Pending.

## Implementation Blockers

- Add each blocking item here.

## Deliverable Snapshot

- [sha256] of the deliverable: see the event
- [file] deliverables/decision.md

## Attachments

- [none]
"""
REVIEW = """
## <UTC time> - <your id> - seq <number of your event>

Context:
- ...

## How the seq of a heading is chosen
"""
CONCLUSION = """
- `[proceed]`: go on now.
- `[do_not_proceed]`: leave it.
- `[defer]`: later.
- [proceed/do_not_proceed/defer]
"""


def begun_by_another(folder: Path) -> Path:
    """What the other program wrote into the documents besides what the participants did."""
    for name, text in (
        ("readiness.md", READINESS),
        ("review.md", REVIEW),
        ("conclusion.md", CONCLUSION),
    ):
        extend(folder, text, name)
    age(folder)
    return folder


@pytest.mark.parametrize("make", [make_v1, make_v2])
@pytest.mark.parametrize("upto", ["drafting", "reviewing", "classified", "passed", "completed"])
def test_what_another_program_wrote_at_the_start_is_no_mistake(
    tmp_path: Path, make: Callable[..., Path], upto: str
) -> None:
    folder = begun_by_another(make(tmp_path / "run", upto))
    assert [each.message for each in validate(folder).findings] == []
    assert acp("validate", "--folder", folder, "--strict").code == 0


def test_nothing_that_was_there_at_the_start_is_a_mistake_of_anybody(fresh: Path) -> None:
    """Before the first event of a participant, the documents show forms, whatever they are."""
    (fresh / "readiness.md").write_text(
        "# R\n\n* [blocking] like this\n\n## Blockers\n\n- They stand here.\n- [unresolved]\n- [open] a\n"
    )
    (fresh / "review.md").write_text("# Reviews\n\n## reader, seq 7\n")
    age(fresh)
    assert validate(fresh).findings == ()


@pytest.mark.parametrize(
    "line",
    [
        "- `[blocking]` No access",
        "* [blocking] No access",
        "- [Blocking] No access",
        "- [open] Who pays?",
    ],
)
def test_a_question_in_the_wrong_form_is_still_seen(line: str) -> None:
    assert [text for text, _ in scan_readiness(f"{READINESS}\n## Questions\n\n{line}\n").near] == [
        line
    ]


def test_a_class_in_the_wrong_form_is_seen_wherever_it_stands() -> None:
    text = "## Completion Gates\n\n* [blocking] No access\n"
    assert scan_readiness(text).near == (("* [blocking] No access", 3),)


def test_two_explained_classes_are_no_legend() -> None:
    text = "- `[blocking]` No access\n- `[unresolved]` Who pays?\n"
    assert len(scan_readiness(text).near) == 2
    twice = "- `[blocking]` a\n- `[blocking]` b\n- `[unresolved]` c\n- `[resolved]` d\n"
    assert len(scan_readiness(twice).near) == 4


@pytest.mark.parametrize(
    ("bullets", "seen"),
    [
        (("No access",), 1), (("No access yet",), 1), (("Pending approval by legal",), 1),
        (("Add-on is not licensed",), 1), (("To be honest, the key is missing",), 1),
        (("Add each blocking item here.", "No access"), 2),
        (("None yet.",), 0), (("No known blocking issues.",), 0), (("TBD",), 0), (("<blocker>",), 0),
        (("...",), 0), (("There are no open blockers.",), 0), (("To be determined",), 0),
        (("Mark each one `[blocking]`.", "None."), 0),
    ],
)  # fmt: skip
def test_what_stands_under_blockers(bullets: tuple[str, ...], seen: int) -> None:
    text = "## Blocking Issues\n\n" + "".join(f"- {each}\n" for each in bullets)
    assert len(scan_readiness(text).under_blockers) == seen


def test_headings_that_mean_one_certain_review() -> None:
    near = scan_review(REVIEW + "## reader seq 3\n## Reader, Seq: 4\n## Sequence of steps\n").near
    assert [text for text, _ in near] == ["reader seq 3", "Reader, Seq: 4"]


def test_an_outcome_in_the_wrong_form_is_still_seen() -> None:
    near = scan_conclusion(CONCLUSION + "* [defer] Later\n").near
    assert [text for text, _ in near] == ["* [defer] Later"]
