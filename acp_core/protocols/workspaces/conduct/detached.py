"""``python -m acp_core.protocols.workspaces.conduct.detached FOLDER AGENT ATTEMPT``: one agent's watcher.

The agent ``orchestrator`` is the program that integrates. The watcher outlives whoever dispatched
the agent. When the agent is through, it has those dispatched who waited for it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable

from acp_core.agents import background, session_lock
from acp_core.agents.background import Ready
from acp_core.agents.loop_directory import CannotClaim, LoopRunning
from acp_core.agents.presets import PresetError
from acp_core.agents.session import Session
from acp_core.agents.state import Phase
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.conduct import team as teams
from acp_core.protocols.workspaces.conduct.advance import Busy, advance, watcher
from acp_core.protocols.workspaces.conduct.agent import AgentAttempt, Synthesis
from acp_core.protocols.workspaces.read.manifest import layout, read_json
from acp_core.protocols.workspaces.schema import ORCHESTRATOR


def main(arguments: list[str]) -> int:
    """Watch one attempt of one agent. Returns the exit code: 0, or 2 where that is refused."""
    folder, agent, attempt = arguments[0], arguments[1], int(arguments[2])

    def work(ready: Ready) -> int:
        try:
            watch(folder, agent, attempt, ready)
        except LoopRunning as error:
            if session_lock.seen(folder, agent) and not watcher(folder, agent).is_held():
                raise Refused(str(error)) from None  # nobody watches it, but its program runs
            ready()  # another one watches it already
            return 0
        if agent != ORCHESTRATOR:
            _go_on(folder)
        return 0

    return background.run(work, Refused, PresetError, CannotClaim, OSError)


def _go_on(folder: str) -> None:
    """Have those begin who can now; whoever starts agents just now is waited for."""
    with contextlib.suppress(Refused, OSError):  # it goes on with the next `dispatch`
        while True:
            with contextlib.suppress(Busy):
                advance(folder, utc_now())
                return


def watch(folder: str, agent: str, attempt: int, ready: Callable[[], None] | None = None) -> None:
    """Run or take over one attempt of one agent, until it has ended and that is written down.

    Raises:
        LoopRunning: another process does that.
        Refused: the run's files do not allow it, or no program was chosen.
        PresetError: the chosen preset is not what it should be.
        OSError: something cannot be written.
    """
    team = teams.load_team(folder)
    if team is None or team.choice(agent) is None:
        raise Refused(f"no program was chosen for {agent} on this machine")
    run_id = schema.run_id(read_json(layout(folder).manifest))
    with Session.of(team.program(agent), agent, mode="task", attempts=1, run_id=run_id) as session:
        if ready:
            ready()
        try:
            if agent == ORCHESTRATOR:
                Synthesis(session, team).run()
            else:
                AgentAttempt(session, team, agent, attempt).run()
            note = "the work is done"
        except Refused as error:
            note = str(error)
            session.say(note)
        session.finish(Phase.STOPPED if session.stopping else Phase.DONE, note)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
