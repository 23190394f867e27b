"""Why it does not go on: each cause with its evidence, and what mends it, a row to press each."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from acp_core.cli.signs import NEED
from acp_core.model import Cause, Target
from acp_core.model.format import age, exact
from acp_core.model.sentence import sentence_case
from acp_tui.widgets.row_list import Item

EMPTY = "No problem found."


def items(
    causes: Sequence[Cause],
    now: datetime,
    utc: bool,
    labels: Mapping[str, str] | None = None,
    fix_key: str = "f",
    names: Collection[str] = (),
) -> list[Item]:
    """The causes, the one that counts most first.

    Args:
        causes: Why it does not go on.
        now: For how long each has lasted.
        utc: Show times in UTC.
        labels: What the actions are called that can be done now, by name; None: not yet known.
        fix_key: What the key is called that does what the first cause asks for.
        names: Names with which a cause may begin, which keep their first letter.
    """
    rows: list[Item] = []
    for number, cause in enumerate(causes):
        if number:
            rows.append(Item((("", ""),), heading=True))
        rows += _items(cause, now, utc, names)
        rows += _remedies(cause, labels, "" if number else fix_key)
    return rows


def remedies(cause: Cause) -> tuple[tuple[str, Target], ...]:
    """The names of the actions that may mend a cause, the best first, and how to run each."""
    names = [cause.remedy, *cause.others] if cause.remedy else [*cause.others]
    given = {cause.remedy: cause.given}
    return tuple(
        (name, Target(action=name, given=given.get(name, ())))
        for name in dict.fromkeys(names)
        if name
    )


def _items(cause: Cause, now: datetime, utc: bool, names: Collection[str]) -> list[Item]:
    colour = "error" if cause.wanted else "warning"
    known = "certain" if cause.certain else "inferred"
    since = f" · {age(cause.since, now)}" if cause.since else ""
    where = cause.document is not None or cause.event is not None
    headline, advice = (sentence_case(each, names) for each in (cause.headline, cause.advice))
    details = [(f"since {exact(cause.since, utc)}", "muted")] if cause.since else []
    if where:
        place = f"{cause.document}:{cause.line}" if cause.line else cause.document
        details.append((f"enter: {place or f'event {cause.event}'}", "primary"))
    target = Target()
    if cause.document is not None:
        target = Target(document=cause.document, line=cause.line)
    elif cause.event is not None:
        target = Target(event=cause.event)
    rows = [
        Item(
            (
                (f"{NEED} " if cause.wanted else "… ", colour),
                (f"{cause.code} ", colour),
                (headline, "strong"),
                (f"  {known}{since}", "muted" if cause.certain else "warning"),
            ),
            tuple(details),
            target,
            key=f"cause {cause.key or cause.headline}",
        )
    ]
    rows += [
        Item((("    · ", "muted"), (line, "")), heading=True, indent=6) for line in cause.evidence
    ]
    if advice:
        rows.append(Item((("    → ", "primary"), (advice, "primary")), heading=True))
    return rows


def _remedies(cause: Cause, labels: Mapping[str, str] | None, fix_key: str) -> list[Item]:
    """A row for each remedy: what it is called, and the keys that do it."""
    rows: list[Item] = []
    for rank, (name, goes) in enumerate(remedies(cause)):
        label = (labels or {}).get(name, name.replace("_", " ").capitalize())
        hint = f"{fix_key} or enter" if fix_key and not rank and cause.remedy else "enter"
        if labels is not None and name not in labels:
            hint = "not possible now"
        rows.append(
            Item(
                (("  ▸ ", "accent"), (label, "accent"), (f"  {hint}", "muted")),
                target=goes,
                key=f"remedy {cause.key or cause.headline} {name}",
            )
        )
    return rows
