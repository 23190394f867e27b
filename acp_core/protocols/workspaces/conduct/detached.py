"""``python -m acp_core.protocols.workspaces.conduct.detached FOLDER AGENT ATTEMPT``: one agent's watcher.

The agent ``orchestrator`` is the program that integrates. The watcher outlives whoever dispatched
the agent. When the agent is through, it has those dispatched who waited for it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

from acp_core.agents import background
from acp_core.agents.background import Ready
from acp_core.agents.place import LoopRunning, place
from acp_core.agents.presets import PresetError
from acp_core.agents.state import Phase, Saved
from acp_core.agents.supervise import Runner, myself
from acp_core.model.clock import utc_now
from acp_core.person.paths import key_of
from acp_core.protocols.workspaces.conduct import team as teams
from acp_core.protocols.workspaces.conduct.agent import Work
from acp_core.protocols.workspaces.conduct.synthesis import Synthesis
from acp_core.protocols.workspaces.write import Refused
from acp_core.protocols.workspaces.write.layout import ORCHESTRATOR


def main(arguments: list[str]) -> int:
    """Watch one attempt of one agent. Returns the exit code: 0, or 2 where that is refused."""
    folder, agent, attempt = arguments[0], arguments[1], int(arguments[2])

    def work(ready: Ready) -> int:
        try:
            watch(folder, agent, attempt, ready)
        except LoopRunning:
            ready()  # another one watches it already
            return 0
        if agent != ORCHESTRATOR:
            from acp_core.protocols.workspaces.conduct.advance import advance

            with contextlib.suppress(Refused, OSError):  # it goes on with the next `dispatch`
                advance(folder, utc_now())
        return 0

    return background.run(work, Refused, PresetError, OSError)


def watch(folder: str, agent: str, attempt: int, ready: Callable[[], None] | None = None) -> None:
    """Run or take over one attempt of one agent, until it has ended and that is written down.

    Raises:
        LoopRunning: another process does that.
        Refused: the run's files do not allow it, or no program was chosen.
        PresetError: the chosen preset is not what it should be.
        OSError: something cannot be written.
    """
    team = teams.load(folder)
    choice = team.choice(agent) if team else None
    if team is None or choice is None:
        raise Refused(f"no program was chosen for {agent} on this machine")
    preset = choice.resolved()
    saved = Saved(
        folder=key_of(folder),
        participant=agent,
        process=myself(),
        started=utc_now(),
        program=choice.name,
        model=choice.model,
        command=(choice.program or preset.program, *preset.args),
        workdir=team.workdir,
        mode="task",
        attempts=1,
    )
    where = place(folder, agent)
    runner = Runner(where, saved, stream=preset.stream, prices=(preset.price_in, preset.price_out))
    with runner:
        if ready:
            ready()
        try:
            if agent == ORCHESTRATOR:
                Synthesis(runner, team).run()
            else:
                Work(runner, team, agent, attempt).run()
            note = "its work is done"
        except Refused as error:
            note = str(error)
            runner.say(note)
        runner.end_strays()
        stopped = Phase.STOPPED if runner.stopping else Phase.DONE
        runner.update(phase=stopped, note=note, ended=utc_now())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
