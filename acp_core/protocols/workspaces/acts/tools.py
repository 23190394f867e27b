"""The tools of a sub-agent's program: to read what is meant for it, and to check what it returns."""

from __future__ import annotations

import os
from pathlib import Path

from acp_core.model import Document
from acp_core.model.action_spec import PLACE, Answer, By, Field, Kind, QuerySpec
from acp_core.model.clock import utc_now
from acp_core.protocols.kit import tools
from acp_core.protocols.kit.diagnosis import safe_id
from acp_core.protocols.kit.tools import WHO
from acp_core.protocols.kit.values import Values
from acp_core.protocols.workspaces import queries
from acp_core.protocols.workspaces.read.manifest import layout
from acp_core.protocols.workspaces.rules import required_inputs
from acp_core.protocols.workspaces.write import dispatch

_HERE = "acp_core.protocols.workspaces.acts.tools"

READ = tools.READ._replace(
    sentence="Read your prompt, a required input of it, or a file of your workspace. Without a document: list them.",
    answer=f"{_HERE}:read",
)

CHECK_RETURN = QuerySpec(
    "check_return",
    "Check the object that you are about to return.",
    f"{_HERE}:check_return",
    (
        PLACE,
        WHO,
        Field("text", "Text", "Give the whole text that you will return.", Kind.LINES,
              required=True, most=1_000_000),
    ),
    by=By.PARTICIPANT,
)  # fmt: skip

TOOLS = (READ, CHECK_RETURN)


def read(values: Values) -> Answer:
    """A document that is meant for this agent: others' workspaces are not."""
    place = layout(values.folder)
    run = dispatch.read_run(place, utc_now())
    agent = next((each for each in run.agents if each.name == values.participant), None)
    files = {each.path for each in agent.files} if agent else set()
    files |= {each.file.path for each in agent.records} if agent else set()
    if agent and agent.prompt:
        files |= {agent.prompt.file.path, *map(Path, required_inputs(agent.prompt.text))}
    meant = {os.path.abspath(place.root / each) for each in files}

    def is_meant(document: Document) -> bool:
        return document.path is not None and os.path.abspath(document.path) in meant

    return tools.read(values, is_meant)


def check_return(values: Values) -> Answer:
    """The object in a text that an agent returns, and what is wrong with it."""
    name = f"{safe_id(values.participant)}.txt"
    return queries.returned(values.text, layout(values.folder).root / name)
