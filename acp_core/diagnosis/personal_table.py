"""A person's own notes about a collaboration, described once (see `personal`). Standard library only."""

from __future__ import annotations

from acp_core.model.action_field import PLACE, Field, Kind
from acp_core.model.action_spec import ActionSpec

_BINDER = "acp_core.diagnosis.personal"
_FOLDER = PLACE._replace(default=None, required=True)
_THESE = Field(
    "folders", help="The collaborations' folders.", kind=Kind.LIST, items=Kind.FOLDER,
    position=True, flag="--folder", metavar="FOLDER", form=False, required=True,
)  # fmt: skip
_NEED = Field(
    "need", "Need", "Name the need by its key or code; it may be left out where there is only one.",
    Kind.CHOICE, position=True,
)  # fmt: skip
_ALL = Field("all", "All of them", "Acknowledge all of its needs.", Kind.FLAG)

ACK = ActionSpec(
    "ack",
    "Acknowledge",
    "Acknowledge a need, for yourself: it goes from the top, and comes back for a new reason.",
    f"{_BINDER}:bind_ack",
    (
        _NEED,
        Field("note", "Note", "Why it needs nothing more now; for yourself.", Kind.LINES),
        _ALL,
    ),
    command="ack",
    help="Only you see it: nothing is written into the collaboration.",
    aliases=("acknowledge",),
    examples=('acp ack checkout --note "waiting for legal"', "acp ack checkout --all"),
    place=_FOLDER,
    run="acp_core.cli.notes:ack",
    personal=True,
)
UNACK = ActionSpec(
    "unack",
    "Take back an acknowledgement",
    "Bring a need that you acknowledged back to the top, for yourself.",
    f"{_BINDER}:bind_unack",
    (_NEED, _ALL._replace(help="Bring all of them back.")),
    command="unack",
    help="Only you see it: nothing is written into the collaboration.",
    examples=("acp unack checkout", "acp unack checkout --all"),
    place=_FOLDER,
    run="acp_core.cli.notes:unack",
    personal=True,
)
ARCHIVE = ActionSpec(
    "archive",
    "Archive",
    "Leave the collaboration out of your fleet; nothing in it is touched.",
    f"{_BINDER}:bind_archive",
    (_THESE,),
    command="archive",
    help="Only you see it. `acp status --all` and `acp find` still know it.",
    examples=("acp archive checkout",),
    place=None,
    run="acp_core.cli.notes:archive",
    personal=True,
)
UNARCHIVE = ActionSpec(
    "unarchive",
    "Unarchive",
    "Bring the collaboration back into your fleet; nothing in it is touched.",
    f"{_BINDER}:bind_unarchive",
    (_THESE,),
    command="unarchive",
    examples=("acp unarchive checkout",),
    place=None,
    run="acp_core.cli.notes:unarchive",
    personal=True,
)
ACTS = (ACK, UNACK, ARCHIVE, UNARCHIVE)
NAMES = frozenset(name for each in ACTS for name in (each.name, *each.aliases))
"""What they are called, and were."""
