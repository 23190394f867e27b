"""The acts that mend a collaboration, continue it elsewhere, or install the skill, described once.

Source: folder protocol specification, "Phases" (``blocked`` and ``completed`` have no way out but a new
collaboration).
"""

from __future__ import annotations

from acp_core.model.action_field import PARTICIPANTS
from acp_core.model.action_spec import DONE, PLACE, ActionSpec, Field, Intent, Kind
from acp_core.protocols.folder.actions.agents import FORCED
from acp_core.protocols.folder.schema.act_names import CONTINUE, REPAIR
from acp_core.protocols.kit import fast_args

_ROOM = "acp_core.protocols.folder"
REPAIRING = ActionSpec(
    REPAIR,
    "Repair",
    "Repair a collaboration's files.",
    f"{_ROOM}.actions.repairing:repairing",
    (fast_args.YES, FORCED),
    Intent.REPAIR,
    command="repair",
    help="Shows the damage and the exact change, asks, keeps a copy, repairs, and validates again. "
    "--json needs --yes or --dry-run.",
    examples=("acp repair checkout --dry-run", "acp repair checkout --yes"),
    exits=(
        (0, "nothing to repair, or repaired and valid"),
        (1, "not confirmed"),
        (2, "a problem is left that cannot be repaired, or refused"),
        (130, "interrupted"),
    ),
    run=f"{_ROOM}.actions.repair_command:repair",
)
CONTINUATION = ActionSpec(
    CONTINUE,
    "Continue in a new folder",
    "Start a new collaboration with the documents, decisions and participants of this one.",
    f"{_ROOM}.actions.continuing:continuing",
    (
        Field("answer", "Answer", "How the blocker is resolved; placed at the top of the new proposal.",
              Kind.LINES, metavar="TEXT", needed=True),
        Field("objective", "Objective", "The new objective; blank: the same as before."),
        Field("folder", "New folder", "The new folder; must not exist yet (default: NAME-2, NAME-3).",
              flag="--to", metavar="FOLDER", owner=True),
        Field("start", "Start the same agents there",
              "Start the agents that ran here in the new folder, too.", Kind.FLAG, owner=True),
        Field("answer_file", help="Read the answer from a file.", kind=Kind.FILE, form=False, owner=True),
        FORCED,
    ),
    Intent.CONTINUE,
    command="continue",
    help="Works for blocked and completed collaborations; each folder names the other.",
    examples=(
        'acp continue checkout --to checkout-2 --answer "Use the sandbox account"',
        'acp continue checkout --answer "Use the sandbox account" --start',
    ),
    exits=((0, "continued"), (1, "continued, but an agent did not start"), *DONE[1:]),
    place=PLACE._replace(name="source", flag="--folder", metavar="FOLDER"),
    run=f"{_ROOM}.actions.continuing:continue_in_new_folder",
)  # fmt: skip
_PROGRAM = Field("program", "Program", "Install for this program, where it looks for skills and tools.",
                 Kind.CHOICE, ("claude", "codex", "opencode", "gemini", "qwen"), flag="--for",
                 metavar="PROGRAM", optional=True)  # fmt: skip
_PROJECT = Field("project", "Project", "Install only for this project's folder, not for all your projects.",
                 Kind.FOLDER, optional=True)  # fmt: skip
INSTALLATION = ActionSpec(
    "install",
    "Install the skill",
    "Install the skill in a folder, or for a program; or update it there.",
    fields=(
        _PROGRAM,
        _PROJECT,
        Field("collaboration", "Collaboration", "Also install the tools, for the collaboration in this folder.",
              Kind.FOLDER, optional=True),
        Field("participant", "Participant", "Participant as which the agent uses the tools.", optional=True,
              metavar="ID", suggests=PARTICIPANTS),
        fast_args.YES,
        fast_args.FORCE._replace(help="Replace installed files that were edited since."),
    ),
    command="skill install",
    help="SKILL.md, README.md and scripts are written into DIR, for example into the folder from which "
    "your agents load skills. The scripts need Python 3.11 and no package. An installed skill "
    "is updated; files that acp did not install are never changed. With --for, acp shows the files "
    "and differences, and asks.",
    examples=(
        "acp skill install ~/my-agent/skills/agent-collaboration",
        "acp skill install --for claude",
        "acp skill install --for codex --collaboration checkout --participant server",
    ),
    place=Field("folder", help="The skill's own folder.", kind=Kind.FOLDER, position=True,
                metavar="DIR", form=False, default=""),
    run=f"{_ROOM}.skill.commands:install",
)  # fmt: skip
REMOVAL = ActionSpec(
    "remove",
    "Remove the skill",
    "Remove the skill and the tools that acp installed for a program.",
    fields=(_PROGRAM._replace(required=True, optional=False, help="Remove them for this program."),
            _PROJECT, fast_args.YES),
    command="skill remove",
    help="acp removes exactly what it installed. What was changed since stays, and acp names it.",
    examples=("acp skill remove --for claude",),
    place=None,
    run=f"{_ROOM}.skill.for_programs:remove_for",
)  # fmt: skip
