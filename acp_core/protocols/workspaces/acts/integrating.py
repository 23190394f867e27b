"""The acts of integration: decide on results, compare, settle conflicts, order, draft, synthesise, finish.

``acp workspaces synthesise`` and ``edit`` wait for the program, or for the person's editor. Source:
agent workspaces specification, "Integration Step Protocol", "Conflict Resolution Protocol" and
"Orchestrator Integration Prompt Template".
"""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from dataclasses import replace
from datetime import datetime
from typing import Any

from acp_core.model.action import Action, Change, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.kit.binding import Context, Location, bound
from acp_core.protocols.kit.command_line import say
from acp_core.protocols.kit.parser import say_object
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.acts import binding, table
from acp_core.protocols.workspaces.acts.binding import (
    OpenRun,
    choices_now,
    offered_names,
    open_run,
    preview_of,
    shown_name,
    write_act,
)
from acp_core.protocols.workspaces.acts.dispatching import then_start
from acp_core.protocols.workspaces.acts.table import SCHEMA
from acp_core.protocols.workspaces.conduct import agent, team
from acp_core.protocols.workspaces.conduct import agent as conduct_agent
from acp_core.protocols.workspaces.conduct import team as teams
from acp_core.protocols.workspaces.conduct.advance import (
    Waits,
    dispatching_alone,
    start_watcher,
)
from acp_core.protocols.workspaces.conduct.team import Choice
from acp_core.protocols.workspaces.matters import why
from acp_core.protocols.workspaces.read.manifest import layout, read_json
from acp_core.protocols.workspaces.schema import (
    DRAFT_ACT,
    ORCHESTRATOR,
    Agent,
    Conflict,
    Dispatch,
    Layout,
)
from acp_core.protocols.workspaces.view import named
from acp_core.protocols.workspaces.write import dispatch, integration, step
from acp_core.protocols.workspaces.write.step import Step, carry_out_act, require_unobstructed


def triaging(context: Context, now: datetime) -> Action:
    """Decide on an agent: those first on whom a decision is wanted."""
    run = open_run(context, now)
    agents = run.run.agents
    first = [each for each in agents if state.undecided(each, run.run)]
    others = [each for each in agents if each not in first and _was_dispatched(each, run)]
    people = offered_names([*first, *others])
    words = dict.fromkeys(w for a in (*first, *agents) for w in state.choices(a, run.run))
    narrowed = {
        "agent": choices_now(
            people,
            shown_name(first[0].name) if first else None,
            help="; ".join(_how_ended(each, run) for each in first),
        ),
        "decision": choices_now(words),
    }

    def step(values: Values) -> Step:
        name = people.get(values.agent, values.agent)
        return dispatch.plan_decision(run.place, name, values.decision, values.reason, values.by)

    waits = f"{', '.join(each.shown for each in first)}: " if first else ""
    sentence = f"{waits}choose what to do with each result that is not a success."
    return write_act(
        table.TRIAGING,
        run,
        step,
        then_start(run),
        narrowed=narrowed,
        sentence=sentence,
        offered=bool(people),
    )


def _was_dispatched(agent: Agent, run: OpenRun) -> bool:
    return state.of_agent(agent, run.run) != "not dispatched"


def _how_ended(agent: Agent, run: OpenRun) -> str:
    said = why(agent, run.run)
    how = state.ending(agent, run.run)
    return safe(f"{agent.name}: {how}{f' ({said})' if said else ''}")


def comparison(context: Context, now: datetime) -> Action:
    """Look for conflicts, once every agent is through."""
    run = open_run(context, now)
    ready = state.steps(run.run)[1]

    def step(values: Values) -> Step:
        return integration.record_hints(run.place, values.by)

    return write_act(table.COMPARISON, run, step, offered=ready)


def dispute(context: Context, now: datetime) -> Action:
    """Write down a conflict that no machine sees."""
    run = open_run(context, now)
    people = offered_names(agent for agent in run.run.agents if agent.outcome)

    def step(values: Values) -> Step:
        pair = [each.strip() for each in values.between.split(",") if each.strip()]
        pair = pair or [people.get(each, each) for each in (values.first, values.second)]
        if len(pair) != 2 or not all(pair):
            raise Refused("name the two agents: --between A,B")
        return integration.dispute(run.place, pair, values.topic, values.category, values.by)

    who = choices_now(people, required=True)
    narrowed = {"first": who, "second": who}
    return write_act(table.DISPUTE, run, step, narrowed=narrowed, offered=len(people) > 1)


