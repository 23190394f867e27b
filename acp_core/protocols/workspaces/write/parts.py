"""Outputs as parts of one text: which go into it, and which can only be linked.

Source: agent workspaces specification, "Integration Step Protocol", step 3. What is no text, or is
too long, is linked and stated as a gap; nothing is left out in silence.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.records import File
from acp_core.model import format
from acp_core.model.text import clean_line
from acp_core.protocols.workspaces.read import conflict_hints, scan
from acp_core.protocols.workspaces.schema import Agent, Run


class Linked(NamedTuple):
    """An output that is not part of the text, and why."""

    agent: Agent
    file: File
    problem: str

    def gap(self) -> str:
        """What is missing because of it, in a line."""
        task = f" ({self.agent.task_id})" if self.agent.task_id else ""
        what = f"{self.file.path.name} ({format.size(self.file.size)})"
        return f"{self.agent.name}{task}: {what} is only linked: it {self.problem}"


def text_of(file: File) -> tuple[str, str]:
    """The text of an output, and why it cannot be part of another text ("" where it can)."""
    if file.link:
        return "", "is a symbolic link" if file.path.is_symlink() else "is not a regular file"
    try:
        data = read_bounded(file.path, scan.LIMIT)
    except Unreadable as error:
        return "", f"is {error}" if str(error).startswith("larger") else str(error)
    try:
        text = data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError:
        return "", "is not text"
    return (text, "") if "\0" not in text else ("", "is not text")


def linked(run: Run) -> list[Linked]:
    """The outputs that can only be linked, of the agents whose outputs are integrated."""
    found = []
    for agent in conflict_hints.used(run):
        for listed in agent.results:
            if listed.file is not None and listed.owner == agent.name:
                problem = text_of(listed.file)[1]
                found += [Linked(agent, listed.file, problem)] if problem else []
    return found


def link(file: File, problem: str) -> str:
    """A line of Markdown that leads to a file, and says why its text does not stand there."""
    name = re.sub(r"([\\\[\]])", r"\\\1", clean_line(file.path.name))
    target = quote(str(file.path).encode("utf-8", "surrogateescape"))
    return f"[{name}]({target}) ({format.size(file.size)}): only linked: it {problem}"
