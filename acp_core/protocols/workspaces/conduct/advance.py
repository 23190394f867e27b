"""Going on with a run, and following it: whoever can begin is dispatched, whoever nobody watches is watched again.

It is called by `acp workspaces dispatch`, by every watcher when its agent is through, and when a
person decided something. One process does it at a time: an agent that is written down as dispatched
and that nobody watches is then one whose watcher is gone, and never one that is just being started.
Whoever is killed in the middle of it loses nothing: the next call finds in the manifest what was
begun. A run is conducted by one account at a time. Source: agent workspaces specification,
"File-Based Handoffs".
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.agents import pauses
from acp_core.agents.processes import GRACE, Stopped
from acp_core.agents.registry import Conductor, Registry, strangers
from acp_core.files import claims
from acp_core.files.claims import ClaimError, Held, Seen
from acp_core.model.clock import utc_now
from acp_core.model.errors import NotStarted, Refused
from acp_core.model.matter import Matter
from acp_core.protocols.kit.guard import check, conductor
from acp_core.protocols.processes import WATCHER
from acp_core.protocols.workspaces import rules, state
from acp_core.protocols.workspaces.conduct import team as teams
from acp_core.protocols.workspaces.conduct.team import Team
from acp_core.protocols.workspaces.read import manifest
from acp_core.protocols.workspaces.read.manifest import (
    Manifest,
    attempt_of,
    is_running,
    layout,
    read_manifest,
    read_run,
)
from acp_core.protocols.workspaces.schema import DISPATCH_ACT, EVERY_ACT, Layout, Run
from acp_core.protocols.workspaces.write import dispatch
from acp_core.protocols.workspaces.write.step import commit_step, locked, require_unobstructed

_DISPATCHING = "dispatch"  # the name of the claim to start agents of a run


class Busy(Refused):
    """Another process is starting agents of the run, and is soon done.

    Attributes:
        who: which process that is, in a sentence without a full stop.
    """

    def __init__(self, who: str) -> None:
        super().__init__(f"{who}: try again in a moment")
        self.who = who


class Advanced(NamedTuple):
    """What came of it: who was started, who is watched again, and why others were not.

    Attributes:
        started: agents that began just now.
        watched: agents whose watcher was gone, and that have a new one.
        held: why others were not started, a sentence each that begins with the name.
        failed: agents that could begin, and for which no watcher could be started; also in ``held``.
    """

    started: tuple[str, ...] = ()
    watched: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


def advance(folder: str | Path, now: datetime) -> Advanced:
    """Dispatch whoever can begin, as many at the same time as the team allows.

    Raises:
        Busy: another process does that just now.
        Refused: nothing was prepared, or no program was chosen on this machine.
        OSError: something cannot be written.
    """
    place = layout(folder)
    team = teams.load_team(place.root)
    if team is None:
        raise Refused(f"{place.root}: no program was chosen on this machine")
    with dispatching_alone(place):
        _refuse_second(place)
        return _advance(place, team, now)


@contextlib.contextmanager
def dispatching_alone(place: Layout) -> Iterator[None]:
    """Be the only one, of all accounts, who starts watchers of a run.

    Raises:
        Busy: another process does, and does not let go within a second.
        Refused: nobody can be the only one there.
    """
    try:
        claim = claims.take(place.root, _DISPATCHING)
    except ClaimError as error:
        if isinstance(error, Held) and error.seen.held:
            raise Busy(f"{error} and is starting agents") from None
        raise Refused(str(error)) from None
    with claim:
        yield


def _advance(place: Layout, team: Team, now: datetime) -> Advanced:
    begun, held = [], []
    with locked(place) as transaction:
        run = read_run(place, now)
        require_unobstructed(place, DISPATCH_ACT, run)
        manifest = read_manifest(place)
        lost = _lost(manifest)
        running = sum(is_running(entry) for entry in manifest.entries.values())
        for name in dispatch.waiting_agents(manifest, run):
            why = _why_not(manifest, name, team, run, running)
            if not why:
                try:
                    step = dispatch.begin_attempt(manifest, name, run, now)
                    commit_step(transaction, step)
                except Refused as error:
                    why = str(error)
            manifest = read_manifest(place)
            if why:
                held.append(f"{name}: {why}")
                continue
            running += 1
            begun.append((name, attempt_of(manifest.entries[name])))
    failed = []
    for name, attempt in (*lost, *begun):  # one that cannot be started keeps no other back
        try:
            start_watcher(place, name, attempt)
        except Refused as error:
            held.append(f"{name}: {error}")
            failed.append(name)
    watched, started = (
        tuple(name for name, _ in wanted if name not in failed) for wanted in (lost, begun)
    )
    return Advanced(started, watched, tuple(held), tuple(failed))


def _refuse_second(place: Layout) -> None:
    """A run is conducted by one account at a time.

    Raises:
        Refused: agents of it are watched by another one.
    """
    for seen in strangers(str(place.root)):
        check((_obstacle(seen),), DISPATCH_ACT)


def watched_by_others(root: str | Path, agents: Iterable[str]) -> Iterator[Matter]:
    """Agents of a run that another account watches: nobody else dispatches beside it."""
    for name in agents:
        seen = watcher(root, name).other()
        if seen:
            yield _obstacle(seen)


def _obstacle(seen: Seen) -> Matter:
    return conductor(seen, EVERY_ACT - {DISPATCH_ACT})


def _why_not(manifest: Manifest, name: str, team: Team, run: Run, running: int) -> str:
    place, entry = manifest.place, manifest.entries[name]
    if is_running(entry):
        if entry.get("host") not in (dispatch.this_host(), "?"):  # "?": nobody knows where
            return f"its earlier attempt is running on {entry.get('host')}"
        if watcher_alive(place, name) or program_alive(place, name):
            return "its earlier attempt is stopping"
    if running >= team.limit and not is_running(entry):
        return f"limit reached: {running} working"
    if team.choice(name) is None:
        return "no program was chosen for it"
    return dispatch.why_not_dispatched(manifest, name, run)


def _lost(manifest: Manifest) -> list[tuple[str, int]]:
    """Whoever was dispatched on this machine, did not end, and is watched by nobody."""
    return [
        (name, attempt_of(entry))
        for name, entry in manifest.entries.items()
        if is_running(entry)
        and entry.get("host") == dispatch.this_host()
        and not watcher_alive(manifest.place, name)
    ]


def watcher(folder: str | Path, agent: str) -> Conductor:
    """The watcher of an agent on this machine, running or not."""
    return Conductor(str(folder), agent, WATCHER.module, f"{agent}: its supervisor")


def watcher_alive(place: Layout, agent: str) -> bool:
    """Whether a process of this machine watches the agent."""
    return watcher(place.root, agent).is_held()


def program_alive(place: Layout, agent: str) -> bool:
    """Whether the agent's program runs on this machine, as far as was noted."""
    return watcher(place.root, agent).program_runs()


