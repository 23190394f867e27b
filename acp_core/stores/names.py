"""Which names a store may give to files here, and which files are given to a store at all.

Names come from strangers: git stores any of them. Files that programs and agents take orders from
(settings, instructions, hooks, environment) are nobody else's to write, and nobody else's to read.
Standard library only.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from acp_core.model.text import clean_line
from acp_core.stores.engine import MAX_DEPTH, MAX_FILES, StoreRefused

_LONGEST_PART = 255  # bytes
_LONGEST_PATH = 1_000
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)
_SHORT_GIT = re.compile(r"git~[0-9]+", re.IGNORECASE)
_FORBIDDEN = frozenset('\\:*?"<>|')
INSTRUCTIONS = frozenset(
    {
        "agent.md", "agents.md", "agents.override.md", "claude.md", "claude.local.md", "codex.md", "copilot-instructions.md", "crush.md",
        "gemini.md", "opencode.json", "opencode.jsonc", "qwen.md", "skill.md", "warp.md", "mcp.json", "iflow.md",
    }
)  # fmt: skip
"""What agents' programs read as orders or settings, in lower case."""
_ENVIRONMENT = re.compile(r"(.*\.)?env(rc)?", re.IGNORECASE)


def against(path: str, dotted: frozenset[str] = frozenset()) -> str:
    """What speaks against a file of this name; "" for nothing.

    Args:
        path: below the folder, "/" between its parts.
        dotted: names of folders that may begin with a dot.
    """
    parts = path.split("/")
    if len(path) > _LONGEST_PATH or len(parts) > MAX_DEPTH:
        return "it is too deep or too long"
    for part in parts:
        try:
            size = len(part.encode())
        except UnicodeEncodeError:
            return "it is not UTF-8 text"
        if part in ("", ".", "..") or size > _LONGEST_PART:
            return "it leads elsewhere"
        if any(unicodedata.category(each)[0] == "C" or each in _FORBIDDEN for each in part):
            return "it has characters that names of shared files do not have"
        if part in dotted and part is not parts[-1]:
            continue
        if part.startswith(".") or unicodedata.normalize("NFKC", part).startswith("."):
            return "names that begin with a dot are not shared"
        if part.endswith((".", " ")) or _DEVICES.fullmatch(part) or _SHORT_GIT.fullmatch(part):
            return "other systems take it for something else"
        if part.casefold() in INSTRUCTIONS or _ENVIRONMENT.fullmatch(part):
            return "programs take orders or settings from it"
    return ""


def check(paths: Iterable[str], dotted: frozenset[str] = frozenset()) -> None:
    """Refuse what a store holds where a folder cannot hold it, or must not.

    Args:
        paths: all that there are.
        dotted: see `against`.

    Raises:
        StoreRefused: a name is refused, two of them are one on some machine, or there are too many.
    """
    seen: dict[str, str] = {}
    folders: dict[str, str] = {}
    for count, path in enumerate(sorted(paths), 1):
        if count > MAX_FILES:
            raise StoreRefused(f"the store holds more than {MAX_FILES} files: refused")
        if reason := against(path, dotted):
            raise StoreRefused(f"the store holds {clean_line(path, 200)}: refused ({reason})")
        key = _one_name(path)
        if key in seen:
            both = f"{clean_line(seen[key], 150)} and {clean_line(path, 150)}"
            raise StoreRefused(f"the store holds {both}: refused (one name on some machines)")
        seen[key] = path
        parts = key.split("/")
        for end in range(1, len(parts)):
            folders["/".join(parts[:end])] = path
    for key, path in folders.items():
        if key in seen:
            raise StoreRefused(
                f"the store holds {clean_line(seen[key], 150)} and {clean_line(path, 150)}: refused "
                "(a file that is also a folder)"
            )


def _one_name(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())
