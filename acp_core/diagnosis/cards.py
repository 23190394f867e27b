"""The matters that a person has to decide now, and whether a decision is still about the same one.

Made by each protocol (`Collaboration.cards`); here the verdicts that an obstacle forbids are left out.
Requests for permission of participants' programs come first: a process waits for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from acp_core.agents.live import answers
from acp_core.diagnosis import permissions
from acp_core.model import Action, Card, Snapshot
from acp_core.model.action_field import Kind
from acp_core.model.action_spec import Intent
from acp_core.model.errors import Refused
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit import guard
from acp_core.protocols.kit.schema import fields

_DECIDING = frozenset({Intent.ANSWER, Intent.DECIDE, Intent.ACCEPT, Intent.REJECT})


def cards(collaboration: Collaboration, snapshot: Snapshot, now: datetime) -> tuple[Card, ...]:
    """What is to be decided, the most urgent first, each with the verdicts that are possible now.

    Args:
        collaboration: The collaboration; what its cards show is read anew.
        snapshot: Its latest Snapshot.
        now: The time.
    """
    asked = (permissions.card(each) for each in answers.waiting(snapshot.key))
    possible = (_possible(card, snapshot) for card in collaboration.cards(now))
    return (*asked, *(card for card in possible if card.verdicts))


def card_of(
    collaboration: Collaboration,
    snapshot: Snapshot,
    action: str,
    given: Mapping[str, str],
    now: datetime,
) -> Card | None:
    """The card on which an action is decided; None where it decides nothing.

    Args:
        collaboration, snapshot, now: As those of `cards`.
        action: The action's name.
        given: Values of its inputs, as far as they are known.
    """
    found = cards(collaboration, snapshot, now)
    exact = (card for card in found if card.verdict(action, given) is not None)
    instead = (card for card in found if action in card.replaces)
    return next(exact, None) or next(instead, None)


def is_over(action: Action, given: Mapping[str, str]) -> bool:
    """Whether what an action decides was decided or withdrawn meanwhile.

    It was where a value that leads to it is none of the choices that are left.

    Args:
        action: The action as it can be done now; what decides nothing, such as a stop, is never over.
        given: Values of its inputs, by name, as a need or a row has them.
    """
    if action.intent not in _DECIDING:
        return False
    chosen = (
        field for field in fields(action) if field.kind is Kind.CHOICE and field.name in given
    )
    return any(
        given[field.name] not in {*map(str, field.choices), *field.labels.values()}
        for field in chosen
        if field.choices or not action.offered
    )


def check(
    collaboration: Collaboration, snapshot: Snapshot, digest: str, action: str, now: datetime
) -> None:
    """Refuse a verdict on a matter that is not the one that the person judged.

    Args:
        collaboration, snapshot, now: As those of `cards`.
        digest: That of the card that the person saw.
        action: The verdict's.

    Raises:
        Refused: no card with this digest has such a verdict now.
    """
    for card in cards(collaboration, snapshot, now):
        if card.digest == digest and any(each.action == action for each in card.verdicts):
            return
    raise Refused("The facts have changed since you saw them; review them again")


def _possible(card: Card, snapshot: Snapshot) -> Card:
    verdicts = tuple(
        each for each in card.verdicts if not guard.blocking(snapshot.obstacles, each.action)
    )
    return card if len(verdicts) == len(card.verdicts) else replace(card, verdicts=verdicts)
