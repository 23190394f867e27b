"""What the actions about loops are made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from acp_core.agents.state import RunnerState
from acp_core.diagnosis.remedies.programs import Programs
from acp_core.files.text import clean_line
from acp_core.model import Outcome, OutcomeState, Snapshot
from acp_core.protocols.kit.diagnosis import Claim, safe_id

LINES: dict[str, Any] = {"format": "multiline"}


class About:
    """A collaboration's participants, by the ids that people see, and their loops.

    Attributes:
        key: the collaboration's.
        agents: participants that are not known to be people.
        loops: the loops by participant.
        claims: processes of others.
    """

    def __init__(
        self, snapshot: Snapshot, loops: tuple[RunnerState, ...], claims: tuple[Claim, ...]
    ) -> None:
        self.snapshot = snapshot
        self.key = snapshot.key
        self.loops = {safe_id(loop.participant): loop for loop in loops}
        self.claims = claims
        self.agents = [each.id for each in snapshot.participants if each.kind != "human"]
        self.programs = Programs(snapshot, loops)

    def alive(self) -> list[str]:
        """Those whose loop runs."""
        return [name for name, loop in self.loops.items() if loop.alive]

    def without(self) -> list[str]:
        """Agents that have no running loop, those first who are waited for."""
        waited = [turn.participant for turn in self.snapshot.turns]
        free = [name for name in self.agents if name not in self.alive()]
        return sorted(free, key=lambda name: name not in waited)


def model_of(name: str, **fields: Any) -> type[BaseModel]:
    made: type[BaseModel] = create_model("".join(map(str.capitalize, name.split("_"))), **fields)
    return made


def one_of(names: Iterable[str], title: str, about: str = "", default: str = "") -> Any:
    listed = list(dict.fromkeys(names))
    choice = Literal[tuple(listed)]  # type: ignore[valid-type]
    first = default if default in listed else listed[0]
    return (choice, Field(first, title=title, description=about))


def who(names: Iterable[str], about: str = "") -> Any:
    return one_of(names, "Participant", about)


def refuse(text: str) -> Outcome:
    return Outcome(OutcomeState.REFUSED, clean_line(text))
