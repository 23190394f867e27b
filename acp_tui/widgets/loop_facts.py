"""What stands on top of a participant's screen: who it is, and what its loop does."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from textual.content import Content

from acp_core.cli.signs import NEED
from acp_core.loops import wording
from acp_core.model import Cause, Participant, Snapshot, Turn
from acp_core.model.format import age, count, zoned
from acp_core.model.sentence import names_in, sentence_case
from acp_tui.text import MUTED, Part, join, line, safe_line
from acp_tui.widgets.lines import Row
from acp_tui.widgets.people import COLOURS

if TYPE_CHECKING:
    from acp_core.agents.logs import Line
    from acp_core.agents.state import RunnerState

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


def cause_line(cause: Cause, snapshot: Snapshot) -> Content:
    """What is wrong with it, or what it asks."""
    headline = sentence_case(cause.headline, names_in(snapshot))
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
