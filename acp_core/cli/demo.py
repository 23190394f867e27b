"""``acp demo``: a real collaboration that carries itself out, with the dashboard on it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from acp_core.cli.context import handed_in
from acp_core.cli.output import say, warn
from acp_core.cli.start import open_dashboard
from acp_core.model import Event, Snapshot, Status, Verdict, format
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError
from acp_core.protocols import discovery, registry
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit.values import Values
from acp_core.rehearsal import Rehearsal, RehearsalError

if TYPE_CHECKING:
    from acp_core.cli.context import Dashboard

LOOK = 0.1  # seconds between two looks of --headless
NOT_COMPLETED = 1
EVERY = "all"
STUCK_SPEED = 20.0  # nobody wants to wait for five minutes until a silence is a stall


def demo(given: Values) -> int:
    """Play a demo, on the dashboard or without it."""
    headless, folder, drawn = given.headless, given.folder, handed_in()
    protocol = next(known for known in registry.bundled() if known.rehearse)
    if given.stuck:
        return _stuck(protocol, given.stuck, drawn, headless, given.speed or STUCK_SPEED, folder)
    with _stage(protocol, folder, given.scenario, given.speed or 1.0) as rehearsal:
        if headless:
            say(f"collaboration: {rehearsal.location}", now=True)
            code = follow(rehearsal)
        else:
            rehearsal.start()
            code = open_dashboard([rehearsal.location], drawn)
    if not headless:
        for failure in rehearsal.failures():
            warn(failure)
        say(f"The collaboration is in {rehearsal.location}")
        say(f"Logs of the participants: {rehearsal.logs}")
    return code


def _stuck(
    protocol: registry.Protocol,
    cause: str,
    drawn: Dashboard,
    headless: bool,
    speed: float,
    folder: str | None,
) -> int:
    """Play what gets stuck: on the dashboard one, without it all of them or one."""
    from acp_core.cli import stuck

    place = _own(folder)
    names = list(stuck.names(protocol)) if cause == EVERY else [cause]
    if cause == EVERY and (not headless or place):
        raise CommandError(f"name a CAUSE: {', '.join(names)} (or use --headless for all)")
    for name in names:
        with stuck.stage(protocol, name, place, speed) as stage:
            if headless:
                stuck.play(stage, speed)
                continue
            stage.start()
            open_dashboard([stage.story.location], drawn)
            say(f"The collaboration is in {stage.story.location}")
    return 0


def _own(folder: str | None) -> Path | None:
    """A folder that nothing else stands in; None where none is given."""
    place = Path(folder) if folder else None
    if place and os.path.lexists(place) and not _is_empty(place):
        raise CommandError(f"{folder} is not empty; the demo needs a new or empty folder")
    return place


@contextmanager
def _stage(
    protocol: registry.Protocol, folder: str | None, scenario: str, speed: float
) -> Iterator[Rehearsal]:
    """A rehearsal that is ended whatever happens, and whose troubles are complaints."""
    place = _own(folder)
    try:
        rehearsal: Rehearsal = registry.load(protocol.rehearse or "")(
            place, scenario=scenario, speed=speed
        )
        try:
            yield rehearsal
        finally:
            rehearsal.stop()
    except RehearsalError as error:
        raise CommandError(str(error)) from None


def _is_empty(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    except OSError:
        return False


def follow(rehearsal: Rehearsal) -> int:
    """Run a rehearsal to its end, printing each event as it happens.

    Raises:
        CommandError: it did not come to a good end; says why, with exit code 1.
        RehearsalError: it could not be started.
    """
    found = discovery.identify(Path(rehearsal.location), registry.bundled())
    if found is None:
        raise CommandError(f"{rehearsal.location}: no collaboration")
    watched = found.open()
    try:
        rehearsal.start()
        return _follow(rehearsal, watched)
    finally:
        watched.close()


def _follow(rehearsal: Rehearsal, watched: Collaboration) -> int:
    shown = 0
    seen: object = None
    since = time.monotonic()
    while True:
        running = rehearsal.running()  # asked first: what they wrote last is read below
        snapshot = watched.refresh(utc_now())
        for event in snapshot.events[shown:]:
            say(_line(event), now=True)
        shown = len(snapshot.events)
        now = (shown, [document.version for document in snapshot.documents], running)
        if now != seen:
            seen, since = now, time.monotonic()
        if snapshot.status is Status.COMPLETED and not running:
            return _verdict(snapshot)
        trouble = _trouble(rehearsal, snapshot, running, time.monotonic() - since)
        if trouble:
            raise CommandError(trouble, NOT_COMPLETED)
        time.sleep(LOOK)


def _line(event: Event) -> str:
    at = format.zoned(event.at).strftime("%H:%M:%S") if event.at else "-"
    return f"{at} {event.order:>4}  {event.actor:<9} {event.kind:<20} {event.summary}"


def _trouble(
    rehearsal: Rehearsal, snapshot: Snapshot, running: tuple[str, ...], quiet: float
) -> str:
    """Why this comes to no good end; "" while it may."""
    failures = rehearsal.failures()
    if failures:
        return "; ".join(failures)
    if snapshot.status is Status.BLOCKED and not running:
        return f"not completed: {snapshot.headline}"
    if not running:
        return (
            f"every participant's process has ended: {snapshot.headline} (logs: {rehearsal.logs})"
        )
    if quiet > rehearsal.pause:
        return f"nothing happened for {format.span(quiet)}: {snapshot.headline} (logs: {rehearsal.logs})"
    return ""


def _verdict(snapshot: Snapshot) -> int:
    if snapshot.verdict is not Verdict.VALID:
        said = snapshot.findings[0].message if snapshot.findings else snapshot.verdict.value
        raise CommandError(f"completed, but not valid: {said}", NOT_COMPLETED)
    say(f"completed and valid: {format.count(len(snapshot.events), 'event')}")
    return 0
