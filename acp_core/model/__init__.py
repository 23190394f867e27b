"""The words of the product, as types: what every screen, command and report shows is one of these.

They are imported from here; each is loaded from its own module when it is asked for, so that
commands that must start fast pay for what they use.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    from acp_core.model.action import Action as Action
    from acp_core.model.action import Change as Change
    from acp_core.model.action import Outcome as Outcome
    from acp_core.model.action import OutcomeState as OutcomeState
    from acp_core.model.action import Preview as Preview
    from acp_core.model.action_field import Field as Field
    from acp_core.model.action_field import Kind as Kind
    from acp_core.model.action_spec import ActionSpec as ActionSpec
    from acp_core.model.action_spec import Answer as Answer
    from acp_core.model.action_spec import By as By
    from acp_core.model.action_spec import Intent as Intent
    from acp_core.model.action_spec import Moved as Moved
    from acp_core.model.action_spec import QuerySpec as QuerySpec
    from acp_core.model.card import Card as Card
    from acp_core.model.card import CardDocument as CardDocument
    from acp_core.model.card import CardSection as CardSection
    from acp_core.model.card import CardVerdict as CardVerdict
    from acp_core.model.matter import Matter as Matter
    from acp_core.model.snapshot import Cost as Cost
    from acp_core.model.snapshot import Document as Document
    from acp_core.model.snapshot import DocumentText as DocumentText
    from acp_core.model.snapshot import Event as Event
    from acp_core.model.snapshot import Finding as Finding
    from acp_core.model.snapshot import Gate as Gate
    from acp_core.model.snapshot import Heading as Heading
    from acp_core.model.snapshot import Link as Link
    from acp_core.model.snapshot import NextAction as NextAction
    from acp_core.model.snapshot import Panel as Panel
    from acp_core.model.snapshot import Participant as Participant
    from acp_core.model.snapshot import Phase as Phase
    from acp_core.model.snapshot import PhaseState as PhaseState
    from acp_core.model.snapshot import Row as Row
    from acp_core.model.snapshot import Runner as Runner
    from acp_core.model.snapshot import Severity as Severity
    from acp_core.model.snapshot import Snapshot as Snapshot
    from acp_core.model.snapshot import Source as Source
    from acp_core.model.snapshot import SourceState as SourceState
    from acp_core.model.snapshot import Status as Status
    from acp_core.model.snapshot import Target as Target
    from acp_core.model.snapshot import Tone as Tone
    from acp_core.model.snapshot import Turn as Turn
    from acp_core.model.snapshot import Verdict as Verdict
    from acp_core.model.snapshot import Visit as Visit

_MODULES = {
    "action": "Action Change Outcome OutcomeState Preview",
    "action_field": "Field Kind",
    "action_spec": "ActionSpec Answer By Intent Moved QuerySpec",
    "card": "Card CardDocument CardSection CardVerdict",
    "earlier": "Cause Need Notice Obstacle Question",  # until 0.4
    "matter": "Matter",
    "snapshot": (
        "Cost Document DocumentText Event Finding Gate Heading Link NextAction "
        "Panel Participant Phase PhaseState Row Runner Severity Snapshot Source "
        "SourceState Status Target Tone Turn Verdict Visit"
    ),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """A word, from the module that defines it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = f"{__name__}.{_HOMES[name]}"
    __import__(home)  # as `importlib` would, which takes longer to import than this module
    word: object = getattr(sys.modules[home], name)
    globals()[name] = word
    return word
