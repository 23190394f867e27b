"""Following a run from outside: what changed, until nobody works any more."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from acp_core.model.clock import utc_now
from acp_core.protocols.workspaces import rules, state
from acp_core.protocols.workspaces.conduct.advance import Advanced, Busy, advance, watcher_alive
from acp_core.protocols.workspaces.read import manifest
from acp_core.protocols.workspaces.read.manifest import layout
from acp_core.protocols.workspaces.schema import Layout, Run
from acp_core.protocols.workspaces.write import dispatch

STEP = 0.25  # seconds between two looks
_AGAIN = 3  # times that a watcher who was killed is replaced


class News(NamedTuple):
    """One agent's state changed."""

    agent: str
    state: str
    note: str = ""


def states(run: Run) -> dict[str, str]:
    """The state of each agent."""
    found = rules.check(run)
    return {agent.name: state.of_agent(agent, run, found) for agent in run.agents}


def follow(folder: str | Path) -> Iterator[News]:
    """Everything that changes, until nobody works and nobody can begin.

    A watcher that was killed is replaced, as long as that does not happen again and again.

    Raises:
        Refused: the manifest can no longer be read.
    """
    place = layout(folder)
    known: dict[str, str] = {}
    replaced: dict[str, int] = {}
    while True:
        news = list(_changed(place, known))
        known |= {each.agent: each.state for each in news}
        yield from news
        going = _going(place)
        lost = [name for name in going if not watcher_alive(place, name)]
        lost = [name for name in lost if replaced.get(name, 0) < _AGAIN]
        if lost:
            again = _advanced(place)
            for name in (*again.watched, *again.failed) if again else ():
                replaced[name] = replaced.get(name, 0) + 1
        elif not any(watcher_alive(place, name) for name in manifest.read_manifest(place).tasks):
            if going and all(replaced.get(name, 0) >= _AGAIN for name in going):
                return
            if not _going(place):
                again = _advanced(place)
                over = again is not None and not again.started
                if over and not _going(place):  # nor did a watcher start anybody just before us
                    yield from _changed(place, known)
                    return
        time.sleep(STEP)


def _advanced(place: Layout) -> Advanced | None:
    """What came of going on with the run; None where another process does that just now."""
    try:
        return advance(place.root, utc_now())
    except Busy:
        return None


def _changed(place: Layout, known: dict[str, str]) -> Iterator[News]:
    """What changed since the last look."""
    run = dispatch.read_run(place, utc_now())
    for name, each in states(run).items():
        if known.get(name) != each:
            yield News(name, each, note(run, name))


def _going(place: Layout) -> list[str]:
    """Who was dispatched on this machine and has not ended."""
    entries = manifest.read_manifest(place).entries
    host = dispatch.this_host()
    return [n for n, e in entries.items() if manifest.is_running(e) and e.get("host") == host]


def note(run: Run, name: str) -> str:
    """Why an agent stands as it does, as far as somebody said it."""
    agent = next((each for each in run.agents if each.name == name), None)
    if agent is None:
        return ""
    if agent.errors:
        return agent.errors[0]
    return agent.plan.exit if agent.is_over and not agent.outcome else ""
