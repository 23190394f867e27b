"""A week in seconds: loops whose clock jumps to the end of every pause, and a world that goes wrong.

The time of day lies in a file. A loop that waits for its model service moves it on to the end of
its pause; an agent that takes a turn works for hours. What goes wrong, and from when to when,
lies in a second file: agents find their model service away, their limit reached, or themselves
logged out.

``python -m tests.loops.week`` is a loop with that clock, started as loops in the background are.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from acp_core.agents import background, codec, registry
from acp_core.agents.state import Phase
from acp_core.loops import process
from acp_core.loops.launch import LaunchError, Spec
from tests.agents import live_agent
from tests.loops import agent

WORLD = "ACP_TEST_WORLD"
WORK = timedelta(hours=14)
"""How long a turn takes."""


@dataclass(frozen=True)
class Incident:
    """Something that goes wrong: for whom ("" for all), from when until when in hours, and how."""

    name: str
    begins: float
    ends: float
    text: str
    status: int
    who: str = ""

    def said(self, world: World) -> str:
        """What a program says of it in that world."""
        ends = world.at(self.ends)
        return self.text.format(date=f"{ends:%b} {ends.day}", time=f"{ends:%I:%M%p}".lower())


class World:
    """The time of day, and what goes wrong."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self, begins: datetime, incidents: list[Incident]) -> None:
        self._write(
            {
                "begins": begins.isoformat(),
                "now": begins.isoformat(),
                "halts": None,
                "incidents": [asdict(each) for each in incidents],
                "met": [],
                "over": [],
            }
        )

    @property
    def now(self) -> datetime:
        return datetime.fromisoformat(self.read()["now"])

    def at(self, hours: float) -> datetime:
        """The moment so many hours after the beginning."""
        return datetime.fromisoformat(self.read()["begins"]) + timedelta(hours=hours)

    def advance(self, until: datetime) -> None:
        """Move the time on, but not beyond what has not happened yet, nor beyond a halt."""
        with self._changed() as facts:
            limits = [until]
            if facts["halts"]:
                limits.append(datetime.fromisoformat(facts["halts"]))
            to_come = [
                each["begins"] for each in facts["incidents"] if each["name"] not in facts["met"]
            ]
            if to_come:
                limits.append(self.at(min(to_come)))
            facts["now"] = max(self.now, min(limits)).isoformat()

    def set(self, **changes: Any) -> None:
        with self._changed() as facts:
            facts |= changes

    def meet(self, who: str) -> Incident | None:
        """What goes wrong for somebody at this moment."""
        with self._changed() as facts:
            for each in (Incident(**one) for one in facts["incidents"]):
                is_on = self.at(each.begins) <= self.now < self.at(each.ends)
                if is_on and each.who in ("", who) and each.name not in facts["over"]:
                    facts["met"] = sorted({*facts["met"], each.name})
                    return each
        return None

    def read(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "world.json").read_text()))

    @contextmanager
    def _changed(self) -> Iterator[dict[str, Any]]:
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            facts = self.read()
            yield facts
            self._write(facts)

    def _write(self, facts: dict[str, Any]) -> None:
        new = self.folder / f"world.{os.getpid()}"
        new.write_text(json.dumps(facts))
        new.replace(self.folder / "world.json")


def act(name: str, world: Path, who: str) -> None:
    """The agent: fails as its program does while something is wrong, else takes its turn."""
    here = World(world)
    incident = here.meet(who)
    if incident is None:
        agent.main(name)
        here.advance(here.now + WORK)
        return
    prompt = sys.stdin.read()
    failing = agent.Agent(prompt, agent.PRINTERS.get(name, "text"), False)
    failing.begin()
    failing.fail(incident.name, incident.status, incident.said(here))


class Resident(live_agent.LiveAgent):
    """An agent in a live session: it answers a prompt with an error while something is wrong."""

    def __init__(self, given: argparse.Namespace, world: World, who: str) -> None:
        super().__init__(given)
        self.world, self.who = world, who

    def on_session_prompt(self, params: dict[str, Any]) -> dict[str, Any]:
        incident = self.world.meet(self.who)
        if incident is None:
            result = super().on_session_prompt(params)
            self.world.advance(self.world.now + WORK)
            return result
        if incident.status == 401:
            raise live_agent.Refused(-32000, "Authentication required")
        text = f"Internal error: {incident.said(self.world)}"
        raise live_agent.Refused(-32603, text, {"errorKind": incident.name})


def reside(world: Path, who: str) -> None:
    """Hold live sessions in this world until the input ends."""
    given = live_agent.options().parse_known_args()[0]
    given.home.mkdir(parents=True, exist_ok=True)
    Resident(given, World(world), who).run()


def start(world: World, spec: Spec) -> None:
    """Start a loop with this world's clock, in the background."""
    env = {WORLD: str(world.folder)}
    background.start("tests.loops.week", given=codec.encode(spec), env=env)


def _run(spec: Spec, ready: Callable[[], None]) -> int:
    world = World(Path(os.environ[WORLD]))

    def wait(seconds: float) -> None:
        loop = registry.find(spec.folder, spec.participant)
        shown = loop.shown if loop else None
        if shown and shown.phase is Phase.PAUSING and shown.retry_at:
            world.advance(shown.retry_at)
        time.sleep(0.02)

    return process.run(spec, ready=ready, clock=lambda: world.now.astimezone(UTC), wait=wait)


if __name__ == "__main__":
    sys.exit(background.run_asked(Spec, _run, LaunchError))
