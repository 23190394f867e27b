"""The draft of the final output: every output with its source, for a person to work on.

Source: agent workspaces specification, "Integration Step Protocol", step 5.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from acp_core.model.text import clean_line
from acp_core.protocols.workspaces.schema import Run, coord
from acp_core.protocols.workspaces.schema.coord import Conflict, Dispatch
from acp_core.protocols.workspaces.write import parts
from acp_core.protocols.workspaces.write.manifest import Manifest
from acp_core.protocols.workspaces.write.writing import encode

TO_WRITE = "(Write this part.)"
_BOTH = f"The parts of this draft hold each version: keep one. {TO_WRITE}"


class Material(NamedTuple):
    """What a draft is made of: agents with their files in order, resolved conflicts, gaps,
    and where outputs may contradict each other."""

    reading: list[tuple[str, Path, int]]
    resolved: list[Conflict]
    gaps: list[str]
    hints: list[str]

    @property
    def settled(self) -> list[str]:
        """The record sentences of resolved conflicts; with what is left to do where several versions stand in the draft.

        Source: "Conflict Resolution Protocol", step 2: one version is kept, both are never
        concatenated.
        """
        names = {name for name, _, _ in self.reading}
        return [
            f"{each.sentence} {_BOTH}" if len(names & set(each.agents)) > 1 else each.sentence
            for each in self.resolved
        ]


def text(run: Run, manifest: Manifest, material: Material) -> str:
    """The draft as Markdown or plain text."""
    lines = [f"# {manifest.project}", ""]
    for name, path, _ in material.reading:
        source = clean_line(f"Source: {name}, {path}", 8_000)
        lines += [f"## {_title(manifest, name)}", "", source, ""]
        lines += [_part(run, path), ""]
    for agent in run.agents:
        if agent.decision == "orchestrator-does":
            lines += [
                f"## {_title(manifest, agent.name)}",
                "",
                "Source: the orchestrator",
                "",
                TO_WRITE,
                "",
            ]
    for title, items in (
        ("Resolved conflicts", material.settled),
        ("Unresolved", material.hints),
        ("Gaps", material.gaps),
    ):
        if items:
            lines += [f"## {title}", "", *[clean_line(f"- {each}", 8_000) for each in items], ""]
    return "\n".join(lines)


def _title(manifest: Manifest, agent: str) -> str:
    task = coord.parse(Dispatch, manifest.entries.get(agent)).task
    return clean_line(" ".join(task.split()) or agent, 200)


def _lower(text: str) -> str:
    """A text as a part of another: its headings two levels down, those in code aside."""
    lines, fenced = [], False
    for line in text.split("\n"):
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        heading = line.startswith("#") and not fenced
        lines.append(f"##{line}" if heading else line)
    return "\n".join(lines)


def json_text(run: Run, manifest: Manifest, material: Material) -> str:
    """The draft as a JSON object."""
    made: list[dict[str, object]] = []
    for name, path, _ in material.reading:
        text, problem = _read(run, path)
        part: dict[str, object] = {"agent": name, "source": str(path)}
        if problem:
            made.append({**part, "content": None, "not_included": f"it {problem}"})
            continue
        try:
            content: object = json.loads(text) if path.suffix == ".json" else text
        except (ValueError, RecursionError):
            content = text
        made.append({**part, "content": content})
    settled = {"resolved_conflicts": material.settled} if material.resolved else {}
    return encode({"task": manifest.project, "parts": made, **settled}).decode()


def _part(run: Run, path: Path) -> str:
    """An output as it stands in the draft: its text, or a link and the reason."""
    content, problem = _read(run, path)
    file = next((each for each in run.files if each.path == path), None)
    return parts.link(file, problem) if problem and file else _lower(content).strip("\n")


def _read(run: Run, path: Path) -> tuple[str, str]:
    file = next((each for each in run.files if each.path == path), None)
    return parts.text_of(file) if file else ("", "is missing")
