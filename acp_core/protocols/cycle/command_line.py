"""What the commands of `acp cycle` have in common: parsing, printing, and ending well.

Bad input gets one line on the standard error and exit code 2, never a traceback.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from acp_core.clock import utc_now
from acp_core.files.text import clean_line
from acp_core.programs.presets import PresetError
from acp_core.protocols.cycle import scan
from acp_core.protocols.cycle.act import Refused
from acp_core.protocols.cycle.doing import reason_of
from acp_core.protocols.cycle.schema import Cycle, Project

INTERRUPTED = 130


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line."""

    def error(self, message: str) -> NoReturn:
        """End with exit code 2."""
        complain(f"{message} (`{self.prog} --help` explains)")
        raise SystemExit(2)


def say(text: str) -> None:
    """Print one line, safely."""
    line = clean_line(text, 100_000)
    try:
        print(line)
    except UnicodeEncodeError:
        print(line.encode("ascii", "backslashreplace").decode())


def say_json(value: dict[str, object]) -> None:
    """Print one JSON object on one line; what is not ASCII is escaped, so that it is safe."""
    print(json.dumps(value))


def complain(text: str) -> None:
    """Say on the standard error why a command ends without success."""
    print(f"error: {clean_line(text, 2_000)}", file=sys.stderr)


def run(command: Callable[[], int]) -> int:
    """Run a command's body; every failure becomes one line and an exit code."""
    try:
        code = command()
        sys.stdout.flush()
    except BrokenPipeError:  # is an OSError, and acp's own to end well
        raise
    except (Refused, OSError) as error:
        complain(reason_of(error))
        return 2
    except PresetError as error:
        complain(str(error))
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def project(folder: str) -> Project:
    """The cycles of a project.

    Raises:
        Refused: there is no such folder.
    """
    root = Path(folder).resolve()
    if not root.is_dir():
        raise Refused(f"{folder}: there is no such folder")
    return scan.scan(root, scan.listed(root), utc_now(), {})


def chosen(folder: str, id: str) -> tuple[Path, Cycle]:
    """The project's folder, and the cycle that is meant: the one named, else the one that goes on.

    Raises:
        Refused: there is none.
    """
    found = project(folder)
    if not id:
        if found.shown is None:
            raise Refused(f"{folder}: no cycle here; `acp cycle start` begins one")
        return found.root, found.shown
    named = id.removesuffix(".json")
    known = [each for each in found.cycles if each.id == named]
    near = known or [each for each in found.cycles if each.id.endswith(named)]
    if len(near) != 1:
        names = ", ".join(each.id for each in found.cycles[-5:]) or "none"
        raise Refused(f"{id!r} is {'no cycle' if not near else 'several cycles'} here ({names})")
    if found.shown and found.shown.id == near[0].id:
        return found.root, found.shown
    return found.root, near[0]
