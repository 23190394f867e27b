"""The verbs with which a human decides: gates, escalations, objections, words, recovery."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from acp_core.files.transaction import Write
from acp_core.protocols.governed.commands.handing import handed
from acp_core.protocols.governed.commands.line import (
    as_objects,
    deciding,
    must_agree,
    parser_of,
    say_json,
    show,
    warn_all,
)
from acp_core.protocols.governed.commands.runs import standing, stands
from acp_core.protocols.governed.schema import Object
from acp_core.protocols.governed.state import Move, format_time
from acp_core.protocols.governed.state.blocks import escalated
from acp_core.protocols.governed.state.requests import pending
from acp_core.protocols.governed.write import changes as shown
from acp_core.protocols.governed.write import decide
from acp_core.protocols.governed.write.opened import Opened, look, refuse_agents, who
from acp_core.protocols.kit.command_line import Parser, say

HANDED = ("approve-transition", "approve-completion", "reject", "escalate", "unblock")
"""Verbs that the existing program does in the runs that it made."""

Plan = Callable[[Opened, str, datetime], tuple[Move | None, list[Write]]]


def _now() -> datetime:
    return datetime.now(UTC)


def _decide(
    verb: str,
    options: argparse.Namespace,
    question: str,
    plan: Plan,
    do: Callable[[], Object],
    done: str,
) -> int:
    """Show what would change, ask, do it, and say how the run stands then."""
    refuse_agents()
    opened = look(options.folder)
    move, more = plan(opened, who(options.by), _now())
    if not options.dry_run and not must_agree(options, question):
        say("not done")
        return 1
    if verb in HANDED:
        code = handed(verb, options, reason=getattr(options, "reason", ""))
        if code is not None:
            return code
    if options.dry_run:
        changes = shown.changes(opened, move, more)
        if options.json:
            told = standing(move.state) if move else {}
            say_json(verb, folder=options.folder, dry_run=True, changes=as_objects(changes), **told)
        else:
            show(changes)
        return 0
    state = do()
    if options.json:
        say_json(verb, folder=options.folder, **standing(state))
    else:
        say(f"{done}; {stands(state)}")
    return 0


def approve_transition_parser() -> Parser:
    """The arguments of `acp governed approve-transition`."""
    parser = parser_of("approve-transition", "Open the gate to the next phase. Only a human does.")
    return deciding(parser, comment="what should be remembered of it")


def approve_transition(arguments: Sequence[str]) -> int:
    """Open the gate to the next phase."""
    options = approve_transition_parser().parse_args(arguments)
    return _approve("approve-transition", options, "phase_transition")


def approve_completion_parser() -> Parser:
    """The arguments of `acp governed approve-completion`."""
    parser = parser_of("approve-completion", "Open the last gate: the run is completed.")
    return deciding(parser, comment="what should be remembered of it")


def approve_completion(arguments: Sequence[str]) -> int:
    """Open the last gate."""
    options = approve_completion_parser().parse_args(arguments)
    return _approve("approve-completion", options, "run_completion")


def _approve(verb: str, options: argparse.Namespace, kind: str) -> int:
    opened = look(options.folder)
    request = pending(opened.state, kind)
    lacking = decide.unmet(opened, request)
    standing_objections = [o for o in opened.run.objections if o.open]
    if not options.json:
        warn_all([f"not met: {each}" for each in lacking])
        warn_all(
            [f"open objection {o.id} ({o.severity}): {o.statement}" for o in standing_objections]
        )
    to = f"to {request.to}" if request.to else "and complete the run"

    def plan(opened: Opened, by: str, now: datetime) -> tuple[Move, list[Write]]:
        return decide.approving(opened, kind, by, options.comment, now), []

    return _decide(
        verb, options, f"Open the gate {request.gate} {to}?", plan,
        lambda: decide.approve(options.folder, kind, options.by, options.comment, _now()),
        f"approved {request.gate}",
    )  # fmt: skip


def reject_parser() -> Parser:
    """The arguments of `acp governed reject`."""
    parser = parser_of("reject", "Send the phase back to work from the gate that waits.")
    return deciding(parser, comment="what is missing; the next agent is shown it (required)")


def reject(arguments: Sequence[str]) -> int:
    """Reject the gate that waits."""
    options = reject_parser().parse_args(arguments)

    def plan(opened: Opened, by: str, now: datetime) -> tuple[Move, list[Write]]:
        return decide.rejecting_gate(opened, by, options.comment, now), []

    return _decide(
        "reject", options, "Send the phase back to work?", plan,
        lambda: decide.reject_gate(options.folder, options.by, options.comment, _now()),
        "rejected the gate",
    )  # fmt: skip


def escalate_parser() -> Parser:
    """The arguments of `acp governed escalate`."""
    parser = parser_of("escalate", "Stop the run until somebody has resolved the reason.")
    parser.add_argument("--reason", required=True, help="why, in a few words")
    return deciding(parser, comment="more about it")


def escalate(arguments: Sequence[str]) -> int:
    """Stop the run."""
    options = escalate_parser().parse_args(arguments)

    def plan(opened: Opened, by: str, now: datetime) -> tuple[Move, list[Write]]:
        at = format_time(now)
        return escalated(opened.state, options.reason, options.comment, by, at), []

    return _decide(
        "escalate", options, "Stop the run?", plan,
        lambda: decide.escalate(
            options.folder, options.reason, options.comment, options.by, _now()
        ),
        "escalated",
    )  # fmt: skip


def unblock_parser() -> Parser:
    """The arguments of `acp governed unblock`."""
    parser = parser_of("unblock", "Let a blocked run go on, now that the reason is resolved. A turn "
                       "whose attempts are used up gets one more.")  # fmt: skip
    parser.add_argument("--drop-turn", action="store_true", help="give the turn up instead")
    return deciding(parser, comment="how it was resolved")


def unblock(arguments: Sequence[str]) -> int:
    """Let a blocked run go on."""
    options = unblock_parser().parse_args(arguments)
    drop = options.drop_turn

    def plan(opened: Opened, by: str, now: datetime) -> tuple[Move, list[Write]]:
        return decide.unblocking(opened, by, options.comment, now, drop_turn=drop)

    return _decide(
        "unblock", options, "Let the run go on?", plan,
        lambda: decide.unblock(options.folder, options.by, options.comment, _now(), drop_turn=drop),
        "unblocked",
    )  # fmt: skip


def objection_parser() -> Parser:
    """The arguments of `acp governed objection`."""
    parser = parser_of("objection", "Say what became of an objection.")
    parser.add_argument("--id", required=True, metavar="OBJ-NNN", help="which")
    parser.add_argument("--status", choices=decide.MARKS, default="resolved_by_human", metavar="STATUS",
                        help=f"what became of it: {', '.join(decide.MARKS)} (%(default)s)")  # fmt: skip
    return deciding(parser, comment="how")


def objection(arguments: Sequence[str]) -> int:
    """Say what became of an objection."""
    options = objection_parser().parse_args(arguments)
    id, status = options.id, options.status

    def plan(opened: Opened, by: str, now: datetime) -> tuple[Move, list[Write]]:
        return decide.marking(opened, id, status, by, options.comment, now), []

    return _decide(
        "objection", options, f"{id} is {status}?", plan,
        lambda: decide.mark_objection(
            options.folder, id, status, options.by, options.comment, _now()
        ),
        f"{id}: {status}",
    )  # fmt: skip


def talk_parser() -> Parser:
    """The arguments of `acp governed talk`."""
    parser = parser_of("talk", "Write into TALK.md; the agents of the next turns are shown it.")
    parser.add_argument("--text", required=True, help="what you say")
    parser.add_argument("--as", dest="by", default="", metavar="NAME", help="who says it")
    return parser


def talk(arguments: Sequence[str]) -> int:
    """Write into TALK.md."""
    options = talk_parser().parse_args(arguments)
    if options.dry_run:
        opened = look(options.folder)
        write = decide.talking(opened, options.text, who(options.by), _now())
        changes = shown.changes(opened, None, [write])
        if options.json:
            say_json("talk", folder=options.folder, dry_run=True, changes=as_objects(changes))
        else:
            show(changes)
        return 0
    decide.talk(options.folder, options.text, options.by, _now())
    if options.json:
        say_json("talk", folder=options.folder, written=True)
    else:
        say("written into TALK.md")
    return 0
