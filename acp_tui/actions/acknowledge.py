"""Acknowledging a need, described as an action, so that it has the same form as all others.

It is a note of this person's to themselves, kept in their state folder: no protocol and no
other participant sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from enum import Enum

from pydantic import BaseModel, Field, create_model

from acp_core.files.text import clean_line
from acp_core.model import Action, Need, Outcome, OutcomeState, Preview, Snapshot
from acp_core.person.attention import Attention

_LONGEST = 120  # characters of a need in the list to choose from


def acknowledging(
    attention: Attention, snapshot: Snapshot, needs: Sequence[Need], now: Callable[[], datetime]
) -> Action:
    """The action that takes one of ``needs`` off the top of the fleet.

    Args:
        attention: Where it is kept.
        snapshot: The collaboration.
        needs: Those that are open; at least one.
        now: The time, aware.
    """
    by_choice = {f"{place} {clean_line(n.text, _LONGEST)}": n for place, n in enumerate(needs, 1)}
    choices = Enum("choices", {choice: choice for choice in by_choice}, type=str)  # type: ignore[misc]
    inputs = create_model(
        "Acknowledge",
        need=(choices, Field(choices(next(iter(by_choice))), title="Need")),
        note=(str, Field("", title="Note", description="Why it needs nothing more, for yourself.")),
    )

    def chosen(given: BaseModel) -> Need:
        return by_choice[given.need.value]  # type: ignore[attr-defined]

    def preview(given: BaseModel) -> Preview:
        need = chosen(given)
        sentence = f"Takes this off the top until there is a new reason: {need.text}"
        note = str(given.note)  # type: ignore[attr-defined]
        noted = ("--note", note) if note else ()
        command = ("acp", "ack", clean_line(snapshot.key, 4096), need.key, *noted)
        return Preview(sentence, command=command)

    def perform(given: BaseModel) -> Outcome:
        need = chosen(given)
        try:
            attention.acknowledge(snapshot.key, need.key, str(given.note), now())  # type: ignore[attr-defined]
        except OSError as error:
            return Outcome(OutcomeState.REFUSED, f"It cannot be kept: {error.strerror or error}")
        return Outcome(OutcomeState.DONE, f"Acknowledged: {need.text}")

    return Action(
        name="acknowledge",
        label="Acknowledge",
        sentence="You know of it: it goes from the top, and comes back when there is a new reason.",
        inputs=inputs,
        preview=preview,
        perform=perform,
    )
