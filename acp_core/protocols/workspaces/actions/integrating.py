"""The order of reading, the synthesis and the end of integration, bound to a run.

Source: agent workspaces specification, "Integration Step Protocol", steps 3 and 5 to 7.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from acp_core.model.action import Action, Change, Outcome, OutcomeState, Preview
from acp_core.model.errors import Refused
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.actions import programs, table_integration
from acp_core.protocols.workspaces.actions.common import (
    OpenRun,
    open_run,
    previewed,
    writing,
)
from acp_core.protocols.workspaces.conduct import synthesis
from acp_core.protocols.workspaces.conduct import team as teams
from acp_core.protocols.workspaces.conduct.advance import dispatching, start
from acp_core.protocols.workspaces.conduct.team import Choice
from acp_core.protocols.workspaces.schema import ORCHESTRATOR
from acp_core.protocols.workspaces.write import integration
from acp_core.protocols.workspaces.write.step import Step, carry_out_act, require_unobstructed


def ordering(context: Context, now: datetime) -> Action:
    """In which order outputs are read."""
    run = open_run(context, now)
    order = run.manifest.order

    def step(values: Values) -> Step:
        said = [each.strip() for word in values.order for each in word.split(",")]
        return integration.reorder(run.place, [each for each in said if each])

    narrowed = {"order": {"default": order}}
    return writing(table_integration.ORDERING, run, step, narrowed=narrowed, offered=len(order) > 1)


def drafting(context: Context, now: datetime) -> Action:
    """Prepare a draft for a person."""
    run = open_run(context, now)
    return writing(table_integration.DRAFTING, run, lambda _: integration.write_draft(run.place))


def synthesising(context: Context, now: datetime) -> Action:
    """Prepare the draft, by a program or for a person."""
    run = open_run(context, now)
    team = teams.load(run.place.root)
    before = team.choice(ORCHESTRATOR) if team else None

    def preview(values: Values) -> Preview:
        if values.how == table_integration.ALONE:
            command = ("acp", "workspaces", "draft", safe(run.key))
            require_unobstructed(run.place, schema.DRAFT_ACT)
            return replace(previewed(integration.write_draft(run.place)), command=command)
        return _begun(run, values, before)

    def perform(values: Values) -> Outcome:
        if values.how == table_integration.ALONE:
            step = carry_out_act(
                run.place, schema.DRAFT_ACT, lambda: integration.write_draft(run.place)
            )
            return Outcome(OutcomeState.DONE, safe(f"{step.sentence} Edit it, then finish."))
        begin(run, programs.chosen(values, run.key))
        return Outcome(OutcomeState.DONE, "The program writes the draft; review it, then finish.")

    ready = all(state.steps(run.run)[:4]) and not state.open_conflicts(run.run)
    return bound(
        table_integration.SYNTHESIS,
        run,
        preview,
        perform,
        narrowed=programs.narrowed(before),
        offered=ready,
    )


def _begun(run: OpenRun, values: Values, before: Choice | None) -> Preview:
    found = programs.chosen(values, run.key) or before
    if found is None:
        raise Refused("no program was chosen")
    require_unobstructed(run.place, schema.SYNTHESISE_ACT)
    preview = previewed(synthesis.begin(run.place))
    words = ["acp", "workspaces", "synthesise", run.key, *programs.words(values)]
    change = Change(ORCHESTRATOR, "start", safe(found.program))
    return Preview(preview.sentence, (*preview.changes, change), tuple(map(safe, words)))


def begin(run: OpenRun, found: Choice | None) -> None:
    """Let a program write the draft.

    Args:
        run: the run.
        found: the program; None for the one of before.

    Raises:
        Refused: no program was ever chosen, or the draft cannot be written now.
    """
    require_unobstructed(run.place, schema.SYNTHESISE_ACT)
    team = teams.merged(run.place.root, own={ORCHESTRATOR: found} if found else {})
    if team.choice(ORCHESTRATOR) is None:
        raise Refused("no program was chosen: name a preset (--agent), or give a command")
    teams.save(team)
    with dispatching(run.place):
        if not synthesis.is_open(run.place) or synthesis.is_running(run.place):
            carry_out_act(run.place, schema.SYNTHESISE_ACT, lambda: synthesis.begin(run.place))
        start(run.place, ORCHESTRATOR, 1)


def finishing(context: Context, now: datetime) -> Action:
    """Approve the draft: the final output and the integration status."""
    run = open_run(context, now)
    known = [safe(each) for each in integration.gaps(run.run)]
    besides = "; ".join(each.rstrip(".") for each in known)
    about = "Gaps that remain in the final output."
    if known:
        about += f" Noted already: {besides}."
    narrowed = {"gaps": {"default": integration.added_gaps(run.run), "help": about}}

    def step(values: Values) -> Step:
        if synthesis.is_running(run.place):
            raise Refused("a program is writing the draft: wait until it has finished")
        gaps = values.gaps if "gaps" in values.said else None  # None: those of before
        return integration.finish_run(run.place, gaps, values.by)

    ready = bool(run.run.drafts) and all(state.steps(run.run)[:5])
    return writing(table_integration.FINISHING, run, step, narrowed=narrowed, offered=ready)
