"""What commands print of acts and answers: lines for people, or one JSON object. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from acp_core.model.action import Change, Outcome, Preview
from acp_core.model.errors import Refused
from acp_core.protocols.kit.command_line import say, say_json, warn
from acp_core.protocols.kit.wording import safe

ERROR = "acp.error/1"


def say_object(schema: str, verb: str, /, **value: Any) -> None:
    """Print what a command did, or found, as one JSON object.

    Args:
        schema: the name and version of its shape, such as ``acp.governed/1``; comes first.
        verb: the command's, which stands under ``command``.
        value: everything else; a ``schema`` or ``command`` in it takes the place of those.
    """
    say_json({"schema": schema, "command": verb, **value})


def say_error(message: str, code: int) -> None:
    """Print as JSON why a command ends without success."""
    say_json({"schema": ERROR, "error": safe(message), "exit_code": code})


def show(schema: str, verb: str, preview: Preview, *, as_json: bool) -> int:
    """Print what an act would do, as a command with ``--dry-run`` does; the exit code.

    Raises:
        Refused: it would not do it.
    """
    if preview.refused:
        raise Refused(preview.refused)
    if as_json:
        say_object(schema, verb, done=False, **described(preview))
    else:
        say_preview(preview)
    return 0


def say_preview(preview: Preview) -> None:
    """Print what an act would do, with every change."""
    say(f"would do: {preview.sentence}")
    say_remarks(preview)
    for change in preview.changes:
        say(f"  {change.verb} {change.path}")
        for line in change.diff.split("\n") if change.diff else []:
            say(f"    {line}")


def say_outcome(outcome: Outcome) -> None:
    """Print how an act ended."""
    say(outcome.sentence)
    if outcome.done is not None:
        say_remarks(outcome.done)
    for each in outcome.failed:
        warn(f"failed: {each}")


def say_remarks(preview: Preview) -> None:
    """Print what is to be heeded of an act, and what it merely tells."""
    for warning in preview.warnings:
        say(f"  ! {warning}")
    for note in preview.notes:
        say(f"  · {note}")


def described(preview: Preview) -> dict[str, Any]:
    """What an act would do, or did, as JSON."""
    return {
        "sentence": safe(preview.sentence),
        "warnings": [safe(each) for each in preview.warnings],
        "notes": [safe(each) for each in preview.notes],
        "changes": [_change(each) for each in preview.changes],
        **preview.data,
    }


def ended(outcome: Outcome) -> Mapping[str, Any]:
    """How an act ended, as JSON."""
    known = described(outcome.done) if outcome.done is not None else {}
    failed = {"failed": [safe(each) for each in outcome.failed]} if outcome.failed else {}
    return known | {"sentence": safe(outcome.sentence)} | failed


def _change(change: Change) -> dict[str, str]:
    return {"path": change.path, "verb": change.verb, "diff": change.diff}
