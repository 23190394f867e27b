"""The top of a collaboration's screen: how it stands, what needs you, who is waited for.

Each piece stands in one row, is cut to its width, and names what it says whole: the pane of what
comes next leaves that out, and has what was cut or had no room here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from textual.content import Content
from textual.geometry import Size
from textual.reactive import var
from textual.widget import Widget

from acp_core.cli.signs import NEED, SEVERITY, SOURCE, STATUS, VERDICT
from acp_core.history.forecast import Usual
from acp_core.model import Link, Matter, Severity, Snapshot, SourceState, Turn, Verdict
from acp_core.model.format import (
    age,
    count,
    grouped,
    is_said,
    moment,
    names_in,
    need_case,
    sentence_case,
)
from acp_tui.text import MUTED, Part, fit, join, line, safe_line, width
from acp_tui.widgets.lines import wrap
from acp_tui.widgets.pane import PaneData

MOST, FEW = 4, 3
"""Rows above the phases, whatever there is to say: of a terminal with room, and of a low one."""

LOW = 30
"""Rows of a terminal below which it is low."""

GAP = 2
"""Blank cells between the two ends of a row."""

_RED = "bold $text-error"

DOUBT = "doubt"
"""What names the doubt about what was read."""


@dataclass(frozen=True, slots=True)
class Keys:
    """How the keys are called that the rows speak of."""

    acknowledge: str = "a"
    remedy: str = "f"
    next_need: str = "J"
    why: str = "w"
    launch: str = "L"
    before: str = "<"
    after: str = ">"


class Headlines(NamedTuple):
    """The rows, the keys of the needs and notices that they say whole, and where what is needed stands.

    That row is the first one below the sentence where nothing is needed.
    """

    rows: tuple[Content, ...]
    whole: frozenset[str]
    need: int = 0


class _Row(NamedTuple):
    """A row, and the key of what it says whole ("" where that is nothing that Next has, too)."""

    content: Content
    whole: str = ""


def need_key(need: Matter) -> str:
    """What names a need on the screen: several parts of one collaboration may need the same."""
    return f"{need.key} {need.sentence}"


def notice_key(code: str, document: str | None) -> str:
    """What names a notice."""
    return f"{code} {document}"


def headlines(
    data: PaneData, cells: int, keys: Keys, called: Callable[[str], str], most: int = MOST
) -> Headlines:
    """Everything above the phases, in at most so many rows, and one more where the source is in doubt.

    Args:
        data: The Snapshot, its open needs, and which of them is in hand.
        cells: The width of a row.
        keys: How the keys are called.
        called: What an action is called, by its name.
        most: How many rows there is room for.
    """
    source = tuple(_source(data))
    most = min(MOST, most + len(source))
    must = [*source, *_alert(data, cells, keys, called), *_waiting(data, cells, keys)]
    must = must[: most - 1]
    top = _top(data, cells, most - len(must))
    may = [*_doubt(data), *_notices(data), *_lineage(data.snapshot.lineage, keys)]
    rows = [*top, *must, *may[: most - len(top) - len(must)]]
    contents = tuple(row.content.truncate(cells, ellipsis=True) for row in rows)
    fitting = (row for row in rows if width(row.content.plain) <= cells)
    whole = frozenset(row.whole for row in fitting if row.whole)
    return Headlines(contents, whole, min(len(top) + len(source), len(rows)))


def _at_both_ends(left: Content, right: Content, cells: int) -> Content | None:
    """Two pieces at the ends of a row; None where it is too short for both."""
    gap = cells - width(left.plain) - width(right.plain)
    if not right.plain:
        return left if gap >= 0 else None
    return join(left, " " * gap, right) if gap >= GAP else None


# --- how it stands


def _top(data: PaneData, cells: int, most: int) -> list[_Row]:
    """Name, sentence and verdict; the sentence goes on in a second row where there is room for it."""
    snapshot = data.snapshot
    verdict, colour = _verdict(snapshot), _COLOURS.get(snapshot.status.value, "")
    head = join(
        (safe_line(snapshot.name), "bold"),
        (" — ", MUTED),
        (f"{STATUS[snapshot.status]} " if colour else "", colour),
    )
    words = safe_line(_sentence(data))
    room = cells - width(verdict.plain) - GAP
    free = room - width(head.plain)
    if width(words) > free and most > 1:
        start, stop = wrap(words, free)[0] if free > 1 else (0, 0)
        first = join(head, (words[start:stop], colour))
        second = [_Row(line(f"  {words[stop:].strip()}", colour))]
    else:
        first, second = join(head, (words, colour)), []
    if width(first.plain) > room:
        first = first.truncate(max(1, room), ellipsis=True)
    return [_Row(_at_both_ends(first, verdict, cells) or first), *second]


_COLOURS = {"completed": "$text-success", "blocked": "$text-error"}


def _sentence(data: PaneData) -> str:
    """How it stands; all of the headline where no other row says the rest of it."""
    snapshot = data.snapshot
    beside = snapshot.turns or snapshot.needs or snapshot.causes
    return (snapshot.summary if beside else "") or snapshot.headline


def _verdict(snapshot: Snapshot) -> Content:
    if snapshot.verdict is Verdict.VALID:
        return line("files valid", MUTED)
    sign = VERDICT[snapshot.verdict]
    counts = [(each, snapshot.count(each)) for each in (Severity.ERROR, Severity.WARNING)]
    words = ", ".join(count(n, s.value) for s, n in counts if n) or _VERDICTS[snapshot.verdict]
    if snapshot.verdict is Verdict.UNKNOWN:
        return line(f"{sign} {words}", MUTED)
    is_invalid = snapshot.verdict is Verdict.INVALID
    return line(f"{sign} {words}", "$text-error" if is_invalid else "$text-warning")


_VERDICTS = {
    Verdict.INVALID: "files invalid",
    Verdict.WARNINGS: "warnings",
    Verdict.UNKNOWN: "files not checked",
}


# --- what is wrong


def _source(data: PaneData) -> Iterator[_Row]:
    """That it is gone, or how it could not be read."""
    source = data.snapshot.source
    if data.gone:
        yield _Row(_warning("Folder not found. Showing the last version read."))
    elif source.state is not SourceState.LIVE:
        note = f": {source.note}" if source.note else ""
        told = data.past or source.note.startswith("as of ")
        read = "" if told else f", last read {age(data.snapshot.as_of, data.now)} ago"
        state = "Not readable at this step" if data.past else source.state.value.capitalize()
        yield _Row(_warning(f"{state}{read}{note}", SOURCE[source.state]))


def _alert(data: PaneData, cells: int, keys: Keys, called: Callable[[str], str]) -> Sequence[_Row]:
    """The need in hand; else what keeps it from going on and may pass by itself."""
    need, snapshot = data.need, data.snapshot
    if need is not None:
        return _need(need, data, cells, keys, called)
    passing = next((cause for cause in snapshot.causes if not cause.wanted), None)
    if passing is None or snapshot.needs or is_said(passing.sentence, _sentence(data)):
        return ()
    since = f" · {age(passing.since, data.now)}" if passing.since else ""
    hint = " · as recorded" if data.past else f" · {keys.why}: why"
    words = safe_line(sentence_case(passing.sentence, names_in(snapshot)))
    said = join(("… ", "$text-warning"), (words, "$text-warning"))
    return (_Row(join(said, (since, MUTED), (hint, "$text-accent"))),)


def _need(
    need: Matter, data: PaneData, cells: int, keys: Keys, called: Callable[[str], str]
) -> Sequence[_Row]:
    """What needs you, since when, and the key that helps: in one row, or in two."""
    known = is_said(need.sentence, _sentence(data))
    text = "Needs you" if known else safe_line(need_case(need, data.snapshot))
    since = f" · {age(need.since, data.now)}" if need.since else ""
    remedy, more = _hints(need, data, keys, called)
    several, fewer = _joined(remedy, more), remedy
    place = _place(data, keys)
    for hints in (several, fewer):
        row = _at_both_ends(_red(f"{NEED} {text}", since, hints), place, cells)
        if row is not None:
            return (_Row(row, need_key(need)),)
    start, stop = _first_piece(text, since, cells - INDENT)
    rest = text[stop:].strip()
    first = _red(f"{NEED} {text[start:stop]}", "" if rest else since, "")
    for hints in (several, fewer):
        row = _at_both_ends(_red(f"  {rest}", since if rest else "", hints), place, cells)
        if row is not None:
            return _Row(first, need_key(need)), _Row(row)
    cut = fit(text, cells - INDENT - width(since)).rstrip()
    below = (_at_both_ends(_red("  ", "", hints), place, cells) for hints in (several, fewer))
    second = next((row for row in below if row is not None), _red("  ", "", fewer))
    return _Row(_red(f"{NEED} {cut}", since, "")), _Row(second)


INDENT = 2
"""Cells before the text of a need."""


def _first_piece(text: str, since: str, cells: int) -> tuple[int, int]:
    """The span of a long text that stands in its first row, with its age where all of it does."""
    whole = width(text) + width(since) <= cells
    return (0, len(text)) if whole else wrap(text, min(cells, width(text) - 1))[0]


def _red(words: str, since: str, hints: str) -> Content:
    """A part of the red line: words, an age, and keys with what they do."""
    dot = " · " if hints and words.strip() else ""
    return join((words, _RED), (since, MUTED), (f"{dot}{hints}", "$text-accent"))


def _joined(*hints: str) -> str:
    return " · ".join(filter(None, hints))


def _hints(
    need: Matter, data: PaneData, keys: Keys, called: Callable[[str], str]
) -> tuple[str, str]:
    """The key that helps with the name of what it does, and the one that takes the need away."""
    if data.past:
        return "", ""
    more = f"{keys.acknowledge}: acknowledge"
    if need.remedy:
        return f"{keys.remedy}: {safe_line(called(need.remedy))}", more
    if any(cause.key == need.key for cause in data.snapshot.causes):
        return f"{keys.why}: why", more
    return "", more


def _place(data: PaneData, keys: Keys) -> Content:
    """Which of several needs it is, and the key of the next one."""
    if len(data.needs) < 2:
        return Content("")
    hint = "" if data.past else f" · {keys.next_need} next"
    return join(
        (f"{grouped(data.current + 1)} of {grouped(len(data.needs))}", "bold"),
        (hint, "$text-accent"),
    )


# --- who is waited for


def _waiting(data: PaneData, cells: int, keys: Keys) -> Iterator[_Row]:
    """Who is waited for, since when, and what it is all about."""
    snapshot = data.snapshot
    turns = [turn for turn in snapshot.turns if not _is_of(turn, data.need)]
    known = snapshot.objective.startswith(snapshot.name)  # a title made of what is wanted
    objective = line("" if known else snapshot.objective, MUTED)
    hint = _idle(data, keys)
    if turns:
        waiting = _turns(turns, data)
        both = join(waiting, " · ", hint)
        if hint.plain and width(both.plain) <= cells:
            waiting, hint = both, Content("")
        yield _Row(_at_both_ends(waiting, objective, cells) or waiting)
        if hint.plain:
            yield _Row(hint)
    elif hint.plain:
        yield _Row(_at_both_ends(hint, objective, cells) or hint)
    elif objective.plain:
        yield _Row(objective)


def _idle(data: PaneData, keys: Keys) -> Content:
    """That acp runs nothing here, and the key that starts it; empty where something needs you."""
    if not data.start or data.need is not None or data.past:
        return Content("")
    start = f"{keys.launch}: {safe_line(data.start)}"
    return join(("acp runs no agent here · ", MUTED), (start, "$text-accent"))


def _is_of(turn: Turn, need: Matter | None) -> bool:
    """Whether the need says already that this turn is waited for, and since when."""
    return (
        need is not None
        and need.since == turn.since
        and need.about.participant in (None, turn.participant)
    )


def _turns(turns: Sequence[Turn], data: PaneData) -> Content:
    usual = dict(zip(data.snapshot.turns, data.outlook.turns, strict=True))
    whose: dict[str, list[Turn]] = {}
    for turn in turns:
        whose.setdefault(turn.participant, []).append(turn)
    parts: list[Part] = [("Waiting for ", MUTED)]
    for number, several in enumerate(list(whose.values())[:4]):
        if number:
            parts.append((" · ", MUTED))
        first = min(several, key=lambda turn: turn.since or data.now)
        parts += _turn(first, usual[first], len(several), data)
    if len(whose) > 4:
        parts.append((f" and {grouped(len(whose) - 4)} more", MUTED))
    return join(*parts)


def _turn(turn: Turn, usual: Usual | None, number: int, data: PaneData) -> list[Part]:
    """A participant, and for how long they are waited for: of several turns the longest."""
    parts: list[Part] = [(safe_line(turn.participant), "bold $text-accent")]
    notes = [count(number, "turn")] if number > 1 else []
    if turn.since is not None:
        parts.append((f" {age(turn.since, data.now)}", ""))
        if not usual or len(data.snapshot.turns) == 1:  # there is less room for each of several
            notes.append(f"since {moment(turn.since, data.now, data.utc)}")
        if usual:
            notes.append(usual.words)
    return [*parts, (f" ({', '.join(notes)})", MUTED)] if notes else parts


# --- what else there is to say, where there is room


def _doubt(data: PaneData) -> Iterator[_Row]:
    if data.snapshot.doubt:
        yield _Row(_warning(f"Uncertain: {data.snapshot.doubt}", "?"), DOUBT)


def _notices(data: PaneData) -> Iterator[_Row]:
    for notice in data.snapshot.notices:
        since = f", {age(notice.since, data.now)} ago" if notice.since else ""
        text = sentence_case(notice.sentence, names_in(data.snapshot))
        words = _warning(f"{text}{since}")
        yield _Row(words, notice_key(notice.code, notice.about.document))


def _lineage(links: Sequence[Link], keys: Keys) -> Iterator[_Row]:
    parts: list[Part] = []
    for link in links:
        key = keys.before if link.relation == "continues" else keys.after
        words = "continues" if link.relation == "continues" else "continued by"
        if parts:
            parts.append(" · ")
        else:
            words = sentence_case(words)
        parts += [(f"{words} ", MUTED), (safe_line(link.name), "$text-primary")]
        parts.append((f" {key}" if link.found else " (not found)", MUTED))
        if link.summary:
            parts.append((f" ({safe_line(link.summary)})", MUTED))
    if parts:
        yield _Row(join(*parts))


def _warning(text: str, sign: str = SEVERITY[Severity.WARNING]) -> Content:
    return join((f"{sign} ", "bold $text-warning"), (safe_line(text), "$text-warning"))


class Headline(Widget):
    """A few rows, as many as there is something to say; rewritten as the time goes on."""

    DEFAULT_CSS = """
    Headline { height: auto; padding: 0 1; }
    """

    data: var[PaneData | None] = var(None, always_update=True)
    """What to show."""
    called: var[Callable[[str], str]] = var(lambda: str, init=False, always_update=True)
    """What an action is called, by its name; set again where that is another name now."""
    most: var[int] = var(MOST, init=False)
    """How many rows there is room for."""

    whole: var[frozenset[str]] = var(frozenset[str](), init=False)
    """The keys of the needs and notices that stand here whole, as drawn last."""

    row_of_need: var[int] = var(0, init=False)
    """The row in which what is needed stands, as drawn last."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.keys = Keys()
        self._drawn = Headlines((), frozenset())
        self._content = Content("")
        self._width = 0  # cells that it was drawn for

    def watch_data(self) -> None:
        """Draw again where the Snapshot, or the time, changes what is said."""
        self._draw()

    def watch_called(self) -> None:
        """Draw again with what actions are called."""
        self._draw()

    def watch_most(self) -> None:
        """Draw again in as many rows as there is room for."""
        self._draw()

    def on_resize(self) -> None:
        """What fits beside each other in a row depends on the width."""
        if self.content_size.width != self._width:
            self._draw()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many rows as are drawn: none of them is longer than the row that it was drawn for."""
        return max(1, len(self._drawn.rows))

    def render(self) -> Content:
        return self._content

    def _draw(self) -> None:
        if self.data is None:
            return
        before, self._width = self._drawn, self.content_size.width
        cells = self._width or self.app.size.width - 2
        self._drawn = headlines(self.data, cells, self.keys, self.called, self.most)
        content = Content("\n").join(self._drawn.rows)
        if not content.is_same(self._content):
            self._content = content
            self.refresh(layout=len(before.rows) != len(self._drawn.rows))  # which costs much more
        self.whole, self.row_of_need = self._drawn.whole, self._drawn.need
