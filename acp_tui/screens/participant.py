"""One participant: what its loop does, its log as it grows, and a turn of its live session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Input, Static

from acp_core.cli.signs import PHASE, SEVERITY
from acp_core.loops.acts.names import (
    ANSWER_PERMISSION,
    CANCEL,
    LAUNCH,
    NUDGE,
    RELAUNCH,
    STOP_LOOP,
)
from acp_core.loops.wording import short
from acp_core.model import Matter, PhaseState, Severity, Snapshot
from acp_core.model.format import bar, count, grouped, zoned
from acp_tui import keys
from acp_tui.actions.collaboration_actions import CollaborationActions
from acp_tui.text import MUTED, Part, join, line, safe_line
from acp_tui.widgets.key_line import KeyLine
from acp_tui.widgets.lines import Row
from acp_tui.widgets.log_view import LogView
from acp_tui.widgets.pane import Typed
from acp_tui.widgets.people import Loops, cause_line, log_row, loop_lines, loop_of, title, turn_line

if TYPE_CHECKING:
    from textual.binding import ActiveBinding

    from acp_core.agents.live.updates import SessionState, Step
    from acp_core.agents.logs import LoopLog
    from acp_core.agents.output import Entry, Feed, Picture
    from acp_core.agents.state import RunnerState
    from acp_core.fleet import Batch
    from acp_tui.widgets.log_view import LogView

PACE = 0.25
"""Seconds between two looks at the log while this screen is in front."""
LIVE_PACE = 0.1
"""The same while a live session is shown."""
SESSION, LOG, RAW = "session", "log", "raw"
"""What is shown: the turn of a live session, the loop's log, or the agent's output as it was."""
_NARROW_LINES = 6  # of the session's state where it stands above what happens
_WIDE = 110  # columns from which on the session's state stands beside what happens in it

_OF_A_LOOP = frozenset(
    f"participant.{each}" for each in ("search", "follow", "wrap", "raw", "nudge", "cancel", "stop")
)
"""The keys that are of use only where there is a loop, or its log."""


class ParticipantScreen(CollaborationActions):
    """The loop of a participant on top, its log below."""

    CSS_PATH = "participant.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (_WIDE, "-wide")]  # noqa: RUF012
    AUTO_FOCUS = "LogView"
    BINDINGS: ClassVar[list[BindingType]] = [
        *keys.PARTICIPANT,
        *(each for each in keys.ACT if each.id not in ("act.launch", "act.stop")),
    ]

    def __init__(self, key: str, participant: str) -> None:
        """Make it.

        Args:
            key: The collaboration's.
            participant: Whose loop, an id as the Snapshot shows it.
        """
        super().__init__()
        self.key = key
        self.participant = participant
        self.shows = SESSION
        self.picture: Picture | None = None
        """How the session stands that is shown."""
        self._loops: Loops = ()
        self._known = False  # whether the loops were looked at
        self._without_loop = False  # as it was drawn
        self._log: LoopLog | None = None
        self._feed: Feed | None = None
        self._rows: SessionRows | None = None
        self._pace: Timer | None = None
        self._run = 0  # the run that the log is about
        self._reading = False

    def compose(self) -> ComposeResult:
        """What the loop does, its log, where a search is typed, the keys."""
        yield Static(id="facts")
        with Container(id="body"):
            yield Static(id="session")
            with Vertical(id="happened"):
                yield Static(id="bar")
                yield LogView(id="log")
        yield Typed(id="words", compact=True, placeholder="search the log")
        yield KeyLine()

    def on_mount(self) -> None:
        """Listen to the fleet, and read the log."""
        self.view = self.query_one(LogView)
        self.view.clear("Reading the log…")
        self.app.snapshots_changed.subscribe(self, self._changed)
        self.watch(self.app, "utc", self._begin_log, init=False)
        self.set_interval(1.0, self._draw)
        self._find()
        self._draw()
        self.ask_what_it_offers()

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """The keys that work now; those for a loop and its log are shown only where there is one."""
        active = super().active_bindings
        if self._without_loop:
            for key, entry in active.items():
                if entry.binding.id in _OF_A_LOOP:
                    active[key] = entry._replace(binding=replace(entry.binding, show=False))
        return active

    @property
    def is_being_made(self) -> bool:
        """Whether its loop is being looked for: keys wait for that."""
        return not self._known

    def in_hand(self) -> Snapshot | None:
        """The collaboration to act on."""
        return self.app.fleet.snapshots.get(self.key)

    # --- what comes in ---------------------------------------------------------------------

    def _changed(self, batch: Batch) -> None:
        if self.key in batch.loops:
            self._find()
        elif any(snapshot.key == self.key for snapshot in batch.snapshots):
            self._draw()
            self.ask_what_it_offers()

    @work(group="loops", exclusive=True, exit_on_error=False)
    async def _find(self) -> None:
        """Look at the loops; that can wait for a disk."""
        fleet = self.app.fleet
        own = await asyncio.to_thread(fleet.loops, self.key)
        self._loops = (*own, *await asyncio.to_thread(fleet.loops_of_others, self.key))
        self._known = True
        run = self.loop.run if self.loop else None
        number = run.number if run else 0
        of_run = self.shows == RAW or self.is_live or self._feed is not None
        is_new = of_run and number != self._run
        if is_new or (self._log is None and self._feed is None):
            self._begin_log()
        self._draw()

    @property
    def loop(self) -> RunnerState | None:
        """The participant's loop."""
        return loop_of(self._loops, self.participant)

    def _begin_log(self, *_: object) -> None:
        """Read the log from its beginning."""
        loop = self.loop
        self._log, self._feed, self.picture, self._rows = None, None, None, None
        if loop is None:
            if self._known:
                self.view.clear("No log: the participant has no loop on this machine.")
            return
        if loop.account:
            self.view.clear(f"The log belongs to {loop.account}.")
            return
        self._run = loop.run.number if loop.run else 0
        if self.is_live:
            self._begin_session(loop)
        else:
            from acp_core.agents.logs import LoopLog

            self._log = LoopLog(loop, raw=self.shows == RAW)
            self.view.clear("No output yet." if self.shows == RAW else "The log is empty.")
        if self._pace is not None:
            self._pace.stop()
        self._pace = self.set_interval(LIVE_PACE if self.is_live else PACE, self._read_soon)
        self.view.set_follow(True)
        self._read_soon()

    @property
    def is_live(self) -> bool:
        """Whether the turn of a live session is shown."""
        loop = self.loop
        has = loop is not None and not loop.account and loop.run is not None and loop.run.live
        return has and self.shows == SESSION

    def _begin_session(self, loop: RunnerState) -> None:
        """Show the turn of a live session from its beginning."""
        from acp_core.agents.output import Feed

        assert loop.run is not None
        self._feed = Feed(Path(loop.run.out))
        self.view.clear("The agent has not said anything yet.")
        self._rows = SessionRows(self.view, self.app.utc)

    def _read_soon(self) -> None:
        if self._reading or not self.is_current:
            return
        if self._feed is not None:
            self._reading = True
            self._read_session(self._feed)
        elif self._log is not None:
            self._reading = True
            self._read(self._log)

    @work(group="log", exit_on_error=False)
    async def _read_session(self, feed: Feed) -> None:
        try:
            picture = await asyncio.to_thread(feed.read)
        finally:
            self._reading = False
        if feed is self._feed and picture is not None and self._rows is not None:
            self.picture = picture
            self._rows.show(picture.entries)
            self._draw_session()
            self._draw_bar()

    @work(group="log", exit_on_error=False)
    async def _read(self, log: LoopLog) -> None:
        try:
            lines = await asyncio.to_thread(log.read)
        finally:
            self._reading = False
        if log is self._log and lines:
            self.view.extend([log_row(each, self.app.utc) for each in lines])
            self._draw_bar()

    # --- drawing ---------------------------------------------------------------------------

    def _draw(self) -> None:
        without = self._known and self.loop is None and self._log is None
        if without is not self._without_loop:
            self._without_loop = without
            self.refresh_bindings()
        self._put("#facts", self._facts())
        if self._rows is not None:
            asked = self._asked()
            self._rows.show_asked(asked.sentence if asked else "")
        self._draw_session()
        self._draw_bar()

    def _draw_session(self) -> None:
        """How the session stands; nothing where none is shown."""
        side = self.query_one("#session", Static)
        side.display = self.picture is not None
        if self.picture is not None:
            room = _NARROW_LINES if self.has_class("-narrow") else self.size.height // 2
            self._put("#session", panel(self.picture, room))

    def _put(self, where: str, content: Content) -> None:
        """Show a text where it is another one: each new one lays out the whole screen anew."""
        shown = self.query_one(where, Static)
        before = shown.content
        if not (isinstance(before, Content) and before.is_same(content)):
            shown.update(content)

    def _facts(self) -> Content:
        snapshot, now = self.in_hand(), self.app.now()
        people = snapshot.participants if snapshot else ()
        person = next((p for p in people if p.id == self.participant), None)
        lines = [title(self.participant, person, snapshot)]
        turns = snapshot.turns if snapshot else ()
        turn = next((turn for turn in turns if turn.participant == self.participant), None)
        if turn is not None:
            lines.append(turn_line(turn, now))
        asked = self._asked()
        own = (each for each in self._causes() if each.about.participant == self.participant)
        cause = asked or next(own, None)
        if cause is not None and snapshot is not None:
            lines.append(cause_line(cause, snapshot))
        loop = self.loop
        if loop is not None:
            said = turn.what if turn is not None else ""
            lines += loop_lines(loop, now, asks=asked is not None, said=said)
        elif self._known:
            lines.append(line("no loop on this machine", MUTED))
        return Content("\n").join(lines)

    def _causes(self) -> tuple[Matter, ...]:
        snapshot = self.in_hand()
        return snapshot.causes if snapshot else ()

    def _asked(self) -> Matter | None:
        """What its agent asks, and waits for the answer."""
        return next(
            (
                each
                for each in self._causes()
                if each.about.participant == self.participant and each.remedy == ANSWER_PERMISSION
            ),
            None,
        )

    def _draw_bar(self) -> None:
        view = self.view
        follow = keys.called(self.app, "participant.follow")
        parts: list[Part] = [
            (self._source, "bold"),
            (f"  {count(len(view.rows), 'line')}", MUTED),
            ("  following the end" if view.follow else f"  not following ({follow})", MUTED),
            ("" if view.wrapped else "  not wrapped", MUTED),
        ]
        if view.words:
            here = grouped(view.matches.index(view.here) + 1) if view.here in view.matches else "-"
            place = f" {here}/{grouped(len(view.matches))}" if view.matches else " not found"
            parts += [("  /", MUTED), safe_line(view.words), (place, "$text-accent")]
        self._put("#bar", join(*parts))

    @property
    def _source(self) -> str:
        """What is shown: a session only where there is one."""
        return LOG if self.shows == SESSION and not self.is_live else self.shows

    def asking(self, snapshot: Snapshot | None = None) -> list[tuple[Snapshot, Matter]]:
        """The open needs, those of this participant first."""
        found = super().asking(snapshot)
        return sorted(found, key=lambda each: each[1].about.participant != self.participant)

    # --- keys: the loop --------------------------------------------------------------------

    def action_nudge(self) -> None:
        """Send it a message: into the running turn where its agent takes one, else with its next attempt."""
        if self._is_elsewhere():
            return
        if self.loop is not None and self.loop.alive:
            self._manage(NUDGE)
        else:
            self._tell(
                f"{self.participant} has no running loop; press {self._called('start')} to start one."
            )

    def action_cancel_turn(self) -> None:
        """Cancel what its agent is doing; its loop then waits."""
        if self._is_elsewhere():
            return
        if self.loop is not None and self.loop.program_alive:
            self._manage(CANCEL)
        else:
            self._tell(f"{self.participant}'s agent is not at work.")

    def action_start(self) -> None:
        """Start its loop, for the first time or again."""
        if self._is_elsewhere():
            return
        if self._known:
            self._manage(LAUNCH if self.loop is None else RELAUNCH)
        else:
            self._tell("")

    def action_stop(self) -> None:
        """Stop its loop, with the program that it runs."""
        if self._is_elsewhere():
            return
        if self.loop is not None and (self.loop.alive or self.loop.program_alive):
            self._manage(STOP_LOOP)
        else:
            self._tell(f"{self.participant} has no running loop here.")

    def _is_elsewhere(self) -> bool:
        """Whether another account runs it: then it says whom to ask."""
        loop = self.loop
        if loop is None or not loop.account or not loop.alive:
            return False
        self._tell(f"{loop.shown.note}. Use `acp stop`.")
        return True

    def _manage(self, action: str) -> None:
        if snapshot := self.in_hand():
            given = {"participant": self.participant}
            self.app.perform(snapshot.key, action, self.performed, given)

    def _tell(self, sentence: str) -> None:
        self.app.tell(sentence if self._known else "Still looking for the loop.")

    def _called(self, name: str) -> str:
        return keys.called(self.app, f"participant.{name}")

    # --- keys: the log ---------------------------------------------------------------------

    def action_toggle_follow(self) -> None:
        """Stay with the newest line, or stay here."""
        self.view.set_follow(not self.view.follow)
        self._draw_bar()

    def action_toggle_wrap(self) -> None:
        """Show long lines in several rows, or in one."""
        self.view.set_wrapped(not self.view.wrapped)
        self._draw_bar()

    def action_toggle_raw(self) -> None:
        """Show the session, the log, or what the program printed as it was, in turns."""
        self.shows = {SESSION: LOG if self.is_live else RAW, LOG: RAW, RAW: SESSION}[self.shows]
        self._begin_log()
        self._draw()

    def action_search(self) -> None:
        """Type search the log."""
        typed = self.query_one(Typed)
        typed.display = True
        typed.focus()

    @on(Input.Submitted, "#words")
    def _submitted(self, message: Input.Submitted) -> None:
        message.stop()
        self._end_search(message.value.strip())

    @on(Typed.Cancelled)
    def _cancelled(self) -> None:
        self.query_one(Typed).value = ""
        self._end_search("")

    def _end_search(self, words: str) -> None:
        self.query_one(Typed).display = False
        self.view.search(words)
        self.view.focus()
        self._draw_bar()

    def action_match(self, by: int) -> None:
        """Go to the next place of the words, or to the one before."""
        self.view.step(by)
        self._draw_bar()

    def action_step(self, by: int) -> None:
        """Show the next participant, or the one before."""
        snapshot = self.in_hand()
        people = [person.id for person in snapshot.participants] if snapshot else []
        if not people:
            return
        here = people.index(self.participant) if self.participant in people else 0
        self.participant = people[(here + by) % len(people)]
        self._begin_log()
        self._draw()

    def action_back(self) -> None:
        """Leave the search, or go back."""
        if self.view.words:
            self._end_search("")
        else:
            self.dismiss()


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
