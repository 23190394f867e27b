"""Triage and conflicts, as actions.

Source: agent workspaces specification, "Integration Step Protocol" and "Conflict Resolution Protocol".
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from acp_core.model import Action
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.actions.common import (
    Desk,
    choice,
    names,
    safe,
    shown,
    text,
    wanted,
    writing,
)
from acp_core.protocols.workspaces.actions.dispatching import go_on
from acp_core.protocols.workspaces.actions.names import ADD, DISMISS, FIND, RESOLVE, TRIAGE
from acp_core.protocols.workspaces.read.conflict_hints import CATEGORIES
from acp_core.protocols.workspaces.schema import Agent
from acp_core.protocols.workspaces.view.panels import named, why
from acp_core.protocols.workspaces.write import Refused, conflicts
from acp_core.protocols.workspaces.write import triage as deciding
from acp_core.protocols.workspaces.write.writing import Step

AS_IT_IS = "as it is"
_LABELS: dict[str, Any] = {
    "labels": {
        "accept": "accept: take what is there",
        "rerun": "rerun: once more, as it was told",
        "skip": "skip: leave it out",
        "orchestrator-does": "orchestrator-does: you do its part",
        "gap": "gap: note what is missing",
    }
}
BOTH = "neither, or both"
GROUNDS = "Asked of a fact only: it is the more specific, sourced or consistent version."
_ALIKE = (bool, Field(False, title="All others on this topic, too"))
_ALIKE_KEPT = (
    bool,
    Field(
        False,
        title="All others on this topic, too",
        description="For those in which the agent has a part whose version holds.",
    ),
)


def triage(desk: Desk) -> Action | None:
    """Decide on an agent: those first on whom a decision is wanted."""
    first = [a for a in desk.run.agents if state.undecided(a, desk.run)]
    candidates = names(
        [
            *first,
            *(
                a
                for a in desk.run.agents
                if a not in first and state.of_agent(a, desk.run) != "not dispatched"
            ),
        ]
    )
    if not candidates:
        return None
    asked = first[0] if first else None
    words = dict.fromkeys(w for a in (*first, *desk.run.agents) for w in state.choices(a, desk.run))
    about = (
        "A partial: accept, rerun or skip. A failure or no result: rerun, orchestrator-does or gap. "
        "One that still works is stopped."
    )
    told = "; ".join(_ended(a, desk) for a in first)
    fields = {
        "agent": (
            choice(candidates),
            Field(shown(asked.name), title="Agent", description=told)
            if asked
            else Field(title="Agent"),
        ),
        "decision": (
            choice(words),
            Field(title="What becomes of it", description=about, json_schema_extra=_LABELS),
        ),
        "reason": wanted("Reason", "Stands with the decision."),
    }

    def step(answers: Any) -> Step:
        return deciding.plan(
            desk.place, candidates[answers.agent], answers.decision, answers.reason
        )

    def command(answers: Any) -> list[str]:
        name = candidates[answers.agent]
        return ["triage", desk.folder, name, answers.decision, "--reason", answers.reason]

    waits = f"{', '.join(shown(a.name) for a in first)}: " if first else ""
    return writing(
        TRIAGE,
        "Decide",
        f"{waits}accept, skip or run once more what did not simply succeed.",
        fields,
        desk,
        step,
        command,
        lambda answers: go_on(desk),
    )


def _ended(agent: Agent, desk: Desk) -> str:
    said = why(agent, desk.run)
    how = state.ending(agent, desk.run)
    return safe(f"{agent.name}: {how}{f' ({said})' if said else ''}")


def find(desk: Desk) -> Action | None:
    """Look for conflicts, once every agent is through."""
    if not state.steps(desk.run)[1]:
        return None
    return writing(
        FIND,
        "Compare",
        "Compare headings, values and files of the outputs, and write down what may contradict.",
        {},
        desk,
        lambda _: conflicts.look(desk.place),
        lambda _: ["conflicts", desk.folder, "--find"],
    )


def add(desk: Desk) -> Action | None:
    """Write down a conflict that no machine sees."""
    people = names(a for a in desk.run.agents if a.outcome)
    if len(people) < 2:
        return None
    fields = {
        "first": (choice(people), Field(title="Between")),
        "second": (choice(people), Field(title="And")),
        "topic": (str, Field(min_length=1, title="On", description="In a few words.")),
        "category": (choice(CATEGORIES), Field(title="Category")),
    }

    def step(answers: Any) -> Step:
        pair = [people[answers.first], people[answers.second]]
        return conflicts.add(desk.place, pair, answers.topic, answers.category)

    def command(answers: Any) -> list[str]:
        pair = f"{people[answers.first]},{people[answers.second]}"
        more = ["--between", pair, "--category", answers.category]
        return ["conflicts", desk.folder, "--add", answers.topic, *more]

    about = "Write down that two outputs contradict each other."
    return writing(ADD, "Add conflict", about, fields, desk, step, command)


def _open(desk: Desk) -> dict[str, str]:
    """The conflicts that wait, as forms name them; to resolve one without an id is impossible."""
    waiting = state.open_conflicts(desk.run)
    return {named(each): schema.text(each.get("id")) for each in waiting if each.get("id")}


def resolve(desk: Desk) -> Action | None:
    """Resolve a conflict by the rule of its category."""
    waiting = _open(desk)
    if not waiting:
        return None
    people = names(a for a in desk.run.agents if a.outcome)
    about = (
        "factual: one version holds, never an average; coverage: merged, the more detailed one "
        "kept; format: brought into the final form."
    )
    fields = {
        "conflict": (choice(waiting), Field(next(iter(waiting)), title="Conflict")),
        "category": (
            choice((AS_IT_IS, *CATEGORIES)),
            Field(AS_IT_IS, title="Category", description=about),
        ),
        "keep": (
            choice((BOTH, *people)),
            Field(BOTH, title="Whose version", description="That holds, or is more detailed."),
        ),
        "because": (
            choice(conflicts.GROUNDS),
            Field("sourced", title="Why it holds", description=GROUNDS),
        ),
        "alike": _ALIKE_KEPT,
    }

    def step(answers: Any) -> Step:
        id = waiting.get(answers.conflict)
        if id is None:
            raise Refused("the conflict no longer waits")
        return conflicts.resolve(
            desk.place,
            id,
            category="" if answers.category == AS_IT_IS else answers.category,
            keep=people.get(answers.keep, ""),
            because=answers.because,
            alike=answers.alike,
        )

    def command(answers: Any) -> list[str]:
        words = ["conflicts", desk.folder, "--resolve", waiting[answers.conflict]]
        words += ["--category", answers.category] if answers.category != AS_IT_IS else []
        words += ["--keep", answers.keep] if answers.keep != BOTH else []
        return [*words, "--because", answers.because, *_same(answers)]

    about = "Say which version holds; the record sentence goes into the final output."
    return writing(RESOLVE, "Resolve", about, fields, desk, step, command)


def dismiss(desk: Desk) -> Action | None:
    """Say that a conflict is none."""
    waiting = _open(desk)
    if not waiting:
        return None
    fields = {
        "conflict": (choice(waiting), Field(next(iter(waiting)), title="Conflict")),
        "reason": text("Reason", "Why it is none.", "The outputs agree."),
        "alike": _ALIKE,
    }

    def step(answers: Any) -> Step:
        id = waiting[answers.conflict]
        return conflicts.dismiss(desk.place, id, answers.reason, alike=answers.alike)

    def command(answers: Any) -> list[str]:
        words = ["conflicts", desk.folder, "--dismiss", waiting[answers.conflict]]
        return [*words, "--reason", answers.reason, *_same(answers)]

    about = "Say that what looked like a conflict is none."
    return writing(DISMISS, "Dismiss", about, fields, desk, step, command)


def _same(answers: Any) -> list[str]:
    return ["--alike"] if answers.alike else []
