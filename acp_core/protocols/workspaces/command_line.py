"""What the commands of `acp workspaces` have in common: parsing, printing, ending well."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from acp_core.files.text import clean_line
from acp_core.model import Change
from acp_core.programs.presets import PresetError
from acp_core.protocols.workspaces.act import Refused
from acp_core.protocols.workspaces.act.writing import Step

SCHEMA = "acp.workspaces/1"


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line."""

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        raise Refused(f"{message} (`{self.prog} --help` explains)")


def say(text: str = "") -> None:
    """Print one line, safely."""
    print(clean_line(text, 100_000))


def say_json(verb: str, **value: Any) -> None:
    """Print one JSON object; what is not ASCII is escaped, so that it is safe."""
    print(json.dumps({"schema": SCHEMA, "command": verb, **value}, default=str))


def run(command: Callable[[], int]) -> int:
    """Run a command's body; what is refused becomes one line and exit code 2."""
    try:
        return command()
    except (Refused, PresetError) as error:
        print(f"acp workspaces: {clean_line(str(error), 2_000)}", file=sys.stderr)
        return 2


def told(step: Step) -> dict[str, Any]:
    """A step as JSON."""
    return {
        "sentence": clean_line(step.sentence, 2_000),
        "warnings": [clean_line(each, 2_000) for each in step.warnings],
        "changes": [_change(write.change()) for write in step.writes],
    }


def show(step: Step, *, dry: bool, full: bool = True) -> None:
    """Print a step: what was done, or what would be."""
    say(step.sentence if not dry else f"would do: {step.sentence}")
    for warning in step.warnings:
        say(f"  ! {warning}")
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
