"""``acp act``: what a human can do in a collaboration, listed, shown beforehand, and done.

Everything comes from the action's own description: its inputs become options, its
preview is shown before anything is done.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from acp_core.cli import fields, output
from acp_core.cli.matters import card_fields, card_lines
from acp_core.cli.output import Cell, Column, Terminal, dump, say, terminal, typed
from acp_core.cli.specs import ACT_LIST
from acp_core.cli.start import open_one
from acp_core.fleet import Fleet
from acp_core.model import Action, Card, Outcome, OutcomeState, Preview, Snapshot
from acp_core.model.action_spec import ActionSpec, Field, Kind, QuerySpec, Spec
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError, Refused
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit import command_line, schema
from acp_core.protocols.kit import parser as kit_parser
from acp_core.protocols.kit.command import Commands
from acp_core.protocols.kit.command_line import asks_for_json, run
from acp_core.protocols.kit.parser import Parser, agreed, parse
from acp_core.protocols.kit.schema import fields as action_fields
from acp_core.protocols.kit.values import Values

RESERVED = frozenset({"help", "dry_run", "matter", "yes", "json"})
"""Names of options that every act has."""
_OWN = "input_"


def spec_of(action: Action) -> ActionSpec:
    """What the command of an action takes: its inputs, as they can be given now, and ``--yes``."""
    asked = (_field(each, action.defaults.get(each.name)) for each in action_fields(action))
    return ActionSpec(
        action.name,
        action.label,
        action.sentence,
        fields=(*asked, command_line.MATTER, command_line.YES),
        place=None,
    )


def given(action: Action, values: Values) -> dict[str, Any]:
    """The values that were typed, over the action's defaults; what was not typed is left out."""
    names = {_field(each, None).name: each.name for each in action_fields(action)}
    typed = {name: getattr(values, own) for own, name in names.items() if own in values.said}
    return dict(action.defaults) | typed


def problem(error: ValidationError) -> str:
    """What is wrong with the inputs, on one line."""
    said = schema.problems(error)
    return "; ".join(f"{_flag(name)}: {problem}" if name else problem for name, problem in said)


def _field(field: Field, default: object) -> Field:
    """An input as an option. It begins with the action's default; the model judges its bounds.

    What the action's own command calls it (``--to`` for the peer of a message) works, too.
    """
    name = f"{_OWN}{field.name}" if field.name in RESERVED else field.name
    now = field.default if default is None else default
    required = field.required and now in (None, "")
    return field._replace(
        name=name, flag=_flag(field.name), default=now, required=required, least=None, most=None,
        listed=True, aliases=(*filter(None, (field.flag,)), *field.aliases),
    )  # fmt: skip


def _flag(name: str) -> str:
    return f"--{_OWN if name in RESERVED else ''}{name}".replace("_", "-")


SCHEMA = "acp.act/1"
PROGRAM = "acp act"
CODES = {
    OutcomeState.DONE: 0,
    OutcomeState.REQUESTED: 0,
    OutcomeState.UNKNOWN: 1,
    OutcomeState.REFUSED: 2,
}


class ActCommand(Commands):
    """`acp act`: what follows the act's name is taken apart as that act's description says."""

    def main(self, arguments: Sequence[str]) -> int:
        """Run the command; the exit code."""
        on_error = kit_parser.say_error if asks_for_json(list(arguments)) else None
        return run(lambda: act(list(arguments)), on_error=on_error)

    def parser(self) -> Parser:
        """What is read for help, and for completion."""
        return ActParser(ACT_LIST, PROGRAM)


class ActParser(Parser):
    """Completes the acts that are possible now, and then what the act takes."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """The folder, and the act's name; what follows that is the act's own."""
        folder, rest = _folder(args or [])
        alone = not rest or rest[0].startswith("-")
        return super().parse_args(args if alone else [folder, rest[0]], namespace)

    def completed(self, words: Sequence[str]) -> tuple[Spec, list[str]]:
        """The act's description where the words name one, else that of the list."""
        folder, rest = _folder(words)
        try:
            fleet, snapshot = open_one(folder)
        except CommandError:
            return ACT_LIST, list(words)
        if not rest or rest[0].startswith("-"):
            labels = {each.name: each.label for each in _actions(fleet, snapshot)}
            return _list_of(labels), list(words)
        try:
            action = _action(fleet, snapshot, rest[0])
        except Refused:
            action = None
        return (spec_of(action) if action else ACT_LIST._replace(fields=())), rest[1:]


