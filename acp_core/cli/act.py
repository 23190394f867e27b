"""``acp act``: what a human can do in a collaboration, listed, shown beforehand, and done.

Everything comes from the action's own description: its inputs become options, its
preview is shown before anything is done.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem, ShellComplete
from pydantic import ValidationError

from acp_core.cli import fields, layout
from acp_core.cli.folders import FOLDER
from acp_core.cli.inputs import given, options, problem
from acp_core.cli.layout import Cell, Column
from acp_core.cli.opening import open_one
from acp_core.cli.output import Terminal, dump, say, terminal, typed
from acp_core.fleet import Fleet
from acp_core.model import Action, Outcome, OutcomeState, Preview, Snapshot
from acp_core.model.errors import CommandError, Refused

SCHEMA = "acp.act/1"
CODES = {
    OutcomeState.DONE: 0,
    OutcomeState.REQUESTED: 0,
    OutcomeState.UNKNOWN: 1,
    OutcomeState.REFUSED: 2,
}


class _ActCommand(click.Command):
    """Completes the actions that are possible now, and then what the action takes."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        return _completed(ctx, incomplete) or super().shell_complete(ctx, incomplete)


def _completed(context: click.Context, incomplete: str) -> list[CompletionItem]:
    folder, words = context.params.get("folder"), list(context.params.get("words") or ())
    try:
        fleet, snapshot = open_one(folder or "")
    except CommandError:
        return []
    if not words and not incomplete.startswith("-"):
        actions = _actions(fleet, snapshot)
        names = [CompletionItem(each.name, help=each.label) for each in actions]
        return [name for name in names if name.value.startswith(incomplete)]
    try:
        action = _action(fleet, snapshot, words[0]) if words else None
    except Refused:
        return []
    command = _performing(fleet, snapshot, action) if action else _listing(snapshot, ())
    return ShellComplete(command, {}, "acp", "").get_completions(words[1:], incomplete)


