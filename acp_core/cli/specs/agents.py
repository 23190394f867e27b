"""Commands about participants' loops: started, listed, followed, stopped."""

from __future__ import annotations

from acp_core.cli.specs.fields import FOLDER, FOLDERS, command_of
from acp_core.model.action_spec import ActionSpec, Field, Kind, QuerySpec
from acp_core.protocols.kit import options

_PARTICIPANTS = Field(
    "participants", help="Name the participants (default: all).", kind=Kind.LIST, position=True,
    flag="--participant", metavar="PARTICIPANT",
)  # fmt: skip
_RUN = (
    options.MODEL,
    Field("workdir", help="Run the program in this folder (default: the collaboration's).",
          kind=Kind.FOLDER),
    Field("alone", help="The program waits for its turns itself; run it once.", kind=Kind.FLAG),
    Field(
        "append_after_change", help="The program cannot run commands: append its event when its "
        "document changed.", kind=Kind.FLAG,
    ),
    Field(
        "commands", help="How prompts name acp's commands: {command} is the name, {script} the "
        "script's file.", metavar="TEMPLATE", optional=True,
    ),
    Field(
        "restart", help="When the program is run again for a turn that it did not take.",
        kind=Kind.CHOICE, choices=("always", "on-failure", "never"), default="on-failure",
        metavar="WHEN",
    ),
    Field("retries", help="Limit how often it is run again (default: 3).", kind=Kind.NUMBER,
          least=0, most=1000),
    Field("pause", help="Wait before the first retry; then longer (default: 5s).",
          kind=Kind.DURATION),
    Field("timeout", help="Limit of one turn.", kind=Kind.DURATION, aliases=("--turn-limit",)),
    Field("deadline", help="Limit of the whole loop, counted from now.", kind=Kind.DURATION),
)  # fmt: skip
"""How a program is chosen and run, in `acp loop` and `acp launch` (see `Chosen`)."""

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
            *_RUN,
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
LAUNCH = command_of(
    ActionSpec(
        "launch",
        "Launch",
        "Start a loop in the background for each PARTICIPANT of the collaboration in FOLDER.",
        fields=(
            _PARTICIPANTS._replace(
                help="Name whose turns are taken, and with which program (default: all that ran "
                "here before).", metavar="PARTICIPANT[=PRESET]",
            ),
            options.AGENT._replace(
                help="Choose the program of a participant, or (without NAME) of all that name "
                "none; with nobody named, of everybody who has no loop.", aliases=("--with",),
            ),
            *_RUN,
            Field("again", help="Stop a loop that runs, and start it again.", kind=Kind.FLAG),
        ),
        command="launch",
        help="A loop outlives this terminal and the dashboard: `acp ps` lists them, `acp logs` "
        "shows what they do, `acp stop` ends them.",
        examples=(
            "acp launch checkout reviewer=claude server=codex",
            "acp launch checkout --agent claude",
            "acp launch checkout reviewer -- my-agent --task {prompt}",
        ),
        exits=((0, "all run"), (2, "one does not run; why is said"), (130, "interrupted")),
        place=FOLDER,
        run="acp_core.cli.launch:launch",
        words="COMMAND",
    )
)  # fmt: skip
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
STOP = command_of(
    ActionSpec(
        "stop",
        "Stop",
        "Stop the loops of the collaboration in FOLDER, with the programs that they run.",
        fields=(_PARTICIPANTS, Field("all", help="Stop every loop of this machine.",
                                     kind=Kind.FLAG)),
        command="stop",
        help="They are asked to end first, and ended after ten seconds.",
        examples=("acp stop checkout", "acp stop checkout reviewer", "acp stop --all"),
        exits=(
            (0, "stopped"),
            (1, "one still runs"),
            (2, "refused, or bad input: one line says why"),
            (130, "interrupted"),
        ),
        place=FOLDER._replace(required=False),
        dry_run=False,
        run="acp_core.cli.processes:stop",
    )
)  # fmt: skip
NUDGE = command_of(
    ActionSpec(
        "nudge",
        "Nudge",
        "Ask a participant's loop to begin its turn anew, with MESSAGE in the prompt.",
        fields=(
            Field("participant", help="Whose loop is asked.", position=True, required=True),
            Field("message", help="What its prompt says besides.", kind=Kind.LINES, position=True),
        ),
        command="nudge",
        help="It is done as soon as the program of the present run has ended and it is its turn.",
        examples=('acp nudge checkout reviewer "Look at question 3"',),
        place=FOLDER,
        dry_run=False,
        run="acp_core.cli.processes:nudge",
    )
)
