"""Commands about participants' loops: started, listed, followed, stopped."""

from __future__ import annotations

from acp_core.cli.specs.fields import FOLDER, FOLDERS, command_of
from acp_core.loops.acts import table
from acp_core.loops.acts.table import RUN
from acp_core.model.action_spec import ActionSpec, Field, Kind, QuerySpec

_PARTICIPANTS = Field(
    "participant", help="Name the participants (default: all).", kind=Kind.LIST, position=True,
    metavar="PARTICIPANT",
)  # fmt: skip

LOOP = command_of(
    ActionSpec(
        "loop",
        "Loop",
        "Wait for a participant's turns and run a program once for each.",
        fields=(
            Field("participant", help="Whose turns are taken.", metavar="ID", required=True,
                  position=True),
            Field(
                "agent", help="Take a known program instead of a COMMAND.", metavar="PRESET",
                aliases=("--preset",),
            ),
            *RUN,
            Field("interval", help="Time between two looks.", kind=Kind.DURATION, default=1.0),
            Field("leave", help="End instead of waiting for a person's help.", kind=Kind.FLAG),
        ),
        command="loop",
        help="COMMAND gets the turn's prompt on its standard input, or where its words say "
        "{prompt} or {prompt_file}. Its exit code proves nothing: a turn is taken when the "
        "participant's event appears. One that was not is tried again, with what was refused.",
        examples=(
            "acp loop --folder checkout --participant reviewer -- my-agent --task {prompt}",
        ),
        exits=(
            (0, "completed"),
            (1, "gave up (only with --leave), or the deadline passed"),
            (2, "cannot run: no collaboration, no such program, another loop; or bad input"),
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
        "List the loops of this machine, or those of the collaborations in each FOLDER.",
        fields=(
            FOLDERS,
            Field("all", help="List those that ended or were stopped too.", kind=Kind.FLAG),
        ),
        command="ps",
        examples=("acp ps", "acp ps checkout --all --json"),
        run="acp_core.cli.processes:ps",
    )
)
LOGS = command_of(
    QuerySpec(
        "logs",
        "Show what the loops of the collaboration in FOLDER did, and what their programs printed.",
        fields=(
            FOLDER,
            _PARTICIPANTS,
            Field("follow", help="Go on with what comes, until interrupted.", kind=Kind.FLAG,
                  short="-f"),
            Field("lines", help="Show this many lines.", kind=Kind.NUMBER, default=40, least=0,
                  short="-n"),
            Field("raw", help="Show what the program printed in its last run, as it was.",
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
NUDGE = command_of(table.NUDGE)
