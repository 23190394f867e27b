"""Where outputs may contradict each other: hints that a machine can give; a person judges them.

Source: agent workspaces specification, "Conflict Resolution Protocol", step 1. Statements in prose
are not compared: only headings, keys with values, and names of files. A key with its value is a
line of a list, a line with a bold key, a row of a table with two columns, or a key of JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from acp_core.files import markdown
from acp_core.files.records import read_text, shallow
from acp_core.files.text import clean_line
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.read import scan
from acp_core.protocols.workspaces.schema import Agent, Run

MOST = 100  # hints that are told
_VALUE = re.compile(
    r"^[ \t]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+[*_]{0,2}|\*\*|__)"
    r"([^\n:*_|]{2,40}?)[*_]{0,2}:[*_]{0,2}[ \t]+(\S[^\n]{0,200})$",
    re.M,
)
_CELLS = re.compile(
    r"^[ \t]*\|[ \t]*[*_`]{0,2}([^\n|*_`]{2,40}?)[*_`]{0,2}[ \t]*\|[ \t]*([^\n|]{1,200}?)[ \t]*\|[ \t]*$",
    re.M,
)
_COMMON = frozenset(
    {
        *("summary", "introduction", "overview", "background", "conclusion", "conclusions"),
        *("sources", "references", "notes", "gaps", "appendix", "scope", "method", "methods"),
        *("results", "discussion", "contents"),
    }
)
_STATED = 2_000  # keys of one output that are compared


class Hint(NamedTuple):
    """Two agents that may contradict each other on a topic, and why that is thought."""

    agents: tuple[str, str]
    topic: str
    category: str
    files: tuple[str, str]
    why: str


class Output(NamedTuple):
    """What one output says: its headings, and the values of its keys, as people compare them."""

    agent: str
    path: Path
    headings: dict[str, str]
    values: dict[str, str]


def outputs(run: Run, order: Sequence[str]) -> list[Output]:
    """The outputs that are integrated, in the order in which they are read."""
    agents = {agent.name: agent for agent in run.agents}
    found = []
    for name in order:
        agent = agents.get(name)
        if agent is not None and agent.decision not in ("skip", "gap", "orchestrator-does"):
            found += list(_outputs(agent))
    return found


def _outputs(agent: Agent) -> Iterator[Output]:
    for listed in agent.results:
        if listed.file is None or listed.owner != agent.name or listed.path is None:
            continue
        text, problem = read_text(listed.file, scan.LIMIT)
        if problem:
            yield Output(agent.name, listed.path, {}, {})  # only its name can be compared
        elif listed.path.suffix == ".json":
            yield Output(agent.name, listed.path, {}, _keys(text))
        elif listed.path.suffix in (".md", ".txt", ""):
            yield Output(agent.name, listed.path, _headings(text), _stated(text))
        else:
            yield Output(agent.name, listed.path, {}, {})


def hints(found: Sequence[Output]) -> list[Hint]:
    """Every hint, facts first."""
    made = [*_values(found), *_same(found), *_files(found)]
    return list({(h.agents, h.topic.lower(), h.category): h for h in made}.values())[:MOST]


def _values(found: Sequence[Output]) -> Iterator[Hint]:
    """The same key: with other values a fact, with the same ones in another form a form."""
    for at, second in enumerate(found):
        for first in found[:at]:
            if first.agent == second.agent:
                continue
            for key, value in second.values.items():
                here = first.values.get(key)
                if here is None:
                    continue
                if here != value:
                    why = f"{key}: “{clean_line(here, 60)}” and “{clean_line(value, 60)}”"
                    yield _hint(first, second, key, "factual", why)
                elif first.path.suffix != second.path.suffix:
                    why = f"{key} is told in {first.path.suffix} and in {second.path.suffix}"
                    yield _hint(first, second, key, "format", why)


def _same(found: Sequence[Output]) -> Iterator[Hint]:
    for at, second in enumerate(found):
        for first in found[:at]:
            if first.agent == second.agent:
                continue
            for key, title in second.headings.items():
                if key in first.headings:
                    yield _hint(first, second, title, "coverage", "both have this heading")


def _files(found: Sequence[Output]) -> Iterator[Hint]:
    """Files of the same name, the usual names of outputs aside."""
    for at, second in enumerate(found):
        for first in found[:at]:
            name = second.path.name
            usual = name.startswith(("output.", f"{second.agent}-output"))
            if first.agent != second.agent and first.path.name == name and not usual:
                yield _hint(first, second, name, "coverage", "both wrote a file of this name")


def _hint(first: Output, second: Output, topic: str, category: str, why: str) -> Hint:
    files = (str(first.path), str(second.path))
    return Hint((first.agent, second.agent), topic_of(topic), category, files, why)


def topic_of(text: str) -> str:
    """A topic as it can stand in a record sentence: no sentence ends in it."""
    return clean_line(" ".join(text.split()).replace(". ", ", "), 80).strip(" .") or "?"


def _headings(text: str) -> dict[str, str]:
    """The headings below the title, those aside that every text has."""
    found = {}
    for heading in markdown.headings(markdown.normalise(text)):
        key = " ".join(re.findall(r"\w+", heading.title.lower()))
        if heading.level > 1 and key and key not in _COMMON:
            found[key] = heading.title
    return dict(list(found.items())[:_STATED])


def _stated(text: str) -> dict[str, str]:
    """What lines of the form ``- Key: value``, and tables of two columns, say."""
    pairs = [*_VALUE.findall(text)[:_STATED], *_CELLS.findall(text)[:_STATED]]
    found = {key.strip().lower(): _plain(value) for key, value in pairs}
    return {key: value for key, value in found.items() if key.strip(" -:") and value.strip("-: ")}


def _keys(text: str) -> dict[str, str]:
    """The simple values of a JSON object, by the names that lead to them."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    found: dict[str, str] = {}
    pending: list[tuple[str, object]] = [("", value)] if shallow(value) else []
    while pending and len(found) < _STATED:
        name, each = pending.pop(0)
        if isinstance(each, dict):
            pending += [(f"{name}.{key}".strip("."), below) for key, below in each.items()]
        elif isinstance(each, list) and name and each:
            simple = [str(one) for one in each if isinstance(one, str | int | float | bool)]
            if len(simple) == len(each):
                found[name.lower()] = _plain(", ".join(simple))
        elif isinstance(each, str | int | float | bool) and name:
            found[name.lower()] = _plain(str(each))
    return found


def _plain(value: str) -> str:
    return " ".join(value.strip(" .*_`").split()).lower()


def used(run: Run) -> list[Agent]:
    """The agents whose outputs go into the final output."""
    left = ("skip", "gap", "orchestrator-does")
    return [
        a
        for a in run.agents
        if a.outcome and a.outcome != schema.FAILURE and a.decision not in left
    ]
