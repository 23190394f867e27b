"""A new collaboration with its agents, described once: `n` on the dashboard, and `acp new`.

The files are those of `acp init`; the programs are started by what is handed in
(`acp_core.protocols.kit.starting`).
"""

from __future__ import annotations

from acp_core.model.action_field import PRESETS
from acp_core.model.action_spec import DONE, PLACE, Kind
from acp_core.protocols.folder.actions.table_agents import INIT
from acp_core.protocols.folder.schema.act_names import CREATE
from acp_core.protocols.kit import fast_args

_fields = {each.name: each for each in INIT.fields}
_OBJECTIVE = _fields.pop("objective")._replace(required=True)
_PARTICIPANTS = _fields.pop("participants")._replace(
    required=True, position=True, metavar="PARTICIPANT[=PRESET]",
    help="Name the participants, agents and people; the first one owns the proposal.", suggests=PRESETS,
)  # fmt: skip
_GATES = _fields.pop("gates")._replace(required=True)
_fields.pop("resume")
AGENTS = fast_args.AGENT._replace(
    title="Agents", items=Kind.CHOICE, help="Choose the agent of a participant, or (without NAME) of all others. "
    "Participants without an agent take part by hand.", form=True,
    names_from="participants",
)  # fmt: skip
NEW = INIT._replace(
    name=CREATE,
    label="Create and start",
    sentence="Create a collaboration in a folder, and start its agents.",
    bind="acp_core.protocols.folder.actions.creating:creation",
    fields=(_OBJECTIVE, _GATES, _PARTICIPANTS, AGENTS, *_fields.values()),
    command="new",
    help="It writes what `acp init` writes, and starts a loop for each participant with an agent, as "
    "`acp launch` does. `acp doctor` lists the installed agents.",
    aliases=("init",),
    examples=(
        (
            "acp new checkout server=claude reviewer=codex \\\n"
            '    --objective "Decide how checkout retries" --completion "Retry policy chosen"'
        ),
        (
            "acp new checkout server reviewer me --agent claude --dry-run \\\n"
            '    --objective "Decide how checkout retries" --completion "Retry policy chosen"'
        ),
    ),
    exits=((0, "created, and all agents run"), (1, "created, but an agent did not start"), *DONE[1:]),
    place=PLACE._replace(default=None, required=True, help="The folder; created if it does not exist."),
    run="",
)  # fmt: skip
