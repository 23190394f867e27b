"""Rules on prompts.

Source: agent workspaces specification, "Prompt Template for Subagent Dispatch".
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from acp_core.model import Finding
from acp_core.protocols.kit.findings import advice, error, warning
from acp_core.protocols.workspaces.schema import DEEPEST, Run

SECTIONS = (
    *("YOUR TASK", "INPUTS", "OUTPUTS", "TASK ID", "AGENT NAME"),
    *("SCOPE BOUNDARIES", "RETURN FORMAT", "PERMISSIONS"),
)
_BRACKET = re.compile(r"\[(?:[A-Z][A-Z /-]*|may/may not)\]")
_OUTPUT = re.compile(
    r"^Write your (?:primary output|status file) to:[ \t]*(\S[^\n]*?)[ \t]*$", re.M
)
_WRITE = re.compile(r"^You may write only to paths within:[ \t]*(\S[^\n]*?)[ \t]*$", re.M)
_TASK = re.compile(r"^YOUR TASK:[ \t]*\n(.*?)(?=^[A-Z][A-Z ]+:|\Z)", re.M | re.S)
Findings = Iterator[Finding]


def b50(run: Run) -> Findings:
    """No bracket is left to fill."""
    for prompt in run.prompts:
        for found in sorted(set(_BRACKET.findall(prompt.text))):
            yield error("B50", f"{found} was not filled in", prompt.file)


def b51(run: Run) -> Findings:
    """Paths are absolute."""
    for prompt in run.prompts:
        for written in (*_OUTPUT.findall(prompt.text), *_WRITE.findall(prompt.text)):
            if not os.path.isabs(written) and not written.startswith("["):
                yield error("B51", f"the path {written} is not absolute", prompt.file)


def b52(run: Run) -> Findings:
    """All sections are there."""
    for prompt in run.prompts:
        for section in SECTIONS:
            if not re.search(rf"^{section}:", prompt.text, re.M):
                yield error("B52", f"the section {section} is missing", prompt.file)


def b53(run: Run) -> Findings:
    """The task is one paragraph."""
    for prompt in run.prompts:
        task = _TASK.search(prompt.text)
        if task and len(re.findall(r"\n[ \t]*\n(?=[ \t]*\S)", task[1].strip())) > 0:
            yield warning("B53", "the task is longer than one paragraph", prompt.file)


def b54(run: Run) -> Findings:
    """The agent may write to its own workspace, and nowhere else."""
    for prompt in run.prompts:
        for written in _WRITE.findall(prompt.text):
            if prompt.agent and os.path.basename(written.rstrip("/")) != prompt.agent:
                yield warning("B54", f"{prompt.agent} may write to {written}", prompt.file)


def b55(run: Run) -> Findings:
    """Somebody may launch agents of its own; a manager's agents may not."""
    for prompt in run.prompts:
        launches = re.search(r"^You may launch additional subagents", prompt.text, re.M)
        if launches and run.level >= DEEPEST:
            yield warning(
                "B55", "an agent of a manager may launch additional subagents", prompt.file
            )
        elif launches:
            yield advice("B55", "the agent may launch additional subagents", prompt.file)


RULES = (b50, b51, b52, b53, b54, b55)
