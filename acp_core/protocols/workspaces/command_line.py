"""What the commands of `acp workspaces` have in common: their arguments, and telling a step."""

from __future__ import annotations

import argparse
from typing import Any

from acp_core.files.text import clean_line
from acp_core.model import Change
from acp_core.protocols.kit.command_line import say, say_json
from acp_core.protocols.workspaces.write.writing import Step

SCHEMA = "acp.workspaces/1"


def say_step(verb: str, **value: Any) -> None:
    """Print what a command did as one JSON object."""
    say_json({"schema": SCHEMA, "command": verb, **value})


def told(step: Step) -> dict[str, Any]:
    """A step as JSON."""
    return {
        "sentence": clean_line(step.sentence, 2_000),
        "warnings": [clean_line(each, 2_000) for each in step.warnings],
        "notes": [clean_line(each, 2_000) for each in step.notes],
        "changes": [_change(write.change()) for write in step.writes],
    }


def show(step: Step, *, dry: bool, full: bool = True) -> None:
    """Print a step: what was done, or what would be."""
    say(step.sentence if not dry else f"would do: {step.sentence}")
    for warning in step.warnings:
        say(f"  ! {warning}")
    for note in step.notes:
        say(f"  · {note}")
    if not dry:
        return
    for write in step.writes:
        change = write.change()
        say(f"  {change.verb} {change.path}")
        for line in change.diff.split("\n") if full and change.diff else []:
            say(f"    {line}")


def _change(change: Change) -> dict[str, str]:
    return {"path": change.path, "verb": change.verb, "diff": change.diff}


def common(parser: argparse.ArgumentParser, *, writes: bool = True) -> argparse.ArgumentParser:
    """The folder, ``--json`` and, for what writes, ``--dry-run``."""
    parser.add_argument("folder", nargs="?", default=".", help="the run's folder (this one)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    if writes:
        parser.add_argument("--dry-run", action="store_true", help="only show what would be done")
    return parser
