"""The folder protocol: a shared folder as a state machine with events and readiness gates."""

from __future__ import annotations

from acp_core.protocols.registry import Command, Protocol, group

_AGENTS = "acp_core.protocols.folder.acts.agents"
_TABLE = "acp_core.protocols.folder.acts.table"


def _at_every_turn(name: str, summary: str, function: str = "") -> Command:
    """A command that agents run at every turn: what is written plainly is read without its table."""
    return Command(
        name, summary, f"{_AGENTS}:{function or name}", f"{_TABLE}:{name.upper()}.parser"
    )


PROTOCOL = Protocol(
    name="folder",
    title="Folder collaboration",
    markers=("protocol.json", "events.jsonl", "mirror.json"),
    manual="acp_core.protocols.folder.acts.table:MANUAL",
    detect="acp_core.protocols.folder.read.detect:detect",
    open="acp_core.protocols.folder.collaboration:open_location",
    schemes=(
        "postgresql",
        "postgres",
        "git+ssh",
        "git+https",
        "git+file",
        "git+scp",
        "ssh",
        "file",
    ),
    locate="acp_core.protocols.folder.read.detect:locate",
    listing="acp_core.protocols.folder.mirror:listing",
    create="acp_core.protocols.folder.acts.creating:create",
    rehearse="acp_core.protocols.folder.rehearsal.rehearse:rehearse",
    stuck="acp_core.protocols.folder.rehearsal.stuck",
    tools="acp_core.protocols.folder.acts.offered:TOOLS",
    acts=f"{_TABLE}:ALL",
    newest="acp_core.protocols.folder.read.detect:newest",
    past="acp_core.protocols.folder.past:FolderDerivation",
    commands=(
        group("new", "Create a collaboration and start its agents", f"{_TABLE}:NEW"),
        _at_every_turn("init", "Start a collaboration in a folder"),
        _at_every_turn("append", "Append an event"),
        _at_every_turn("next", "Show what a participant should do now", "next_action"),
        _at_every_turn("wait", "Wait until it is a participant's turn"),
        _at_every_turn("validate", "Check a collaboration against the protocol"),
        group(
            "repair",
            "Repair a collaboration's files after showing the changes",
            f"{_TABLE}:REPAIR",
            "Fix",
        ),
        group(
            "continue",
            "Continue a finished collaboration in a new folder",
            f"{_TABLE}:CONTINUE",
            "Fix",
        ),
        group("share", "Share a collaboration with other machines", f"{_TABLE}:SHARE", "Share"),
        group("join", "Join a shared collaboration", f"{_TABLE}:JOIN", "Share"),
        group("sync", "Synchronize a shared collaboration", f"{_TABLE}:SYNC", "Share"),
        group("hosts", "List the hosts of a shared collaboration", f"{_TABLE}:HOSTS", "Share"),
        group("ask", "Ask another machine: start, stop, message", f"{_TABLE}:ASK", "Share"),
        group("unshare", "End the sharing of a folder", f"{_TABLE}:UNSHARE", "Share"),
        group(
            "skill",
            "Install the skill that agents load: instructions and scripts",
            f"{_TABLE}:SKILL",
        ),
    ),
)
