"""Folders that a program was told to trust: elsewhere, one of them gives its model no tools.

Gemini CLI starts no MCP server in a folder that its person has not trusted, and says nothing about
that to whoever starts it. acp trusts no folder for people: it says where the trust is missing.
"""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path

from acp_core.agents.presets import Preset
from acp_core.agents.streams.progress import string, table
from acp_core.files.reading import Unreadable, read_bounded

_ASKS = "gemini"  # the program, by whose permissions it understands
_LARGEST = 1 << 20
_PARENT, _NEVER = "TRUST_PARENT", "DO_NOT_TRUST"
_TRUSTED = ("TRUST_FOLDER", _PARENT)
# A text, which stays as it is, or a comment, which the program reads over.
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*+")|//[^\n]*|/\*.*?\*/', re.S)
EFFECT = "gives its model no MCP tools in a folder that you have not told it to trust"
"""What such a program does, to be put behind its name."""


def asks(preset: Preset) -> bool:
    """Whether a preset's program wants to be told which folders it may trust."""
    return preset.permissions == _ASKS


def missing(preset: Preset, folder: str) -> str:
    """Why a program's model gets no tools in a folder, and the cure; "" where it gets them.

    Where one of the program's own files cannot be read, it counts as trusting no folder.

    Args:
        preset: the program's.
        folder: where it would run.
    """
    if not asks(preset):
        return ""
    title = preset.title or preset.name
    try:
        if _is_trusted(folder):
            return ""
    except _Damaged:
        return f"{title} {EFFECT}: {cure(preset, folder)}"
    return f"{title} {EFFECT}, and {folder} is none: {cure(preset, folder)}"


def cure(preset: Preset, folder: str = "") -> str:
    """What a person does about it.

    Args:
        preset: the program's.
        folder: where it would run; "" where that is not known yet.
    """
    try:
        _is_trusted(folder)
    except _Damaged as damaged:
        return f"correct {damaged}: acp cannot tell what you trust"
    where = folder or "the folder where the agent works"
    return f"run `{preset.program}` in {where} once, and trust the folder"


def _is_trusted(folder: str) -> bool:
    """Whether the program trusts a folder, by the same rules as it decides that itself.

    Raises:
        _Damaged: a file that decides it cannot be read.
    """
    said = os.environ.get("GEMINI_CLI_TRUST_WORKSPACE", "")
    if os.environ.get("GEMINI_RESTRICTED_MODE") == "true" or said == "false":
        return False
    if said == "true":
        return True
    home = Path(os.environ.get("GEMINI_CLI_HOME") or "~").expanduser() / ".gemini"
    settings = _read(home / "settings.json")
    if table(table(settings.get("security")).get("folderTrust")).get("enabled") is False:
        return True
    trusted = _read(
        Path(os.environ.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH") or home / "trustedFolders.json")
    )
    real, longest, level = Path(os.path.realpath(folder)), -1, ""
    for rule, value in trusted.items():
        place = os.path.dirname(rule) if value == _PARENT else rule
        if len(rule) > longest and real.is_relative_to(os.path.realpath(place)):
            longest, level = len(rule), string(value)
    return level in _TRUSTED


class _Damaged(Exception):
    """Which file cannot be read, and why."""


def _read(path: Path) -> dict[str, object]:
    """A file of the program's settings; empty where there is none.

    Raises:
        _Damaged: it cannot be read.
    """
    try:
        text = read_bounded(path, _LARGEST).decode()
        found = json.loads(_COMMENT.sub(r"\1", text))
    except Unreadable as error:
        if error.errno == errno.ENOENT:
            return {}
        raise _Damaged(f"{path}, which cannot be read ({error.reason})") from None
    except (ValueError, RecursionError):
        raise _Damaged(f"{path}, which is no JSON") from None
    if not isinstance(found, dict):
        raise _Damaged(f"{path}, which is no JSON object")
    return found
