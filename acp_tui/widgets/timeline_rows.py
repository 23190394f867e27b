"""How one event looks in the timeline: pure functions from an `Event` to rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from itertools import islice

from acp_core.cli.signs import TONE
from acp_core.model import Event, Tone
from acp_core.model.format import age, clock, count, exact, grouped, zoned
from acp_tui.style.colours import TONE_COLOURS
from acp_tui.text import fit, width
from acp_tui.widgets.lines import Row
from acp_tui.widgets.wrap import wrap, wrap_path

ILLEGAL = "✗"
REPLY = "↳"
CURSOR, UNREAD = "❯", "•"
GUTTER = 2
REPLY_WIDTH = 5
"""How wide the column of replies is at most."""
KIND_WIDTH = 24
"""How wide the column of kinds is at most."""
SUMMARY_WIDTH = 14
"""How wide the column of summaries is at least: with less room there is none."""
WRAPPED_WIDTH = 30
"""How wide it is at least where the longer ones are wrapped within it; with less room these stand
below their events, over the whole width."""
SUMMARY_LINES = 4
"""How many lines the summary of the selected event takes at most."""
EVENT_LINES = 3
"""How many lines the summary of any event takes at most, where summaries are wrapped."""
KEPT = 1024
"""Of how many events is kept how they are shown: with each new one, all on the screen are asked for."""

_STYLES = {tone: colour.removeprefix("text-") for tone, colour in TONE_COLOURS.items()}


@dataclass(frozen=True, slots=True)
class Columns:
    """How wide each column is, in cells; ``width`` is the whole row.

    ``wrapped``: a summary that is too long for its row goes on below it; ``below``: stands there.
    """

    width: int
    time: int
    order: int
    actor: int
    kind: int
    reply: int
    relative: bool = False
    dated: bool = False
    utc: bool = False
    wrapped: bool = False
    below: bool = False

    @property
    def indent(self) -> int:
        """Where the lines under an event begin: below its actor."""
        return GUTTER + self.time + 1 + self.order + 3

    @property
    def summary_column(self) -> int:
        """Where the column of summaries begins."""
        return self.indent + self.actor + 1 + self.kind + self.reply + 2

    @property
    def summary(self) -> int:
        """What the summary gets on the row of its event; 0 where it has no room there."""
        left = self.width - self.summary_column
        return left if left >= SUMMARY_WIDTH else 0

    @property
    def lines_column(self) -> int:
        """Where the lines of a wrapped summary begin."""
        return self.summary_column if self.summary and not self.below else self.indent

    @property
    def lines_width(self) -> int:
        """How wide the lines of a wrapped summary are."""
        return max(10, self.width - self.lines_column)


def columns(
    width: int,
    *,
    events: Collection[Event],
    last_order: int,
    actors: Iterable[str],
    first: datetime | None,
    last: datetime | None,
    relative: bool,
    utc: bool,
    wrapped: bool = False,
) -> Columns:
    """The columns for rows of ``width`` cells.

    Args:
        width: The whole row.
        events: Those whose texts the columns are made for.
        last_order: The highest number that an event bears.
        actors: Further names that will stand in the column of actors.
        first: When the first event was.
        last: When the last event was; where that is another day, each event bears its own.
        relative: Show how long ago, and not when.
        utc: Show UTC, and not local time.
        wrapped: Let a summary that is too long for its row go on below it.
    """
    dated = not relative and days_differ(first, last, utc)
    time = 4 if relative else (12 if dated else 5) + utc
    order = max(2, len(str(last_order)))
    names = (*actors, *(event.actor for event in events))
    actor = min(14 if width >= 60 else 9, max([6, *(len(name) for name in names)]))
    rest = width - GUTTER - time - 1 - order - 3 - actor - 1
    widest = max([4, *(len(event.kind) for event in events)])
    kind = max(4, min(widest, KIND_WIDTH, rest))
    reply = min(REPLY_WIDTH, max([0, *(len(_reply(event)) for event in events)]))
    form = Columns(width, time, order, actor, kind, reply, relative, dated, utc, wrapped)
    return replace(form, below=True) if wrapped and form.summary < WRAPPED_WIDTH else form


def needed_width(events: Iterable[Event], form: Columns) -> int:
    """How wide a row must be for the longest summary of these events to stand on it whole."""
    return form.summary_column + max((width(_summary_text(event)) for event in events), default=0)


def event_rows(
    event: Event, form: Columns, now: datetime, *, unread: bool = False, selected: bool = False
) -> tuple[Row, ...]:
    """The rows of an event: when, number, sign, who, what, and the summary where there is room."""
    style = "error" if event.problem else _STYLES[event.tone]
    sign = ILLEGAL if event.problem else TONE[event.tone]
    pieces = [
        ((CURSOR if selected else UNREAD if unread else " ") + " ", "accent"),
        (_time(event.at, form, now) + " ", "muted"),
        (fit(str(event.order), form.order, right=True) + " ", "muted"),
        (sign + " ", style),
        (fit(event.actor, form.actor) + " ", ""),
    ]
    rest = form.width - sum(width(text) for text, _ in pieces)
    text = _summary_text(event)
    lines = _summary_lines(text, form, cut=not selected)
    aside = "error" if event.problem else "muted"
    if form.summary:
        pieces.append((fit(event.kind, form.kind), style))
        pieces.append((fit(_reply(event), form.reply) + "  ", "muted"))
        if _begins_on_row(text, form):
            pieces.append((fit(lines.pop(0), form.summary), aside))
    else:
        reply = _reply(event)
        kind = event.kind + (" illegal" if event.problem else "")
        room = rest - width(reply) if rest - width(reply) >= 8 else rest
        pieces.append((fit(kind, min(room, width(kind))), style))
        if room < rest:
            pieces.append((reply, "muted"))
    indent = " " * form.lines_column
    return (tuple(pieces), *(((indent, ""), (line, aside)) for line in lines))


def event_height(event: Event, form: Columns) -> int:
    """How many rows `event_rows` makes."""
    return _height(_summary_text(event), form) if form.wrapped else 1


@lru_cache(KEPT)
def _height(text: str, form: Columns) -> int:
    if form.summary and width(text) <= form.summary:
        return 1
    lines = len(_summary_lines(text, form))
    return lines if _begins_on_row(text, form) else 1 + lines


def _begins_on_row(text: str, form: Columns) -> bool:
    """Whether a summary begins on the row of its event."""
    fits = not form.below or width(text) <= form.summary
    return bool(form.summary) and fits


def _reply(event: Event) -> str:
    return f" {REPLY}{event.reply_to}" if event.reply_to is not None else ""


def _summary_text(event: Event) -> str:
    """What an event says beside who did what."""
    if event.problem:
        return f"illegal: {event.problem}"
    return _without_subject(event.actor, event.kind, event.summary)


@lru_cache(KEPT)
def _without_subject(actor: str, kind: str, summary: str) -> str:
    text = " ".join(summary.split())
    for known in (f"{actor} {kind}", kind.replace("_", " ")):
        if text.lower() == known.lower():
            return ""
        if text.lower().startswith(f"{known.lower()}, "):
            return text[len(known) + 2 :]
    return text


def _summary_lines(text: str, form: Columns, *, cut: bool = True) -> list[str]:
    """What shows of the summary of an event; ``cut``: it ends in "…" where there is more."""
    if form.summary and (not form.wrapped or width(text) <= form.summary):
        return [text]
    if not form.wrapped or not text:
        return []
    if cut:
        return _lines(text, form.lines_width, EVENT_LINES)
    return [text[start:stop] for start, stop in wrap(text, form.lines_width)[:EVENT_LINES]]


def detail_rows(event: Event, form: Columns, replied: Event | None) -> tuple[Row, ...]:
    """The rows under the selected event: the rest of its summary, what it answers, its document."""
    indent = " " * form.indent
    cells = max(10, form.width - form.indent - 2)
    rows = _rest_rows(event, form)
    if event.reply_to is not None:
        what = f"{REPLY} replies to {event.reply_to}"
        if replied is not None:
            what += f" {replied.actor} {replied.kind}"
        rows += _wrapped(what, cells, indent, "muted")
    if event.problem and not form.wrapped:
        rows += _wrapped(f"{ILLEGAL} illegal: {event.problem}", cells, indent, "error")
    cut = not form.wrapped and width(event.summary) > form.summary
    if event.summary and (event.problem or cut):
        rows += _wrapped(event.summary, cells, indent, "")
    if event.at is not None and event.at_source not in ("", "recorded"):
        when = f"time: {event.at_source}, {exact(event.at, form.utc)}"
        rows += _wrapped(when, cells, indent, "muted")
    if event.document:
        where = event.document + (f":{event.line}" if event.line else "")
        rows += _path_rows(where, cells, indent)
    return tuple(rows)


def _rest_rows(event: Event, form: Columns) -> list[Row]:
    """What of a wrapped summary had no room in the rows of its event."""
    text = _summary_text(event)
    if not form.wrapped:
        return []
    rest = [text[start:stop] for start, stop in wrap(text, form.lines_width)[EVENT_LINES:]]
    indent, style = " " * form.lines_column, "error" if event.problem else "muted"
    return _wrapped(" ".join(rest), form.lines_width, indent, style) if rest else []


def _path_rows(path: str, cells: int, indent: str) -> list[Row]:
    """A path behind an arrow; a long one goes on below, behind one of its slashes."""
    rows: list[Row] = []
    room, lead = cells - 2, "→ "
    for start, stop in islice(wrap_path(path, room), SUMMARY_LINES):
        last = len(rows) == SUMMARY_LINES - 1
        piece = fit(path[start:], room).rstrip() if last else path[start:stop]
        rows.append(((indent, ""), (lead + piece, "primary")))
        lead = "  "
    return rows


def rule_row(form: Columns, unread: int, since: datetime | None, now: datetime) -> Row:
    """The rule between what was there at the last visit and what is new."""
    ago = f", {age(since, now)} ago" if since is not None else ""
    text = f"─ {count(unread, 'new event')} since your last visit{ago} "
    if width(text) > form.width - 1:
        text = f"─ {grouped(unread)} new{ago} "
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


def one_day(first: datetime | None, last: datetime | None, now: datetime, utc: bool) -> str:
    """The day of all events, where it is the same and not today."""
    if last is None or days_differ(first, last, utc) or not days_differ(last, now, utc):
        return ""
    local = zoned(last, utc)
    year = f" {local.year}" if local.year != zoned(now, utc).year else ""
    return f"{local.day} {local.strftime('%b')}{year}"


def days_differ(first: datetime | None, last: datetime | None, utc: bool) -> bool:
    """Whether two times are on different days."""
    if first is None or last is None:
        return False
    return zoned(first, utc).date() != zoned(last, utc).date()


def _wrapped(text: str, cells: int, indent: str, style: str) -> list[Row]:
    lines = _lines(" ".join(text.split()), cells, SUMMARY_LINES)
    return [((indent, ""), (line, style)) for line in lines]


def _lines(text: str, cells: int, most: int) -> list[str]:
    """A text in at most so many lines; the last one ends in "…" where there is more."""
    spans = wrap(text, cells)
    lines = [text[start:stop] for start, stop in spans[:most]]
    if len(spans) > most:
        lines[-1] = fit(text[spans[most - 1][0] :], cells).rstrip()
    return lines


def tone_style(tone: Tone) -> str:
    """The name of the style in which an event of this tone is drawn."""
    return _STYLES[tone]
