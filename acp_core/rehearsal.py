"""A rehearsal: a real collaboration, carried out by participants that need no model: `acp demo`.

A protocol that has one names a function in its `acp_core.protocols.registry.Protocol.rehearse`; one
that can show how it gets stuck names a module with ``NAMES`` and ``tell`` in
`acp_core.protocols.registry.Protocol.stuck`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from acp_core.model.errors import NotStarted

if TYPE_CHECKING:
    from acp_core.agents.presets import Preset


class RehearsalError(NotStarted):
    """A rehearsal cannot begin; the message is one line that says why."""


class Rehearsal(ABC):
    """A collaboration that has been made, and the processes that will carry it out.

    Attributes:
        location: where the collaboration stands.
        logs: the folder that holds a log of each participant's process.
        pause: the longest time, in seconds, in which nothing happens while all is well.
    """

    location: str
    logs: str
    pause: float

    @abstractmethod
    def start(self) -> None:
        """Start every participant's process. They end when this process does, however it ends."""

    @abstractmethod
    def running(self) -> tuple[str, ...]:
        """The participants whose process is running."""

    @abstractmethod
    def failures(self) -> tuple[str, ...]:
        """A sentence for each participant whose process failed, safe to show."""

    @abstractmethod
    def stop(self) -> None:
        """End every process that is still running, and wait until it has ended."""


@dataclass(frozen=True, slots=True)
class Role:
    """A participant of a `Story`, and the program that a loop runs for it.

    ``alone``: the program waits for its turns itself. ``launched``: False where it is forgotten.
    ``twice``: a second loop, which nobody here knows, acts for it too. ``retries``: how often the
    loop tries a turn again before it wants a person.
    """

    participant: str
    preset: Preset
    alone: bool = False
    launched: bool = True
    twice: bool = False
    retries: int = 0


@dataclass(frozen=True, slots=True)
class Story:
    """A collaboration that gets stuck for one reason.

    Attributes:
        name, title: of the story.
        location: where the collaboration stands.
        code: of the cause that will be found first.
        roles: its participants.
        answers: what the remedy asks a person for, by the names of its inputs.
        then: actions that follow the remedy where that leads elsewhere, with their inputs.
    """

    name: str
    title: str
    location: str
    code: str
    roles: tuple[Role, ...]
    answers: Mapping[str, str] = field(default_factory=dict)
    then: tuple[tuple[str, Mapping[str, str]], ...] = ()
