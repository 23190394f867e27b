"""Who takes part: what they are, what their loop does, what they should do now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from textual.content import Content

from acp_core.cli.signs import NEED
from acp_core.loops import wording
from acp_core.model import Matter, NextAction, Participant, Snapshot, Target, Turn
from acp_core.model.format import age, count, exact, names_in, sentence_case, zoned
from acp_core.protocols.kit.diagnosis import safe_id as shown_id
from acp_tui.text import MUTED, Part, fit, join, line, safe_line, width
from acp_tui.widgets.lines import Row
from acp_tui.widgets.row_list import Item

if TYPE_CHECKING:
    from acp_core.agents.logs import Line
    from acp_core.agents.state import RunnerState

Loops = Sequence["RunnerState"]

EMPTY = "No participants yet."

SHORT = 20
"""Cells of a name that are shown in any case."""

MOST = 48
"""Cells that what participants do takes from their names at most."""

COLOURS = {wording.GOOD: "success", wording.BAD: "error", wording.REST: "muted"}


def loop_of(loops: Loops, participant: str) -> RunnerState | None:
    """The loop of a participant (an id as the Snapshot shows it): of several, the one that runs."""
    found = [each for each in loops if shown_id(each.participant) == participant]
    return next((each for each in found if each.alive), next(iter(found), None))


def items(snapshot: Snapshot, loops: Loops, now: datetime, utc: bool, room: int = 0) -> list[Item]:
    """A line per participant, those who are waited for with a filled sign.

    Args:
        snapshot: The collaboration.
        loops: The loops of its participants.
        now: The time.
        utc: Whether times are shown in UTC.
        room: Cells of a line; the more there are, the less of a long name is cut.
    """
    people = snapshot.participants
    waited = {turn.participant: turn for turn in snapshot.turns}
    todo = {action.participant: action for action in snapshot.next_actions}
    role = _widest((p.role for p in people), 16)
    kind = _widest((p.kind for p in people), 8)
    rows = []
    does = [
        _does(person, waited.get(person.id), loop_of(loops, person.id), now) for person in people
    ]
    others = role + kind + 8 + _widest(("".join(words for words, _ in each) for each in does), MOST)
    name = _widest((p.id for p in people), max(SHORT, room - others))
    for person, words in zip(people, does, strict=True):
        turn, action = waited.get(person.id), todo.get(person.id)
        loop = loop_of(loops, person.id)
        rows.append(
            Item(
                (
                    ("● " if turn else "○ ", "accent" if turn else "muted"),
                    (fit(person.id, name) + "  ", "strong" if turn else ""),
                    (fit(person.role, role) + "  ", "muted"),
                    (fit(person.kind, kind) + "  ", "muted"),
                    *words,
                ),
                (*_details(person, turn, action, utc), *_loop_details(loop, now, utc)),
                Target(event=person.last_event),
                key=person.id,
            )
        )
    return rows


def _does(
    person: Participant, turn: Turn | None, loop: RunnerState | None, now: datetime
) -> tuple[tuple[str, str], ...]:
    """Since when it is waited for, and what its loop does."""
    since = f"has the turn {_age(turn, now)}" if turn else ""
    return (fit(since, 18), "accent"), *_loop_in_words(person, loop, now)


def _age(turn: Turn, now: datetime) -> str:
    return age(turn.since, now) if turn.since else ""


def _loop_in_words(
    person: Participant, loop: RunnerState | None, now: datetime
) -> tuple[tuple[str, str], ...]:
    """What the loop does, since when, at which try, what it cost, and what it said last."""
    if loop is None:
        seen = f"{age(person.last_seen, now)} ago" if person.last_seen else "never"
        return ((f"last seen {seen}", "muted"),)
    words = [safe_line(wording.state(loop))]
    if loop.shown.since:
        words[0] += f" {age(loop.shown.since, now)}"
    words += [wording.attempt(loop), wording.spent(loop)]
    last = safe_line(wording.last_line(loop))
    return (
        (" · ".join(filter(None, words)), COLOURS[wording.mood(loop)]),
        (f"  {last}" if last else "", "muted"),
    )


def _details(
    person: Participant, turn: Turn | None, action: NextAction | None, utc: bool
) -> Iterable[tuple[str, str]]:
    if action is not None and (turn is None or action.text != turn.what):
        yield f"now: {action.text}", ""
    if turn is not None:
        since = f" since {exact(turn.since, utc)}" if turn.since else ""
        yield f"turn: {turn.what}{since}", "accent"
    if person.last_seen is not None:
        event = f" (event {person.last_event})" if person.last_event else ""
        yield f"last seen {exact(person.last_seen, utc)}{event}", "muted"


def _loop_details(loop: RunnerState | None, now: datetime, utc: bool) -> Iterable[tuple[str, str]]:
    if loop is None:
        return
    activity = loop.shown
    since = f" since {exact(activity.since, utc)}" if activity.since else ""
    process = f"process {loop.pid}" if loop.alive else "no process"
    yield f"loop: {wording.state(loop)}{since}, {process}", COLOURS[wording.mood(loop)]
    if activity.note:
        yield activity.note, ""
    if loop.account:  # the rest is known to that account alone
        return
    facts = [wording.program(loop), count(activity.turns, "turn taken", "turns taken")]
    if activity.restarts:
        facts.append(f"{activity.restarts} restarts")
    yield " · ".join(filter(None, (*facts, wording.deadline(loop, now)))), "muted"
    if loop.run is not None and loop.run.exit:
        yield f"last attempt: {loop.run.exit}", "muted"
    for words in loop.lines[-3:]:
        yield f"  {words}", "muted"
    yield "p: its log", "accent"


def _widest(texts: Iterable[str], most: int) -> int:
    return min(most, max((width(text) for text in texts), default=0))


_STYLES = {"loop": "accent", "out": "", "err": "warning"}


def title(id: str, person: Participant | None, snapshot: Snapshot | None) -> Content:
    """Who it is, and where."""
    parts: list[Part] = [(safe_line(id), "bold $text-accent")]
    if person is not None:
        about = " · ".join(
            each for each in (person.role, person.kind) if each not in ("", "unknown")
        )
        parts.append((f"  {safe_line(about)}", MUTED))
    if snapshot is not None:
        parts.append((f"  in {safe_line(snapshot.name)}", MUTED))
    return join(*parts)


def turn_line(turn: Turn, now: datetime) -> Content:
    """Since when it has the turn, and for what."""
    return join(
        ("has the turn ", "$text-accent"),
        (age(turn.since, now) if turn.since else "", "bold $text-accent"),
        (f"  {safe_line(turn.what)}", ""),
    )


def cause_line(cause: Matter, snapshot: Snapshot) -> Content:
    """What is wrong with it, or what it asks."""
    headline = sentence_case(cause.sentence, names_in(snapshot))
    words = f"{NEED} {headline} ({'certain' if cause.certain else 'inferred'})"
    return line(words, "$text-error")


def loop_lines(
    loop: RunnerState, now: datetime, *, asks: bool = False, said: str = ""
) -> list[Content]:
    """State, what it cost, the note and the command.

    Args:
        loop: the participant's.
        now: the time.
        asks: its agent waits for an answer; what it asks stands above.
        said: what stands above of the turn: a note that says the same is left out.
    """
    activity = loop.shown
    colour = {"success": "$text-success", "error": "$text-error"}
    doing = "waiting for your answer" if asks else wording.state(loop)
    state = safe_line(doing) + (f" {age(activity.since, now)}" if activity.since else "")
    facts = [
        wording.attempt(loop),
        wording.spent(loop),
        count(activity.turns, "turn") + " taken",
        f"{activity.restarts} restarts" if activity.restarts else "",
        wording.deadline(loop, now),
        f"process {loop.pid}" if loop.alive else "no process",
    ]
    lines = [
        join(
            (state, f"bold {colour.get(COLOURS[wording.mood(loop)], '')}"),
            ("  " + " · ".join(filter(None, facts)), MUTED),
        )
    ]
    if activity.note and activity.note != said:
        lines.append(line(activity.note))
    if loop.nudge_waiting:
        lines.append(line("a message is queued for the next turn", MUTED))
    how = "live session" if activity.live == "yes" else " ".join(loop.command)
    if activity.live == "yes" and loop.run is not None and loop.run.opened:
        how = f"{how}: {loop.run.opened}"
    lines.append(join((safe_line(wording.program(loop)), ""), (f"  {how}", MUTED)))
    if activity.live.startswith("no"):
        lines.append(line(f"no live session: {activity.live[4:]}", MUTED))
    return lines


def log_row(entry: Line, utc: bool) -> Row:
    """A line of a loop's log."""
    at = zoned(entry.at, utc).strftime("%H:%M:%S ") if entry.at else ""
    return ((at, "muted"), (f"{entry.who:<4} ", "muted"), (entry.text, _STYLES[entry.who]))
