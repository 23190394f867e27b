"""What a human can do here and now: an action, what it would do, and how it ended (see `model`).

What an act is, wherever it is done, stands in its `ActionSpec` (see `act_spec`). Standard library
only: protocols that must start fast import this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from acp_core.model.action_spec import ActionSpec as ActionSpec
from acp_core.model.action_spec import By as By
from acp_core.model.action_spec import Field as Field
from acp_core.model.action_spec import Intent as Intent
from acp_core.model.action_spec import Kind as Kind

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

    ``warnings`` are to be heeded before it is done; ``notes`` merely tell something. ``data`` are
    further facts for programs, by name.
    """

    sentence: str
    changes: tuple[Change, ...] = ()
    command: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    refused: str = ""
    notes: tuple[str, ...] = ()
    data: Mapping[str, object] = field(default_factory=dict)


class OutcomeState(str, Enum):
    """How an action ended. ``REQUESTED``: somebody else must pick it up."""

    DONE = "done"
    REQUESTED = "requested"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an action ended, in a sentence; ``location`` names a collaboration that it made.

    ``done`` is what was done, in the form of a preview, where that is known. ``failed`` says what
    of it failed: what can be done all the same was done.
    """

    state: OutcomeState
    sentence: str
    location: str | None = None
    done: Preview | None = None
    failed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Action:
    """What a human can do here and now: an act that is bound to a collaboration.

    Forms, commands and tests are all made from this one description. ``perform`` re-checks
    everything: the collaboration may have moved on since the preview. Both may be slow (they run in
    a worker thread) and neither raises for what the files contain.

    Attributes:
        name, label, sentence, risky, intent, by, aliases, personal, owner: as those of an `ActionSpec`.
        inputs: a pydantic model: field titles, descriptions, defaults, choices. Where there are
            ``fields`` it is made from them when it is first used.
        preview, perform: take an instance of ``inputs``.
        defaults: values that stand above the model's own defaults.
        offered: whether lists offer it now; else it can be asked for by name, and says why not.
        fields: its inputs as they can be given now; None where only the model says what they are.
    """

    name: str
    label: str
    sentence: str
    inputs: type[BaseModel]
    preview: Callable[[Any], Preview]
    perform: Callable[[Any], Outcome]
    defaults: Mapping[str, object] = field(default_factory=dict)
    risky: bool = False
    fields: tuple[Field, ...] | None = None
    intent: Intent = Intent.OTHER
    by: By = By.HUMAN
    aliases: tuple[str, ...] = ()
    offered: bool = True
    personal: bool = False
    owner: bool = False

    def called(self, name: str) -> bool:
        """Whether this is its name, or was; dashes and underscores are the same."""
        plain = name.replace("-", "_")
        return plain == self.name.replace("-", "_") or plain in self.aliases