def _waiting_conflicts(run: OpenRun) -> dict[str, Conflict]:
    """The conflicts and hints that wait, by their ids; to settle one without an id is impossible."""
    waiting = [*state.open_conflicts(run.run), *state.open_hints(run.run)]
    return {shown_name(each.id): each for each in waiting if each.id}


def resolution(context: Context, now: datetime) -> Action:
    """Resolve a conflict by the rule of its category."""
    run = open_run(context, now)
    waiting = _waiting_conflicts(run)
    people = offered_names(agent for agent in run.run.agents if agent.outcome)
    people |= {shown_name(n): n for each in waiting.values() for n in each.agents}
    narrowed = {
        "conflict": _conflict_choice(waiting),
        "category": choices_now(("", *schema.CATEGORIES), "", labels={"": "as it is"}),
        "keep": choices_now(("", *people), "", labels={"": "neither, or both"}),
        "because": {"default": schema.GROUNDS[1]},
    }

    def step(values: Values) -> Step:
        return integration.resolve_conflict(
            run.place,
            _conflict_id(waiting, values.conflict),
            category=values.category,
            keep=people.get(values.keep, values.keep),
            because=values.because,
            by=values.by,
            alike=values.alike,
        )

    return write_act(table.RESOLUTION, run, step, narrowed=narrowed, offered=bool(waiting))


def dismissal(context: Context, now: datetime) -> Action:
    """Say that a conflict is none."""
    run = open_run(context, now)
    waiting = _waiting_conflicts(run)
    narrowed = {"conflict": _conflict_choice(waiting), "reason": {"default": "The outputs agree."}}

    def step(values: Values) -> Step:
        id = _conflict_id(waiting, values.conflict)
        return integration.dismiss_conflict(
            run.place, id, values.reason, values.by, alike=values.alike
        )

    return write_act(table.DISMISSAL, run, step, narrowed=narrowed, offered=bool(waiting))


def _conflict_choice(waiting: dict[str, Conflict]) -> dict[str, Any]:
    """The conflicts that wait, by their ids; the first one where none is named."""
    labels = {id: named(each) for id, each in waiting.items()}
    return choices_now(labels, next(iter(labels), None), labels=labels)


def _conflict_id(waiting: dict[str, Conflict], said: str) -> str:
    """The id of the conflict that is meant, as it stands in its file."""
    return waiting[said].id if said in waiting else said


def ordering(context: Context, now: datetime) -> Action:
    """In which order outputs are read."""
    run = open_run(context, now)
    order = run.manifest.order

    def step(values: Values) -> Step:
        said = [each.strip() for word in values.order for each in word.split(",")]
        return integration.reorder(run.place, [each for each in said if each])

    narrowed = {"order": {"default": order}}
    return write_act(table.ORDERING, run, step, narrowed=narrowed, offered=len(order) > 1)


def drafting(context: Context, now: datetime) -> Action:
    """Prepare a draft for a person."""
    run = open_run(context, now)
    return write_act(table.DRAFTING, run, lambda _: integration.write_draft(run.place))


def synthesising(context: Context, now: datetime) -> Action:
    """Prepare the draft, by a program or for a person."""
    run = open_run(context, now)
    team = teams.load_team(run.place.root)
    before = team.choice(ORCHESTRATOR) if team else None

    def preview(values: Values) -> Preview:
        if values.how == table.ALONE:
            command = ("acp", "workspaces", "draft", safe(run.key))
            require_unobstructed(run.place, schema.DRAFT_ACT)
            return replace(preview_of(integration.write_draft(run.place)), command=command)
        return _begun(run, values, before)

    def perform(values: Values) -> Outcome:
        if values.how == table.ALONE:
            step = carry_out_act(
                run.place, schema.DRAFT_ACT, lambda: integration.write_draft(run.place)
            )
            return Outcome(OutcomeState.DONE, safe(f"{step.sentence} Edit it, then finish."))
        begin(run, binding.chosen_program(values, run.key))
        return Outcome(OutcomeState.DONE, "The program writes the draft; review it, then finish.")

    ready = all(state.steps(run.run)[:4]) and not state.open_conflicts(run.run)
    return bound(
        table.SYNTHESIS,
        run,
        preview,
        perform,
        narrowed=binding.program_choices(before),
        offered=ready,
    )


