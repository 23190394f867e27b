"""Every act about participants' loops, described once. Standard library only."""

from __future__ import annotations

from acp_core.loops.acts import names
from acp_core.model.action_field import PLACE, Field, Kind
from acp_core.model.action_spec import ActionSpec, Intent
from acp_core.protocols.kit import command_line

_BINDERS = "acp_core.loops.acts"
_FOLDER = PLACE._replace(default=None, required=True)
_WHO = Field("participant", "Participant", "Name the participant.", Kind.CHOICE, required=True)
_PROGRAM = Field(
    "program", "Program", "A preset, or the same agent as another participant's.", Kind.CHOICE,
    metavar="PRESET", owner=True,
)  # fmt: skip
_COMMAND = Field(
    "command", "Command", "For the preset `command`: the command line; {prompt} is the task.",
    owner=True,
)  # fmt: skip
_AGENTS = Field(
    "participant", "Participants", "Name the participants (default: all).", Kind.LIST,
    items=Kind.CHOICE, position=True, metavar="PARTICIPANT",
)  # fmt: skip
RUN = (
    command_line.MODEL,
    Field("workdir", "Working folder", "Run the agent in this folder (default: the collaboration's).",
          kind=Kind.FOLDER, owner=True),
    Field("alone", help="The agent waits for its turns itself; start it once.", kind=Kind.FLAG,
          asked=False, owner=True),
    Field(
        "append_after_change", help="The agent cannot run commands: append its event after its document has changed.", kind=Kind.FLAG, asked=False,
        owner=True,
    ),
    Field(
        "commands", help="How prompts name acp's commands: {command} is the name, {script} the "
        "script's file.", metavar="TEMPLATE", optional=True, asked=False, owner=True,
    ),
    Field(
        "restart", help="Choose when to retry an attempt that ended without taking the turn.",
        kind=Kind.CHOICE, choices=("always", "on-failure", "never"), default="on-failure",
        metavar="WHEN", asked=False, owner=True,
    ),
    Field("retries", help="Limit the number of retries per turn (default: 3).", kind=Kind.NUMBER,
          least=0, most=1000, asked=False, owner=True),
    Field("pause", help="Pause before the first retry; later pauses are longer (default: 5s).",
          kind=Kind.DURATION, asked=False, owner=True),
    Field("timeout", "Limit of one turn", "Time limit of one turn.", Kind.DURATION,
          aliases=("--turn-limit",), owner=True),
    command_line.ONCE._replace(form=True, asked=False),
    command_line.PERMISSIONS._replace(form=True, asked=False),
    Field("deadline", "Limit of the whole loop", "Time limit of the whole loop, counted from now.",
          Kind.DURATION, owner=True),
    command_line.BUDGET,
)  # fmt: skip
"""How a program is chosen and run (see `options.Chosen`)."""
LAUNCH = ActionSpec(
    names.LAUNCH,
    "Start loops",
    "Start a background loop for each participant; the loop runs an agent for each turn.",
    f"{_BINDERS}.starting:bind_launch",
    (
        _AGENTS._replace(
            help="Name the participants and their agents (default: all that ran here before).", metavar="PARTICIPANT[=PRESET]",
            owner=True,
        ),
        command_line.AGENT._replace(
            help="Choose the agent of a participant, or (without NAME) of all others; without participants, of all that have no loop.", aliases=("--with", "--program"),
            form=True, asked=False,
        ),
        _COMMAND._replace(listed=False),
        *RUN,
        Field("again", "Restart running loops",
              "Restart the loop if it is running.", Kind.FLAG),
        Field("at_boot", help="Resume interrupted loops when the machine restarts: show what this "
              "adds to your system, and add it once you confirm.", kind=Kind.FLAG, form=False),
        Field("boot_manager", help="With --at-boot: use this service manager (default: the one of your system).",
              kind=Kind.CHOICE, choices=("systemd", "launchd", "cron"), metavar="MANAGER", form=False,
              optional=True),
        Field("remove", help="With --at-boot: remove what it added.", kind=Kind.FLAG, form=False),
        command_line.YES,
    ),
    Intent.START,
    command="launch",
    help="Loops keep running after this terminal and the dashboard close: `acp ps` lists them, `acp logs` shows their output, `acp stop` stops them.",
    examples=(
        "acp launch checkout reviewer=claude server=codex",
        "acp launch checkout --agent claude",
        "acp launch checkout reviewer -- my-agent --task {prompt}",
        "acp launch --at-boot",
    ),
    exits=((0, "all run"), (2, "a loop could not be started"), (130, "interrupted")),
    place=_FOLDER._replace(required=False),
    run="acp_core.cli.loops:launch",
    words="COMMAND",
)  # fmt: skip
RELAUNCH = ActionSpec(
    names.RELAUNCH,
    "Restart",
    "Restart a participant's loop with the same agent, or with another model of it.",
    f"{_BINDERS}.starting:bind_relaunch",
    (_WHO, command_line.MODEL._replace(help="Choose another model (empty: the same as before).")),
    Intent.START,
)
LAUNCH_ALL = ActionSpec(
    names.LAUNCH_ALL,
    "Start all loops",
    "Start a loop for every participant without one.",
    f"{_BINDERS}.starting:bind_launch_all",
    (
        _PROGRAM._replace(
            help="Agent for participants that had none before; the others keep theirs."
        ),
    ),
    Intent.START,
)
HAND_OVER = ActionSpec(
    names.HAND_OVER,
    "Reassign to another agent",
    "Let another agent take a participant's turns under the same id.",
    f"{_BINDERS}.starting:bind_hand_over",
    (
        _WHO._replace(help="Name the participant to reassign; the id stays the same."),
        _PROGRAM,
        _COMMAND,
        command_line.MODEL,
    ),
    Intent.START,
    owner=True,
)
NUDGE = ActionSpec(
    names.NUDGE,
    "Send a message",
    "Send a message to a participant's agent, for its turn.",
    f"{_BINDERS}.steering:bind_nudge",
    (
        _WHO._replace(help="Name the participant.", position=True),
        Field(
            "message",
            "Message",
            "Send this message, or add it to the prompt.",
            Kind.LINES,
            position=True,
        ),
    ),
    Intent.MESSAGE,
    command="nudge",
    help="An agent in a live session that takes messages gets it at once. Otherwise the loop restarts the turn with the message, after the current attempt.",
    examples=('acp nudge checkout reviewer "Look at question 3"',),
    place=_FOLDER,
    run="acp_core.cli.loops:nudge",
)
CANCEL = ActionSpec(
    names.CANCEL,
    "Cancel the turn",
    "Cancel what a participant's agent is doing; the loop then waits for you.",
    f"{_BINDERS}.steering:bind_cancel",
    (_WHO._replace(help="Name the participant.", position=True),),
    Intent.STOP,
    risky=True,
    command="cancel",
    help="acp asks the agent to end its turn, ends the commands that it left running, and starts no further attempt until you send a message (`acp nudge`) or restart the loop. A live session stays. An agent without a live session is ended.",
    examples=("acp cancel checkout reviewer",),
    exits=(
        (0, "cancelled"),
        (1, "the agent is still at work"),
        (2, "refused, or invalid input"),
        (130, "interrupted"),
    ),
    place=_FOLDER,
    run="acp_core.cli.loops:cancel",
)
STOP_LOOP = ActionSpec(
    names.STOP_LOOP,
    "Stop loops",
    "Stop participants' loops and their agents.",
    f"{_BINDERS}.steering:bind_stop",
    (
        _AGENTS,
        Field("all", help="Stop all loops on this machine.", kind=Kind.FLAG, form=False),
    ),
    Intent.STOP,
    risky=True,
    command="stop",
    help="Loops are asked to stop first, and killed after ten seconds.",
    examples=("acp stop checkout", "acp stop checkout reviewer", "acp stop --all"),
    exits=(
        (0, "stopped"),
        (1, "a loop is still running"),
        (2, "refused, or invalid input"),
        (130, "interrupted"),
    ),
    place=_FOLDER._replace(required=False),
    run="acp_core.cli.loops:stop",
)
STOP_PROGRAM = ActionSpec(
    names.STOP_PROGRAM,
    "End its agent",
    "End the agent process that a participant's loop is running.",
    f"{_BINDERS}.steering:bind_stop_program",
    (_WHO,),
    Intent.STOP,
    risky=True,
)
DUPLICATE = ActionSpec(
    names.DUPLICATE,
    "End a second process",
    "End one of two processes that act for the same participant.",
    f"{_BINDERS}.steering:bind_stop_duplicate",
    (
        _WHO,
        Field("process", "Process", "The process that acp did not start is listed first.", Kind.CHOICE),
    ),
    Intent.STOP,
    risky=True,
)  # fmt: skip
LOGIN = ActionSpec(
    names.LOGIN,
    "Log in",
    "Show the login command of a participant's agent.",
    f"{_BINDERS}.steering:bind_login",
    (_WHO,),
)
RAISE = ActionSpec(
    names.RAISE,
    "Raise a budget",
    "Raise a budget that stops a participant's agent.",
    f"{_BINDERS}.steering:bind_raise",
    (
        _WHO,
        Field("budget", "Raise to", "The new limit: scope = amount, such as turn=5usd.",
              required=True, metavar="SCOPE=AMOUNT", owner=True),
    ),
    Intent.CONTINUE,
    owner=True,
)  # fmt: skip
ANSWER = ActionSpec(
    names.ANSWER_PERMISSION,
    "Answer a permission request",
    "Allow or reject what an agent asks permission for, once.",
    f"{_BINDERS}.steering:bind_answer",
    (
        Field("request", "Request", "Choose the request by its id.",
              Kind.CHOICE, position=True, required=True),
        Field("verdict", "Answer", "Allow it once, or reject it.", Kind.CHOICE,
              ("allow", "reject"), required=True, position=True),
        Field("message", "Message", "Add this message to the agent's next prompt.", Kind.LINES),
    ),
    Intent.ANSWER,
    command="answer",
    aliases=("answer",),
    help="`acp card` shows each request with everything that the agent wants to do. The answer holds for this request only.",
    examples=("acp answer checkout 3f2a9c0d1e4b5a67 allow",
              'acp answer checkout 3f2a9c0d1e4b5a67 reject --message "Use git mv"'),
    place=_FOLDER,
    run="acp_core.cli.loops:answer",
)  # fmt: skip
ACTS = (
    RELAUNCH,
    LAUNCH,
    LAUNCH_ALL,
    HAND_OVER,
    NUDGE,
    CANCEL,
    STOP_LOOP,
    STOP_PROGRAM,
    DUPLICATE,
    LOGIN,
    RAISE,
    ANSWER,
)
"""All of them, in the order in which they are offered."""
