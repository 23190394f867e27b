"""The top of the collaboration screen: one plain sentence, who is waited for, what needs you."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from textual.content import Content
from textual.reactive import var
from textual.widget import Widget

from acp_core.cli.signs import NEED, SEVERITY, SOURCE, STATUS, VERDICT
from acp_core.model import Link, Need, Severity, Snapshot, SourceState, Turn
from acp_core.model.format import age, count, long_span, moment
from acp_tui.style.colours import VERDICT_COLOURS
from acp_tui.text import MUTED, Part, join, line, safe_line, width
from acp_tui.widgets.pane_data import PaneData

SHOWN = 2
"""How many needs, and how many notices, are shown; the rest is counted."""

ROWS, TALL = 3, 30
"""How many rows the sentence may take on a screen of at least so many; one less on others."""

HOLD = timedelta(seconds=3)
"""For how long a row that is no longer needed is kept: else everything below jumps up and down."""


@dataclass(frozen=True, slots=True)
class Keys:
    """How the keys that the headline speaks of are called."""

    acknowledge: str = "a"
    remedy: str = "f"
    before: str = "<"
    after: str = ">"


class Headline(Widget):
    """A few lines, as many as there is something to say; rewritten as the time goes on."""

    DEFAULT_CSS = """
    Headline { height: auto; max-height: 40%; padding: 0 1; }
    """

    data: var[PaneData | None] = var(None, always_update=True)
    """What to show."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.keys = Keys()
        self._drawn = Content("")
        self._made_for = 0  # cells
        self._rows = 0  # that were laid out,
        self._width = 0  # in so many cells
        self._fewer_since: datetime | None = None

    def watch_data(self, data: PaneData | None) -> None:
        """Draw again where the Snapshot, or the time, changes what is said."""
        if data is not None:
            self._draw(data.now)

    def _draw(self, now: datetime) -> None:
        content = self._content()
        same = content.is_same(self._drawn)
        layout = self._is_to_be_laid_out(content, now)
        if layout or not same:
            self._drawn, self._made_for = content, self.content_size.width
            self.refresh(layout=layout)  # which costs much more

    def _is_to_be_laid_out(self, content: Content, now: datetime) -> bool:
        """Whether it needs more rows, or has needed fewer for a while."""
        cells = max(1, self.content_size.width)
        rows = sum(-(-max(1, width(text)) // cells) for text in content.plain.split("\n"))
        if rows < self._rows:
            self._fewer_since = self._fewer_since or now
            if abs(now - self._fewer_since) < HOLD:
                return False
        self._fewer_since = None
        changed, self._rows = rows != self._rows, rows
        return changed

    def on_resize(self) -> None:
        """What fits beside each other in a row depends on the width, and so does the height."""
        if self.content_size.width != self._width:
            self._width, self._rows, self._drawn = self.content_size.width, 0, Content("")
            if self.data is not None:
                self._draw(self.data.now)

    def render(self) -> Content:
        made = self._made_for == self.content_size.width and self._drawn.plain
        return self._drawn if made else self._content()

    def _content(self) -> Content:
        if self.data is None:
            return Content("")
        cells = self.content_size.width or self.app.size.width - 2
        return Content("\n").join(self._lines(self.data, cells))

    def _lines(self, data: PaneData, cells: int) -> list[Content]:
        snapshot, now = data.snapshot, data.now
        rows = ROWS if self.app.size.height >= TALL else ROWS - 1
        sentence, verdict = _cut(_sentence(snapshot), cells, rows), _verdict(snapshot)
        first = _at_both_ends(sentence, verdict, cells)
        lines = [first or sentence]
        if data.gone:
            lines.append(_warning("It is gone from here; what was read last is shown."))
        elif snapshot.source.state is not SourceState.LIVE:
            lines.append(_source(snapshot, now))
        aside = line(snapshot.objective if snapshot.turns else "", MUTED) if first else verdict
        waiting = _waiting(snapshot, now, data.utc)
        lines.append(_at_both_ends(waiting, aside, cells) or waiting)
        if not first and lines[-1] is waiting:  # a verdict always shows
            lines.append(verdict)
        if snapshot.doubt:
            lines.append(_warning(f"Not certain: {snapshot.doubt}", "?"))
        for need in data.needs[:SHOWN]:
            lines.append(self._need(need, data, cells))
        if len(data.needs) > SHOWN:
            lines.append(line(f"  and {len(data.needs) - SHOWN} more (see Next)", MUTED))
        for notice in snapshot.notices[:SHOWN]:
            since = f", {age(notice.since, now)} ago" if notice.since else ""
            lines.append(_warning(f"{notice.text}{since}"))
        if len(snapshot.notices) > SHOWN:
            lines.append(line(f"  and {len(snapshot.notices) - SHOWN} more (see Next)", MUTED))
        if snapshot.lineage:
            lines.append(self._lineage(snapshot.lineage))
        return lines

    def _need(self, need: Need, data: PaneData, cells: int) -> Content:
        parts: list[Part] = [(f"{NEED} needs you", "bold $text-error")]
        if need.text not in data.snapshot.headline:  # the sentence above says it already
            parts += [(": ", "bold $text-error"), _cut(line(need.text, "bold"), cells, 2)]
        if need.since is not None:
            parts.append((f" {age(need.since, data.now)}", MUTED))
        if data.past:
            return join(*parts)
        if need.action:
            parts.append((f"  {self.keys.remedy} fix", "$text-accent"))
        parts.append((f"  {self.keys.acknowledge} acknowledge", MUTED))
        return join(*parts)

    def _lineage(self, links: Sequence[Link]) -> Content:
        parts: list[Part] = []
        for link in links:
            key = self.keys.before if link.relation == "continues" else self.keys.after
            words = "continues" if link.relation == "continues" else "continued by"
            if parts:
                parts.append(" · ")
            parts += [(f"{words} ", MUTED), (safe_line(link.name), "$text-primary")]
            if link.summary:
                parts.append((f" ({safe_line(link.summary)})", MUTED))
            parts.append((f" {key}" if link.found else " (not found)", MUTED))
        return join(*parts)


def _cut(sentence: Content, cells: int, rows: int) -> Content:
    """At most about so many rows: the whole stands in Next and in Why."""
    spare = 8 * (rows - 1)  # what wrapping at words leaves empty
    most = max(1, cells * rows - spare)
    return sentence if width(sentence.plain) <= most else sentence.truncate(most, ellipsis=True)


def _at_both_ends(left: Content, right: Content, cells: int) -> Content | None:
    """Two pieces at the ends of a row; None where it is too short for both."""
    gap = cells - width(left.plain) - width(right.plain)
    if not right.plain:
        return left
    return join(left, " " * gap, right) if gap >= 2 else None


def _sentence(snapshot: Snapshot) -> Content:
    status = snapshot.status
    colour = {"completed": "$text-success", "blocked": "$text-error"}.get(status.value, "")
    return join(
        (safe_line(snapshot.name), "bold"),
        (" — ", MUTED),
        (f"{STATUS[status]} " if colour else "", colour),
        (safe_line(snapshot.headline), colour),
    )


def _verdict(snapshot: Snapshot) -> Content:
    sign = VERDICT[snapshot.verdict]
    colour = f"${VERDICT_COLOURS[snapshot.verdict]}"
    counts = [
        (severity, snapshot.count(severity)) for severity in (Severity.ERROR, Severity.WARNING)
    ]
    words = ", ".join(count(n, s.value) for s, n in counts if n) or snapshot.verdict.value
    return join((f"{sign} {words}", colour))


def _waiting(snapshot: Snapshot, now: datetime, utc: bool) -> Content:
    if not snapshot.turns:
        words = snapshot.objective or "nobody is waited for"
        return line(words, MUTED)
    parts: list[Part] = [("waiting for ", MUTED)]
    for number, turn in enumerate(snapshot.turns[:4]):
        if number:
            parts.append((" · ", MUTED))
        parts += _turn(turn, now, utc)
    if len(snapshot.turns) > 4:
        parts.append((f" and {len(snapshot.turns) - 4} more", MUTED))
    return join(*parts)


def _turn(turn: Turn, now: datetime, utc: bool) -> list[Part]:
    parts: list[Part] = [(safe_line(turn.participant), "bold $text-accent")]
    if turn.since is not None:
        took = long_span((now - turn.since).total_seconds())
        parts.append((f" {took}", ""))
        parts.append((f" (since {moment(turn.since, now, utc)})", MUTED))
    return parts


def _source(snapshot: Snapshot, now: datetime) -> Content:
    state = snapshot.source.state
    read = f"last read {age(snapshot.as_of, now)} ago"
    note = f": {snapshot.source.note}" if snapshot.source.note else ""
    return _warning(f"{state.value}, {read}{note}", SOURCE[state])


def _warning(text: str, sign: str = SEVERITY[Severity.WARNING]) -> Content:
    return join((f"{sign} ", "bold $text-warning"), (safe_line(text), "$text-warning"))
