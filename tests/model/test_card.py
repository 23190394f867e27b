"""A card's digest changes with the matter, and with nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from acp_core.model import Change, Row, Target
from acp_core.model.card import Card, CardDocument, CardSection, CardVerdict

SINCE = datetime(2026, 3, 1, tzinfo=UTC)
FILE = Row(("ROADMAP.md", "2 h"), target=Target(document="roadmap", line=3), ages=((1, SINCE),))
OBJECTION = Row(("No named owner",))
CARD = Card(
    "gate:planning",
    "pm asks to leave planning",
    "Scope and roadmap are written.",
    "pm",
    SINCE,
    sections=(CardSection("Files", (FILE,)), CardSection("Objections", (OBJECTION,))),
    verdicts=(
        CardVerdict("Accept", "approve", (("gate", "planning"),)),
        CardVerdict("Reject", "reject"),
    ),
    documents=(CardDocument("roadmap", "1/2"), CardDocument("scope", "3/4")),
)


def test_the_same_matter_has_the_same_digest() -> None:
    assert len(CARD.digest) == 32
    later = CardSection("Files", (replace(FILE, cells=("ROADMAP.md", "3 h")),))
    worded = (CardVerdict("Yes", "approve", (("gate", "planning"),)), CardVerdict("No", "reject"))
    for same in (
        replace(CARD, since=None),
        replace(CARD, sections=(later, CARD.sections[1])),
        replace(CARD, verdicts=worded),
        replace(CARD, documents=CARD.documents[::-1]),
    ):
        assert same.digest == CARD.digest


@pytest.mark.parametrize(
    "changed",
    [
        {"id": "gate:review"},
        {"title": "pm asks to leave review"},
        {"claim": "Scope is written."},
        {"by": "qa"},
        {"sections": ()},
        {"sections": (CardSection("Files", (FILE,)), CardSection("Decisions", (OBJECTION,)))},
        {
            "sections": (
                CardSection("Files", (replace(FILE, target=Target(document="roadmap", line=4)),)),
            )
        },
        {
            "sections": (
                CARD.sections[0],
                CardSection("Objections", (replace(OBJECTION, checked=True),)),
            )
        },
        {"verdicts": CARD.verdicts[:1]},
        {"changes": (Change("ROADMAP.md", "change", "+one"),)},
        {"documents": (CardDocument("roadmap", "1/3"), CARD.documents[1])},
    ],
)
def test_another_matter_has_another_digest(changed: dict[str, object]) -> None:
    assert replace(CARD, **changed).digest != CARD.digest


def test_a_verdict_is_known_by_its_action_and_what_it_presets() -> None:
    assert CARD.verdict("approve") == 0
    assert CARD.verdict("approve", {"gate": "planning", "comment": "Agreed"}) == 0
    assert CARD.verdict("approve", {"gate": "review"}) is None
    assert CARD.verdict("reject", {"comment": "No owner"}) == 1
    assert CARD.verdict("escalate") is None
