"""What waits for a person, why a collaboration does not go on, and what they note of it for themselves.

``acp card`` shows the decisions with the facts that they depend on, ``acp why`` the causes with evidence,
and what to do about them. ``acp ack``, ``unack``, ``archive`` and ``unarchive`` are kept in the user's own
state folder and shared with the dashboard; nothing is written into a collaboration's folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from acp_core.cli import fields, output
from acp_core.cli.output import (
    Terminal,
    act_command,
    asked_words,
    choice_hint,
    dump,
    fitting,
    say,
    terminal,
    to_choose,
    typed,
)
from acp_core.cli.signs import of_row
from acp_core.cli.start import key_of, open_one
from acp_core.diagnosis.personal import (
    Noted,
    bind_ack,
    bind_archive,
    bind_unack,
    bind_unarchive,
)
from acp_core.model import (
    Action,
    Card,
    Matter,
    Outcome,
    OutcomeState,
    Row,
    Snapshot,
    Status,
    Tone,
    format,
    spoken,
)
from acp_core.model.card import CardSection
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError
from acp_core.model.format import age, continued, names_in, sentence_case
from acp_core.model.matter import Mover
from acp_core.model.text import clean_line
from acp_core.person.attention import Attention
from acp_core.protocols.kit import parser
from acp_core.protocols.kit.values import Values
from acp_core.protocols.locations import is_link

CARD_SCHEMA = "acp.card/1"

WANTED = 1  # exit code: a decision waits

IN = "   "

_STYLES = {
    Tone.PASS: "good",
    Tone.REVISE: "error",
    Tone.REVIEW: "warning",
    Tone.BLOCKED: "error",
}


def card(given: Values) -> int:
    """Print the cards, or the object; the exit code."""
    fleet, snapshot = open_one(given.folder)
    from acp_core.diagnosis.actions import actions  # late: it loads everything that can be done
    from acp_core.diagnosis.cards import cards

    now = utc_now()
    found = fleet.call_sync(
        snapshot.key,
        lambda opened: cards(opened, snapshot, now, lambda: actions(opened, snapshot, now)),
    )
    open_needs = Attention().open_needs(snapshot)
    wanted = [each for each in found if any(each.is_about(need) for need in open_needs)]
    if given.json:
        shown = [card_fields(each, snapshot) for each in found]
        say(dump({"schema": CARD_SCHEMA, "collaboration": snapshot.key, "cards": shown}))
        return WANTED if wanted else 0
    if not wanted:
        say(f"Nothing in {snapshot.name} waits for your decision.")
    others = [each for each in found if each not in wanted]
    for number, each in enumerate((*wanted, *others)):
        if number or not wanted:
            say("")
        for line in card_lines(each, snapshot, now, terminal(), waits=each in wanted):
            say(line)
    return WANTED if wanted else 0


def card_fields(card: Card, snapshot: Snapshot) -> fields.Fields:
    """A card as JSON."""
    about = next((each.key for each in snapshot.matters if card.is_about(each)), None)
    return fields.picked(card, "id title claim by since digest") | {
        "matter": about,
        "sections": [
            fields.picked(section, "title columns")
            | {
                "rows": [
                    fields.picked(row, "cells checked tone")
                    | fields.picked(row.target, "document line event")
                    for row in section.rows
                ]
            }
            for section in card.sections
        ],
        "verdicts": [
            {
                "number": number,
                "label": each.label,
                "action": each.action,
                "given": dict(each.given),
                "choose": list(
                    dict.fromkeys((*to_choose(snapshot, each.action, each.given), *each.asks))
                ),
                "command": verdict_command(card, number - 1, snapshot),
            }
            for number, each in enumerate(card.verdicts, 1)
        ],
        "documents": [fields.picked(each, "id version") for each in card.documents],
    }


def verdict_command(card: Card, verdict: int, snapshot: Snapshot) -> str:
    """The command of a verdict, ready to be typed: refused where the matter has changed since."""
    each = card.verdicts[verdict]
    left = to_choose(snapshot, each.action, each.given)
    asked = asked_words(snapshot, each.action, (name for name in each.asks if name not in left))
    command = act_command(snapshot, each.action, each.given)
    return " ".join([command, *asked, "--matter", card.digest])


def card_lines(
    card: Card, snapshot: Snapshot, now: datetime, shown_on: Terminal, *, waits: bool = True
) -> list[str]:
    """A card's lines: the matter, then the verdicts with their commands.

    Args:
        card, snapshot: What is shown.
        now: The time.
        shown_on: Where it is printed.
        waits: Whether it waits for this person; else it is somebody else's move.
    """
    since = f" ({'waiting for you ' if waits else ''}{age(card.since, now)})" if card.since else ""
    lines = [
        shown_on.paint(line, "need")
        for line in output.wrap(f"{card.title}{since}", shown_on, indent="  ", first="")
    ]
    if card.claim:
        lines += output.wrap(f"“{card.claim}”", shown_on, indent=f"{IN} ", first=IN)
    wide = max((output.width(each.title) for each in card.sections), default=0)
    for section in card.sections:
        lines += _section(section, wide, shown_on)
    for number, verdict in enumerate(card.verdicts, 1):
        first = f"{number}. {verdict.label}"
        lines += output.wrap(first, shown_on, indent=IN, first=IN)
        text = verdict_command(card, number - 1, snapshot)
        lines += output.wrap(text, shown_on, indent=f"{IN}     ", first=f"{IN}   ")
    return lines


def _section(section: CardSection, wide: int, shown_on: Terminal) -> list[str]:
    """The section's title beside its rows, and the titles of their cells where they have any."""
    lead = max(map(output.width, section.leads), default=0)
    signed = any(map(of_row, section.rows))
    rows: Sequence[tuple[str, str]] = [
        (text_of(row, lead, signed), _STYLES.get(row.tone, "")) for row in section.rows
    ]
    if section.columns:
        rows = [("  ".join(section.columns), "dim"), *rows]
    indent = " " * (len(IN) + wide + 4)
    lines = []
    for number, (text, style) in enumerate(rows):
        title = section.title if number == 0 else ""
        first = f"{IN}{output.fit(title, wide)}  "
        wrapped = output.wrap(text, shown_on, indent=indent, first=first)
        lines += [shown_on.paint(line, style) if style else line for line in wrapped]
    return lines


