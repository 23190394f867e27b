"""What an installed skill consists of, as bytes: the files of `data` filled in, and the copied modules."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import NamedTuple

import acp_core
from acp_core.model.errors import Unusable
from acp_core.protocols.folder.actions.agents import TABLE
from acp_core.protocols.folder.skill.closure import closure

MANIFEST = "skill.json"
MAKER = "acp"
NAME = "agent-collaboration"  # where the folder's own name is none that a skill can have
MODULE = "acp_core.protocols.folder.actions.agents"
DATA = Path(__file__).with_name("data")

# Agents look a skill up by the name of its folder, which must be like this to count.
_SKILL_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class Script(NamedTuple):
    """A script: the command of acp that it is, that command's function, and what it does."""

    name: str
    command: str
    function: str
    summary: str


SCRIPTS = (
    Script("init_collaboration.py", "init", "init", "Start a collaboration in a folder"),
    Script("append_event.py", "append", "append", "Append an event to a collaboration's log"),
    Script("next_action.py", "next", "next_action", "Show what a participant should do now"),
    Script("wait_for_turn.py", "wait", "wait", "Wait until it is a participant's turn"),
    Script("validate_collaboration.py", "validate", "validate", "Check a collaboration"),
)


class Incomplete(Unusable):
    """The skill cannot be made from this installation of acp; the message says why."""


def contents(folder_name: str) -> dict[str, bytes]:
    """Every file of a skill in a folder of this name, by its path there, the manifest included.

    Raises:
        Incomplete: a module that the scripts need is missing, or needs more than Python brings.
    """
    name = folder_name if _is_skill_name(folder_name) else NAME
    common = {"name": name, "version": acp_core.__version__, "module": MODULE}
    files = {text: _filled(text, common) for text in ("SKILL.md", "README.md")}
    for script in SCRIPTS:
        values = common | {
            "script": script.name,
            "command": script.command,
            "function": script.function,
            "summary": script.summary,
        }
        files[f"scripts/{script.name}"] = _filled("script.py.template", values)
    files |= {f"scripts/{path}": data for path, data in _modules().items()}
    return files | {MANIFEST: _manifest(name, files)}


def is_script(path: str) -> bool:
    """Whether a file of the skill is meant to be run."""
    return path.count("/") == 1 and path.startswith("scripts/")


def digest(data: bytes) -> str:
    """How the manifest names what is in a file."""
    return hashlib.sha256(data).hexdigest()


def _is_skill_name(name: str) -> bool:
    return len(name) <= 64 and _SKILL_NAME.fullmatch(name) is not None


def _filled(name: str, values: dict[str, str]) -> bytes:
    text = (DATA / name).read_text(encoding="utf-8")
    for key, value in values.items():
        text = text.replace("{{" + key + "}}", value)
    return text.encode()


def _modules() -> dict[str, bytes]:
    root = Path(acp_core.__file__).parent.parent
    try:
        needed = closure(root, (MODULE, TABLE))
        found = {path: file.read_bytes() for path, file in needed.files.items()}
    except (ImportError, OSError, SyntaxError) as error:
        raise Incomplete(f"acp's own modules cannot be copied: {error}") from None
    for name, file in needed.foreign.items():
        raise Incomplete(f"{file.relative_to(root)} needs {name}, which is not part of Python")
    return found


def _manifest(name: str, files: dict[str, bytes]) -> bytes:
    value = {
        "files": {path: digest(data) for path, data in files.items()},
        "made_by": MAKER,
        "name": name,
        "version": acp_core.__version__,
    }
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()
