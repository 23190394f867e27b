"""A rehearsal: a real collaboration, carried out by participants that need no model.

What `acp demo` shows. A protocol that has one names a function in its
`acp_core.protocols.Protocol.rehearse`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod


class RehearsalError(Exception):
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
