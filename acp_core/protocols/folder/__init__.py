"""The folder protocol: a shared folder as a state machine with events and readiness gates."""

from __future__ import annotations

from acp_core.protocols.registry import Command, Protocol

_COMMANDS = "acp_core.protocols.folder.commands.agents"
_FOR_PEOPLE = "acp_core.protocols.folder.commands.people"

PROTOCOL = Protocol(
    name="folder",
    title="Folder collaboration",
    markers=("protocol.json", "events.jsonl"),
    manual="acp_core.protocols.folder.manual:MANUAL",
    detect="acp_core.protocols.folder.read.detect:detect",
    open="acp_core.protocols.folder.read.collaboration:open_folder",
    create="acp_core.protocols.folder.actions.offered:create",
    rehearse="acp_core.protocols.folder.rehearsal.rehearse:rehearse",
    stuck="acp_core.protocols.folder.rehearsal.stuck.stories",
    past="acp_core.protocols.folder.past.derive:FolderDerivation",
    commands=(
        Command(
            "init",
            "Start a collaboration in a folder",
            f"{_COMMANDS}:init",
            f"{_COMMANDS}:init_parser",
        ),
        Command("append", "Append an event", f"{_COMMANDS}:append", f"{_COMMANDS}:append_parser"),
        Command(
            "next",
            "Say what a participant should do now",
            f"{_COMMANDS}:next_action",
            f"{_COMMANDS}:next_parser",
        ),
        Command(
            "wait",
            "Wait until it is a participant's turn",
            f"{_COMMANDS}:wait",
            f"{_COMMANDS}:wait_parser",
        ),
        Command(
            "validate",
            "Check a collaboration against the protocol",
            f"{_COMMANDS}:validate",
            f"{_COMMANDS}:validate_parser",
        ),
        Command(
            "repair",
            "Mend a collaboration's files, after showing how",
            f"{_FOR_PEOPLE}:repair",
            f"{_FOR_PEOPLE}:repair_parser",
            "Mend",
        ),
        Command(
            "continue",
            "Go on in a new folder where a collaboration ended",
            f"{_FOR_PEOPLE}:continue_in_new_folder",
            f"{_FOR_PEOPLE}:continue_parser",
            "Mend",
        ),
        Command(
            "skill",
            "Install the skill that agents load: instructions and scripts",
            "acp_core.protocols.folder.skill.commands:skill",
            "acp_core.protocols.folder.skill.commands:skill_parser",
        ),
    ),
)
