"""What the commands of governed runs have in common: parsing, asking, printing, ending well."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TextIO

from acp_core.action import Change
from acp_core.files.text import clean_line
from acp_core.protocols.governed.act import Refused

INTERRUPTED = 130
SCHEMA = "acp.governed/1"


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line; ``wide`` keeps the lines of its epilog."""

    def __init__(self, *, wide: bool = False, **told: Any) -> None:
        if wide:
            told["formatter_class"] = argparse.RawDescriptionHelpFormatter
        super().__init__(**told)

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        complain(f"{message} (`{self.prog} --help` explains)")
        raise SystemExit(2)


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
    parser.add_argument("--comment", default="", metavar="TEXT", help=comment)
    parser.add_argument("--as", dest="by", default="", metavar="NAME", help="who decides")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    return parser


def say(text: str, stream: TextIO | None = None) -> None:
    """Print one line, safely."""
    _write(clean_line(text, 100_000), stream or sys.stdout)


def say_json(verb: str, **told: object) -> None:
    """Print one JSON object on one line; what is not ASCII is escaped, so that it is safe."""
    _write(json.dumps({"schema": SCHEMA, "verb": verb, **told}, default=str), sys.stdout)


def complain(text: str) -> None:
    """Say on the standard error why the command ends without success."""
    _write(f"error: {clean_line(text, 2_000)}", sys.stderr)


def warn(texts: Sequence[str]) -> None:
    """Say on the standard error what is worth knowing."""
    for text in texts:
        _write(f"warning: {clean_line(text, 2_000)}", sys.stderr)


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


def run(command: Callable[[], int]) -> int:
    """Run a command's body; turn every failure into one line and an exit code."""
    try:
        code = command()
        sys.stdout.flush()
    except Refused as error:
        complain(str(error))
        return error.code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        reason = error.strerror or str(error)
        complain(f"{os.fsdecode(error.filename)}: {reason}" if error.filename else reason)
        return 2
    except (RecursionError, MemoryError) as error:
        complain(f"a file is too large or nested too deeply ({type(error).__name__})")
        return 2
    return code


def _write(line: str, stream: TextIO) -> None:
    try:
        stream.write(f"{line}\n")
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
