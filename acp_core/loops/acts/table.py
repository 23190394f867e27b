"""Every act about participants' loops, described once. Standard library only."""

from __future__ import annotations

from acp_core.loops.acts import names
from acp_core.model.action_field import PLACE, Field, Kind
from acp_core.model.action_spec import ActionSpec, Intent
from acp_core.protocols.kit import options

_BINDERS = "acp_core.loops.acts"
_FOLDER = PLACE._replace(default=None, required=True)
_WHO = Field("participant", "Participant", "Name the participant.", Kind.CHOICE, required=True)
_PROGRAM = Field(
    "program", "Program", "A preset, or the same as another one's.", Kind.CHOICE,
    metavar="PRESET",
)  # fmt: skip
_COMMAND = Field(
    "command", "Command", "With the program `command`: its words; {prompt} is the task."
)
_AGENTS = Field(
    "participant", "Participants", "Name the participants (default: all).", Kind.LIST,
    items=Kind.CHOICE, position=True, metavar="PARTICIPANT",
)  # fmt: skip
RUN = (
    options.MODEL,
    Field("workdir", "Working folder", "Run the program in this folder (default: the collaboration's).",
          kind=Kind.FOLDER),
    Field("alone", help="The program waits for its turns itself; run it once.", kind=Kind.FLAG,
          asked=False),
    Field(
        "append_after_change", help="The program cannot run commands: append its event when its "
        "document changed.", kind=Kind.FLAG, asked=False,
    ),
    Field(
        "commands", help="How prompts name acp's commands: {command} is the name, {script} the "
        "script's file.", metavar="TEMPLATE", optional=True, asked=False,
    ),
    Field(
        "restart", help="When the program is run again for a turn that it did not take.",
        kind=Kind.CHOICE, choices=("always", "on-failure", "never"), default="on-failure",
        metavar="WHEN", asked=False,
    ),
    Field("retries", help="Limit how often it is run again (default: 3).", kind=Kind.NUMBER,
          least=0, most=1000, asked=False),
    Field("pause", help="Wait before the first retry; then longer (default: 5s).",
          kind=Kind.DURATION, asked=False),
    Field("timeout", "Limit of one turn", "Limit of one turn.", Kind.DURATION,
          aliases=("--turn-limit",)),
    Field("deadline", "Limit of the whole loop", "Limit of the whole loop, counted from now.",
          Kind.DURATION),
)  # fmt: skip
"""How a program is chosen and run (see `options.Chosen`)."""

LAUNCH = ActionSpec(
    names.LAUNCH,
    "Start loops",
    "Start a loop in the background for each participant: it takes the turns with a program.",
    f"{_BINDERS}.starting:bind_launch",
    (
        _AGENTS._replace(
            help="Name whose turns are taken, and with which program (default: all that ran here "
            "before).", metavar="PARTICIPANT[=PRESET]",
        ),
        options.AGENT._replace(
            help="Choose the program of a participant, or (without NAME) of all that name none; "
            "with nobody named, of everybody who has no loop.", aliases=("--with", "--program"),
            form=True, asked=False,
        ),
        _COMMAND._replace(listed=False),
        *RUN,
        Field("again", "Stop loops that run, and start them again",
              "Stop a loop that runs, and start it again.", Kind.FLAG),
    ),
    Intent.START,
    command="launch",
    help="A loop outlives this terminal and the dashboard: `acp ps` lists them, `acp logs` shows "
    "what they do, `acp stop` ends them.",
    examples=(
        "acp launch checkout reviewer=claude server=codex",
        "acp launch checkout --agent claude",
        "acp launch checkout reviewer -- my-agent --task {prompt}",
    ),
    exits=((0, "all run"), (2, "one does not run; why is said"), (130, "interrupted")),
    place=_FOLDER,
    run="acp_core.cli.launch:launch",
    words="COMMAND",
)  # fmt: skip
RELAUNCH = ActionSpec(
    names.RELAUNCH,
    "Start again",
    "Start a participant's loop again, with the program that it had.",
    f"{_BINDERS}.starting:bind_relaunch",
    (_WHO,),
    Intent.START,
)
LAUNCH_ALL = ActionSpec(
    names.LAUNCH_ALL,
    "Launch everybody",
    "Start a loop for every participant who has none.",
    f"{_BINDERS}.starting:bind_launch_all",
    (_PROGRAM._replace(help="For those who had none before; the others run with what they had."),),
    Intent.START,
)
HAND_OVER = ActionSpec(
    names.HAND_OVER,
    "Hand the role to another program",
    "Let another program take a participant's turns, under the same id.",
    f"{_BINDERS}.starting:bind_hand_over",
    (
        _WHO._replace(help="Name whose turns it takes; the id stays the same."),
        _PROGRAM,
        _COMMAND,
        options.MODEL,
    ),
    Intent.START,
)
NUDGE = ActionSpec(
    names.NUDGE,
    "Nudge",
    "Ask a participant's loop to begin its turn anew, with a message in the prompt.",
    f"{_BINDERS}.messages:bind_nudge",
    (
        _WHO._replace(help="Whose loop is asked.", position=True),
        Field("message", "Message", "What its prompt says besides.", Kind.LINES, position=True),
    ),
    Intent.MESSAGE,
    command="nudge",
    help="It is done as soon as the program of the present run has ended and it is its turn.",
    examples=('acp nudge checkout reviewer "Look at question 3"',),
    place=_FOLDER,
    run="acp_core.cli.processes:nudge",
)
STOP_LOOP = ActionSpec(
    names.STOP_LOOP,
    "Stop loops",
    "Stop participants' loops, with the programs that they run.",
    f"{_BINDERS}.stopping:bind_stop",
    (
        _AGENTS,
        Field("all", help="Stop every loop of this machine.", kind=Kind.FLAG, form=False),
    ),
    Intent.STOP,
    risky=True,
    command="stop",
    help="They are asked to end first, and ended after ten seconds.",
    examples=("acp stop checkout", "acp stop checkout reviewer", "acp stop --all"),
    exits=(
        (0, "stopped"),
        (1, "one still runs"),
        (2, "refused, or invalid input"),
        (130, "interrupted"),
    ),
    place=_FOLDER._replace(required=False),
    run="acp_core.cli.processes:stop",
)
STOP_PROGRAM = ActionSpec(
    names.STOP_PROGRAM,
    "End its program",
    "End the program that a participant's loop runs now.",
    f"{_BINDERS}.stopping:bind_stop_program",
    (_WHO,),
    Intent.STOP,
    risky=True,
)
DUPLICATE = ActionSpec(
    names.DUPLICATE,
    "End a second process",
    "Two processes act for one participant: end one of them.",
    f"{_BINDERS}.stopping:bind_stop_duplicate",
    (
        _WHO,
        Field("process", "Process", "The one that acp did not start comes first.", Kind.CHOICE),
    ),
    Intent.STOP,
    risky=True,
)  # fmt: skip
LOGIN = ActionSpec(
    names.LOGIN,
    "Log in",
    "Show the command with which a participant's program is logged in.",
    f"{_BINDERS}.messages:bind_login",
    (_WHO,),
)
ACTS = (
    RELAUNCH,
    LAUNCH,
    LAUNCH_ALL,
    HAND_OVER,
    NUDGE,
    STOP_LOOP,
    STOP_PROGRAM,
    DUPLICATE,
    LOGIN,
)
"""All of them, in the order in which they are offered."""
