"""``acp demo --stuck``: a collaboration that gets stuck for one reason, and what gets it going.

The loops and programs are real ones, started as `acp launch` does. On the dashboard a person
finds the cause and mends it; without one, the demo does what the person would.
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

from acp_core.agents import registry
from acp_core.agents.background import importable
from acp_core.cli.output import act_command, say, terminal
from acp_core.cli.why import render
from acp_core.diagnosis import actions, endings
from acp_core.fleet import Fleet
from acp_core.loops import launch as launching
from acp_core.loops.launch import LaunchError
from acp_core.loops.spec import Spec
from acp_core.model import Cause, OutcomeState, Snapshot, Status, Verdict
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError, Refused
from acp_core.model.turn import Mode
from acp_core.protocols import registry as protocols
from acp_core.protocols.kit.diagnosis import SPEED_VARIABLE
from acp_core.rehearsal import RehearsalError, Role, Story

LOOK = 0.2  # seconds between two looks
LONGEST = timedelta(minutes=30)  # a loop of a demo ends at last, whatever becomes of the demo
PATIENCE = 90.0  # seconds without any change after which something is wrong, at speed 1
NOT_FIXED = 1


def names(protocol: protocols.Protocol) -> Mapping[str, str]:
    """The stories that a protocol has, by name."""
    told: Mapping[str, str] = protocols.load(f"{protocol.stuck}:NAMES")
    return told


@contextmanager
def stage(
    protocol: protocols.Protocol, name: str, folder: Path | None, speed: float
) -> Iterator[Stage]:
    """A story that is set up, and ended whatever happens.

    Raises:
        CommandError: there is no such story, or it cannot be set up.
    """
    before = os.environ.get(SPEED_VARIABLE)
    os.environ[SPEED_VARIABLE] = f"{speed:g}"  # whoever looks at it from here is as impatient
    try:
        story: Story = protocols.load(f"{protocol.stuck}:tell")(name, folder, speed=speed)
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
            interval=LOOK,
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
            state = registry.find(self.story.location, role.participant)
            if state is None or any(endings.WAITING.match(line) for line in state.lines):
                return
            time.sleep(LOOK)

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
            for state in registry.runners(folder):
                registry.stop(state.folder, state.participant, grace=1.0)
                registry.forget(state.folder, state.participant)
        for process in self._second:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self._elsewhere, ignore_errors=True)


def play(stage: Stage, speed: float) -> int:
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
    for line in render(replace(stuck, causes=stuck.causes[:1]), utc_now(), terminal()):
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


def _first(seen: Snapshot, code: str) -> Cause | None:
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
            time.sleep(LOOK)

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
