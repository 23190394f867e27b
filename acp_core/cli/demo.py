"""``acp demo``: a real collaboration that carries itself out, with the dashboard on it.

With ``--stuck`` it gets stuck for one reason, and what is offered gets it going again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from acp_core.agents import registry as loop_registry
from acp_core.agents.background import importable
from acp_core.cli.context import handed_in
from acp_core.cli.matters import why_lines
from acp_core.cli.output import act_command, say, terminal, warn
from acp_core.cli.start import open_dashboard
from acp_core.diagnosis import actions, loop_turns
from acp_core.fleet import Fleet
from acp_core.loops import launch as launching
from acp_core.loops.launch import LaunchError, Spec
from acp_core.model import Event, Matter, OutcomeState, Snapshot, Status, Verdict, format
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError, Refused
from acp_core.model.turn import Mode
from acp_core.protocols import discovery, registry
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit.diagnosis import SPEED_VARIABLE
from acp_core.protocols.kit.values import Values
from acp_core.rehearsal import Rehearsal, RehearsalError, Role, Story

if TYPE_CHECKING:
    from acp_core.cli.context import Dashboard

STUCK_INTERVAL = 0.2  # seconds between two looks

LONGEST = timedelta(minutes=30)  # a loop of a demo ends at last, whatever becomes of the demo
PATIENCE = 90.0  # seconds without any change after which something is wrong, at speed 1
NOT_FIXED = 1


def causes_to_play(protocol: registry.Protocol) -> Mapping[str, str]:
    """The stories that a protocol has, by name."""
    told: Mapping[str, str] = registry.load(f"{protocol.stuck}:NAMES")
    return told


@contextmanager
def on_stage(
    protocol: registry.Protocol, name: str, folder: Path | None, speed: float
) -> Iterator[Stage]:
    """A story that is set up, and ended whatever happens.

    Raises:
        CommandError: there is no such story, or it cannot be set up.
    """
    before = os.environ.get(SPEED_VARIABLE)
    os.environ[SPEED_VARIABLE] = f"{speed:g}"  # whoever looks at it from here is as impatient
    try:
        story: Story = registry.load(f"{protocol.stuck}:tell")(name, folder, speed=speed)
    except RehearsalError as error:
        raise CommandError(str(error)) from None
    stage = Stage(story)
    try:
        yield stage
    finally:
        stage.stop()
        os.environ.pop(SPEED_VARIABLE)
        if before is not None:
            os.environ[SPEED_VARIABLE] = before


class Stage:
    """A story with its loops.

    Attributes:
        story: what happens.
        folders: where it happens: a second one where it goes on elsewhere.
    """

    def __init__(self, story: Story) -> None:
        self.story = story
        self.folders = [story.location]
        self._second: list[subprocess.Popen[bytes]] = []
        self._elsewhere = tempfile.mkdtemp(prefix="acp-demo-state-")

    def start(self) -> None:
        """Start a loop for everybody who shall have one.

        Raises:
            CommandError: one does not run.
        """
        for role in sorted(self.story.roles, key=lambda role: not role.alone):
            if role.launched:
                self._launch(role)
            if role.alone:
                self._let_it_wait(role)
            if role.twice:
                self._launch_second(role)

    def _spec(self, role: Role) -> Spec:
        return Spec(
            folder=self.story.location,
            participant=role.participant,
            mode=Mode.ALONE if role.alone else Mode.TURN,
            retries=role.retries,
            pause=1.0,
            interval=STUCK_INTERVAL,
            linger=3_600.0,
            deadline=utc_now() + LONGEST,
        )

    def _launch(self, role: Role) -> None:
        plan = launching.plan(self._spec(role), role.preset, ask_version=False)
        if plan.refused:
            raise CommandError(plan.refused)
        try:
            launching.start(plan.spec)
        except LaunchError as error:
            raise CommandError(str(error)) from None

    def _let_it_wait(self, role: Role) -> None:
        """Give a program that waits by itself the time to begin, before others act."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            state = loop_registry.find(self.story.location, role.participant)
            if state is None or any(loop_turns.WAITING.match(line) for line in state.lines):
                return
            time.sleep(STUCK_INTERVAL)

    def _launch_second(self, role: Role) -> None:
        """The same with another state folder: nobody here knows of it."""
        acp = (sys.executable, "-P", "-m", "acp_core")
        words = ("--folder", self.story.location, "--participant", role.participant)
        environment = {**os.environ, **importable(), "ACP_STATE": self._elsewhere}
        self._second.append(
            subprocess.Popen(
                [*acp, "loop", *words, "--retries", "0", "--", sys.executable, *role.preset.args],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        )

    def stop(self) -> None:
        """End every loop and program, and forget them."""
        for process in self._second:
            process.terminate()
        for folder in self.folders:
            for state in loop_registry.runners(folder):
                loop_registry.stop(state.folder, state.participant, grace=1.0)
                loop_registry.forget(state.folder, state.participant)
        for process in self._second:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self._elsewhere, ignore_errors=True)


