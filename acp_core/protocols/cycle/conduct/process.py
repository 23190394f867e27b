"""The orchestrator as a process: in this terminal, or in the background where it outlives us.

``python -m acp_core.protocols.cycle.conduct.process`` is one in the background: it gets its spec on
its standard input, and says on its standard output that it runs, or why it does not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NamedTuple

from acp_core.agents import background, budgets, codec
from acp_core.agents.loop_directory import SUPPORTED, CannotClaim, LoopRunning
from acp_core.agents.processes import myself
from acp_core.agents.program import SpawnError, locate
from acp_core.agents.registry import Conductor
from acp_core.agents.session import Session
from acp_core.agents.state import RunnerState, Saved
from acp_core.files.claims import CONDUCT, Seen
from acp_core.model.clock import utc_now
from acp_core.model.errors import NotStarted, Refused
from acp_core.model.matter import Matter
from acp_core.model.text import clean_line
from acp_core.protocols import processes
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.conduct.orchestrator import Orchestrator
from acp_core.protocols.cycle.read.orchestrator_spec import ORCHESTRATOR, Spec, where
from acp_core.protocols.cycle.schema import AGENTS, RUN_ACT
from acp_core.protocols.cycle.write import layout
from acp_core.protocols.cycle.write.store import Store
from acp_core.protocols.kit import guard


class AtWork(NamedTuple):
    """An orchestrator that runs: its process, the cycle that it conducts, and its claim.

    The claim is there where nothing else is known of it: it is another account's.
    """

    pid: int
    cycle: str
    claim: Seen | None = None


_RUN = ("acp", "cycle", "run", "--cycle")

_OTHERS = frozenset(value for name, value in vars(schema).items() if name.endswith("_ACT")) - {
    RUN_ACT
}


def check(spec: Spec) -> None:
    """Look whether an orchestrator could run.

    Raises:
        Refused: it could not.
        PresetError: a preset is not what it should be.
    """
    if not SUPPORTED:
        raise Refused("running programs needs flock, which this system does not have")
    for name in AGENTS:
        preset, _ = spec.preset(name)
        try:
            locate(preset, spec.root)
        except SpawnError as error:
            raise Refused(f"{name}: {error}") from None


def running(root: str) -> RunnerState | None:
    """The orchestrator of a project, where one is alive."""
    return conductor(root).running()


def at_work(root: str) -> AtWork | None:
    """The orchestrator of a project, whichever account it belongs to; None where none runs."""
    alive = running(root)
    if alive:
        return AtWork(alive.pid, conducted(alive))
    found = conductor(root).elsewhere()
    if found is None or not found.held or found.owner is None:
        return None
    return AtWork(found.owner.process.pid, found.owner.about, found)


def elsewhere(root: str, cycle: str) -> Seen | None:
    """The orchestrator of another account that conducts a cycle; None where there is none."""
    if running(root):
        return None
    found = conductor(root).elsewhere()
    same = found is not None and found.held and found.owner and found.owner.about == cycle
    return found if same else None


def conductor(root: str) -> Conductor:
    """The orchestrator of a project, running or not."""
    return Conductor(root, ORCHESTRATOR, processes.ORCHESTRATOR.module, "the orchestrator", CONDUCT)


def refuse_second(root: str) -> None:
    """A project is conducted by one orchestrator at a time.

    Raises:
        Refused: there is one already; whose it is, and what to do.
    """
    busy = running(root)
    if busy:
        raise Refused(f"an orchestrator is already running in this project (process {busy.pid})")
    other = conductor(root).elsewhere()
    if other and other.held:
        guard.check((obstacle(other),), RUN_ACT)


def obstacle(seen: Seen) -> Matter:
    """Another account conducts: what it does not do on request is refused."""
    return guard.conductor(seen, _OTHERS)


def conducted(found: RunnerState) -> str:
    """The cycle that an orchestrator conducts."""
    return found.command[-1] if found.command[:-1] == _RUN else ""


def conduct(
    spec: Spec,
    *,
    ready: Callable[[], None] | None = None,
    echo: Callable[[str], None] | None = None,
) -> int:
    """Conduct a cycle in this process until it is over; see `Orchestrator.run`.

    Args:
        spec: what is asked for.
        ready: called once this is the project's only orchestrator.
        echo: is given every line of its log.

    Raises:
        Refused: there is one already, or it cannot run.
    """
    at = where(spec.root)
    saved = Saved(
        folder=spec.root,
        participant=ORCHESTRATOR,
        process=myself(),
        started=utc_now(),
        program="acp cycle",
        command=(*_RUN, spec.cycle),
        workdir=spec.root,
        run_id=clean_line(spec.cycle),
    )
    try:
        with Session(
            at, saved, stream="text", echo=echo, claim=CONDUCT, about=spec.cycle
        ) as session:
            save(spec)
            budgets.choose(spec.root, saved.run_id, spec.budget)
            store = Store(spec.root, spec.cycle)
            store.read()
            layout.make(store.progress)
            session.say(f"started the orchestrator of {spec.cycle}")
            if ready:
                ready()
            return Orchestrator(session, spec).run()
    except CannotClaim as error:
        raise Refused(str(error)) from None
    except LoopRunning as error:
        holder = conductor(spec.root).holder(str(error))
        raise Refused(f"an orchestrator is already running in this project{holder}") from None


def start(spec: Spec) -> RunnerState:
    """Start an orchestrator in the background, and wait until it runs.

    Raises:
        Refused: it does not run.
    """
    try:
        return conductor(spec.root).start(asked=spec)
    except NotStarted as error:
        raise Refused(str(error)) from None


def main() -> int:
    """Conduct the cycle that is asked for on the standard input. Returns the exit code."""
    return background.run_asked(
        Spec, lambda spec, ready: conduct(spec, ready=ready), Refused, OSError
    )


def save(spec: Spec) -> None:
    """Keep a spec.

    Raises:
        OSError: it cannot be written.
    """
    at = where(spec.root)
    at.make()
    codec.write(at.spec, spec)


if __name__ == "__main__":
    sys.exit(main())
