"""A chart as lines of text, for the terminal: readable without colour, in any width from 60 on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

from acp_core.history.chart import Bar, Chart, Level, tick_label, ticks
from acp_core.model import format

Piece = tuple[str, str]
"""Text, and the name of its style: ``head``, ``dim``, ``phase``, ``turn``, ``open``, ``arrow``,
``level``, ``bad`` or ""."""

Fit = Callable[[str, int], str]
NARROWEST = 60
_NAMES = (12, 30)  # columns of the lanes' names, at least and at most
_STEPS = "▁▂▃▄▅▆▇█"
_UNKNOWN = "·"


def lines(
    drawn: Chart,
    width: int,
    *,
    utc: bool = False,
    fit: Fit,
) -> list[tuple[Piece, ...]]:
    """The chart: a scale, a lane for each row, hand-overs between them, numbers over time, shares.

    Args:
        drawn: What to draw; its names are safe to show.
        width: Columns; fewer than `NARROWEST` are drawn as that many.
        utc: Show times in UTC rather than in local time.
        fit: A text in exactly so many columns, cut or filled.
    """
    return list(_Drawing(drawn, max(NARROWEST, width), utc, fit).lines())


class _Drawing:
    def __init__(self, drawn: Chart, width: int, utc: bool, fit: Fit) -> None:
        self.drawn, self.utc, self.fit = drawn, utc, fit
        named = [lane.name for lane in drawn.lanes] + [level.name for level in drawn.levels]
        longest = max(map(len, named), default=0)
        self.names = max(_NAMES[0], min(_NAMES[1], width // 4, longest))
        self.wide = width - self.names - 1
        self.span = max(1e-6, (drawn.end - drawn.start).total_seconds())

    def column(self, at: datetime) -> int:
        share = (at - self.drawn.start).total_seconds() / self.span
        return round(min(1.0, max(0.0, share)) * (self.wide - 1))

    def lines(self) -> Iterator[tuple[Piece, ...]]:
        drawn = self.drawn
        yield self._named("", [(self._scale(), "dim")])
        for row, lane in enumerate(drawn.lanes):
            yield self._named(lane.name, self._lane(lane.bars))
            if row + 1 < len(drawn.lanes) and drawn.handovers:
                yield self._named("", [(self._between(row), "arrow")])
        if drawn.levels:
            yield ()
        for level in drawn.levels:
            yield self._named(level.name, [(self._level(level), "bad" if level.bad else "level")])
        if drawn.shares:
            yield ()
            yield (("sole blocker, share of the lead time", "head"),)
        for share in drawn.shares:
            bar = format.bar(min(1.0, max(0.0, share.share)), 20)
            yield self._named(share.name, [(bar, "turn"), (f" {share.share:.0%}", "")])
        if drawn.doubt:
            yield ((f"uncertain: {drawn.doubt}", "dim"),)
        if drawn.omitted:
            yield ((f"{drawn.omitted} not drawn: no recorded time", "dim"),)
        if drawn.merged:
            yield ((f"{drawn.merged} merged with neighbors: too close to draw", "dim"),)

    def _named(self, name: str, pieces: Sequence[Piece]) -> tuple[Piece, ...]:
        return ((f"{self.fit(name, self.names)} ", "head"), *pieces)

    def _scale(self) -> str:
        text = ""
        for at in ticks(self.drawn, max(1, self.wide // 14)):
            label = f"╷{tick_label(self.drawn, at, self.utc)}"
            column = self.column(at)
            if column >= len(text) + bool(text) and column + len(label) <= self.wide:
                text = text.ljust(column) + label
        return text

    def _lane(self, bars: Sequence[Bar]) -> list[Piece]:
        """The bars from left to right; of those that share a column, the later one is seen."""
        styles = [""] * self.wide
        signs = [" "] * self.wide
        for bar in bars:
            first = self.column(bar.start)
            last = max(first, self.column(bar.end or self.drawn.end))
            if last > first and last < self.wide - 1:
                last -= 1  # where the next one begins
            text = self._bar(bar, last - first + 1)
            style = "open" if bar.end is None and bar.kind == "turn" else bar.kind
            signs[first : last + 1] = text
            styles[first : last + 1] = [style] * len(text)
        pieces: list[Piece] = []
        for sign, style in zip(signs, styles, strict=True):
            if pieces and pieces[-1][1] == style:
                pieces[-1] = (pieces[-1][0] + sign, style)
            else:
                pieces.append((sign, style))
        return pieces

    def _bar(self, bar: Bar, wide: int) -> list[str]:
        """As many signs as columns, the label's beginning among them where there is room."""
        fill, edge = ("─", "├") if bar.kind == "phase" else ("━", "┝")
        if wide == 1:
            return ["│" if bar.kind == "phase" else "┃"]
        end = "┤" if bar.kind == "phase" else "┥"
        if bar.end is None:
            end = "→"
        label = bar.label if self.fit(bar.label, len(bar.label)) == bar.label else ""
        inside = wide - 2
        text = f" {label} " if label and len(label) + 2 <= inside else label
        if len(text) > inside:
            text = f"{text[: inside - 1]}…" if inside >= 4 else ""
        return [edge, *text, *fill * (inside - len(text)), end]

    def _between(self, row: int) -> str:
        """The arrows that cross the gap below a lane."""
        signs = [" "] * self.wide
        for each in self.drawn.handovers:
            high, low = sorted((each.giver, each.taker))
            if high <= row < low:
                down = each.taker > each.giver
                ends = (row == low - 1) if down else (row == high)
                column = self.column(each.at)
                if ends or signs[column] == " ":  # a tip is never hidden by what goes on
                    signs[column] = ("▼" if down else "▲") if ends else "│"
        return "".join(signs).rstrip()

    def _level(self, level: Level) -> str:
        most = max(1, level.most)
        text = ""
        for column in range(self.wide - 5):
            share = column / max(1, self.wide - 1)
            moment = self.drawn.start + timedelta(seconds=share * self.span)
            number = level.at(moment)
            if number is None:
                text += _UNKNOWN
            elif not number:
                text += " "
            else:
                text += _STEPS[max(0, round(number / most * len(_STEPS)) - 1)]
        last = level.at(self.drawn.end)
        return f"{text} {'' if last is None else last}"
