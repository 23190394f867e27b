"""What a run tells of its past: who worked how long, and what can be counted."""

from __future__ import annotations

from acp_core.model.past import Count, PastTurn, Story
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.schema import Agent, Run
from acp_core.protocols.workspaces.view.timeline import mark_of


def story(run: Run) -> Story:
    """A turn for each agent's last attempt, from its dispatch on; earlier ones left no times."""
    turns = [turn for agent in run.agents if (turn := _turn(agent, run))]
    conflicts = run.recorded.conflicts
    counts = [
        Count("agents", len(run.agents)),
        Count("attempts", sum(agent.attempt for agent in run.agents)),
        *(
            Count(f"agents {how}", sum(state.ending(agent, run) == how for agent in run.agents))
            for how in (schema.SUCCESS, schema.PARTIAL, schema.FAILURE, schema.MISSING)
        ),
        Count("conflicts", len(conflicts) if run.conflicts or run.integration else None),
        Count("gaps", len(run.integrated.gaps) if run.integration else None),
    ]
    return Story(tuple(turns), tuple(counts))


def _turn(agent: Agent, run: Run) -> PastTurn | None:
    began = agent.plan.dispatched_at
    if began is None:
        return None
    how = state.ending(agent, run)
    reported = agent.report.completed_at if agent.outcome else None
    over = agent.plan.ended_at or reported
    prompt = f"dispatched:{clean_line(agent.prompt.file.path.stem, 200)}" if agent.prompt else None
    event = f"{how}:{clean_line(mark_of(agent), 200)}" if how else None
    until = max(over, began) if how and over else None
    name = clean_name(agent.name, 200)
    return PastTurn(name, began, prompt, until, event, how, "verify", agent.attempt)