def _sign(row: Row) -> str:
    """The sign before a row, or the word that says the same; "" where it has none."""
    sign = of_row(row)
    if row.checked is not None:
        return spoken.mark(sign, "met:" if row.checked else "not met:")
    return spoken.mark(sign, "attention:") if sign else ""


def text_of(row: Row, lead: int = 0, signed: bool = False) -> str:
    """A row in one line: its sign, then its cells, the first of several as wide as ``lead``.

    A row without a sign leaves the room of one where others of its section are ``signed``.
    """
    room = " " if signed and not spoken.is_wanted() else ""
    sign = f"{_sign(row) or room} " if _sign(row) or room else ""
    first, *others = [cell for cell in row.cells if cell] or [""]
    if others and lead:
        first += " " * (lead - output.width(first))
    return sign + "  ".join((first, *others))


WHY_SCHEMA = "acp.why/1"


def why(given: Values) -> int:
    """Print the causes, or the object."""
    _, snapshot = open_one(given.folder)
    wanted = bool(Attention().open_needs(snapshot))
    if given.json:
        say(dump(why_fields(snapshot) | {"wanted": wanted}))
    else:
        for line in why_lines(snapshot, utc_now(), terminal()):
            say(line)
    return WANTED if wanted else 0


def why_fields(snapshot: Snapshot) -> fields.Fields:
    """The object that ``--json`` prints."""
    causes = [
        fields.cause(cause)
        | {"command": _command(snapshot, cause), "choose": list(_to_choose(snapshot, cause))}
        for cause in snapshot.causes
    ]
    return {
        "schema": WHY_SCHEMA,
        "collaboration": snapshot.key,
        "snapshot": fields.summary(snapshot) | {"causes": causes},
        "wanted": bool(snapshot.needs),
    }


def why_lines(snapshot: Snapshot, now: datetime, shown_on: Terminal) -> list[str]:
    """The lines: how it stands, then each cause."""
    lines = output.wrap(f"{snapshot.name} — {snapshot.headline}", shown_on, indent="  ", first="")
    if not snapshot.causes:
        lines += output.wrap(_nothing(snapshot, now), shown_on, first="")
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
    number: int, cause: Matter, snapshot: Snapshot, now: datetime, shown_on: Terminal
) -> list[str]:
    facts = [cause.code, "seen" if cause.certain else "inferred"]
    facts += [f"since {format.age(cause.since, now)}"] if cause.since else []
    facts += filter(None, [_whose(cause), _reason(cause, snapshot)])
    headline = sentence_case(cause.sentence, names_in(snapshot))
    head = f"{number}. {headline} ({', '.join(facts)})"
    lines = [
        shown_on.paint(line, "need" if cause.wanted else "warning")
        for line in output.wrap(head, shown_on, indent=IN, first="")
    ]
    for evidence in cause.evidence:
        lines += output.wrap(evidence, shown_on, indent=f"{IN}  ", first=f"{IN}- ")
    if cause.instruction:
        cased = continued if spoken.is_wanted() else sentence_case  # it goes on after "fix:"
        advice = cased(cause.instruction, names_in(snapshot))
        first = f"{IN}{spoken.mark('→', 'fix:')} "
        lines += output.wrap(advice, shown_on, indent=f"{IN}  ", first=first)
    for action, values, ends in cause.verdicts:
        lead, given = ("", values) if ends else ("or: ", fitting(snapshot, action, values))
        for line in (
            f"{lead}{act_command(snapshot, action, given)}",
            choice_hint(snapshot, action, given),
        ):
            lines += (
                output.wrap(line, shown_on, indent=f"{IN}    ", first=f"{IN}  ") if line else []
            )
    return lines