def _begun(run: OpenRun, values: Values, before: Choice | None) -> Preview:
    found = binding.chosen_program(values, run.key) or before
    if found is None:
        raise Refused("no program was chosen")
    require_unobstructed(run.place, schema.SYNTHESISE_ACT)
    preview = preview_of(conduct_agent.plan_synthesis(run.place))
    words = ["acp", "workspaces", "synthesise", run.key, *binding.program_words(values)]
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
    team = teams.merged_team(run.place.root, own={ORCHESTRATOR: found} if found else {})
    if team.choice(ORCHESTRATOR) is None:
        raise Refused("no program was chosen: name a preset (--agent), or give a command")
    teams.save_team(team)
    with dispatching_alone(run.place):
        if not conduct_agent.is_synthesis_open(run.place) or conduct_agent.is_synthesising(
            run.place
        ):
            carry_out_act(
                run.place, schema.SYNTHESISE_ACT, lambda: conduct_agent.plan_synthesis(run.place)
            )
        start_watcher(run.place, ORCHESTRATOR, 1)


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
        if conduct_agent.is_synthesising(run.place):
            raise Refused("a program is writing the draft: wait until it has finished")
        gaps = values.gaps if "gaps" in values.said else None  # None: those of before
        return integration.finish_run(run.place, gaps, values.by)

    ready = bool(run.run.drafts) and all(state.steps(run.run)[:5])
    return write_act(table.FINISHING, run, step, narrowed=narrowed, offered=ready)


_LOOK = 0.1  # seconds between two looks


def synthesise(values: Values) -> int:
    """Let a program write the draft, and wait for it; the exit code."""
    place = layout(values.folder)
    if values.dry_run:
        prompt = integration.synthesis_prompt(place)
        say(prompt) if not values.json else _tell_synthesis(False, prompt=prompt)
        return 0
    choice = team.program_choice(values.program, values.words, str(place.root), values.model)
    begin(open_run(Location(str(place.root)), utc_now()), choice)
    waits, told = Waits(place.root), ""
    while not values.detach and agent.is_synthesising(place):
        pause = waits(utc_now()).get(ORCHESTRATOR, "")
        if pause and pause != told and not values.json:
            say(pause)
        told = pause
        time.sleep(_LOOK)
    return _conclude_synthesis(place, values)


def _conclude_synthesis(place: Layout, values: Values) -> int:
    how = schema.decode_object(Dispatch, read_json(place.draft / "synthesis.json")).exit
    draft = integration.draft_file(place)
    there = draft.is_file()
    if values.json:
        _tell_synthesis(there, exit=how, draft=str(draft))
    elif values.detach:
        say("A program is writing the draft.")
    else:
        say(f"{how}; the draft is {draft}" if there else how)
    return 0 if there or values.detach else 1


def _tell_synthesis(done: bool, **facts: str) -> None:
    say_object(SCHEMA, "integrate", done=done, **facts)


def edit(values: Values) -> int:
    """Open the person's editor on the draft, which is prepared where there is none; the exit code."""
    place = layout(values.folder)
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    if not command:
        raise Refused("no editor set: set EDITOR, or edit the file that `draft` prepares")
    path = integration.draft_file(place)
    if values.dry_run:
        say(f"would run {command[0]} on {path}")
        return 0
    if not path.exists():
        step.carry_out_act(place, DRAFT_ACT, lambda: integration.write_draft(place))
    try:
        ended = subprocess.run([*command, str(path)], check=False)
    except OSError as error:
        raise Refused(f"{command[0]}: {error.strerror or error}") from None
    if ended.returncode:
        raise Refused(f"{command[0]} ended with exit code {ended.returncode}; the draft is {path}")
    say(f"The draft is {path}; `acp workspaces finish` publishes it.")
    return 0
