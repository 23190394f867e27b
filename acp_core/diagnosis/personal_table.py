"""A person's own notes and reports about a collaboration, described once (see `personal`). Standard library only."""

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
    "need", "Need", "Choose the attention item by key or code (optional if there is only one).",
    Kind.CHOICE, position=True,
)  # fmt: skip
_ALL = Field("all", "All of them", "Acknowledge all attention items.", Kind.FLAG)
ACK = ActionSpec(
    "ack",
    "Acknowledge",
    "Hide an attention item from your view until something new needs attention.",
    f"{_BINDER}:bind_ack",
    (
        _NEED,
        Field("note", "Note", "Note to yourself, for example why this can wait.", Kind.LINES),
        _ALL,
    ),
    command="ack",
    help="Affects only you: nothing is written to the collaboration.",
    aliases=("acknowledge",),
    examples=('acp ack checkout --note "waiting for legal"', "acp ack checkout --all"),
    place=_FOLDER,
    run="acp_core.cli.matters:ack",
    personal=True,
)
UNACK = ActionSpec(
    "unack",
    "Take back an acknowledgement",
    "Show an acknowledged attention item again.",
    f"{_BINDER}:bind_unack",
    (_NEED, _ALL._replace(help="Withdraw all acknowledgements.")),
    command="unack",
    help="Affects only you: nothing is written to the collaboration.",
    examples=("acp unack checkout", "acp unack checkout --all"),
    place=_FOLDER,
    run="acp_core.cli.matters:unack",
    personal=True,
)
ARCHIVE = ActionSpec(
    "archive",
    "Archive",
    "Hide a collaboration from your fleet. Its files are not changed.",
    f"{_BINDER}:bind_archive",
    (_THESE,),
    command="archive",
    help="Affects only you. `acp status --all` and `acp find` still list it.",
    examples=("acp archive checkout",),
    place=None,
    run="acp_core.cli.matters:archive",
    personal=True,
)
UNARCHIVE = ActionSpec(
    "unarchive",
    "Unarchive",
    "Show an archived collaboration in your fleet again.",
    f"{_BINDER}:bind_unarchive",
    (_THESE,),
    command="unarchive",
    examples=("acp unarchive checkout",),
    place=None,
    run="acp_core.cli.matters:unarchive",
    personal=True,
)
REPORT = ActionSpec(
    "report",
    "Save a report…",
    "Save a report: the outcome, what happened, and the figures.",
    "acp_core.cli.save_report:bind_report",
    (
        Field(
            "format", "Format", "HTML with a chart and a replay, Markdown for a pull request, JSON, "
            "CSV of the turns, or an OpenTelemetry trace.", Kind.CHOICE,
            choices=("html", "md", "json", "csv", "otlp"), default="html",
            labels={"html": "HTML", "md": "Markdown", "json": "JSON", "csv": "CSV of the turns",
                    "otlp": "OpenTelemetry trace"},
        ),
        Field(
            "file", "File", "Save it to this file (default: named after the collaboration, in the "
            "current folder).", Kind.FILE, short="-o", flag="--output",
        ),
    ),
    place=_FOLDER,
    personal=True,
)  # fmt: skip
ACTS = (ACK, UNACK, REPORT, ARCHIVE, UNARCHIVE)
NAMES = frozenset(name for each in ACTS for name in (each.name, *each.aliases))
"""What they are called, and were."""