def _whose(cause: Matter) -> str:
    """Whose move it is, where it is not that of the person who looks."""
    return {
        Mover.OWNER: "",
        Mover.TIME: "may pass by itself",
        Mover.NOBODY: "",
    }.get(cause.move.who, f"{cause.move.name or 'another account'} is to end it")


def _reason(cause: Matter, snapshot: Snapshot) -> str:
    """From which of those that are listed it follows."""
    keys = [each.key for each in snapshot.causes]
    return f"follows from {keys.index(cause.because) + 1}" if cause.because in keys else ""


def _to_choose(snapshot: Snapshot, cause: Matter) -> dict[str, str]:
    return to_choose(snapshot, cause.remedy, cause.given) if cause.remedy else {}


def _command(snapshot: Snapshot, cause: Matter) -> str | None:
    return act_command(snapshot, cause.remedy, cause.given) if cause.remedy else None


def ack(given: Values) -> int:
    """Acknowledge needs.

    Raises:
        CommandError: it is not clear which.
    """
    noted = _noted(given.folder)
    return _about_needs(
        noted,
        given,
        bind_ack,
        "acknowledged",
        open=bool(noted.open.needs) or given.need in noted.open.texts,
    )


def unack(given: Values) -> int:
    """Bring acknowledged needs back.

    Raises:
        CommandError: it is not clear which.
    """
    noted = _noted(given.folder)
    return _about_needs(noted, given, bind_unack, "back", open=bool(noted.acknowledged.texts))


def _noted(folder: str) -> Noted:
    _, snapshot = open_one(folder)
    return Noted(snapshot.key, snapshot)


def _about_needs(
    noted: Noted,
    given: Values,
    bind: Callable[[Noted, datetime], Action],
    word: str,
    *,
    open: bool,
) -> int:
    """Do what is to be done with needs, and print them."""
    action = bind(noted, utc_now())
    schema = f"acp.{action.name}/1"
    if given.dry_run:
        return parser.show(schema, action.name, action.preview(given), as_json=given.json)
    outcome = _done(action.perform(given)) if open else None
    texts, data = (outcome.done.notes, outcome.done.data) if outcome and outcome.done else ((), {})
    if given.json:
        keys = list(data.get("needs", ()))  # type: ignore[call-overload]
        say(dump({"schema": schema, "collaboration": noted.key, word: keys}))
        return 0
    if not open:
        nothing = (
            "has no attention item"
            if word == "acknowledged"
            else ("has no acknowledged attention item")
        )
        say(f"{noted.snapshot.name} {nothing}.")
    for text in texts:
        say(f"{word}: {text}")
    return 0


def _done(outcome: Outcome) -> Outcome:
    """The outcome of what was done.

    Raises:
        CommandError: it was refused.
    """
    if outcome.state is OutcomeState.REFUSED:
        raise CommandError(outcome.sentence)
    return outcome


def archive(given: Values) -> int:
    """Leave collaborations out of the fleet."""
    done: list[str] = []
    for folder in given.folders:
        noted = _noted(folder)
        action = bind_archive(noted, utc_now())
        if given.dry_run:
            parser.show("acp.archive/1", "archive", action.preview(given), as_json=given.json)
            continue
        _done(action.perform(given))
        done.append(noted.key)
        if not given.json:
            say(f"archived: {typed(noted.snapshot)}")
    if given.json and not given.dry_run:
        say(dump({"schema": "acp.archive/1", "archived": done}))
    return 0


def unarchive(given: Values) -> int:
    """Bring collaborations back into the fleet."""
    done: dict[str, bool] = {}
    for folder in given.folders:
        key = key_of(folder)  # it may be gone or unreadable by now
        noted = Noted(key)
        action = bind_unarchive(noted, utc_now())
        if given.dry_run:
            parser.show("acp.unarchive/1", "unarchive", action.preview(given), as_json=given.json)
            continue
        done[key] = noted.attention.is_archived(key)
        _done(action.perform(given))
        if not given.json:
            what = "unarchived" if done[key] else "not archived"
            say(f"{what}: {clean_line(key if is_link(folder) else folder, 4096)}")
    if given.json and not given.dry_run:
        back = [key for key, was in done.items() if was]
        say(dump({"schema": "acp.unarchive/1", "unarchived": back}))
    return 0
