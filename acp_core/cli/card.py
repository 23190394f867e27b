"""``acp card``: what waits for a person's decision, with the facts that it depends on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from acp_core.cli import fields, layout
from acp_core.cli.opening import open_one
from acp_core.cli.output import Terminal, act_command, dump, say, terminal, to_choose
from acp_core.cli.signs import of_row
from acp_core.model import Card, Row, Snapshot, Tone, spoken
from acp_core.model.card import CardSection
from acp_core.model.clock import utc_now
from acp_core.model.format import age
from acp_core.protocols.kit.values import Values

SCHEMA = "acp.card/1"
WANTED = 1  # exit code: a decision waits
IN = "   "
_STYLES = {
    Tone.PASS: "good",
    Tone.REVISE: "error",
    Tone.REVIEW: "warning",
    Tone.BLOCKED: "error",
}


def card(given: Values) -> int:
    """Print the cards, or the object; the exit code."""
    fleet, snapshot = open_one(given.folder)
    from acp_core.diagnosis.cards import cards  # late: it loads everything that can be done

    now = utc_now()
    found = fleet.call_sync(snapshot.key, lambda opened: cards(opened, snapshot, now))
    if given.json:
        shown = [as_fields(each, snapshot) for each in found]
        say(dump({"schema": SCHEMA, "collaboration": snapshot.key, "cards": shown}))
    elif not found:
        say(f"Nothing in {snapshot.name} waits for your decision.")
    else:
        for number, each in enumerate(found):
            for line in ([""] if number else []) + render(each, snapshot, now, terminal()):
                say(line)
    return WANTED if found else 0


def as_fields(card: Card, snapshot: Snapshot) -> fields.Fields:
    """A card as JSON."""
    return {
        "id": card.id,
        "title": card.title,
        "claim": card.claim,
        "by": card.by,
        "since": fields.time(card.since),
        "digest": card.digest,
        "sections": [
            {
                "title": section.title,
                "columns": list(section.columns),
                "rows": [
                    {
                        "cells": list(row.cells),
                        "checked": row.checked,
                        "tone": row.tone.value,
                        "document": row.target.document,
                        "line": row.target.line,
                        "event": row.target.event,
                    }
                    for row in section.rows
                ],
            }
            for section in card.sections
        ],
        "verdicts": [
            {
                "number": number,
                "label": each.label,
                "action": each.action,
                "given": dict(each.given),
                "choose": list(
                    dict.fromkeys((*to_choose(snapshot, each.action, each.given), *each.asks))
                ),
                "command": command(card, number - 1, snapshot),
            }
            for number, each in enumerate(card.verdicts, 1)
        ],
        "documents": [{"id": each.id, "version": each.version} for each in card.documents],
    }


def command(card: Card, verdict: int, snapshot: Snapshot) -> str:
    """The command of a verdict, ready to be typed: refused where the matter has changed since."""
    each = card.verdicts[verdict]
    left = to_choose(snapshot, each.action, each.given)
    asked = "".join(f" --{name.replace('_', '-')} TEXT" for name in each.asks if name not in left)
    return f"{act_command(snapshot, each.action, each.given)}{asked} --matter {card.digest}"


def render(card: Card, snapshot: Snapshot, now: datetime, shown_on: Terminal) -> list[str]:
    """A card's lines: the matter, then the verdicts with their commands."""
    since = f" (waiting for you {age(card.since, now)})" if card.since else ""
    lines = [
        shown_on.paint(line, "need")
        for line in layout.wrap(f"{card.title}{since}", shown_on, indent="  ", first="")
    ]
    if card.claim:
        lines += layout.wrap(f"“{card.claim}”", shown_on, indent=f"{IN} ", first=IN)
    wide = max((layout.width(each.title) for each in card.sections), default=0)
    for section in card.sections:
        lines += _section(section, wide, shown_on)
    for number, verdict in enumerate(card.verdicts, 1):
        first = f"{number}. {verdict.label}"
        lines += layout.wrap(first, shown_on, indent=IN, first=IN)
        text = command(card, number - 1, snapshot)
        lines += layout.wrap(text, shown_on, indent=f"{IN}     ", first=f"{IN}   ")
    return lines


def _section(section: CardSection, wide: int, shown_on: Terminal) -> list[str]:
    """The section's title beside its rows, and the titles of their cells where they have any."""
    lead = max(map(layout.width, section.leads), default=0)
    signed = any(map(of_row, section.rows))
    rows: Sequence[tuple[str, str]] = [
        (text_of(row, lead, signed), _STYLES.get(row.tone, "")) for row in section.rows
    ]
    if section.columns:
        rows = [("  ".join(section.columns), "dim"), *rows]
    indent = " " * (len(IN) + wide + 4)
    lines = []
    for number, (text, style) in enumerate(rows):
        title = section.title if number == 0 else ""
        first = f"{IN}{layout.fit(title, wide)}  "
        wrapped = layout.wrap(text, shown_on, indent=indent, first=first)
        lines += [shown_on.paint(line, style) if style else line for line in wrapped]
    return lines


def _sign(row: Row) -> str:
    """The sign before a row, or the word that says the same; "" where it has none."""
    sign = of_row(row)
    if row.checked is not None:
        return spoken.mark(sign, "met:" if row.checked else "not met:")
    return spoken.mark(sign, "attention:") if sign else ""


def text_of(row: Row, lead: int = 0, signed: bool = False) -> str:
    """A row in one line: its sign, then its cells, the first of several as wide as ``lead``.

    A row without a sign leaves the room of one where others of its section are ``signed``.
    """
    room = " " if signed and not spoken.is_wanted() else ""
    sign = f"{_sign(row) or room} " if _sign(row) or room else ""
    first, *others = [cell for cell in row.cells if cell] or [""]
    if others and lead:
        first += " " * (lead - layout.width(first))
    return sign + "  ".join((first, *others))
