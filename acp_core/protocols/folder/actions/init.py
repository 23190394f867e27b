"""The action that starts a collaboration.

Source: folder protocol specification, "Required Inputs" and "Initialization".
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.protocols.folder.actions.display import new_file, refusal, safe
from acp_core.protocols.folder.actions.turns import LINES
from acp_core.protocols.folder.write import Refused
from acp_core.protocols.folder.write.init import EXISTS, files, initialise
from acp_core.protocols.folder.write.init_checks import Wish, found


class Founding(BaseModel):
    """What a new collaboration is founded on."""

    objective: str = Field(
        min_length=1,
        title="Objective",
        description="What is to be decided or produced.",
        json_schema_extra=LINES,
    )
    participants: list[str] = Field(
        min_length=1,
        title="Participants",
        description="Ids of agents and people; the first one owns the proposal.",
    )
    gates: list[str] = Field(
        min_length=1,
        title="Completion gates",
        description="Concrete conditions for ending it.",
    )
    dialect: Literal["v1", "v2"] = Field(
        "v1", title="Dialect", description="v2 also produces a deliverable, a Markdown file."
    )
    deliverable: Literal[
        "design-spec",
        "adr",
        "implementation-plan",
        "decision-memo",
        "review-report",
        "test-plan",
        "custom",
    ] = Field("design-spec", title="Deliverable", description="Its type; only for v2.")
    file: str = Field("", title="Deliverable's file", description="Blank: named after its type.")
    checklist: list[str] = Field(
        default_factory=list,
        title="Deliverable's sections",
        description="Only for a custom deliverable.",
    )

    def wish(self) -> Wish:
        """The same, as the writer takes it."""
        second = self.dialect == "v2"
        custom = second and self.deliverable == "custom"
        return Wish(
            objective=self.objective,
            participants=self.participants,
            gates=self.gates,
            type=self.deliverable if second else None,
            file=(self.file.strip() or None) if second else None,
            checklist=tuple(self.checklist) if custom else (),
        )


OPTIONS = {  # the command's names of what it may refuse: the form's own stand in their place
    "--objective": "objective",
    "--participant": "participants",
    "--completion": "gates",
}


def _refused(error: Refused | OSError) -> str:
    """Why it cannot be done, in the words of the form."""
    said = refusal(error)
    for option, field in OPTIONS.items():
        said = said.replace(option, f"“{Founding.model_fields[field].title}”")
    return said


def create(folder: Path | str) -> Action:
    """The action that starts a collaboration in ``folder``, which is made if it does not exist."""
    place = os.path.abspath(os.path.expanduser(folder))
    return Action(
        name="create",
        label="New collaboration",
        sentence="Start a collaboration: agents and people work on one objective in a folder.",
        inputs=Founding,
        preview=lambda inputs: _preview(inputs, place),
        perform=lambda inputs: _perform(inputs, place),
    )


def _preview(inputs: Founding, folder: str) -> Preview:
    try:
        if os.path.lexists(os.path.join(folder, "protocol.json")):
            raise Refused(EXISTS)
        charter, warnings = found(inputs.wish(), folder)
        wanted = files(charter, folder, datetime.now(UTC))
    except (Refused, OSError) as error:
        return Preview(sentence="", refused=_refused(error))
    new = [file for file in wanted if not os.path.lexists(file.path)]
    kept = [file.name for file in wanted if os.path.lexists(file.path)]
    if kept:
        warnings = (*warnings, f"stays as it is: {', '.join(kept)}")
    return Preview(
        sentence=safe(f"Start a collaboration of {', '.join(charter.participants)} in {folder}."),
        changes=tuple(new_file(file.path, file.data) for file in new),
        command=_command(inputs, folder),
        warnings=tuple(safe(warning) for warning in warnings),
    )


def _command(inputs: Founding, folder: str) -> tuple[str, ...]:
    wish = inputs.wish()
    words = ["acp", "init", "--folder", folder, "--objective", wish.objective]
    for flag, values in (("--participant", wish.participants), ("--completion", wish.gates)):
        words += [word for value in values for word in (flag, value)]
    for flag, value in (
        ("--primary-deliverable-type", wish.type),
        ("--primary-deliverable-file", wish.file),
    ):
        words += [flag, value] if value else []
    words += [word for check in wish.checklist for word in ("--primary-deliverable-check", check)]
    return tuple(safe(word) for word in words)


def _perform(inputs: Founding, folder: str) -> Outcome:
    try:
        started = initialise(folder, inputs.wish())
    except (Refused, OSError) as error:
        return Outcome(OutcomeState.REFUSED, _refused(error))
    sentence = " ".join([f"Started a collaboration in {started.folder}.", *started.warnings])
    return Outcome(OutcomeState.DONE, safe(sentence), location=folder)