def _list_of(labels: dict[str, str]) -> QuerySpec:
    place, action = ACT_LIST.fields
    choice = action._replace(kind=Kind.CHOICE, choices=tuple(labels), labels=labels)
    return ACT_LIST._replace(fields=(place, choice))


def act(arguments: list[str]) -> int:
    """List what can be done, or show one act, ask, and do it; the exit code.

    Raises:
        CommandError: it cannot be done, or the arguments are not as they should be.
    """
    folder, rest = _folder(arguments)
    if not rest or rest[0].startswith("-"):
        asked = parse(ACT_LIST, PROGRAM, arguments)
        fleet, snapshot = open_one(asked.folder)
        return _list(snapshot, _actions(fleet, snapshot), asked.json)
    name = rest[0]
    fleet, snapshot = open_one(folder)
    try:
        action = _action(fleet, snapshot, name)
    except Refused as error:
        raise CommandError(f"{name!r} is not possible in {folder} now: {error}") from None
    if action is None:
        known = ", ".join(each.name for each in _actions(fleet, snapshot)) or "nothing"
        raise CommandError(f"{name!r} is not possible in {folder} now; possible: {known}")
    values = Parser(spec_of(action), f"{PROGRAM} {folder} {name}").parse_args(rest[1:])
    return _perform(fleet, snapshot, action, values)


