"""``acp governed``: the commands of governed runs and initiatives, found by their verbs.

Source: governed protocol specification, "Commands". Each verb is loaded only when it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from acp_core.protocols.governed.commands.line import WIDE
from acp_core.protocols.kit.command_line import Parser, complain, run
from acp_core.protocols.registry import load

_RUNS = "acp_core.protocols.governed.commands.runs"
_DECISIONS = "acp_core.protocols.governed.commands.decisions"
_UPKEEP = "acp_core.protocols.governed.commands.upkeep"
_COORDINATOR = "acp_core.protocols.governed.coordinator.commands"


class Verb(NamedTuple):
    """A command below ``acp governed``: ``target`` is ``module:function`` of its body, which takes
    the arguments after the verb, and ``parser`` makes its parser."""

    name: str
    summary: str
    target: str
    parser: str


def _verb(module: str, name: str, summary: str) -> Verb:
    function = name.replace("-", "_")
    return Verb(name, summary, f"{module}:{function}", f"{module}:{function}_parser")


VERBS = (
    _verb(_RUNS, "init", "Start a governed run in a repository"),
    _verb(_RUNS, "step", "Assign the next turn, and have it taken"),
    _verb(_RUNS, "stop", "End the program of the turn under way"),
    _verb(_RUNS, "status", "Phase, who is waited for, gate, objections"),
    _verb(_RUNS, "check", "Check the staged result of a turn"),
    _verb(_RUNS, "correct", "Apply the corrections proposed for a staged result"),
    _verb(_RUNS, "accept-turn", "Enter the staged result into the history"),
    _verb(_RUNS, "reject-turn", "Send a turn back, or escalate it"),
    _verb(_DECISIONS, "approve-transition", "Open the gate to the next phase"),
    _verb(_DECISIONS, "approve-completion", "Open the last gate: the run is completed"),
    _verb(_DECISIONS, "reject", "Send the phase back to work from its gate"),
    _verb(_DECISIONS, "escalate", "Stop the run until somebody has resolved it"),
    _verb(_DECISIONS, "unblock", "Let a blocked run go on"),
    _verb(_DECISIONS, "objection", "Say what became of an objection"),
    _verb(_DECISIONS, "talk", "Write into TALK.md, which agents are shown"),
    _verb(_UPKEEP, "recover", "Finish what a killed command had begun"),
    _verb(_UPKEEP, "trust", "Allow the hooks and services that the configuration names"),
    _verb(_UPKEEP, "migrate", "Bring a run of an earlier version to this one"),
    Verb(
        "coordinator",
        "Initiatives over several repositories: barriers, resync",
        f"{_COORDINATOR}:main",
        f"{_COORDINATOR}:parser",
    ),
)


def governed_parser() -> Parser:
    """The arguments of `acp governed`."""
    width = max(len(verb.name) for verb in VERBS)
    parser = Parser(
        prog="acp governed",
        description="Governed runs: phases, turns, and gates that only a human opens.",
        epilog="verbs:\n" + "\n".join(f"  {v.name:{width}}  {v.summary}" for v in VERBS),
        formatter_class=WIDE,
    )
    parser.add_argument(
        "verb", choices=[verb.name for verb in VERBS], metavar="VERB", help="one of these"
    )
    return parser


def governed(arguments: Sequence[str]) -> int:
    """Run a verb."""
    first = arguments[0] if arguments else "--help"
    verb = next((each for each in VERBS if each.name == first), None)
    if verb is not None:
        return run(lambda: int(load(verb.target)(arguments[1:])))
    if first.startswith("-"):
        return run(lambda: _help(arguments))
    import difflib

    near = difflib.get_close_matches(first, [each.name for each in VERBS], n=1)
    hint = f"did you mean {near[0]!r}?" if near else "`acp governed --help` lists them"
    complain(f"no verb {first!r} ({hint})")
    return 2


def _help(arguments: Sequence[str]) -> int:
    governed_parser().parse_args(list(arguments) or ["--help"])
    return 0
