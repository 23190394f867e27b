"""Secrets that a command is given: in its words, in a file, or in the environment.

What stands in a command's words is seen by everybody on the machine who lists the processes.
"""

from __future__ import annotations

import os
import stat
from argparse import ArgumentParser
from pathlib import Path

from acp_core.model.errors import CommandError
from acp_core.protocols.kit.command_line import warn

SECRET = "ACP_WIRE_SECRET"
RELAY_KEY = "ACP_RELAY_KEY"
_LARGEST = 1 << 16


def add_option(parser: ArgumentParser, option: str, variable: str, help: str) -> None:
    """Let a parser take a secret in its words or in a file."""
    parser.add_argument(f"--{option}", metavar="KEY",
                        help=f"{help}; others on this machine see it: prefer --{option}-file,"
                        f" or {variable} in the environment")  # fmt: skip
    parser.add_argument(f"--{option}-file", metavar="FILE", help="the file in which that stands")


def take(option: str, value: str | None, file: str | None, variable: str) -> str | None:
    """The secret that was given, or None.

    The variable counts where neither of the options is there. It is taken out of the
    environment, so that no program that is started from here gets it.

    Raises:
        CommandError: it is given twice, is empty, or its file cannot be read.
    """
    kept = os.environ.pop(variable, "")
    if value is not None and file is not None:
        raise CommandError(f"--{option} and --{option}-file: only one of them is needed")
    if file is not None:
        return _read(f"--{option}-file", Path(file).expanduser())
    if value == "":
        raise CommandError(f"--{option}: it is empty")
    return value if value is not None else (kept or None)


def _read(option: str, path: Path) -> str:
    from acp_core.files.reading import Unreadable, read_bounded

    try:
        text = read_bounded(path, _LARGEST).decode()
    except Unreadable as error:
        raise CommandError(f"{option}: {path}: {error.reason}") from None
    except UnicodeDecodeError:
        raise CommandError(f"{option}: {path}: no text in UTF-8") from None
    found = text.rstrip("\r\n")
    if not found:
        raise CommandError(f"{option}: {path}: it is empty")
    if path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        warn(f"{path} can be read by others: chmod 600 makes it yours alone")
    return found
