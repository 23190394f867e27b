"""The acts of participants and what they ask, described once: init, append, next, wait and validate.

Source: folder protocol specification, "Initialization", "Events", "Polling And Watchers" and
"Validation". What is read at every turn without a parser stands in `agents`. Standard library only:
the scripts of the portable skill have the same descriptions.
"""

from __future__ import annotations

from acp_core.model.action_spec import ActionSpec, By, Field, Intent, Kind, QuerySpec
from acp_core.protocols.folder.acts import agents
from acp_core.protocols.folder.schema.deliverables import EXTERNAL, INTERNAL, TYPES
from acp_core.protocols.folder.schema.records import APPEND as APPEND_NAME
from acp_core.protocols.kit.command_line import NAMED_FOLDER

_ACTS = "acp_core.protocols.folder.acts"

_RUN = f"{_ACTS}.agents"
DIALECTS = ("v1", "v2")
INIT = ActionSpec(
    "init",
    "New collaboration",
    "Start a collaboration: agents and people work on one objective in a folder.",
    fields=(
        Field("objective", "Objective", "What the collaboration must decide or produce.", Kind.LINES),
        Field(
            "participants", "Participants",
            "Ids of the agents and people; the first one owns the proposal.",
            Kind.LIST, flag="--participant", metavar="ID",
        ),
        Field("gates", "Completion gates", "Concrete conditions for completing the collaboration.", Kind.LIST,
              flag="--completion", metavar="GATE"),
        Field("dialect", "Schema version", "v2 also produces a deliverable, a Markdown file.", Kind.CHOICE,
              DIALECTS, listed=False),
        Field(
            "deliverable", "Deliverable",
            "Type of the deliverable; makes it a collaboration of schema 2 (v2).",
            flag="--primary-deliverable-type", metavar="TYPE",
        ),
        Field("file", "Deliverable's file", "The deliverable's file; blank: named after its type.",
              flag="--primary-deliverable-file", metavar="FILE"),
        Field("checklist", "Deliverable's sections", "Required sections, only for a custom deliverable.", Kind.LIST,
              flag="--primary-deliverable-check", metavar="SECTION"),
        Field(
            "deliverables_mode", kind=Kind.CHOICE, choices=(INTERNAL, EXTERNAL), form=False, optional=True,
            help="Location of the deliverables: in the folder, or beside it in the repository.",
        ),
        Field("deliverables_dir", help="Folder of the deliverables (default: deliverables).", form=False, optional=True,
              metavar="DIR"),
        Field("repo_root", help="The repository, relative to the folder; only when external.",
              form=False, optional=True, metavar="DIR"),
        Field("resume", help="Finish an interrupted start.", kind=Kind.FLAG, form=False),
        agents.FORCED,
    ),
    intent=Intent.CREATE,
    command="init",
    help=f"Types of deliverable: {', '.join(TYPES)}. Exit codes: 0 started, 2 refused.",
    examples=(
        (
            "acp init --folder checkout --participant server --participant reviewer \\\n"
            '    --objective "Decide how checkout retries" --completion "Retry policy chosen"'
        ),
    ),
    exits=(),
    place=NAMED_FOLDER._replace(help="The folder; created if it does not exist."),
    run=f"{_RUN}:start",
)  # fmt: skip
APPEND = ActionSpec(
    APPEND_NAME,
    "Append an event",
    "Append an event.",
    f"{_ACTS}.turns:appending",
    agents.APPEND,
    by=By.PARTICIPANT,
    command="append",
    help="Exit codes: 0 appended; 2 refused, nothing written; 3 not appended, the log has newer events (--expect-seq); 4 appended, but a program without a lock wrote at the same moment: do not repeat, validate.",
    examples=(
        (
            "acp append --folder checkout --participant server \\\n"
            '    --event proposal_submitted --summary "First draft" --reply-to 1'
        ),
        (
            "acp append --folder checkout --participant reviewer --reply-to 2 --key r1 \\\n"
            '    --event review_submitted --summary "Two changes" --review-file review.txt'
        ),
    ),
    exits=(),
    place=NAMED_FOLDER,
    run=f"{_RUN}:append_event",
)
NEXT = QuerySpec(
    "next",
    "Show what a participant should do now.",
    fields=agents.NEXT,
    command="next",
    help="Exit codes: 0; 1 unknown phase; 2 the collaboration cannot be read.",
    examples=(
        "acp next --folder checkout --participant reviewer",
        "acp next --folder checkout --participant reviewer --json",
    ),
    exits=(),
    run=f"{_RUN}:say_next",
)
WAIT = QuerySpec(
    "wait",
    "Wait until it is a participant's turn, or the collaboration has ended.",
    fields=agents.WAIT,
    command="wait",
    help="Exit codes: 0 ready; 1 timeout; 2 the collaboration cannot be read.",
    examples=("acp wait --folder checkout --participant reviewer",),
    exits=(),
    run=f"{_RUN}:wait_for_turn",
)
VALIDATE = QuerySpec(
    "validate",
    "Check a collaboration against the protocol.",
    fields=agents.VALIDATE,
    command="validate",
    help="Exit codes: 0 valid; 1 valid with warnings; 2 invalid.",
    examples=("acp validate checkout", "acp validate checkout --strict --json"),
    exits=(),
    run=f"{_RUN}:check",
)
SPECS = {each.command: each for each in (INIT, APPEND, NEXT, WAIT, VALIDATE)}
"""By the word after `acp`."""
