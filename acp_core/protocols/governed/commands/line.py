"""What the commands of governed runs have in common: parsing, asking, printing, ending well."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from acp_core.files.text import clean_line
from acp_core.model.action import Change
from acp_core.protocols.governed.write import Refused
from acp_core.protocols.kit import command_line
from acp_core.protocols.kit.command_line import Parser, say, warn

SCHEMA = "acp.governed/1"


WIDE = argparse.RawDescriptionHelpFormatter
"""Keeps the lines of a description and an epilog."""


def parser_of(verb: str, description: str, *, writes: bool = True) -> Parser:
    """A verb's parser with the arguments that all have."""
    parser = Parser(prog=f"acp governed {verb}", description=description)
    parser.add_argument("folder", nargs="?", default=".", help="the repository (default: here)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    if writes:
        parser.add_argument("--dry-run", action="store_true", help="only show what would change")
    return parser


def deciding(parser: Parser, *, comment: str) -> Parser:
    """Add what a human's decision takes: who, with which comment, and that it is meant."""
    parser.add_argument(
        "--comment", default="", metavar="TEXT", help=comment or "why; kept with it"
    )
    parser.add_argument("--as", dest="by", default="", metavar="NAME", help="who decides")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    return parser


def say_json(verb: str, **told: object) -> None:
    """Print what a verb did as one JSON object."""
    command_line.say_json({"schema": SCHEMA, "verb": verb, **told})


def warn_all(texts: Sequence[str]) -> None:
    """Say on the standard error what is worth knowing."""
    for text in texts:
        warn(text)


def show(changes: Sequence[Change]) -> None:
    """Print what would change, a file after the other."""
    for change in changes:
        say(f"{change.verb} {change.path}")
        for line in change.diff.splitlines():
            say(f"  {line}")


def as_objects(changes: Sequence[Change]) -> list[dict[str, str]]:
    """What would change, for JSON."""
    return [{"path": c.path, "verb": c.verb, "diff": c.diff} for c in changes]


def must_agree(options: argparse.Namespace, question: str) -> bool:
    """Ask the human whether it is meant; ``--yes`` (with ``--as``) says so beforehand.

    Raises:
        Refused: there is nobody to ask.
    """
    asked = sys.stdin.isatty() and not options.json
    if options.yes:
        if not asked and not options.by:
            raise Refused("without a terminal, say who decides: --as NAME --yes")
        return True
    if not asked:
        raise Refused("there is nobody to ask: --as NAME --yes decides without asking")
    sys.stdout.write(f"{clean_line(question, 300)} [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
