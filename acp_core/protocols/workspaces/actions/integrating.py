"""The order of reading, the synthesis and the end of integration, as actions.

Source: agent workspaces specification, "Integration Step Protocol", steps 3 and 5 to 7.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from acp_core.agents.presets import PresetError
from acp_core.model import Action, Change, Outcome, OutcomeState, Preview
from acp_core.protocols.workspaces import state
from acp_core.protocols.workspaces.actions import programs
from acp_core.protocols.workspaces.actions.common import (
    Desk,
    Fields,
    action,
    choice,
    previewed,
    safe,
    writing,
)
from acp_core.protocols.workspaces.actions.names import FINISH, ORDER, SYNTHESISE
from acp_core.protocols.workspaces.conduct import synthesis
from acp_core.protocols.workspaces.conduct import team as teams
from acp_core.protocols.workspaces.conduct.advance import start
from acp_core.protocols.workspaces.write import Refused, integrate
from acp_core.protocols.workspaces.write import manifest as manifests
from acp_core.protocols.workspaces.write.layout import ORCHESTRATOR
from acp_core.protocols.workspaces.write.writing import Step

ALONE, PROGRAM = "by hand", "by a program"


def order(desk: Desk) -> Action | None:
    """In which order outputs are read."""
    now = desk.manifest.order
    if len(now) < 2:
        return None
    about = "The most critical first."
    fields = {"order": (list[str], Field(now, title="Order", description=about))}
    return writing(
        ORDER,
        "Order",
        "In which order the outputs are read and stand in the draft.",
        fields,
        desk,
        lambda answers: integrate.reorder(desk.place, answers.order),
        lambda answers: ["integrate", desk.folder, "--order", ",".join(answers.order)],
    )


def synthesise(desk: Desk) -> Action | None:
    """Prepare the draft, by a program or for a person."""
    if not all(state.steps(desk.run)[:4]) or state.open_conflicts(desk.run):
        return None
    team = teams.load(desk.place.root)
    before = team.choice(ORCHESTRATOR) if team else None
    try:
        fields = programs.fields(before)
    except PresetError:
        return None
    about = "By hand: a draft with all sources, which the editor opens from its document."
    how = Field(ALONE, title="How", description=about)
    asked: Fields = {"how": (choice((ALONE, PROGRAM)), how), **fields}

    def preview(answers: Any) -> Preview:
        if answers.how == ALONE:
            words = ["acp", "workspaces", "integrate", desk.folder, "--draft"]
            return previewed(integrate.draft(desk.place), words)
        found = programs.chosen(answers, str(desk.place.root)) or before
        if found is None:
            raise Refused("no program was chosen")
        step = synthesis.begin(desk.place)
        shown = previewed(
            step,
            [
                "acp",
                "workspaces",
                "integrate",
                desk.folder,
                "--synthesise",
                *programs.words(answers),
            ],
        )
        begun = Change(ORCHESTRATOR, "start", safe(found.program))
        return Preview(shown.sentence, (*shown.changes, begun), shown.command)

    def perform(answers: Any) -> Outcome:
        if answers.how == ALONE:
            step = manifests.act(desk.place, lambda: integrate.draft(desk.place))
            return Outcome(OutcomeState.DONE, safe(f"{step.sentence} Edit it, then finish."))
        found = programs.chosen(answers, str(desk.place.root))
        team = teams.merged(desk.place.root, own={ORCHESTRATOR: found} if found else {})
        if team.choice(ORCHESTRATOR) is None:
            raise Refused("no program was chosen")
        teams.save(team)
        if not synthesis.is_open(desk.place) or synthesis.is_running(desk.place):
            manifests.act(desk.place, lambda: synthesis.begin(desk.place))
        start(desk.place, ORCHESTRATOR, 1)
        return Outcome(
            OutcomeState.DONE, "The program writes the draft; then look at it and finish."
        )

    return action(
        SYNTHESISE,
        "Synthesise",
        "Prepare the final output as a draft: by a program, or for you to write.",
        asked,
        preview,
        perform,
    )


def finish(desk: Desk) -> Action | None:
    """Approve the draft: the final output and the integration status."""
    if not desk.run.drafts or not all(state.steps(desk.run)[:5]):
        return None
    known = [safe(each) for each in integrate.gaps(desk.run)]
    told = "; ".join(each.rstrip(".") for each in known)
    about = f"Besides: {told}." if known else "What the final output leaves open."
    fields: Fields = {
        "gaps": (
            list[str],
            Field(integrate.added_gaps(desk.run), title="Gaps", description=about),
        )
    }

    def step(answers: Any) -> Step:
        if synthesis.is_running(desk.place):
            raise Refused("the draft is being written: wait for it")
        return integrate.finish(desk.place, answers.gaps)

    def command(answers: Any) -> list[str]:
        words = ["integrate", desk.folder, "--finish"]
        return [*words, *[word for gap in answers.gaps for word in ("--gap", gap)]]

    return writing(
        FINISH,
        "Finish",
        "Put the draft in its place with its metadata, and write the integration status.",
        fields,
        desk,
        step,
        command,
    )
