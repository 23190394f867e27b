"""A turn of a live session on the screen: what happened as rows, and how it stands beside them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from textual.content import Content

from acp_core.cli.signs import PHASE, SEVERITY
from acp_core.loops.wording import short
from acp_core.model import PhaseState, Severity
from acp_core.model.format import bar, zoned
from acp_tui.text import MUTED, join, line, safe_line
from acp_tui.widgets.lines import Row

if TYPE_CHECKING:
    from acp_core.agents.live.updates import SessionState, Step
    from acp_core.agents.output import Entry, Picture
    from acp_tui.widgets.log_view import LogView

_AHEAD, _NOW, _DONE = (
    PHASE[each] for each in (PhaseState.AHEAD, PhaseState.CURRENT, PhaseState.DONE)
)
_FAILED = SEVERITY[Severity.ERROR]
_WAITS = "pending"  # the status of a call that may have been asked about
_TOLD = 60  # characters of a call by which a sentence about it is known: both may be cut
_CALLS = {
    _WAITS: (_AHEAD, "muted", "waiting"),
    "in_progress": (_NOW, "accent", "running"),
    "completed": (_DONE, "success", ""),
    "failed": (_FAILED, "error", "failed"),
}
_STEPS = {"completed": (_DONE, MUTED), "in_progress": (_NOW, "bold")}
_GAUGE = 12  # cells of the context gauge
_FULL = 0.7  # share of the context from which on acp begins a new session
_MOST = 400  # entries that are shown, the newest


class SessionRows:
    """Keeps the rows of a view up to date with the entries of a turn.

    Args:
        view: where they are shown.
        utc: whether times are shown in UTC.
    """

    def __init__(self, view: LogView, utc: bool) -> None:
        self._view = view
        self._utc = utc
        self._entries: dict[int, Entry] = {}
        self._first: dict[int, int] = {}  # the row at which an entry begins
        self._asked = ""

    def show_asked(self, sentence: str) -> None:
        """Show elsewhere what the agent asks: the call that waits for the answer does not repeat it.

        Args:
            sentence: what is shown there; "" where nothing is asked.
        """
        if sentence != self._asked:
            self._asked = sentence
            self.show([each for each in self._entries.values() if each.status == _WAITS])

    def show(self, entries: Iterable[Entry]) -> None:
        """Show entries that are new, or that changed."""
        changed = {each.number: each for each in entries}
        if not changed:
            return
        self._entries |= changed
        if len(self._entries) > _MOST * 5 // 4:
            self._entries = dict(sorted(self._entries.items())[-_MOST:])
            self._first = {}
            start = min(self._entries)
        else:
            start = min(changed)
        at = self._first.get(start, len(self._view.rows) if self._first else 0)
        rows: list[Row] = []
        for number in sorted(each for each in self._entries if each >= start):
            self._first[number] = at + len(rows)
            rows += rows_of(self._entries[number], self._utc, self._asked)
        self._view.rewrite(at, rows)


def rows_of(entry: Entry, utc: bool, asked: str = "") -> Iterable[Row]:
    """What an entry shows.

    Args:
        entry: what happened.
        utc: whether times are shown in UTC.
        asked: the sentence elsewhere that says what the agent asks; "" where nothing is asked.
    """
    at = zoned(datetime.fromtimestamp(entry.at, UTC), utc).strftime("%H:%M:%S ")
    time = (at, "muted")
    if entry.kind == "call":
        sign, style, word = _CALLS.get(entry.status, (_AHEAD, "muted", entry.status))
        yield (
            time,
            (f"{sign} ", style),
            (_name_of(entry) if _says(asked, entry) else entry.text, "strong"),
            (f"  {word}" if word else "", style),
        )
        for each in entry.output:
            yield ((" " * len(at), ""), ("│ ", "muted"), (each, "muted"))
        return
    lead, style = {"note": ("· ", "warning"), "person": ("you: ", "accent")}.get(
        entry.kind, ("", "")
    )
    for number, text in enumerate(entry.text.splitlines() or [""]):
        first = number == 0
        yield (
            time if first else (" " * len(at), ""),
            (lead if first else " " * len(lead), style),
            (text, style),
        )


def _says(asked: str, entry: Entry) -> bool:
    """Whether a sentence says already what a call that waits is used on."""
    used_on = entry.text.partition(": ")[2][:_TOLD]
    return entry.status == _WAITS and used_on != "" and used_on in asked


def _name_of(entry: Entry) -> str:
    return entry.text.partition(": ")[0]


def panel(picture: Picture, room: int) -> Content:
    """How a session stands: context, tokens, cost, mode, login, plan.

    Args:
        picture: how the turn stands.
        room: lines that there are, at least two; a plan that is longer shows its current step.
    """
    state = picture.state
    lines = [_program(state), _gauge(state), _spent(state)]
    if state.retry and not state.answered:
        lines.append(line(f"! {state.retry}", "$text-warning"))
    if state.login == "none":
        lines.append(line("! not logged in", "$text-error"))
    lines = [each for each in lines if each.plain]
    return Content("\n").join([*lines, *_plan(picture.plan, max(1, room - len(lines)))])


def _program(state: SessionState) -> Content:
    words = (state.agent, state.version, state.model, f"mode {state.mode}" if state.mode else "")
    return line(" · ".join(safe_line(each) for each in words if each), MUTED)


def _gauge(state: SessionState) -> Content:
    if not state.size:
        return Content("")
    share = min(1.0, state.used / state.size)
    style = "$text-warning" if share > _FULL else "$text-success"
    return join(
        ("context ", MUTED),
        (bar(share, _GAUGE), style),
        f" {share:.0%}",
        (f" of {short(state.size)} tokens", MUTED),
    )


def _spent(state: SessionState) -> Content:
    words = []
    if state.tokens_in or state.tokens_out:
        words.append(f"{short(state.tokens_in)} in, {short(state.tokens_out)} out")
    if state.cost is not None:
        words.append(f"${state.cost:.2f}")
    return join(("this turn ", MUTED), " · ".join(words)) if words else Content("")


def _plan(steps: tuple[Step, ...], room: int) -> list[Content]:
    """The plan; where it is longer than the room, what is under way and what follows."""
    if not steps:
        return []
    done = sum(step.status == "completed" for step in steps)
    lines = [join(("plan ", "bold"), (f"{done} of {len(steps)} done", MUTED))]
    left = room - 1
    first = 0
    if len(steps) > left:
        first = min(
            next((n for n, step in enumerate(steps) if step.status != "completed"), 0),
            len(steps) - left,
        )
    for step in steps[first : first + max(0, left)]:
        sign, style = _STEPS.get(step.status, (_AHEAD, ""))
        lines.append(line(f"{sign} {step.content}", style))
    return lines
