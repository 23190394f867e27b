"""A fleet of collaborations that stand at different points, made in a moment.

For pictures of the dashboard and for tests that want real data: made by the very acts that
agents use, with times that go back from a given one. Nothing runs afterwards.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import accumulate, cycle, islice
from pathlib import Path
from typing import NamedTuple

from acp_core.protocols.folder import schema
from acp_core.protocols.folder.rehearsal.scenario import (
    FLEET,
    SCENARIOS,
    PlayedScenario,
    Scenario,
    Step,
    load,
)
from acp_core.protocols.folder.write.append import Request, append
from acp_core.protocols.folder.write.init import Wish, initialise

GAPS = (11, 7, 16, 4, 9, 23, 3, 14)  # minutes between two events, over and over


class Exhibit(NamedTuple):
    """One collaboration of the fleet.

    Attributes:
        name: of its folder and of its scenario.
        source: the folder that holds the scenario.
        ago: minutes since its last event.
        steps: how many steps have happened; None for all.
        humans: participants who are people.
        finish: what happens to the folder afterwards, given the time of the last event.
        spoil: what happens around the last step: given the folder before it, returns what to do after.
    """

    name: str
    source: Path
    ago: int
    steps: int | None = None
    humans: tuple[str, ...] = ()
    finish: Callable[[Path, datetime], None] | None = None
    spoil: Callable[[Path], Callable[[], None]] | None = None


def lag(folder: Path) -> Callable[[], None]:
    """Let protocol.json stay behind the log, as a kill between the two leaves it."""
    path = folder / schema.PROTOCOL_FILE
    before = path.read_bytes()
    return lambda: _put(path, before)


def write_by_hand(folder: Path, last: datetime) -> None:
    """Append an event by hand: a number left out, and no heading in review.md."""
    at = last + timedelta(minutes=12)
    event = {
        "seq": 4,
        "from": "dashboards",
        "event": "review_submitted",
        "at": schema.format_time(at),
        "summary": "Looks good to me.",
        "doc": "review.md",
        "reply_to": 2,
    }
    with (folder / schema.LOG_FILE).open("ab") as log:
        log.write(schema.encode_event(event))
    _stamp(folder / schema.LOG_FILE, at)


def change_conclusion(folder: Path, last: datetime) -> None:
    """Change conclusion.md although the collaboration is completed."""
    at = last + timedelta(minutes=95)
    path = folder / "conclusion.md"
    text = path.read_text(encoding="utf-8")
    _put(path, text.replace("once per request.", "once per request, or once a minute.").encode())
    _stamp(path, at)


EXHIBITS = (
    Exhibit("session-tokens", FLEET, ago=47),
    Exhibit("index-rebuild", FLEET, ago=26, humans=("lead",)),
    Exhibit("metric-names", FLEET, ago=33, finish=write_by_hand),
    Exhibit("log-retention", FLEET, ago=9, spoil=lag),
    Exhibit("order-retries", SCENARIOS, ago=8, steps=5),
    Exhibit("webhook-signatures", FLEET, ago=6),
    Exhibit("build-cache", FLEET, ago=2),
    Exhibit("page-cursors", SCENARIOS, ago=190),
    Exhibit("config-reload", FLEET, ago=1_520, finish=change_conclusion),
    Exhibit("column-rename", FLEET, ago=4_300),
)


def make_fleet(folder: Path, now: datetime) -> dict[str, Path]:
    """Make every collaboration of `EXHIBITS` below ``folder``; returns their folders by name.

    Args:
        folder: where; it need not exist.
        now: the time from which their times go back.
    """
    return {each.name: make(each, folder / each.name, now) for each in EXHIBITS}


def make(exhibit: Exhibit, folder: Path, now: datetime) -> Path:
    """Make one collaboration in ``folder``, which must not exist yet; returns ``folder``."""
    scenario = load(exhibit.name, exhibit.source)
    steps = scenario.steps[: exhibit.steps]
    times = _times(now - timedelta(minutes=exhibit.ago), len(steps))
    start(scenario, folder, times[0], exhibit.humans)
    for step, at in zip(steps, times[1:], strict=True):
        spoil = exhibit.spoil if step is steps[-1] else None
        after = spoil(folder) if spoil else None
        take(step, scenario, folder, at)
        if after:
            after()
    _stamp(folder / schema.PROTOCOL_FILE, times[-1])
    _stamp(folder / schema.LOG_FILE, times[-1])
    if exhibit.finish:
        exhibit.finish(folder, times[-1])
    return folder


def _times(last: datetime, steps: int) -> list[datetime]:
    """When it began and when each step happened, up to ``last``."""
    gaps = islice(cycle(GAPS), steps)
    back = list(accumulate(gaps, initial=0))
    return [last - timedelta(minutes=minutes) for minutes in reversed(back)]


def start(scenario: Scenario, folder: Path, at: datetime, humans: tuple[str, ...] = ()) -> None:
    """Start the collaboration of a scenario at a given time."""
    deliverable = scenario.deliverable
    wish = Wish(
        objective=scenario.objective,
        participants=scenario.participants,
        gates=scenario.gates,
        type=deliverable.type if deliverable else None,
        file=deliverable.file if deliverable else None,
    )
    initialise(str(folder), wish, now=lambda: at)
    path = folder / schema.PROTOCOL_FILE
    if humans:
        protocol = json.loads(path.read_bytes())
        for participant in protocol["participants"]:
            if participant["id"] in humans:
                participant["kind"] = "human"
        _put(path, schema.encode_protocol(protocol))
    for file in folder.rglob("*"):
        _stamp(file, at)


def take(step: Step, scenario: Scenario, folder: Path, at: datetime) -> None:
    """Do one step of a scenario at a given time."""
    played = PlayedScenario(scenario, folder)
    reply_to = played.latest(step.reply_to)
    for write in step.writes:
        path, _, text = played.edit(write, reply_to)
        _put(path, text.encode())
        _stamp(path, at)
    request = Request(
        folder=str(folder),
        participant=step.by,
        event=step.event,
        summary=step.summary,
        doc=step.doc,
        reply_to=reply_to,
        role=step.role,
        sha256=played.sha256() if step.freeze else None,
        review=None if step.review is None else played.fill(step.review, reply_to),
    )
    append(request, now=lambda: at)
    if step.review is not None:
        _stamp(folder / "review.md", at)


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)


def _stamp(path: Path, at: datetime) -> None:
    seconds = at.astimezone(UTC).timestamp()
    os.utime(path, (seconds, seconds))
