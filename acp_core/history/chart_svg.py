"""A chart as SVG: bars, hand-overs, numbers over time and shares, on one axis of time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from html import escape

from acp_core.history.chart import Bar, Chart, Handover, Level, Share, tick_label, ticks
from acp_core.model import format

_LABELS = 150  # width of the lanes' names, in SVG units
_RIGHT = 44  # room for half of the last label of the scale
WIDTH = 960
_LANE = 28
_TOP = 34
_LEVEL = 34  # height of a number over time
_SHARE = 22
STYLE = """
svg.gantt { font: 12px system-ui, sans-serif; }
svg.gantt text { fill: #1c1c1c; }
svg.gantt text.scale { fill: #555; font-size: 11px; }
svg.gantt line { stroke: #d4d4d4; }
svg.gantt rect.phase { fill: #c3cfee; }
svg.gantt rect.turn { fill: #b5e0cf; }
svg.gantt rect.open { fill: #f5d29c; }
svg.gantt path.level { fill: #d9d2ea; stroke: #6c5aa0; }
svg.gantt path.bad { fill: #e3b3b3; stroke: #a33; }
svg.gantt rect.share { fill: #b5cfe8; }
svg.gantt rect.rest { fill: #ececec; }
svg.gantt path.handover { stroke: #444; fill: none; }
svg.gantt path.tip { fill: #444; }
@media screen and (prefers-color-scheme: dark) {
  svg.gantt text { fill: #ececec; }
  svg.gantt text.scale { fill: #aaa; }
  svg.gantt line { stroke: #444; }
  svg.gantt rect.phase { fill: #3b4c7c; }
  svg.gantt rect.turn { fill: #22604c; }
  svg.gantt rect.open { fill: #7a5013; }
  svg.gantt path.level { fill: #463b66; stroke: #a898d8; }
  svg.gantt path.bad { fill: #6b3535; stroke: #d88; }
  svg.gantt rect.share { fill: #35597c; }
  svg.gantt rect.rest { fill: #2c2c2c; }
  svg.gantt path.handover { stroke: #bbb; }
  svg.gantt path.tip { fill: #bbb; }
}
"""


def across(drawn: Chart, at: datetime, width: int = WIDTH) -> float:
    """How far from the left a time is drawn, in SVG units; the nearest edge where it is outside."""
    return _Scale(drawn, width).x(at)


def svg(drawn: Chart, *, width: int = WIDTH, utc: bool = False) -> str:
    """The chart as one ``svg`` element: no script, no link; every label is escaped text.

    Args:
        drawn: What to draw.
        width: In SVG units; the height follows from the lanes.
        utc: Show times in UTC rather than in local time.
    """
    lanes = _TOP + _LANE * len(drawn.lanes)
    axis = lanes + _LEVEL * len(drawn.levels)
    height = axis + (_SHARE * len(drawn.shares) + 10 if drawn.shares else 0) + 8
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="gantt" width="100%" role="img" '
            f'viewBox="0 0 {width} {height}" aria-label="Phases and turns over time">'
        ),
        f"<style>{STYLE}</style>",
    ]
    place = _Scale(drawn, width)
    for at in ticks(drawn):
        x = place.x(at)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 8}" y2="{axis}"/>')
        parts.append(
            f'<text class="scale" x="{x:.1f}" y="{_TOP - 14}" text-anchor="middle">'
            f"{escape(tick_label(drawn, at, utc))}</text>"
        )
    for row, lane in enumerate(drawn.lanes):
        y = _TOP + _LANE * row
        parts.append(_name(lane.name, y + 17))
        parts.extend(_bar(bar, place, y, drawn.end) for bar in lane.bars)
    parts.extend(_arrow(each, place) for each in drawn.handovers)
    for row, level in enumerate(drawn.levels):
        parts.extend(_level(level, place, lanes + _LEVEL * row, drawn))
    for row, share in enumerate(drawn.shares):
        parts.extend(_share(share, width, axis + 10 + _SHARE * row))
    parts.append(f'<line class="cursor" display="none" y1="{_TOP - 8}" y2="{axis}"/>')
    parts.append("</svg>")
    return "\n".join(parts)


def _name(text: str, y: float) -> str:
    return f'<text x="4" y="{y}">{escape(_short(text, 22))}</text>'


def _level(level: Level, place: _Scale, y: float, drawn: Chart) -> Iterator[str]:
    """Steps; where nothing is recorded, nothing is drawn."""
    bottom, high = y + _LEVEL - 6, _LEVEL - 12
    most = max(1, level.most)
    yield _name(level.name, y + 20)
    points = [(max(at, drawn.start), number) for at, number in level.points if at <= drawn.end]
    if not points:
        return
    ends = [at for at, _ in points[1:]] + [drawn.end]
    path = f"M{place.x(points[0][0]):.1f} {bottom}"
    for (at, number), end in zip(points, ends, strict=True):
        top = bottom - high * number / most
        path += f"L{place.x(at):.1f} {top:.1f}L{place.x(end):.1f} {top:.1f}"
    title = f"{level.name}: {', '.join(str(number) for _, number in points[:50])}"
    kind = "level bad" if level.bad else "level"
    yield f'<path class="{kind}" d="{path}V{bottom}z"><title>{escape(title)}</title></path>'
    x = place.x(ends[-1]) + 4
    yield f'<text class="scale" x="{x:.1f}" y="{bottom}">{points[-1][1]}</text>'


def _share(share: Share, width: int, y: float) -> Iterator[str]:
    wide = (width - _LABELS - _RIGHT) / 2
    yield _name(share.name, y + 14)
    part = min(1.0, max(0.0, share.share)) * wide
    yield f'<rect class="rest" x="{_LABELS}" y="{y + 3}" width="{wide:.1f}" height="14" rx="3"/>'
    yield f'<rect class="share" x="{_LABELS}" y="{y + 3}" width="{part:.1f}" height="14" rx="3"/>'
    yield f'<text class="scale" x="{_LABELS + wide + 8:.1f}" y="{y + 14}">{escape(share.label)}</text>'


def _bar(bar: Bar, place: _Scale, y: float, now: datetime) -> str:
    left, right = place.x(bar.start), place.x(bar.end or now)
    kind = "open" if bar.end is None and bar.kind == "turn" else bar.kind
    lasted = ((bar.end or now) - bar.start).total_seconds()
    title = f"{bar.label}: {format.long_span(lasted)}{'' if bar.end else ' so far'}"
    wide = max(1.5, right - left)
    text = ""
    if len(bar.label) * 7 + 8 < wide:
        text = f'<text x="{left + 5:.1f}" y="{y + 17}">{escape(bar.label)}</text>'
    return (
        f'<g aria-label="{escape(title)}"><title>{escape(title)}</title>'
        f'<rect class="{kind}" x="{left:.1f}" y="{y + 4}" width="{wide:.1f}" '
        f'height="{_LANE - 9}" rx="3"/>{text}</g>'
    )


def _arrow(each: Handover, place: _Scale) -> str:
    x = place.x(each.at)
    y1, y2 = (_TOP + _LANE * row + _LANE / 2 for row in (each.giver, each.taker))
    tip = 5 if y2 > y1 else -5
    return (
        f'<path class="handover" d="M{x:.1f} {y1:.1f}V{y2 - tip:.1f}"/>'
        f'<path class="tip" d="M{x - 3:.1f} {y2 - tip:.1f}h6L{x:.1f} {y2:.1f}z"/>'
    )


class _Scale:
    """Times to places from left to right."""

    def __init__(self, drawn: Chart, width: int) -> None:
        self._start = drawn.start
        self._span = max(1e-6, (drawn.end - drawn.start).total_seconds())
        self._wide = width - _LABELS - _RIGHT

    def x(self, at: datetime) -> float:
        share = (at - self._start).total_seconds() / self._span
        return _LABELS + min(1.0, max(0.0, share)) * self._wide


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
