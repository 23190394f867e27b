"""Secrets that a command is given: in its words, in a file, or in the environment.

What stands in a command's words is seen by everybody on the machine who lists the processes.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from acp_core.model.action_field import Field, Kind
from acp_core.model.errors import Refused
from acp_core.protocols.kit.command_line import warn

SECRET = "ACP_WIRE_SECRET"
RELAY_KEY = "ACP_RELAY_KEY"
_LARGEST = 1 << 16


def fields(name: str, variable: str, help: str) -> tuple[Field, Field]:
    """The inputs of a command that takes a secret in its words, in a file, or in a variable."""
    key = Field(name, metavar="KEY", optional=True)
    file = Field(f"{name}_file", help=f"Read what {key.option} says from this file.",
                 kind=Kind.FILE, optional=True)  # fmt: skip
    return key._replace(help=f"{help} {seen(variable, file.option)}"), file


def seen(variable: str, option: str = "") -> str:
    """What is said of an option that takes a secret, and what to use in its place."""
    others = f"{option}, or {variable}" if option else variable
    return f"Others on this machine see it: prefer {others} in the environment."


def take(option: str, value: str | None, file: str | None, variable: str) -> str | None:
    """The secret that was given, or None.

    The variable counts where neither of the options is there. It is taken out of the
    environment, so that no program that is started from here gets it.

    Raises:
        Refused: it is given twice, is empty, or its file cannot be read.
    """
    kept = os.environ.pop(variable, "")
    if value is not None and file is not None:
        raise Refused(f"give either --{option} or --{option}-file")
    if file is not None:
        return _read(f"--{option}-file", Path(file).expanduser())
    if value == "":
        raise Refused(f"--{option}: it is empty")
    return value if value is not None else (kept or None)


def _read(option: str, path: Path) -> str:
    from acp_core.files.reading import Unreadable, read_bounded

    try:
        text = read_bounded(path, _LARGEST).decode()
    except Unreadable as error:
        raise Refused(f"{option}: {path}: {error.reason}") from None
    except UnicodeDecodeError:
        raise Refused(f"{option}: {path}: no text in UTF-8") from None
    found = text.rstrip("\r\n")
    if not found:
        raise Refused(f"{option}: {path}: it is empty")
    if path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        warn(f"{path} can be read by others: fix it with chmod 600")
    return found
