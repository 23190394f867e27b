"""The phases in a row: which are done, which is current, how long each took.

Also a chain of collaborations that continue each other, read as one story.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from textual.content import Content
from textual.reactive import var
from textual.widget import Widget

from acp_core.cli.signs import PHASE, STATUS
from acp_core.model import Link, Phase, PhaseState, Snapshot, Status, Target, Visit
from acp_core.model.format import count, exact, long_span, moment, span
from acp_tui.text import MUTED, Part, join, width
from acp_tui.widgets.pane import PaneData
from acp_tui.widgets.row_list import Item

STYLES = {
    PhaseState.AHEAD: MUTED,
    PhaseState.CURRENT: "bold $text-accent",
    PhaseState.DONE: "$text-success",
    PhaseState.SKIPPED: MUTED,
}

GAP = 2

"""Blank cells at least before what stands at the right end."""

ENDS = {Status.COMPLETED: "bold $text-success", Status.BLOCKED: "bold $text-error"}

"""How the current phase shows where nothing more happens in it."""


class Times:
    """The seconds spent in phases.

    Of a phase whose visits only grew, the new ones are counted: a long run has 100,000.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Counted] = {}

    def spent(self, phase: Phase, now: datetime) -> float | None:
        """The seconds spent in a phase in all its visits; None where no time is recorded."""
        visits = phase.visits
        if not visits:
            return None
        if phase.spent is not None:
            last = visits[-1]
            return phase.spent + ((_seconds(last, now) or 0.0) if last.left is None else 0.0)
        before = len(visits) - 1  # the last visit may become another one when it ends
        known = self._known.get(phase.id)
        if (
            known is None
            or known.count > before
            or (known.count and visits[known.count - 1] is not known.last)
        ):
            known = self._known[phase.id] = _Counted()
        if known.count < before:
            known.take(visits[known.count : before])
        seconds = [_seconds(visit, now) for visit in (*known.open, visits[-1])]
        known_seconds = [each for each in seconds if each is not None]
        return known.total + sum(known_seconds) if known_seconds or known.any else None


class _Counted:
    """What is known of the first ``count`` visits of a phase, the last of which is ``last``.

    ``total`` is of those that ended, ``any`` whether there are such; ``open`` are the others.
    """

    def __init__(self) -> None:
        self.count = 0
        self.last: Visit | None = None
        self.total = 0.0
        self.any = False
        self.open: list[Visit] = []

    def take(self, visits: Sequence[Visit]) -> None:
        """Count the next visits, of which there is at least one."""
        for visit in visits:
            if visit.left is None:
                self.open.append(visit)
            elif visit.entered is not None:
                self.total += max(0.0, (visit.left - visit.entered).total_seconds())
                self.any = True
        self.count += len(visits)
        self.last = visits[-1]


def _seconds(visit: Visit, now: datetime) -> float | None:
    if visit.entered is None:
        return None
    return max(0.0, ((visit.left or now) - visit.entered).total_seconds())


def spent(phase: Phase, now: datetime) -> float | None:
    """The seconds spent in a phase in all its visits; None where no time is recorded."""
    return Times().spent(phase, now)


