"""Who takes part: what they are, what they did last, what they should do now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from acp_core.format import age, exact
from acp_core.model import NextAction, Participant, Target, Turn
from acp_tui.text import fit, width
from acp_tui.widgets.row_list import Item

EMPTY = "Nobody takes part yet."


def items(
    participants: Sequence[Participant],
    turns: Sequence[Turn],
    actions: Sequence[NextAction],
    now: datetime,
    utc: bool,
) -> list[Item]:
    """A line per participant, those who are waited for with a filled sign."""
    waited = {turn.participant: turn for turn in turns}
    todo = {action.participant: action for action in actions}
    name = _widest((p.id for p in participants), 20)
    role = _widest((p.role for p in participants), 20)
    kind = _widest((p.kind for p in participants), 8)
    shown = []
    for person in participants:
        turn, action = waited.get(person.id), todo.get(person.id)
        seen = f"{age(person.last_seen, now)} ago" if person.last_seen else "never"
        details = []
        if action is not None:
            details.append((f"now: {action.text}", ""))
        if turn is not None:
            since = f" since {exact(turn.since, utc)}" if turn.since else ""
            details.append((f"waited for: {turn.what}{since}", "accent"))
        if person.last_seen is not None:
            event = f" (event {person.last_event})" if person.last_event else ""
            details.append((f"last seen {exact(person.last_seen, utc)}{event}", "muted"))
        shown.append(
            Item(
                (
                    ("● " if turn else "○ ", "accent" if turn else "muted"),
                    (fit(person.id, name) + "  ", "strong" if turn else ""),
                    (fit(person.role, role) + "  ", "muted"),
                    (fit(person.kind, kind) + "  ", "muted"),
                    (fit("waited for" if turn else "", 12), "accent"),
                    (f"last seen {seen}", "muted"),
                ),
                tuple(details),
                Target(event=person.last_event),
                key=person.id,
            )
        )
    return shown


def _widest(texts: Iterable[str], most: int) -> int:
    return min(most, max((width(text) for text in texts), default=0))
