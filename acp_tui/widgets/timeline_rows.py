"""How one event looks in the timeline: pure functions from an `Event` to rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from acp_core.cli.signs import TONE
from acp_core.model import Event, Tone
from acp_core.model.format import age, clock, count, exact, zoned
from acp_tui.style.colours import TONE_COLOURS
from acp_tui.text import fit, width
from acp_tui.widgets.lines import Row
from acp_tui.widgets.wrap import wrap

ILLEGAL = "✗"
REPLY = "↳"
CURSOR, UNREAD = "❯", "•"
GUTTER = 2
REPLY_WIDTH = 5
SUMMARY_LINES = 4
"""How many lines the summary of the selected event takes at most."""

_STYLES = {tone: colour.removeprefix("text-") for tone, colour in TONE_COLOURS.items()}


@dataclass(frozen=True, slots=True)
class Columns:
    """How wide each column is, in cells; ``width`` is the whole row."""

    width: int
    time: int
    order: int
    actor: int
    kind: int
    relative: bool = False
    dated: bool = False
    utc: bool = False

    @property
    def indent(self) -> int:
        """Where the lines under the selected event begin."""
        return GUTTER + self.time + 1


def columns(
    width: int,
    *,
    last_order: int,
    actors: Iterable[str],
    first: datetime | None,
    last: datetime | None,
    now: datetime,
    relative: bool,
    utc: bool,
) -> Columns:
    """The columns for rows of ``width`` cells.

    Args:
        width: The whole row.
        last_order: The highest number that an event bears.
        actors: Names that will stand in the column of actors.
        first: When the first event was.
        last: When the last event was.
        now: The time: events of one other day bear it too, where there is room.
        relative: Show how long ago, and not when.
        utc: Show UTC, and not local time.
    """
    dated = not relative and (
        _days_differ(first, last, utc) or (width >= 60 and _days_differ(last, now, utc))
    )
    time = 4 if relative else (12 if dated else 5) + utc
    order = max(2, len(str(last_order)))
    actor = min(14 if width >= 60 else 9, max([6, *(len(name) for name in actors)]))
    rest = width - GUTTER - time - 1 - order - 3 - actor - 1
    kind = max(4, min(24 if width >= 85 else 19, rest))
    return Columns(width, time, order, actor, kind, relative, dated, utc)


def event_row(
    event: Event, form: Columns, now: datetime, *, unread: bool = False, selected: bool = False
) -> Row:
    """The row of an event: when, number, sign, who, what, and the summary where there is room."""
    style = "error" if event.problem else _STYLES[event.tone]
    sign = ILLEGAL if event.problem else TONE[event.tone]
    pieces = [
        ((CURSOR if selected else UNREAD if unread else " ") + " ", "accent"),
        (_time(event.at, form, now) + " ", "muted"),
        (fit(str(event.order), form.order, right=True) + " ", "muted"),
        (sign + " ", style),
        (fit(event.actor, form.actor) + " ", ""),
    ]
    reply = f" {REPLY}{event.reply_to}" if event.reply_to is not None else ""
    rest = form.width - sum(width(text) for text, _ in pieces)
    left = summary_width(form)
    if left:
        pieces.append((fit(event.kind, form.kind), style))
        pieces.append((fit(reply, REPLY_WIDTH) + "  ", "muted"))
        if event.problem:
            pieces.append((fit(f"illegal: {event.problem}", left), "error"))
        else:
            pieces.append((fit(event.summary, left), "muted"))
    else:
        kind = event.kind + (" illegal" if event.problem else "")
        room = rest - width(reply) if rest - width(reply) >= 8 else rest
        pieces.append((fit(kind, min(room, width(kind))), style))
        if room < rest:
            pieces.append((reply, "muted"))
    return tuple(pieces)


def summary_width(form: Columns) -> int:
    """What the summary gets on the row of its event; 0 where it has no room there."""
    taken = GUTTER + form.time + 1 + form.order + 3 + form.actor + 1 + form.kind + REPLY_WIDTH + 2
    left = form.width - taken
    return left if left >= 18 else 0


def detail_rows(event: Event, form: Columns, replied: Event | None) -> tuple[Row, ...]:
    """The rows under the selected event: what it answers, its summary, what is wrong with it."""
    indent = " " * form.indent
    cells = max(10, form.width - form.indent - 2)
    rows: list[Row] = []
    if event.reply_to is not None:
        what = f"{REPLY} replies to {event.reply_to}"
        if replied is not None:
            what += f" {replied.actor} {replied.kind}"
        rows.append(((indent, ""), (fit(what, cells).rstrip(), "muted")))
    if event.problem:
        rows += _wrapped(f"{ILLEGAL} illegal: {event.problem}", cells, indent, "error")
    if event.summary and (event.problem or width(event.summary) > summary_width(form)):
        rows += _wrapped(event.summary, cells, indent, "")
    if event.at is not None and event.at_source not in ("", "recorded"):
        when = f"time: {event.at_source}, {exact(event.at, form.utc)}"
        rows.append(((indent, ""), (fit(when, cells).rstrip(), "muted")))
    if event.document:
        where = f"→ {event.document}" + (f":{event.line}" if event.line else "")
        rows.append(((indent, ""), (fit(where, cells).rstrip(), "primary")))
    return tuple(rows)


def rule_row(form: Columns, unread: int, since: datetime | None, now: datetime) -> Row:
    """The rule between what was there at the last visit and what is new."""
    ago = f", {age(since, now)} ago" if since is not None else ""
    text = f"─ {count(unread, 'new event')} since your last visit{ago} "
    if width(text) > form.width - 1:
        text = f"─ {unread:,} new{ago} "
    return ((fit(text + "─" * max(0, form.width - width(text)), form.width), "accent"),)


def _time(at: datetime | None, form: Columns, now: datetime) -> str:
    if at is None:
        return fit("-", form.time, right=True)
    if form.relative:
        return fit(age(at, now), form.time, right=True)
    if not form.dated:
        return fit(clock(at, form.utc), form.time, right=True)
    local = zoned(at, form.utc)
    return fit(f"{local.day} {local.strftime('%b')} {clock(at, form.utc)}", form.time, right=True)


def _days_differ(first: datetime | None, last: datetime | None, utc: bool) -> bool:
    if first is None or last is None:
        return False
    return zoned(first, utc).date() != zoned(last, utc).date()


def _wrapped(text: str, cells: int, indent: str, style: str) -> list[Row]:
    text = " ".join(text.split())
    spans = wrap(text, cells)
    lines = [text[start:stop] for start, stop in spans[:SUMMARY_LINES]]
    if len(spans) > SUMMARY_LINES:
        lines[-1] = fit(text[spans[SUMMARY_LINES - 1][0] :], cells).rstrip()
    return [((indent, ""), (line, style)) for line in lines]


def tone_style(tone: Tone) -> str:
    """The name of the style in which an event of this tone is drawn."""
    return _STYLES[tone]