class PhaseRail(Widget):
    """One row: a sign, the phase's name and its time; less of it where the row is short."""

    DEFAULT_CSS = """
    PhaseRail { height: 1; padding: 0 1; }
    """

    data: var[PaneData | None] = var(None, always_update=True)
    """What to show; the current phase shows how it ended where it is over."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._drawn = Content("")
        self._made_for = 0  # cells
        self._times = Times()

    def watch_data(self, before: PaneData | None, data: PaneData | None) -> None:
        """Draw again where the phases, or the time spent in them, are other ones."""
        if data is None:
            return
        phases = data.snapshot.phases
        if before is None or before.snapshot.phases is not phases:
            self.display = bool(phases)
        cells = self.content_size.width or 80
        drawn = self._rail(data, cells)
        if not drawn.is_same(self._drawn):
            self._drawn, self._made_for = drawn, cells
            self.refresh()

    def render(self) -> Content:
        if self.data is None:
            return Content("")
        if self._made_for == self.content_size.width:
            return self._drawn
        return self._rail(self.data, self.content_size.width)

    def _rail(self, data: PaneData, cells: int) -> Content:
        snapshot = data.snapshot
        drawn = rail(snapshot.phases, data.now, cells, snapshot.status, self._times)
        for words in _foresight(data):
            gap = cells - width(drawn.plain) - width(words)
            if gap >= GAP:
                return join(drawn, " " * gap, (words, MUTED))
        return drawn


def _foresight(data: PaneData) -> Iterator[str]:
    """How long the phase usually takes and when it will probably end, the longest words first."""
    outlook = data.outlook
    usual = f"phase {outlook.phase.words}" if outlook.phase else ""
    ends = outlook.ends.words(data.now, data.utc) if outlook.ends else ""
    if usual and ends:
        yield f"{usual} · {ends}"
    yield from filter(None, (ends, usual))


def rail(
    phases: Sequence[Phase],
    now: datetime,
    cells: int,
    status: Status = Status.ACTIVE,
    known: Times | None = None,
) -> Content:
    """The phases in at most ``cells`` cells: as much of them as fits.

    All names and times; names only; as many names around the current one as fit, with signs
    for the others; the part of that around the current phase. ``known`` are the times as they
    were known at the last drawing.
    """
    current = _current(phases)
    known = known or Times()
    lasted = [known.spent(phase, now) for phase in phases]
    every = len(phases)
    for names, times in ((every, every), *((near, 0) for near in range(every, -1, -1))):
        parts = [
            _phase(phase, lasted[i], status, abs(i - current) <= names, abs(i - current) <= times)
            for i, phase in enumerate(phases)
        ]
        content = _joined(parts)
        if width(content.plain) <= cells:
            return content
    first = last = current
    parts = [
        _phase(phase, lasted[i], status, i == current, i == current)
        for i, phase in enumerate(phases)
    ]
    while True:  # many phases: those around the current one, and dots for the rest
        grown = False
        for a, b in ((first, last + 1), (first - 1, last)):
            if a < 0 or b >= len(phases):
                continue
            wider = _joined(parts[a : b + 1], a > 0, b < len(phases) - 1)
            if width(wider.plain) <= cells:
                first, last, grown = a, b, True
        if not grown:
            content = _joined(parts[first : last + 1], first > 0, last < len(phases) - 1)
            return content if width(content.plain) <= cells else content.truncate(max(0, cells))


def phase_items(phases: Sequence[Phase], now: datetime, utc: bool) -> list[Item]:
    """Every phase, with each stay in it while it is selected."""
    widest = max((width(phase.label) for phase in phases), default=0)
    items = []
    for phase in phases:
        seconds = spent(phase, now)
        sign = (f"{PHASE[phase.state]} ", STYLES[phase.state].removeprefix("bold $text-"))
        time = long_span(seconds) if seconds is not None else ""
        stays = count(len(phase.visits), "stay") if len(phase.visits) > 1 else ""
        name = phase.label + " " * (widest - width(phase.label) + 2)
        details = []
        for visit in phase.visits:
            begin = exact(visit.entered, utc) if visit.entered else "not recorded"
            took = ""
            if visit.entered:
                seconds_here = ((visit.left or now) - visit.entered).total_seconds()
                took = f", {long_span(seconds_here)}{'' if visit.left else ' so far'}"
            label = f"round {visit.round}: " if len(phase.visits) > 1 or visit.round > 1 else ""
            details.append((f"{label}{begin}{took}", "muted"))
        state = "" if phase.state in (PhaseState.DONE, PhaseState.CURRENT) else phase.state.value
        tail = "  ".join(filter(None, (time, stays, state)))
        style = sign[1].replace("$text-", "").replace(MUTED, "muted")
        items.append(
            Item(
                ((sign[0], style), (name, "strong" if phase.state is PhaseState.CURRENT else ""),
                 (tail, "muted")),
                tuple(details),
                key=phase.id,
            )
        )  # fmt: skip
    return items


def _current(phases: Sequence[Phase]) -> int:
    for wanted in (PhaseState.CURRENT, PhaseState.DONE):
        places = [i for i, phase in enumerate(phases) if phase.state is wanted]
        if places:
            return places[-1]
    return 0


def _phase(
    phase: Phase, lasted: float | None, status: Status, named: bool, timed: bool
) -> list[Part]:
    current = phase.state is PhaseState.CURRENT
    sign, style = PHASE[phase.state], STYLES[phase.state]
    over = current and status in ENDS
    if over:  # how long ago it ended is said elsewhere, and is no time spent
        sign, style = STATUS[status], ENDS[status]
    if not (named or current):
        return [(sign, style)]
    parts: list[Part] = [(f"{phase.label} {sign}", style)]
    if len(phase.visits) > 1:
        parts.append((f" ×{len(phase.visits)}", style if current else MUTED))
    seconds = None if over or phase.state is PhaseState.AHEAD else lasted
    if (timed or current) and seconds is not None:
        parts.append((f" {span(seconds)}", style if current else MUTED))
    return parts


def _joined(parts: Sequence[list[Part]], before: bool = False, after: bool = False) -> Content:
    pieces: list[Part] = [("… ─ ", MUTED)] if before else []
    for i, phase in enumerate(parts):
        if i:
            pieces.append((" ─ ", MUTED))
        pieces += phase
    if after:
        pieces.append((" ─ …", MUTED))
    return join(*pieces)


LONGEST = 50

"""How many collaborations of a chain are shown at most."""

CHAIN_STYLES = {Status.COMPLETED: "success", Status.BLOCKED: "error", Status.ACTIVE: "accent"}

Find = Callable[[str], Snapshot | None]


def chain(snapshot: Snapshot, find: Find) -> list[Snapshot | Link]:
    """The collaborations before and after this one, oldest first; links where one is not known.

    Args:
        snapshot: Where the chain is entered.
        find: The Snapshot of a location, where it is known.
    """
    known = {snapshot.key}

    def follow(start: Snapshot, relation: str) -> list[Snapshot | Link]:
        links: list[Snapshot | Link] = []
        here = start
        while len(links) < LONGEST:
            link = next((link for link in here.lineage if link.relation == relation), None)
            if link is None or link.location in known:
                return links
            known.add(link.location)
            there = find(link.location)
            links.append(there or link)
            if there is None:
                return links
            here = there
        return links

    before = follow(snapshot, "continues")
    return [*reversed(before), snapshot, *follow(snapshot, "continued_by")]


def items(snapshot: Snapshot, find: Find, now: datetime, utc: bool) -> list[Item]:
    """A line per collaboration of the chain: how it went, when, and its phases."""
    links = chain(snapshot, find)
    widest = min(32, max(width(link.name) for link in links))
    rows = []
    for number, link in enumerate(links, 1):
        name = link.name + " " * max(0, widest - width(link.name))
        if isinstance(link, Link):
            words = link.summary or "not read"
            state = "" if link.found else "not found  "
            pieces = (("? ", "muted"), (f"{number} {name}  ", ""), (f"{state}{words}", "muted"))
            rows.append(Item(pieces, ((link.location, "muted"),), key=link.location))
            continue
        here = link.key == snapshot.key
        style = CHAIN_STYLES.get(link.status, "muted")
        details = [
            (link.objective, ""),
            (rail(link.phases, now, 10_000, link.status).plain, "muted"),
        ]
        if link.started is not None:
            took = (link.changed or now) - link.started
            details.append(
                (
                    f"started {moment(link.started, now, utc)}, {long_span(took.total_seconds())}",
                    "muted",
                )
            )
        details.append((link.location, "muted"))
        rows.append(
            Item(
                (
                    (f"{STATUS[link.status]} ", style),
                    (f"{number} {name}  ", "strong" if here else ""),
                    (link.headline, style if link.status is Status.BLOCKED else ""),
                    ("  (this one)" if here else "", "muted"),
                ),
                tuple(details),
                Target(),
                key=link.key,
            )
        )
    return rows
