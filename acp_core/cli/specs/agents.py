"""Commands about participants' loops: started, listed, followed, stopped."""

from __future__ import annotations

from acp_core.cli.specs.fields import FOLDER, FOLDERS, command_of
from acp_core.loops.acts import table
from acp_core.loops.acts.table import RUN
from acp_core.model.action_field import PARTICIPANTS, PRESETS
from acp_core.model.action_spec import ActionSpec, Field, Kind, QuerySpec
from acp_core.protocols.kit.command import Commands

_PARTICIPANTS = Field(
    "participant", help="Name the participants (default: all).", kind=Kind.LIST, position=True,
    metavar="PARTICIPANT", suggests=PARTICIPANTS,
)  # fmt: skip

LOOP = command_of(
    ActionSpec(
        "loop",
        "Loop",
        "Wait for a participant's turns and run an agent for each.",
        fields=(
            Field("participant", help="Participant whose turns the agent takes.", metavar="ID", required=True,
                  position=True, suggests=PARTICIPANTS),
            Field(
                "agent", help="Use the preset of a known agent in place of a COMMAND.", metavar="PRESET",
                aliases=("--preset",), suggests=PRESETS,
            ),
            *RUN,
            Field("interval", help="Time between two checks.", kind=Kind.DURATION, default=1.0),
            Field("leave", help="Exit instead of waiting for help from a person.", kind=Kind.FLAG),
        ),
        command="loop",
        help=("COMMAND gets the turn's prompt on its standard input, or in place of {prompt} or "
              "{prompt_file} among its arguments. The exit code does not decide: a turn counts as "
              "done when the participant's event appears. Otherwise acp runs another attempt, and "
              "its prompt says what was refused."),
        examples=(
            "acp loop --folder checkout --participant reviewer -- my-agent --task {prompt}",
        ),
        exits=(
            (0, "completed"),
            (1, "gave up (only with --leave), or the deadline passed"),
            (2, "no collaboration, no such program, another loop runs, or invalid input"),
            (5, "blocked"),
            (130, "interrupted"),
        ),
        place=FOLDER,
        dry_run=False,
        run="acp_core.cli.loop:loop",
        words="COMMAND",
        json=False,
    )
)  # fmt: skip
LAUNCH = command_of(table.LAUNCH)
PS = command_of(
    QuerySpec(
        "ps",
        "List the loops on this machine, or the loops of the collaborations in each FOLDER.",
        fields=(
            FOLDERS,
            Field("all", help="Also list loops that ended or were stopped.", kind=Kind.FLAG),
        ),
        command="ps",
        examples=("acp ps", "acp ps checkout --all --json"),
        run="acp_core.cli.processes:ps",
    )
)
LOGS = command_of(
    QuerySpec(
        "logs",
        "Show what the loops of the collaboration in FOLDER did, and what their agents printed.",
        fields=(
            FOLDER,
            _PARTICIPANTS,
            Field("follow", help="Keep printing new lines until interrupted.", kind=Kind.FLAG,
                  short="-f"),
            Field("lines", help="Show this many lines.", kind=Kind.NUMBER, default=40, least=0,
                  short="-n"),
            Field("raw", help="Show the output of the last attempt, unchanged.",
                  kind=Kind.FLAG),
        ),
        command="logs",
        examples=(
            "acp logs checkout",
            "acp logs -f checkout reviewer",
            "acp logs --raw -n 200 checkout reviewer",
        ),
        run="acp_core.cli.processes:logs",
        json=False,
    )
)  # fmt: skip
STOP = command_of(table.STOP_LOOP)
CANCEL = command_of(table.CANCEL)
NUDGE = command_of(table.NUDGE)
ANSWER = Commands("answer", table.ANSWER.sentence, (table.ANSWER,), "acp.answer/1")
MCP = command_of(
    QuerySpec(
        "mcp",
        "Serve a participant's tools to its agent, over the Model Context Protocol.",
        fields=(
            FOLDER,
            Field("participant", help="Participant as which the agent acts.", metavar="ID", required=True,
                  position=True, suggests=PARTICIPANTS),
            Field("wait", help="Offer the tool that waits for a turn.", kind=Kind.FLAG, default=True),
        ),
        command="mcp",
        help=("The agent's program starts this command and talks to it on its standard input and output. "
              "The tools do what the participant itself can do, never what a person decides; the agent "
              "cannot change who it is or where."),
        examples=(
            "acp mcp --folder checkout --participant reviewer",
            "acp mcp --folder checkout --participant reviewer --no-wait",
        ),
        exits=((0, "the input ended"), (2, "no collaboration, no such participant, or the extra is missing")),
        run="acp_core.cli.tool_server:serve",
        json=False,
    )
)  # fmt: skip