@click.command(
    cls=_ActCommand,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("folder", type=FOLDER)
@click.argument(
    "words",
    nargs=-1,
    type=click.UNPROCESSED,
    metavar="[ACTION [OPTION...]]",
    shell_complete=lambda context, parameter, incomplete: _completed(context, incomplete),
)
@click.pass_context
def act(context: click.Context, folder: str, words: tuple[str, ...]) -> int:
    """List what you can do in the collaboration in FOLDER now, or do it.

    \b
    acp act FOLDER                       what can be done now (--json: as JSON)
    acp act FOLDER ACTION --help         what the action takes
    acp act FOLDER ACTION ... --dry-run  what it would change
    acp act FOLDER ACTION ...            show that, ask (--yes: not), and do it

    \b
    Exit codes:
      0  listed, done, or handed to whoever must pick it up
      1  it is not known how it ended
      2  refused, nothing done
    """
    fleet, snapshot = open_one(folder)
    name = words[0] if words and not words[0].startswith("-") else None
    path = f"{context.command_path} {folder}"
    if name is None:
        return _run(_listing(snapshot, _actions(fleet, snapshot)), path, words)
    try:
        action = _action(fleet, snapshot, name)
    except Refused as error:
        raise CommandError(f"{name!r} cannot be done in {folder} now: {error}") from None
    if action is None:
        known = ", ".join(each.name for each in _actions(fleet, snapshot)) or "nothing"
        raise CommandError(f"{name!r} cannot be done in {folder} now; what can: {known}")
    return _run(_performing(fleet, snapshot, action), f"{path} {name}", words[1:])


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


def _run(command: click.Command, path: str, words: Sequence[str]) -> int:
    """Run a command made on the spot; errors name the way to it."""
    with command.make_context(path, list(words)) as context:
        code: int = command.invoke(context)
        return code


def _listing(snapshot: Snapshot, actions: Sequence[Action]) -> click.Command:
    def listing(as_json: bool) -> int:
        if as_json:
            told = [_described(action) for action in actions]
            say(dump({"schema": SCHEMA, "collaboration": snapshot.key, "actions": told}))
            return 0
        if not actions:
            say(f"There is nothing to do for you in {snapshot.name} now: {snapshot.headline}")
            return 0
        rows = [
            [Cell(action.name, "head"), Cell(action.label), Cell(action.sentence)]
            for action in actions
        ]
        columns = (Column("action", 8), Column("", 8, drop=1), Column("what it does", 20))
        for line in layout.table(columns, rows, terminal()):
            say(line)
        say()
        say(f"`acp act {typed(snapshot)} ACTION --help` says what an action takes.")
        return 0

    json = click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object.")
    return click.Command("act", callback=listing, params=[json], help="List what can be done now.")


def _performing(fleet: Fleet, snapshot: Snapshot, action: Action) -> click.Command:
    def performing(dry_run: bool, yes: bool, as_json: bool, **values: Any) -> int:
        try:
            inputs = action.inputs.model_validate(given(action, values))
        except ValidationError as error:
            raise CommandError(problem(error)) from None
        preview = fleet.call_sync(snapshot.key, lambda _: action.preview(inputs))
        if preview.refused and not action.offered:
            why = f"{action.name!r} cannot be done in {typed(snapshot)} now: {preview.refused}"
            raise CommandError(why)
        if not as_json:
            for line in _preview_lines(preview, terminal()):
                say(line)
        outcome = None
        if preview.refused:
            outcome = Outcome(OutcomeState.REFUSED, preview.refused)
        elif not dry_run:
            if not yes and not _agreed(as_json):
                outcome = Outcome(OutcomeState.REFUSED, "Not done.")
            else:
                outcome = fleet.call_sync(snapshot.key, lambda _: action.perform(inputs))
        if as_json:
            say(dump(_done(snapshot, action, preview, outcome)))
        elif outcome:
            say(f"{outcome.state.value}: {outcome.sentence}")
        return CODES[outcome.state] if outcome else 0

    switches = [
        click.Option(["--dry-run"], is_flag=True, help="Only show what it would change."),
        click.Option(["--yes"], is_flag=True, help="Do it without asking."),
        click.Option(
            ["--json", "as_json"], is_flag=True, help="Print one JSON object (acp.act/1)."
        ),
    ]
    return click.Command(
        action.name,
        callback=performing,
        params=[*options(action), *switches],
        help=action.sentence,
    )


def _agreed(as_json: bool) -> bool:
    """Ask the person; a program that cannot be asked must say --yes.

    Raises:
        CommandError: there is nobody to ask.
    """
    if as_json or not sys.stdin.isatty():
        raise CommandError("say --yes to do it without being asked, or --dry-run to only look")
    return click.confirm("Do it?")


def _described(action: Action) -> fields.Fields:
    return {
        "name": action.name,
        "label": action.label,
        "sentence": action.sentence,
        "risky": action.risky,
        "intent": action.intent.value,
        "by": action.by.value,
        "aliases": list(action.aliases),
        "inputs": action.inputs.model_json_schema(),
        "defaults": dict(action.defaults),
    }


def _done(
    snapshot: Snapshot, action: Action, preview: Preview, outcome: Outcome | None
) -> fields.Fields:
    ended = None
    if outcome:
        ended = {
            "state": outcome.state.value,
            "sentence": outcome.sentence,
            "location": outcome.location,
        }
    return {
        "schema": SCHEMA,
        "collaboration": snapshot.key,
        "action": action.name,
        "preview": fields.preview(preview),
        "outcome": ended,
    }


def _preview_lines(preview: Preview, shown_on: Terminal) -> list[str]:
    lines = layout.wrap(preview.sentence, shown_on)
    for warning in preview.warnings:
        lines += layout.wrap(warning, shown_on, indent="  ", first="! ")
    for note in preview.notes:
        lines += layout.wrap(note, shown_on, indent="  ", first="· ")
    for change in preview.changes:
        lines.append(shown_on.paint(f"{change.verb} {change.path}", "head"))
        lines += [_coloured(line, shown_on) for line in change.diff.splitlines()]
    if preview.command:
        lines.append(f"runs: {shlex.join(preview.command)}")
    return lines


def _coloured(line: str, shown_on: Terminal) -> str:
    style = "good" if line.startswith("+") else "error" if line.startswith("-") else "dim"
    return f"  {shown_on.paint(line, style)}"
