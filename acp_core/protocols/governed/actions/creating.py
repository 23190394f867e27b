"""Starting a governed run, or writing down an initiative, from the dashboard."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, Field

from acp_core.files.text import clean, clean_line
from acp_core.model.action import Action, Change, Outcome, OutcomeState, Preview
from acp_core.protocols.governed.actions.build import LINES, refusal, safe
from acp_core.protocols.governed.coordinator import configuring
from acp_core.protocols.governed.coordinator.configuring import BARRIERS
from acp_core.protocols.governed.schema import MULTI_CONFIG, Object
from acp_core.protocols.governed.write import Refused
from acp_core.protocols.governed.write.init import PHASES, Wish, agents_of, contents, initialise
from acp_core.protocols.governed.write.journal import document

_SHOWN = 4_000  # characters of a new file


class Starting(BaseModel):
    """What a new run takes."""

    name: str = Field("", title="Name", description="Of the project; empty: the folder's name.")
    objective: str = Field(
        "", title="Goal", description="What the run is to reach.", json_schema_extra=LINES
    )
    agents: list[str] = Field(
        [],
        title="Agents",
        description="ROLE=COMMAND for pm, dev and qa; a human plays the others.",
    )
    repositories: list[str] = Field(
        [],
        title="Repositories",
        description="For an initiative over several: NAME=ADDRESS or NAME=ADDRESS#BRANCH each; "
        "empty: one run in this folder.",
    )
    barriers: list[str] = Field(
        list(BARRIERS),
        title="Barriers",
        description="Of an initiative: NAME=PHASE, where all wait for each other.",
    )

    def wish(self) -> Wish:
        """As the engine takes it.

        Raises:
            Refused: an agent is not written as ROLE=COMMAND, or two play one role.
        """
        goal = " ".join(self.objective.split())
        return Wish(self.name, goal, PHASES, agents_of(self.agents))

    def initiative(self, place: Path) -> Object | None:
        """The configuration of an initiative, None where one run is wanted.

        Raises:
            Refused: it is not sound, there is one, or agents are named: they are at its start.
        """
        named = [each for each in self.repositories if each.strip()]
        if not named:
            wanted = [each.strip() for each in self.barriers if each.strip()]
            if wanted and wanted != list(BARRIERS):
                raise Refused("barriers are those of an initiative: name its repositories too")
            return None
        if self.agents:
            raise Refused("the agents of an initiative are named when it is started")
        return configuring.planned(place, configuring.Wish(named, self.barriers, self.objective))[0]


def create(folder: Path | str) -> Action:
    """The action that starts a run in ``folder``, which is made if it does not exist."""
    place = Path(os.path.abspath(os.path.expanduser(folder)))
    return Action(
        "create",
        "New governed run",
        "Start a governed run: agents work in phases, and you open the gates between them. With "
        "repositories: write down an initiative over them.",
        Starting,
        lambda given: _preview(given, place),
        lambda given: _perform(given, place),
    )


def _preview(given: Starting, place: Path) -> Preview:
    try:
        config = given.initiative(place)
        if config is not None:
            change = Change(str(place / MULTI_CONFIG), "create", _shown(document(config)))
            return Preview(safe(f"Write the configuration of an initiative in {place}."), (change,))
        files = contents(place, given.wish(), datetime.now(UTC))
    except (Refused, OSError) as error:
        return Preview("", refused=refusal(error))
    new = {name: data for name, data in files.items() if not os.path.lexists(place / name)}
    kept = [name for name in files if name not in new]
    notes = (safe(f"stays as it is: {', '.join(kept)}"),) if kept else ()
    warnings = []
    if not (place / ".git").exists():
        warnings.append("there is no git repository: what agents change cannot be observed")
    changes = tuple(
        Change(clean_line(str(place / name), 2_000), "create", _shown(data))
        for name, data in new.items()
    )
    sentence = safe(f"Start a governed run in {place}.")
    return Preview(sentence, changes, warnings=tuple(warnings), notes=notes)


def _shown(data: bytes) -> str:
    text = clean(data.decode(errors="replace"))[:_SHOWN].removesuffix("\n")
    return "\n".join(f"+{line}" for line in text.split("\n")) if text else ""


def _perform(given: Starting, place: Path) -> Outcome:
    try:
        config = given.initiative(place)
        if config is not None:
            configuring.write(place, config)
            told = f"Wrote {MULTI_CONFIG} in {place}; start the initiative now."
            return Outcome(OutcomeState.DONE, safe(told), str(place))
        started = initialise(place, given.wish(), datetime.now(UTC))
    except (Refused, OSError) as error:
        return Outcome(OutcomeState.REFUSED, refusal(error))
    return Outcome(
        OutcomeState.DONE, safe(f"Started a governed run in {started.root}."), str(place)
    )
