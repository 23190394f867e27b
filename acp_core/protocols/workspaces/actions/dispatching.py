"""Dispatching, dispatching once more, and stopping, as actions.

Source: agent workspaces specification, "File-Based Handoffs".
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

from pydantic import Field

from acp_core.agents.presets import PresetError
from acp_core.files.secrets import mask_command
from acp_core.model import Action, Change, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.protocols.workspaces import state
from acp_core.protocols.workspaces.actions import programs
from acp_core.protocols.workspaces.actions.common import (
    Desk,
    action,
    choice,
    names,
    previewed,
    safe,
    shown,
    text,
)
from acp_core.protocols.workspaces.actions.names import AGAIN, DISPATCH, STOP
from acp_core.protocols.workspaces.conduct import team as teams
from acp_core.protocols.workspaces.conduct.advance import Advanced, advance, watcher_alive
from acp_core.protocols.workspaces.conduct.advance import stop as stop_agents
from acp_core.protocols.workspaces.conduct.team import Team
from acp_core.protocols.workspaces.write import Refused, triage
from acp_core.protocols.workspaces.write import dispatch as dispatches
from acp_core.protocols.workspaces.write import manifest as manifests

NO_CHANNEL = "A running sub-agent cannot be spoken to: what you say stands in its next prompt."


def dispatch(desk: Desk) -> Action | None:
    """Start whoever can begin, and watch again whoever nobody watches."""
    if not dispatches.waiting(desk.manifest, desk.run) and not _lost(desk):
        return None
    before = teams.load(desk.place.root)
    try:
        fields = programs.fields(before.usual if before else None)
    except PresetError:
        return None
    limit = before.limit if before else teams.LIMIT
    about = "The others begin when one is through."
    number = Field(limit, title="How many at the same time", description=about, ge=1, le=64)
    fields = {"program": fields.pop("program"), "limit": (int, number), **fields}

    def preview(answers: Any) -> Preview:
        team = _team(desk, answers)
        now = utc_now()
        run, manifest = dispatches.look(desk.place, now), manifests.read(desk.place)
        changes, held = [], []
        for name in dispatches.waiting(manifest, run):
            why = dispatches.obstacle(manifest, name, run)
            if why:
                held.append(f"{name} {why}")
                continue
            step = dispatches.begin(manifests.read(desk.place), name, run, now)
            changes += [w.change() for w in step.writes if w.path != desk.place.manifest]
            changes.append(Change(safe(name), "start", _program(team, name)))
        changes += [Change(safe(name), "start", "it is watched again") for name in _lost(desk)]
        words = ["acp", "workspaces", "dispatch", desk.folder, *programs.words(answers)]
        sentence = "Dispatch whoever can begin. " + NO_CHANNEL
        command, notes = tuple(map(safe, words)), tuple(map(safe, held))
        return Preview(sentence, tuple(changes), command, notes=notes)

    def perform(answers: Any) -> Outcome:
        teams.save(_team(desk, answers))
        return started(advance(desk.place.root, utc_now()))

    return action(
        DISPATCH,
        "Dispatch",
        "Start the agents that can begin; their programs outlive the dashboard.",
        fields,
        preview,
        perform,
    )


def _lost(desk: Desk) -> list[str]:
    host = dispatches.here()
    return [
        name
        for name, entry in desk.manifest.entries.items()
        if manifests.is_open(entry)
        and entry.get("host") == host
        and not watcher_alive(desk.place, name)
    ]


def _team(desk: Desk, answers: Any) -> Team:
    where = str(desk.place.root)
    usual = programs.chosen(answers, where)
    team = teams.merged(where, usual=usual, limit=answers.limit)
    if team.usual is None and not team.own:
        raise Refused("no program was chosen")
    return team


def _program(team: Team, name: str) -> str:
    found = team.choice(name)
    if found is None:
        return "no program was chosen for it"
    return safe(" ".join(mask_command((found.program, *found.resolved().args))))


def started(advanced: Advanced) -> Outcome:
    """How dispatching ended."""
    parts = [f"Started {', '.join(advanced.started)}."] if advanced.started else []
    parts += [f"Watched again: {', '.join(advanced.watched)}."] if advanced.watched else []
    parts += [f"{each}." for each in advanced.held]
    if not advanced.started and not advanced.watched and advanced.held:
        return Outcome(OutcomeState.REFUSED, safe(" ".join(parts)))
    return Outcome(OutcomeState.DONE, safe(" ".join(parts) or "Nobody was left to begin."))


def go_on(desk: Desk) -> str:
    """Have those begin who can now; what came of it, in a sentence."""
    with contextlib.suppress(Refused, OSError):
        advanced = advance(desk.place.root, utc_now())
        if advanced.started:
            return f"Started {', '.join(advanced.started)}."
    return ""


def again(desk: Desk) -> Action | None:
    """Run one agent once more, with something said to it."""
    candidates = names(
        agent
        for agent in desk.run.agents
        if agent.name in desk.manifest.tasks and state.of_agent(agent, desk.run) != "not dispatched"
    )
    if not candidates:
        return None
    wanted = (shown(a.name) for a in desk.run.agents if state.undecided(a, desk.run))
    first = next((name for name in wanted if name in candidates), ...)
    fields = {
        "agent": (choice(candidates), Field(first, title="Agent", description=NO_CHANNEL)),
        "feedback": text("Feedback", "Stands in its next prompt.", lines=True),
        "go_on": (bool, Field(False, title="Go on from what it wrote")),
    }

    def preview(answers: Any) -> Preview:
        name = candidates[answers.agent]
        step = triage.plan(desk.place, name, triage.RERUN, answers.feedback or "once more")
        words = ["acp", "workspaces", "dispatch", desk.folder, "--again", name]
        words += ["--feedback", answers.feedback] if answers.feedback else []
        words += ["--go-on"] if answers.go_on else []
        told = previewed(step, words)
        where = "Its earlier status and return are moved into .coord/history."
        return replace(told, sentence=f"{told.sentence} {where}")

    def perform(answers: Any) -> Outcome:
        name = candidates[answers.agent]
        triage.again(desk.place, name, answers.feedback, go_on=answers.go_on)
        told = go_on(desk)
        if name in told:
            return Outcome(OutcomeState.DONE, safe(told))
        sentence = f"{name} is run once more when its program has ended, or with the next dispatch."
        return Outcome(OutcomeState.REQUESTED, safe(sentence))

    return action(
        AGAIN,
        "Once more",
        "Run an agent once more: a new prompt, a new output beside the old one.",
        fields,
        preview,
        perform,
    )


def stop(desk: Desk) -> Action | None:
    """Stop an agent's program, where it runs on this machine."""
    candidates = names(a for a in desk.run.agents if watcher_alive(desk.place, a.name))
    if not candidates:
        return None
    fields = {"agent": (choice(candidates), Field(title="Agent"))}

    def preview(answers: Any) -> Preview:
        sentence = f"Stop the program of {answers.agent}. What it wrote stays; decide on it then."
        return Preview(safe(sentence))

    def perform(answers: Any) -> Outcome:
        stop_agents(str(desk.place.root), [candidates[answers.agent]])
        return Outcome(OutcomeState.DONE, safe(f"{answers.agent} was stopped."))

    return action(
        STOP,
        "Stop",
        "End an agent's program. A running sub-agent cannot be spoken to.",
        fields,
        preview,
        perform,
        risky=True,
    )
