"""A line of the fleet as pieces of text, each with the name of its style; nothing is drawn here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from acp_core.cli import signs
from acp_core.cli.layout import fit_name
from acp_core.fleet import overview
from acp_core.fleet.overview import FleetEntry, Group
from acp_core.model import Severity, Snapshot, SourceState, Status, format
from acp_core.model.sentence import names_in, need_case, sentence_case
from acp_tui import text

Pieces = list[tuple[str, str]]
"""Texts with the names of their styles ("" is the ordinary one)."""

STYLES = (
    "name", "muted", "rule", "bar", "left", "accent", "good", "warning", "error",
)  # fmt: skip
"""The names of the styles."""

PHASE = 2  # the column that a bar stands before
TITLES = (
    "collaboration", "protocol", "phase", "", "waiting for", "host", "since", "usually", "findings",
    "cost", "state", "about",
)  # fmt: skip
_SEVERITY = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "muted"}
_DETAIL = {"need": "", "source": "warning", "notice": "warning", "doubt": "muted"}


class Columns(NamedTuple):
    """Widths in cells. 0: the column is not shown. ``bar`` is a part of ``phase``."""

    name: int
    protocol: int
    phase: int
    bar: int
    waiting: int
    host: int
    since: int
    usual: int
    findings: int
    cost: int
    headline: int
    about: int

    @property
    def text(self) -> int:
        """The width of everything from the name on: that of a second line."""
        widths = [width for width in self._replace(bar=0) if width]
        return sum(widths) + GAP * (len(widths) - 1)


MARGIN = 5  # cursor, sign, how it was read, unread, blank
GAP = 2


NAME = 14  # cells that chosen columns leave to the name
_GIVE_WAY = (
    "about",
    "state",
    "cost",
    "findings",
    "host",
    "usually",
    "waiting for",
    "protocol",
    "since",
    "phase",
)
"""Which of the chosen columns are left out first where there is no room for all."""
WIDE = 149  # cells of a line from which on it says what a collaboration is about
_WIDE_NAME = 30  # cells that the name keeps there
_KEPT = 24  # cells of the name that no column takes: a wider terminal never cuts such a name
_SIZES = (  # from this width on: protocol, phase, bar, since, usually, findings
    (0, (0, 20, 4, 5, 0, 8)),
    (99, (0, 27, 8, 5, 0, 12)),
    (108, (10, 27, 8, 5, 0, 12)),
    (118, (10, 27, 8, 5, 7, 12)),
    (WIDE, (11, 29, 10, 5, 7, 13)),
)
_WITH_HOSTS = 80  # cells of a line from which on hosts are shown without being asked for
_LEAST = {"protocol": 10, "usually": 7, "cost": 11, "host": 10}
"""What columns take that are chosen where they would not be shown."""


def columns(width: int, chosen: Sequence[str] = (), hosts: bool = False) -> Columns:
    """Which columns fit into ``width`` cells, and how wide each is.

    It depends on these alone: what else is written never moves a column.

    Args:
        width: Cells of a line.
        chosen: Which columns are wanted, by their `TITLES`; empty for those that fit.
        hosts: Whether there are collaborations that hosts share.
    """
    if not chosen:
        return _fitting(width, hosts and width >= _WITH_HOSTS)
    wanted = set(chosen)
    widths = _widths(_sizes(width), width, wanted)
    for name in _GIVE_WAY:
        if wanted and widths.name < NAME:
            wanted.discard(name)
            widths = _widths(_sizes(width), width, wanted)
    return widths


def _fitting(width: int, hosts: bool) -> Columns:
    """The most columns that leave the name its cells."""
    first, *more = (each for least, each in _SIZES if max(0, width) >= least)
    widths = _widths(first, width, None, hosts)
    for sizes in more:
        wider = _widths(sizes, width, None, hosts)
        if wider.name >= min(_KEPT, widths.name):
            widths = wider
    return widths


def _sizes(width: int) -> tuple[int, ...]:
    return next(each for least, each in reversed(_SIZES) if max(0, width) >= least)


def _widths(
    sizes: tuple[int, ...], width: int, wanted: set[str] | None, hosts: bool = False
) -> Columns:
    protocol, phase, bar, since, usual, findings = sizes
    fixed = {
        "protocol": protocol, "phase": phase, "since": since, "usually": usual,
        "findings": findings, "cost": 0, "host": _LEAST["host"] if hosts else 0,
    }  # fmt: skip
    waits, states, about = width >= 72, False, width >= WIDE
    if wanted is not None:
        waits, states, about = (name in wanted for name in ("waiting for", "state", "about"))
        fixed = {
            name: (size or _LEAST[name]) if name in wanted else 0 for name, size in fixed.items()
        }
    taken = sum(size + GAP for size in fixed.values() if size)
    rest = max(0, width - MARGIN - 1 - taken - GAP)
    name, waiting, long = _wide(rest, waits) if states or about else (*_narrow(rest, waits), 0)
    headline = 0 if not states else (long - GAP) // 2 if about else long
    return Columns(
        name, fixed["protocol"], fixed["phase"], bar if fixed["phase"] else 0, waiting,
        fixed["host"], fixed["since"], fixed["usually"], fixed["findings"], fixed["cost"], headline,
        max(0, long - headline - (GAP if headline else 0)) if about else 0,
    )  # fmt: skip


def _narrow(rest: int, waits: bool) -> tuple[int, int]:
    """The widths of name and ``waiting for``."""
    waiting = min(40, rest * 2 // 5) if waits else 0
    return (rest - waiting if waiting else rest + GAP), waiting


def _wide(rest: int, waits: bool) -> tuple[int, int, int]:
    """The widths of name, ``waiting for``, and what is left for long texts."""
    name = min(60, max(rest // 3, min(_WIDE_NAME, rest // 2)))
    waiting = min(30, rest // 4) if waits else 0
    return name, waiting, max(0, rest - name - waiting - (GAP if waiting else 0))


class Detail(NamedTuple):
    """The second line of an entry: why somebody should look at it, and the action that helps.

    ``key`` is the collaboration in which it helps: the entry's own, or a part's.
    """

    kind: str
    text: str
    action: str | None = None
    key: str = ""


def detail(entry: FleetEntry) -> Detail | None:
    """What stands under an entry: its first need, else how it was read, else a notice, else a doubt."""
    snapshot = entry.snapshot
    if entry.archived or (entry.needs and entry.depth):  # a part's need stands under its whole
        return None
    if entry.needs:
        first, more = entry.needs[0], len(entry.needs) - 1
        sentence = need_case(first, snapshot) + (
            f" (and {format.grouped(more)} more)" if more else ""
        )
        return Detail("need", sentence, first.action, entry.asker or entry.key)
    if snapshot.source.state is not SourceState.LIVE:
        note = f": {snapshot.source.note}" if snapshot.source.note else ""
        return Detail("source", snapshot.source.state.value.capitalize() + note)
    if snapshot.notices:
        return Detail("notice", sentence_case(snapshot.notices[0].text, names_in(snapshot)))
    if snapshot.doubt and not entry.group.over:
        return Detail("doubt", f"Uncertain: {snapshot.doubt}")
    return None


def title(entry: FleetEntry) -> str:
    """The heading under which an entry stands."""
    return "archived" if entry.archived else entry.group.title


ARCHIVED, TURN, WANTED, UNREAD = "▪", "◆", "●", "•"
LEGEND = (
    (TURN, "waits for you"),
    (WANTED, "needs you"),
    (signs.STATUS[Status.ACTIVE], "live"),
    (signs.STATUS[Status.COMPLETED], "completed"),
    (signs.STATUS[Status.BLOCKED], "blocked"),
    (signs.STATUS[Status.UNKNOWN], "unknown"),
    (signs.SOURCE[SourceState.STALE], "not read lately"),
    (ARCHIVED, "archived"),
    (UNREAD, "new since your last visit"),
)
"""What the signs before a name mean."""


def sign(entry: FleetEntry) -> tuple[str, str]:
    """The sign of an entry and its style (see `LEGEND`)."""
    snapshot = entry.snapshot
    if entry.archived:
        return ARCHIVED, "muted"
    if snapshot.status is Status.BLOCKED:
        return signs.STATUS[Status.BLOCKED], "error" if entry.needs else "muted"
    if entry.group is Group.NEEDS and (entry.needs or not entry.depth):
        human = {p.id for p in snapshot.participants if p.kind == "human"}
        turn = any(turn.participant in human for turn in snapshot.turns)
        return (TURN, "accent") if turn else (WANTED, "error")
    return signs.STATUS[snapshot.status], "good" if snapshot.status is Status.COMPLETED else "muted"


def row(
    entry: FleetEntry, age: str, usual: tuple[str, str], widths: Columns, cursor: bool
) -> Pieces:
    """The first line of an entry.

    Args:
        entry: What it is about.
        age: How long it has waited.
        usual: How long such a wait usually lasts, and the name of its style.
        widths: Of the columns.
        cursor: Whether the entry is selected.
    """
    snapshot = entry.snapshot
    mark, colour = sign(entry)
    quiet = "muted" if entry.archived or entry.group.over else ""
    findings, worst = overview.findings(snapshot, widths.findings - 2)
    label = snapshot.phase.replace("_", " ") + (
        f" r{snapshot.round}" if (snapshot.round or 1) > 1 else ""
    )
    indent = "  " * (entry.depth - 1) + "└ " if entry.depth else ""
    dialect = f"{snapshot.protocol} {snapshot.dialect}".strip()
    protocol = dialect if text.width(dialect) <= widths.protocol else snapshot.protocol
    name = text.safe_line(entry.name)
    columns = (
        (indent + fit_name(name, widths.name - len(indent)), widths.name, quiet or "name"),
        (protocol, widths.protocol, "muted"),
        (label, max(0, widths.phase - widths.bar - 1), quiet),
        (overview.waiting_for(snapshot), widths.waiting, quiet),
        (", ".join(snapshot.hosts), widths.host, "muted"),
        (age, widths.since, "muted"),
        (usual[0], widths.usual, usual[1]),
        (f"{signs.SEVERITY[worst]} {findings}" if worst else findings, widths.findings,
         _SEVERITY[worst] if worst else "muted"),
        (snapshot.cost.words if snapshot.cost else "", widths.cost, "muted"),
        (_headline(snapshot) if widths.headline else "", widths.headline, "muted"),
        (_about(entry), widths.about, "muted"),
    )  # fmt: skip
    pieces: Pieces = [
        ("▌" if cursor else " ", "accent"),
        (mark, colour),
        (signs.SOURCE[snapshot.source.state] or " ", "warning"),
        (UNREAD if entry.unread else " ", "accent"),
        (" ", ""),
    ]
    for place, (words, width, style) in enumerate(columns):
        if place == PHASE and widths.phase:
            pieces += bar(snapshot.progress, widths.bar, "muted" if quiet else "bar")
        if width:
            pieces += [(text.fit(words, width), style), (" " * GAP, "")]
    return pieces


def _headline(snapshot: Snapshot) -> str:
    return sentence_case(snapshot.headline, names_in(snapshot))


def _about(entry: FleetEntry) -> str:
    """What came out of it, and what it is about: what no other column says."""
    snapshot = entry.snapshot
    outcome = _headline(snapshot) if entry.group.over else ""
    return " · ".join(filter(None, (outcome.rstrip("."), snapshot.objective)))


def bar(progress: float | None, cells: int, style: str) -> Pieces:
    """How far it is, and a blank. Thin: blocks under each other would run into one."""
    drawn = format.bar(progress, cells)
    full = drawn.count(format.FULL)
    rest = ("─" if progress is not None else format.UNKNOWN) * (cells - full)
    return [("━" * full, style), (rest, "left"), (" ", "")]


def second(detail: Detail, widths: Columns, cursor: bool, open_key: str, remedy: str) -> Pieces:
    """The second line of an entry: why, and the key that helps.

    Args:
        detail: What it says.
        widths: Of the columns.
        cursor: Whether the entry is selected.
        open_key: What the key that opens is called.
        remedy: The key that does what a need asks for, and what that is called.
    """
    hint = ""
    if detail.kind == "need":
        hint = f"→ {remedy if detail.action else f'{open_key}: open'}"
    space = widths.text - 2 - (text.width(hint) + 2 if hint else 0)
    words = text.safe_line(detail.text)
    if text.width(words) > space:
        words = text.fit(words, space)
    return [
        ("▌" if cursor else " ", "accent"),
        (" " * (MARGIN + 1), ""),
        (words, _DETAIL[detail.kind]),
        ("  ", ""),
        (hint, "accent"),
    ]


def heading(title: str, held: int, width: int) -> Pieces:
    """The line over a group of so many collaborations."""
    name = f"{title} {format.grouped(held)} "
    return [("  ", ""), (name, "muted"), ("─" * max(0, width - len(name) - 3), "rule")]


def titles(widths: Columns, sort: str = "") -> Pieces:
    """The names of the columns, each where the column stands; ``sort`` is marked."""
    pieces: Pieces = [(" " * MARGIN, "")]
    for title, width in zip(TITLES, widths, strict=True):
        if title and width:
            style = "sorted" if sort == _SORTED_BY.get(title) else "muted"
            words = f"{title} ↓" if style == "sorted" else title
            pieces.append((text.fit(words, width) + " " * GAP, style))
    return pieces


_SORTED_BY = {"collaboration": "name", "protocol": "protocol", "since": "waiting"}
"""By title: the order in which a click on it puts the fleet."""


def sort_at(widths: Columns, x: int) -> str | None:
    """The order that a click on the titles asks for; None where the column has none."""
    left = MARGIN
    for title, width in zip(TITLES, widths, strict=True):
        if title and width:
            if left <= x < left + width:
                return _SORTED_BY.get(title)
            left += width + GAP
    return None
