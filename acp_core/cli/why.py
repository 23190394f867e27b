"""``acp why``: why a collaboration does not go on, with evidence, and what to do about it."""

from __future__ import annotations

from datetime import datetime

from acp_core.cli import fields, layout
from acp_core.cli.opening import open_one
from acp_core.cli.output import (
    Terminal,
    act_command,
    choice_hint,
    dump,
    fitting,
    say,
    terminal,
    to_choose,
)
from acp_core.model import Cause, Snapshot, Status, format, spoken
from acp_core.model.clock import utc_now
from acp_core.model.sentence import continued, names_in, sentence_case
from acp_core.protocols.kit.values import Values

SCHEMA = "acp.why/1"
WANTED = 1  # exit code: a human is wanted
IN = "   "


def why(given: Values) -> int:
    """Print the causes, or the object."""
    _, snapshot = open_one(given.folder)
    wanted = any(cause.wanted for cause in snapshot.causes)
    if given.json:
        say(dump(as_fields(snapshot)))
    else:
        for line in render(snapshot, utc_now(), terminal()):
            say(line)
    return WANTED if wanted else 0


def as_fields(snapshot: Snapshot) -> fields.Fields:
    """The object that ``--json`` prints."""
    causes = [
        fields.cause(cause)
        | {"command": _command(snapshot, cause), "choose": list(_to_choose(snapshot, cause))}
        for cause in snapshot.causes
    ]
    wanted = any(cause.wanted for cause in snapshot.causes)
    return {
        "schema": SCHEMA,
        "collaboration": snapshot.key,
        "snapshot": fields.summary(snapshot) | {"causes": causes},
        "wanted": wanted,
    }


def render(snapshot: Snapshot, now: datetime, shown_on: Terminal) -> list[str]:
    """The lines: how it stands, then each cause."""
    lines = layout.wrap(f"{snapshot.name} — {snapshot.headline}", shown_on, indent="  ", first="")
    if not snapshot.causes:
        lines += layout.wrap(_nothing(snapshot, now), shown_on, first="")
    for number, cause in enumerate(snapshot.causes, 1):
        lines += ["", *_cause(number, cause, snapshot, now, shown_on)]
    return lines


def _nothing(snapshot: Snapshot, now: datetime) -> str:
    if snapshot.status is Status.COMPLETED:
        return "Completed: nothing is left to do."
    if snapshot.turns:
        turn = snapshot.turns[0]
        age = f" ({format.age(turn.since, now)})" if turn.since else ""
        return f"Not stuck: waiting for {turn.participant}{age}: {turn.what}."
    return "No problem found."


def _cause(
    number: int, cause: Cause, snapshot: Snapshot, now: datetime, shown_on: Terminal
) -> list[str]:
    facts = [cause.code, "seen" if cause.certain else "inferred"]
    facts += [f"since {format.age(cause.since, now)}"] if cause.since else []
    facts += [] if cause.wanted else ["may pass by itself"]
    headline = sentence_case(cause.headline, names_in(snapshot))
    head = f"{number}. {headline} ({', '.join(facts)})"
    lines = [
        shown_on.paint(line, "need" if cause.wanted else "warning")
        for line in layout.wrap(head, shown_on, indent=IN, first="")
    ]
    for evidence in cause.evidence:
        lines += layout.wrap(evidence, shown_on, indent=f"{IN}  ", first=f"{IN}- ")
    if cause.advice:
        cased = continued if spoken.is_wanted() else sentence_case  # it goes on after "fix:"
        advice = cased(cause.advice, names_in(snapshot))
        first = f"{IN}{spoken.mark('→', 'fix:')} "
        lines += layout.wrap(advice, shown_on, indent=f"{IN}  ", first=first)
    ways = [("", cause.remedy, cause.given)] if cause.remedy else []
    ways += [("or: ", other, fitting(snapshot, other, cause.given)) for other in cause.others]
    for lead, action, given in ways:
        for line in (
            f"{lead}{act_command(snapshot, action, given)}",
            choice_hint(snapshot, action, given),
        ):
            lines += (
                layout.wrap(line, shown_on, indent=f"{IN}    ", first=f"{IN}  ") if line else []
            )
    return lines


def _to_choose(snapshot: Snapshot, cause: Cause) -> dict[str, str]:
    return to_choose(snapshot, cause.remedy, cause.given) if cause.remedy else {}


def _command(snapshot: Snapshot, cause: Cause) -> str | None:
    return act_command(snapshot, cause.remedy, cause.given) if cause.remedy else None
