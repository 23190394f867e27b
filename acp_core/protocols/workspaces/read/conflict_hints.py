"""Where outputs may contradict each other: hints that a machine can give; a person judges them.

Source: agent workspaces specification, "Conflict Resolution Protocol", step 1. Only statements are
compared: a key with its value, within the section in which it stands, and files of one name. A key
with its value is a line of a list, a line with a bold key, a row of a table with two columns, or a
key of JSON. Prose is not compared, and headings are none: many texts have the same. Whoever worked
on what another wrote is not compared with that one.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from acp_core.files import markdown
from acp_core.files.records import read_text, shallow
from acp_core.model.text import clean_line
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
_INPUTS = re.compile(r"^INPUTS:[ \t]*\n(.*?)(?=^[A-Z][A-Z ]+:|\Z)", re.M | re.S)
_STATED = 2_000  # keys of one output that are compared


class Hint(NamedTuple):
    """Agents that may contradict each other on a topic, and why that is thought."""

    agents: tuple[str, ...]
    topic: str
    category: str
    files: tuple[str, ...]
    why: str


class Output(NamedTuple):
    """What one output says: its headings, and the values of its keys, as people compare them.

    ``statements`` are the values by section and key; the section is "" where there is none.
    """

    agent: str
    path: Path
    headings: dict[str, str]
    statements: dict[tuple[str, str], str]
    digest: str = ""

    @property
    def values(self) -> dict[str, str]:
        """The values by their keys alone."""
        return {key: value for (_, key), value in self.statements.items()}


def outputs(run: Run, order: Sequence[str]) -> list[Output]:
    """The outputs that are integrated, in the order in which they are read."""
    agents = run.by_name
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
        digest = f"{len(text)}:{crc32(text.encode(errors='replace'))}"
        if problem:  # only its name and its size can be compared
            yield Output(agent.name, listed.path, {}, {}, str(listed.file.size))
        elif listed.path.suffix == ".json":
            keys = {("", key): value for key, value in _keys(text).items()}
            yield Output(agent.name, listed.path, {}, keys, digest)
        elif listed.path.suffix in (".md", ".txt", ""):
            yield Output(agent.name, listed.path, _headings(text), _stated(text), digest)
        else:
            yield Output(agent.name, listed.path, {}, {}, digest)


def hints(found: Sequence[Output], built: Mapping[str, Set[str]]) -> list[Hint]:
    """Every hint: a topic with all who state something else on it.

    Args:
        found: the outputs, in the order in which they are read.
        built: for each agent those on whose outputs it worked; see `built_on`.
    """
    made = [*_statements(found, built), *_files(found, built)]
    return list({(h.agents, h.topic.lower(), h.category): h for h in made}.values())[:MOST]


def built_on(run: Run) -> dict[str, frozenset[str]]:
    """On whose outputs each agent worked: its declared inputs, and what those were made of."""
    direct = {agent.name: _inputs(agent, run) for agent in run.agents}
    found: dict[str, frozenset[str]] = {}
    for name in direct:
        known: set[str] = set()
        pending = [name]
        while pending:
            new = direct.get(pending.pop(), set()) - known
            known |= new
            pending += new
        found[name] = frozenset(known - {name})
    return found


def _inputs(agent: Agent, run: Run) -> set[str]:
    """The agents that it came after, or whose files the manifest or its prompt hand it."""
    inputs = _INPUTS.search(agent.prompt.text) if agent.prompt else None
    text = "\n".join([*agent.plan.inputs, inputs[1] if inputs else ""])
    others = {each.name for each in run.agents} - {agent.name}
    own = {name for name in others if f"/{run.base.name}/{name}/" in text}
    return own | (set(agent.plan.after) & others)


def _statements(found: Sequence[Output], built: Mapping[str, Set[str]]) -> Iterator[Hint]:
    """The same key under the same topic, with other values."""
    topics: dict[tuple[str, str], list[Output]] = {}
    for output in found:
        for at in output.statements:
            topics.setdefault(at, []).append(output)
    anywhere = {key: each for (section, key), each in topics.items() if not section}
    repeated = Counter(key for section, key in topics if section)
    for (section, key), stated in topics.items():
        statements = [(each, each.statements[section, key]) for each in stated]
        if section:  # whoever has no sections speaks of the same
            statements += [(each, each.statements["", key]) for each in anywhere.get(key, ())]
        who = _differing(statements, built)
        if len({each.agent for each, _ in who}) > 1:
            topic = f"{section}: {key}" if section and repeated[key] > 1 else key
            values = ", ".join(f"{o.agent} “{clean_line(v, 60)}”" for o, v in who)
            yield _hint([each for each, _ in who], topic, "factual", f"{key}: {values}")


def _differing(
    statements: Sequence[tuple[Output, str]], built: Mapping[str, Set[str]]
) -> list[tuple[Output, str]]:
    """Those of whom another one, who did not work on what they wrote, says something else."""

    def against(one: tuple[Output, str], other: tuple[Output, str]) -> bool:
        first, second = one[0].agent, other[0].agent
        near = first in built.get(second, ()) or second in built.get(first, ())
        return first != second and one[1] != other[1] and not near

    return [one for one in statements if any(against(one, other) for other in statements)]


def _files(found: Sequence[Output], built: Mapping[str, Set[str]]) -> Iterator[Hint]:
    """Files of the same name that differ, the usual names of outputs aside."""
    names: dict[str, list[tuple[Output, str]]] = {}
    for each in found:
        name = each.path.name
        if not name.startswith(("output.", f"{each.agent}-output")):
            names.setdefault(name, []).append((each, each.digest))
    for name, statements in names.items():
        who = [each for each, _ in _differing(statements, built)]
        if len({each.agent for each in who}) > 1:
            yield _hint(who, name, "coverage", f"{name}: their files of this name differ")


def _hint(who: Sequence[Output], topic: str, category: str, why: str) -> Hint:
    agents = tuple(dict.fromkeys(each.agent for each in who))
    files = tuple(dict.fromkeys(str(each.path) for each in who))
    return Hint(agents, topic_of(topic), category, files, why)


def topic_of(text: str) -> str:
    """A topic as it can stand in a record sentence: no sentence ends in it."""
    return clean_line(" ".join(text.split()).replace(". ", ", "), 80).strip(" .") or "?"


def _headings(text: str) -> dict[str, str]:
    """The headings below the title."""
    found = {}
    for heading in markdown.headings(markdown.normalise(text)):
        if heading.level > 1 and (key := _words(heading.title)):
            found[key] = heading.title
    return dict(list(found.items())[:_STATED])


def _words(title: str) -> str:
    return " ".join(re.findall(r"\w+", title.lower()))


def _stated(text: str) -> dict[tuple[str, str], str]:
    """What lines of the form ``- Key: value``, and tables of two columns, say in each section.

    A key that a section has several times, with other values, says nothing that can be compared.
    """
    text = markdown.normalise(text)
    begins = [(h.line, _words(h.title)) for h in markdown.headings(text) if h.level > 1]
    lines = text.split("\n")
    bounds = [(0, ""), *begins, (len(lines) + 1, "")]
    found: dict[tuple[str, str], set[str]] = {}
    for (start, section), (end, _) in pairwise(bounds):
        part = "\n".join(lines[max(0, start - 1) : end - 1])
        pairs = [*_VALUE.findall(part)[:_STATED], *_CELLS.findall(part)[:_STATED]]
        for key, value in pairs:
            plain = key.strip().lower()
            if plain.strip(" -:") and value.strip("-: "):
                found.setdefault((section, plain), set()).add(_plain(value))
    once = {at: values.pop() for at, values in found.items() if len(values) == 1}
    return {at: value for at, value in once.items() if value}


def places(text: str, topic: str) -> list[tuple[int, str]]:
    """Where an output speaks of a topic: the lines that state it, else those that mention it.

    Args:
        text: the output's text.
        topic: as a hint names it, see `topic_of`.

    Returns:
        Lines with their numbers, from 1.
    """
    text = markdown.normalise(text)
    sections = {h.line: _words(h.title) for h in markdown.headings(text) if h.level > 1}
    section, wanted = "", topic_of(topic).lower()
    stated, mentioned = [], []
    for number, line in enumerate(text.split("\n"), 1):
        section = sections.get(number, section)
        match = _VALUE.match(line) or _CELLS.match(line)
        key = match[1].strip().lower() if match else ""
        if key and wanted in (topic_of(key), topic_of(f"{section}: {key}").lower()):
            stated.append((number, line))
        elif wanted in line.lower() or f'"{wanted.rpartition(".")[2]}":' in line.lower():
            mentioned.append((number, line))
    return stated or mentioned


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
