"""What programs print while they work, each family in its own form, as one kind of progress."""

from __future__ import annotations

from acp_core.agents.streams.progress import Parser, Progress

NAMES = ("claude", "codex", "opencode", "gemini", "text")
LIVE = "live"
"""What the runner of a live session writes; no program prints it."""

__all__ = ["LIVE", "NAMES", "Parser", "Progress", "parser"]


def parser(name: str) -> Parser:
    """A new parser for one run of a program that prints in this form.

    Raises:
        KeyError: there is none of that name.
    """
    if name == "claude":
        from acp_core.agents.streams.claude import Claude

        return Claude()
    if name == "codex":
        from acp_core.agents.streams.codex import Codex

        return Codex()
    if name == "opencode":
        from acp_core.agents.streams.opencode import Opencode

        return Opencode()
    if name == "gemini":
        from acp_core.agents.streams.gemini import Gemini

        return Gemini()
    if name == "text":
        from acp_core.agents.streams.text import Text

        return Text()
    if name == LIVE:
        from acp_core.agents.streams.live import Live

        return Live()
    raise KeyError(name)
