"""What a human can do: an action, what it would do, and how it ended (see `model`).

Standard library only: protocols that must start fast import this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Change:
    """One file that an action would touch: ``verb`` is ``create``, ``append`` or ``replace``.

    A program that it would ``start`` stands in the same form: who and what as ``path``, the
    particulars as ``diff``.
    """

    path: str
    verb: str
    diff: str = ""


@dataclass(frozen=True, slots=True)
class Preview:
    """What an action would do, before it does it. ``refused`` says why it would not.

    ``warnings`` are to be heeded before it is done; ``notes`` merely tell something.
    """

    sentence: str
    changes: tuple[Change, ...] = ()
    command: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    refused: str = ""
    notes: tuple[str, ...] = ()


class OutcomeState(str, Enum):
    """How an action ended. ``REQUESTED``: somebody else must pick it up."""

    DONE = "done"
    REQUESTED = "requested"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an action ended, in a sentence; ``location`` names a collaboration that it made."""

    state: OutcomeState
    sentence: str
    location: str | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """What a human can do here and now.

    Forms, commands and tests are all made from this one description: ``inputs`` is
    a pydantic model (field titles, descriptions, defaults, choices), ``preview`` and
    ``perform`` take an instance of it. ``perform`` re-checks everything: the
    collaboration may have moved on since the preview. Both may be slow (they run in
    a worker thread) and neither raises for what the files contain.
    """

    name: str
    label: str
    sentence: str
    inputs: type[BaseModel]
    preview: Callable[[Any], Preview]
    perform: Callable[[Any], Outcome]
    defaults: Mapping[str, object] = field(default_factory=dict)
    risky: bool = False