def _folder(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The folder, which comes first, by position or by name, and what follows it."""
    first, *rest = arguments or [""]
    if first == "--folder":
        return (rest[0], rest[1:]) if rest else ("", [])
    if first.startswith("--folder="):
        return first.removeprefix("--folder="), rest
    return ("", [first, *rest]) if first.startswith("-") else (first, rest)


def _actions(fleet: Fleet, snapshot: Snapshot) -> tuple[Action, ...]:
    from acp_core.diagnosis import actions as acts  # late: it loads everything that can be done

    return fleet.call_sync(snapshot.key, lambda opened: acts.actions(opened, snapshot))


def _action(fleet: Fleet, snapshot: Snapshot, name: str) -> Action | None:
    """One action by its name, without the others.

    Raises:
        Refused: it cannot be done now.
    """
    from acp_core.diagnosis import actions as acts  # late, as above

    return fleet.call_sync(snapshot.key, lambda opened: acts.action(opened, snapshot, name))


def _list(snapshot: Snapshot, actions: Sequence[Action], as_json: bool) -> int:
    if as_json:
        told = [_described(action) for action in actions]
        say(dump({"schema": SCHEMA, "collaboration": snapshot.key, "actions": told}))
        return 0
    if not actions:
        why = snapshot.limits or snapshot.headline
        say(f"No action is possible in {snapshot.name} now: {why}")
        return 0
    rows = [
        [Cell(action.name, "head"), Cell(action.label), Cell(action.sentence)] for action in actions
    ]
    columns = (Column("action", 8), Column("", 8, drop=1), Column("what it does", 20))
    for line in output.table(columns, rows, terminal()):
        say(line)
    say()
    if snapshot.limits:
        say(snapshot.limits)
    say(f"Run `acp act {typed(snapshot)} ACTION --help` to see the options of an action.")
    return 0


def _perform(fleet: Fleet, snapshot: Snapshot, action: Action, values: Values) -> int:
    """Show what an act would do, ask, and do it; the exit code."""
    try:
        inputs = action.inputs.model_validate(given(action, values))
    except ValidationError as error:
        raise CommandError(problem(error)) from None
    if values.matter:
        fleet.call_sync(snapshot.key, lambda opened: _same(opened, snapshot, action, values.matter))
    preview = fleet.call_sync(snapshot.key, lambda _: action.preview(inputs))
    card = fleet.call_sync(snapshot.key, lambda opened: _card(opened, snapshot, action, inputs))
    if preview.refused and not action.offered:
        why = f"{action.name!r} is not possible in {typed(snapshot)} now: {preview.refused}"
        raise CommandError(why)
    if not values.json:
        if card and values.dry_run:
            for line in [*card_lines(card, snapshot, utc_now(), terminal()), ""]:
                say(line)
        for line in _preview_lines(preview, terminal()):
            say(line)
    outcome = None
    if preview.refused:
        outcome = Outcome(OutcomeState.REFUSED, preview.refused)
    elif not values.dry_run:
        if not values.yes and not _agreed(values.json):
            outcome = Outcome(OutcomeState.REFUSED, "Not done.")
        else:
            outcome = fleet.call_sync(
                snapshot.key,
                lambda opened: _decided(opened, snapshot, action, inputs, values.matter),
            )
    if values.json:
        done = _done(snapshot, action, preview, outcome)
        say(dump(done | {"card": card_fields(card, snapshot) if card else None}))
    elif outcome:
        say(f"{outcome.state.value}: {outcome.sentence}")
    return CODES[outcome.state] if outcome else 0


def _card(opened: Collaboration, snapshot: Snapshot, action: Action, inputs: Any) -> Card | None:
    """The card on which the act is a verdict; None where it decides nothing."""
    from acp_core.diagnosis.cards import card_of  # late, as above

    given = {name: str(value) for name, value in dict(inputs).items() if isinstance(value, str)}
    return card_of(opened, snapshot, action.name, given, utc_now())


def _decided(
    opened: Collaboration, snapshot: Snapshot, action: Action, inputs: Any, matter: str
) -> Outcome:
    """Do the act, unless what is decided on is not what ``matter`` is the digest of."""
    if matter:
        _same(opened, snapshot, action, matter)
    return action.perform(inputs)


def _same(opened: Collaboration, snapshot: Snapshot, action: Action, matter: str) -> None:
    """Refuse an act on a matter that is not the one with this digest.

    Raises:
        CommandError: it has changed.
    """
    from acp_core.diagnosis.actions import actions  # late, as above
    from acp_core.diagnosis.cards import check

    now = utc_now()
    try:
        check(opened, snapshot, matter, action.name, now, lambda: actions(opened, snapshot, now))
    except Refused as error:
        raise CommandError(f"{error}: acp card {typed(snapshot)}") from None


def _agreed(as_json: bool) -> bool:
    """Ask the person; a program that cannot be asked must say --yes.

    Raises:
        CommandError: there is nobody to ask.
    """
    if as_json or not sys.stdin.isatty():
        raise CommandError("use --yes to skip the question, or --dry-run to see what would happen")
    return agreed()


def _described(action: Action) -> fields.Fields:
    return fields.picked(action, "name label sentence risky intent by personal aliases") | {
        "inputs": action.inputs.model_json_schema(),
        "defaults": dict(action.defaults),
    }


def _done(
    snapshot: Snapshot, action: Action, preview: Preview, outcome: Outcome | None
) -> fields.Fields:
    ended = fields.picked(outcome, "state sentence location") if outcome else None
    return {
        "schema": SCHEMA,
        "collaboration": snapshot.key,
        "action": action.name,
        "preview": fields.preview(preview),
        "outcome": ended,
    }


def _preview_lines(preview: Preview, shown_on: Terminal) -> list[str]:
    lines = output.wrap(preview.sentence, shown_on) if preview.sentence else []
    for warning in preview.warnings:
        lines += output.wrap(warning, shown_on, indent="  ", first="! ")
    for note in preview.notes:
        lines += output.wrap(note, shown_on, indent="  ", first="· ")
    for change in preview.changes:
        lines.append(shown_on.paint(f"{change.verb} {change.path}", "head"))
        lines += [_coloured(line, shown_on) for line in change.diff.splitlines()]
    if preview.command:
        lines.append(f"runs: {shlex.join(preview.command)}")
    return lines


def _coloured(line: str, shown_on: Terminal) -> str:
    style = "good" if line.startswith("+") else "error" if line.startswith("-") else "dim"
    return f"  {shown_on.paint(line, style)}"


ACT = ActCommand("act", ACT_LIST.sentence, (ACT_LIST,), SCHEMA)
