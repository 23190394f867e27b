"""The orchestrator as a process: in this terminal, or in the background where it outlives us.

``python -m acp_core.protocols.cycle.conduct.process`` is one in the background: it gets its spec on
its standard input, and says on its standard output that it runs, or why it does not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from acp_core.agents import background, codec, registry
from acp_core.agents.place import SUPPORTED, LoopRunning
from acp_core.agents.spawn import SpawnError, resolve
from acp_core.agents.state import RunnerState, Saved
from acp_core.agents.supervise import Runner, myself
from acp_core.model.clock import utc_now
from acp_core.model.errors import NotStarted
from acp_core.protocols import processes
from acp_core.protocols.cycle.conduct.orchestrator import Orchestrator
from acp_core.protocols.cycle.conduct.spec import ORCHESTRATOR, Spec, save, where
from acp_core.protocols.cycle.schema import AGENTS
from acp_core.protocols.cycle.write import Refused, layout
from acp_core.protocols.cycle.write.store import Store

_RUN = ("acp", "cycle", "run", "--cycle")


def check(spec: Spec) -> None:
    """Look whether an orchestrator could run.

    Raises:
        Refused: it could not.
        PresetError: a preset is not what it should be.
    """
    if not SUPPORTED:
        raise Refused("running programs needs flock, which this system lacks")
    for name in AGENTS:
        preset, _ = spec.preset(name)
        try:
            resolve(preset.program, spec.root)
        except SpawnError as error:
            hint = f" (install it: {preset.install})" if preset.install else ""
            raise Refused(f"{name}: {error}{hint}") from None


def running(root: str) -> RunnerState | None:
    """The orchestrator of a project, where one is alive."""
    found = registry.find(root, ORCHESTRATOR)
    return found if found and found.alive and found.shown.ended is None else None


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
    )
    try:
        with Runner(at, saved, stream="text", echo=echo) as runner:
            save(spec)
            store = Store(spec.root, spec.cycle)
            store.read()
            layout.make(store.progress)
            runner.say(f"the orchestrator of {spec.cycle} begins")
            if ready:
                ready()
            return Orchestrator(runner, spec).run()
    except LoopRunning:
        other = running(spec.root)
        who = f" (process {other.pid})" if other else ""
        raise Refused(f"an orchestrator runs in this project already{who}") from None


def start(spec: Spec) -> RunnerState:
    """Start an orchestrator in the background, and wait until it runs.

    Raises:
        Refused: it does not run.
    """
    try:
        background.start(processes.ORCHESTRATOR.module, (), codec.encode(spec))
    except NotStarted as error:
        raise Refused(str(error) or "the orchestrator ended at once") from None
    state = registry.find(spec.root, ORCHESTRATOR)
    if state is None:
        raise Refused("the orchestrator ended at once")
    return state


def main() -> int:
    """Conduct the cycle that is asked for on the standard input. Returns the exit code."""
    try:
        spec = codec.decode(Spec, sys.stdin.buffer.read(1 << 20))
    except codec.CodecError as error:
        return background.refuse(str(error))
    return background.run(lambda ready: conduct(spec, ready=ready), Refused, OSError)


if __name__ == "__main__":
    sys.exit(main())