def play_stage(stage: Stage, speed: float) -> int:
    """Wait for the cause, do what mends it, and follow the collaboration to its end.

    Raises:
        CommandError: another cause was found, or it did not go on; with exit code 1.
    """
    story = stage.story
    say(f"{story.name}: {story.title}", now=True)
    say(f"collaboration: {story.location}", now=True)
    stage.start()
    follower = _Follower(story.location, PATIENCE / min(speed, 3))
    stuck = follower.until(lambda seen: _first(seen, story.code) is not None, f"cause {story.code}")
    cause = stuck.causes[0]
    for line in why_lines(replace(stuck, causes=stuck.causes[:1]), utc_now(), terminal()):
        say(line, now=True)
    if not cause.remedy:
        raise CommandError(f"{cause.code} has no fix", NOT_FIXED)
    location = follower.do(cause.remedy, dict(cause.given) | dict(story.answers))
    if location:
        stage.folders.append(location)
        follower = _Follower(location, PATIENCE / min(speed, 3))
        follower.read()
    ended = follower.until(lambda seen: seen.status is Status.COMPLETED, "its end")
    if ended.verdict is not Verdict.VALID:
        raise CommandError(f"completed, but {ended.verdict.value}", NOT_FIXED)
    say(f"completed and valid: {len(ended.events)} events", now=True)
    return 0


def _first(seen: Snapshot, code: str) -> Matter | None:
    """The first cause, where it is the expected one and wants a person."""
    first = seen.causes[0] if seen.causes else None
    return first if first is not None and first.wanted and first.code == code else None


class _Follower:
    """Reads one collaboration again and again."""

    def __init__(self, location: str, patience: float) -> None:
        self._location = location
        self._patience = patience
        self._fleet = Fleet([Path(location)], discover=False)

    def read(self) -> Snapshot:
        """Read it now."""
        return self._fleet.read()[0]

    def until(self, enough: Callable[[Snapshot], bool], what: str) -> Snapshot:
        """Look until something is seen.

        Raises:
            CommandError: nothing changes any more, and it is not seen.
        """
        shown: object = None
        since = time.monotonic()
        while True:
            seen = self.read()
            if enough(seen):
                return seen
            loops = self._fleet.loops(seen.key)
            now = (len(seen.events), seen.causes, [(loop.alive, loop.phase) for loop in loops])
            if now != shown:
                shown, since = now, time.monotonic()
            if time.monotonic() - since > self._patience:
                logs = ", ".join(loop.log for loop in loops)
                text = f"timed out waiting for {what}: {seen.headline} (logs: {logs})"
                raise CommandError(text, NOT_FIXED)
            time.sleep(STUCK_INTERVAL)

    def do(self, name: str, inputs: Mapping[str, str]) -> str | None:
        """Do an action as the command or the key does; where it leads to.

        Raises:
            CommandError: it is not possible, or was refused.
        """
        seen = self.read()
        try:
            action = self._fleet.call_sync(
                seen.key, lambda opened: actions.action(opened, seen, name)
            )
        except Refused as error:
            raise CommandError(f"{name}: {error}", NOT_FIXED) from None
        if action is None:
            raise CommandError(f"{name} is not offered", NOT_FIXED)
        say(f"$ {act_command(seen, name, inputs.items(), 60)} --yes", now=True)
        given = action.inputs.model_validate(dict(action.defaults) | dict(inputs))
        preview = self._fleet.call_sync(seen.key, lambda _: action.preview(given))
        if preview.refused:
            raise CommandError(preview.refused, NOT_FIXED)
        outcome = self._fleet.call_sync(seen.key, lambda _: action.perform(given))
        say(f"{outcome.state.value}: {outcome.sentence}", now=True)
        if outcome.state is OutcomeState.REFUSED:
            raise CommandError(outcome.sentence, NOT_FIXED)
        return outcome.location


HEADLESS_INTERVAL = 0.1  # seconds between two looks of --headless

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

    place = _own(folder)
    names = list(causes_to_play(protocol)) if cause == EVERY else [cause]
    if cause == EVERY and (not headless or place):
        raise CommandError(f"name a CAUSE: {', '.join(names)} (or use --headless for all)")
    for name in names:
        with on_stage(protocol, name, place, speed) as stage:
            if headless:
                play_stage(stage, speed)
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
        time.sleep(HEADLESS_INTERVAL)


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