def start_watcher(place: Layout, agent: str, attempt: int) -> None:
    """Start the watcher of one attempt, and wait until it watches.

    Raises:
        Refused: it does not.
    """
    try:
        watcher(place.root, agent).start((str(place.root), agent, str(attempt)))
    except NotStarted as error:
        raise Refused(str(error)) from None


def stop_agent(folder: str | Path, agent: str, *, grace: float = GRACE) -> Stopped:
    """Stop the program of an agent that runs on this machine, with its watcher; what came of it.

    Raises:
        OSError: what it left cannot be written down.
    """
    return watcher(folder, agent).stop(grace)


STEP = 0.25  # seconds between two looks
_AGAIN = 3  # times that a watcher who was killed is replaced


class News(NamedTuple):
    """One agent's state changed, or what it waits for; ``pause`` is that, in a sentence."""

    agent: str
    state: str
    note: str = ""
    pause: str = ""


def agent_states(run: Run) -> dict[str, str]:
    """The state of each agent."""
    found = rules.check(run)
    return {agent.name: state.of_agent(agent, run, found) for agent in run.agents}


def follow(folder: str | Path) -> Iterator[News]:
    """Everything that changes, until nobody works and nobody can begin.

    A watcher that was killed is replaced, as long as that does not happen again and again.

    Raises:
        Refused: the manifest can no longer be read.
    """
    place, waits = layout(folder), Waits(folder)
    known: dict[str, News] = {}
    replaced: dict[str, int] = {}
    while True:
        news = list(_state_changed(place, known, waits))
        known |= {each.agent: each for each in news}
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
                    yield from _state_changed(place, known, waits)
                    return
        time.sleep(STEP)


def _advanced(place: Layout) -> Advanced | None:
    """What came of going on with the run; None where another process does that just now."""
    try:
        return advance(place.root, utc_now())
    except Busy:
        return None


class Waits:
    """Says why programs of a run's agents are not at work now although they are to be.

    Args:
        folder: the run's.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder, self._registry = str(folder), Registry()

    def __call__(self, now: datetime) -> dict[str, str]:
        """A sentence by agent, of those that wait for a usage limit, their service or a budget."""
        runners = self._registry.runners(self._folder)
        return {each.participant: pauses.sentence(each, now) for each in runners}


def _state_changed(place: Layout, known: dict[str, News], waits: Waits) -> Iterator[News]:
    """What changed since the last look: a state, or that a program waits."""
    now = utc_now()
    run, waiting = read_run(place, now), waits(now)
    for name, each in agent_states(run).items():
        before, pause = known.get(name), waiting.get(name, "")
        told = before is not None and (before.state, before.pause) == (each, pause)
        if not told:
            yield News(name, each, pause or note(run, name), pause)


def _going(place: Layout) -> list[str]:
    """Who was dispatched on this machine and has not ended."""
    entries = manifest.read_manifest(place).entries
    host = dispatch.this_host()
    return [n for n, e in entries.items() if manifest.is_running(e) and e.get("host") == host]


def note(run: Run, name: str) -> str:
    """Why an agent stands as it does, as far as somebody said it."""
    agent = run.by_name.get(name)
    if agent is None:
        return ""
    if agent.errors:
        return agent.errors[0]
    return agent.plan.exit if agent.is_over and not agent.outcome else ""
