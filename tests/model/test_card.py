"""A card's digest changes with the matter, and with nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from acp_core.model import Row, Target
from acp_core.model.card import Card, CardDocument, CardVerdict

SINCE = datetime(2026, 3, 1, tzinfo=UTC)
CARD = Card(
    "gate:planning",
    "pm asks to leave planning",
    "pm",
    SINCE,
    evidence=(
        Row(("ROADMAP.md", "2 h"), target=Target(document="roadmap", line=3), ages=((1, SINCE),)),
    ),
    objections=(Row(("No named owner",)),),
    verdicts=(
        CardVerdict("Accept", "approve", (("gate", "planning"),)),
        CardVerdict("Reject", "reject"),
    ),
    documents=(CardDocument("roadmap", "1/2"), CardDocument("scope", "3/4")),
)


def test_the_same_matter_has_the_same_digest() -> None:
    assert len(CARD.digest) == 32
    later = replace(CARD.evidence[0], cells=("ROADMAP.md", "3 h"))
    worded = (CardVerdict("Yes", "approve", (("gate", "planning"),)), CardVerdict("No", "reject"))
    for same in (
        replace(CARD, since=None),
        replace(CARD, evidence=(later,)),
        replace(CARD, verdicts=worded),
        replace(CARD, documents=CARD.documents[::-1]),
    ):
        assert same.digest == CARD.digest


@pytest.mark.parametrize(
    "changed",
    [
        {"id": "gate:review"},
        {"claim": "pm asks to leave review"},
        {"by": "qa"},
        {"evidence": ()},
        {"evidence": (replace(CARD.evidence[0], target=Target(document="roadmap", line=4)),)},
        {"objections": (Row(("No named owner",), checked=True),)},
        {"changes": (Row(("No named owner",)),)},
        {"verdicts": CARD.verdicts[:1]},
        {"documents": (CardDocument("roadmap", "1/3"), CARD.documents[1])},
    ],
)
def test_another_matter_has_another_digest(changed: dict[str, object]) -> None:
    assert replace(CARD, **changed).digest != CARD.digest
