"""The words of agent workspaces, and what one reading of a run's folder holds.

Source: agent workspaces specification, sections "Directory Structure for Agent Workspaces" to
"Status File Schema". What agents wrote stands here unaltered; it is made safe where it is shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from acp_core.files.records import File, Record
from acp_core.model.text import clean_line
from acp_core.protocols.workspaces.schema import coord
from acp_core.protocols.workspaces.schema.coord import (
    Conflicts,
    Decision,
    Dispatch,
    Integration,
    Output,
    Report,
    RunInfo,
    Triage,
)

FOLDERS = ("agent-workspaces", "workspaces")  # the second stands in the section on handoffs
SHARED, COORD, SCRATCH = "shared", ".coord", "scratch"
HISTORY = "history"  # in COORD: the statuses and returns of earlier attempts, by agent and number
SUCCESS, PARTIAL, FAILURE = "success", "partial", "failure"
WORDS = {
    **dict.fromkeys(("success", "complete", "completed", "done", "approved"), SUCCESS),
    **dict.fromkeys(("partial", "incomplete", "done_with_concerns"), PARTIAL),
    **dict.fromkeys(("failure", "failed", "error", "blocked"), FAILURE),
}
MISSING = "missing"  # its program ended, or nobody waits for it any more, without a status
DECISIONS = {
    PARTIAL: ("accept", "rerun", "skip"),
    FAILURE: ("rerun", "orchestrator-does", "gap"),
    MISSING: ("rerun", "orchestrator-does", "gap"),
}
CATEGORIES = ("factual", "coverage", "format")  # of conflicts
GROUNDS = ("specific", "sourced", "consistent")  # why a version of a fact holds
NAMINGS = ("plain", "prefixed")  # how outputs are called
FINALS = ("md", "txt", "json")  # the forms of a final output
TORN_SECONDS = 2.0  # what cannot be parsed and is younger is still being written
STALL_SECONDS = 20 * 60.0
DEEPEST = 1  # the level of a manager's run: no other run stands in the workspaces of its agents


def outcome(word: object) -> str:
    """``success``, ``partial`` or ``failure`` for a status word; "" for an unknown one."""
    return WORDS.get(word.strip().lower(), "") if isinstance(word, str) else ""


def is_one_line(text: str) -> bool:
    """Whether a text has no line end of any kind: no section of a prompt can begin in it."""
    return text.splitlines() == [text]


def run_id(manifest: dict[str, object] | None) -> str:
    """What tells a run from others at the same place, safe to show; "" where nothing does."""
    info = coord.parse(RunInfo, manifest)
    return clean_line(" ".join(filter(None, (info.run_id, info.created))), 200)


@dataclass(frozen=True, slots=True)
class Listed:
    """A path that an agent named, and the file that it means.

    Attributes:
        written: as the agent wrote it.
        item: what else was said of it.
        path: where it was looked for, inside the run; None where that is outside.
        file: the file that stands there, None where there is none.
        relocated: the run was moved since.
        relative: it was no absolute path.
        owner: the workspace in which it lies, symbolic links followed; "" for none.
    """

    written: str
    item: Output
    path: Path | None
    file: File | None
    relocated: bool
    relative: bool
    owner: str


@dataclass(frozen=True, slots=True)
class Returned:
    """What an agent returned: the object in it, and how it was found."""

    file: File
    value: dict[str, object] | None
    problem: str = ""
    prose: bool = False
    listed: tuple[Listed, ...] = ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as it was dispatched, and whom it names."""

    file: File
    text: str
    agent: str
    task_id: str


@dataclass(frozen=True, slots=True)
class Agent:
    """One sub-agent: what its workspace holds, and what was said of it.

    ``folder`` is None where only the manifest or a prompt names it; ``records`` are its status
    files, ``status`` the one that holds; ``attempts`` the stamps of its outputs. ``outputs`` are
    those that its status lists, ``guessed`` those that stand there where it lists none.
    """

    name: str
    folder: Path | None
    files: tuple[File, ...] = ()
    scratch: int = 0
    records: tuple[Record, ...] = ()
    status: Record | None = None
    outputs: tuple[Listed, ...] = ()
    guessed: tuple[Listed, ...] = ()
    returned: Returned | None = None
    prompt: Prompt | None = None
    plan: Dispatch = field(default_factory=Dispatch)
    attempts: tuple[str, ...] = ()
    decision: str = ""

    @property
    def value(self) -> dict[str, object]:
        """The status file's object, {} where there is none."""
        return (self.status.value if self.status else None) or {}

    @property
    def report(self) -> Report:
        """What its status file says."""
        return coord.decode(Report, self.status)

    @property
    def answer(self) -> Report:
        """What it returned says."""
        return coord.parse(Report, self.returned.value if self.returned else None)

    @property
    def outcome(self) -> str:
        """How it ended, "" where that is not said."""
        return outcome(self.value.get("status"))

    @property
    def results(self) -> tuple[Listed, ...]:
        """What is read of it: the listed outputs, else those that are found."""
        return self.outputs or self.guessed

    @property
    def task_id(self) -> str:
        """Its task, from the status file, the manifest, the return or the prompt."""
        known = (self.report.task_id, self.plan.task_id, self.answer.task_id)
        return next(filter(None, known), self.prompt.task_id if self.prompt else "")

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        known = 0 < self.plan.attempt < 10_000
        return self.plan.attempt if known else max(1, len(self.attempts))

    @property
    def last_write(self) -> datetime | None:
        """When a file of the workspace last changed."""
        return max((each.changed for each in self.files), default=None)

    @property
    def active(self) -> datetime | None:
        """When it last gave a sign: a write, or its dispatch, whichever is later."""
        signs = (self.last_write, self.plan.dispatched_at)
        return max((sign for sign in signs if sign), default=None)

    @property
    def is_over(self) -> bool:
        """Whether the manifest says that its program ended."""
        return self.plan.ended_at is not None

    @property
    def is_planned(self) -> bool:
        """Whether the manifest names it."""
        return bool(self.plan.raw)

    @property
    def errors(self) -> list[str]:
        """What it says went wrong, in what it returned or in its status file."""
        return [*(self.answer.errors or self.report.errors)]


class Trespass(NamedTuple):
    """One file that an agent wrote and may not.

    Attributes:
        by: the agent that wrote it.
        others: who else worked at the same time, and may have written it.
        file: the file.
        victim: the agent in whose workspace it lies, "" for none.
        how: what shows it.
        certain: it was seen, and nobody else can have been it.
    """

    by: str
    others: tuple[str, ...]
    file: File
    victim: str
    how: str
    certain: bool


@dataclass(frozen=True)
class Run:
    """One reading of a run.

    ``base`` is the folder of the workspaces; ``finals`` are the final outputs, ``stray`` outputs
    that lie beside the workspaces, ``drafts`` what the final output is prepared in, ``synthesis`` how a program does that; ``cut`` says that not all files were looked at;
    ``level`` is the number of other runs in whose workspaces it stands; ``planted`` are final outputs
    that an agent wrote, which only the orchestrator may, and ``trespasses`` all that agents wrote where
    they may not.
    """

    root: Path
    base: Path
    now: datetime
    agents: tuple[Agent, ...] = ()
    files: tuple[File, ...] = ()
    returns: tuple[Returned, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    manifest: Record | None = None
    triage: Record | None = None
    conflicts: Record | None = None
    finals: tuple[File, ...] = ()
    final_text: str = ""
    integration: Record | None = None
    spec: File | None = None
    stray: tuple[File, ...] = ()
    drafts: tuple[File, ...] = ()
    synthesis: Record | None = None
    cut: bool = False
    level: int = 0
    planted: tuple[File, ...] = ()
    trespasses: tuple[Trespass, ...] = ()

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """What was decided on its agents, oldest first."""
        return coord.decode(Triage, self.triage).decisions

    @cached_property
    def recorded(self) -> Conflicts:
        """The conflicts that are written down; those of the integration where nobody did that."""
        found = coord.decode(Conflicts, self.conflicts)
        if "conflicts" in found.raw:
            return found
        return replace(found, conflicts=self.integrated.conflicts)

    @cached_property
    def integrated(self) -> Integration:
        """The integration status."""
        return coord.decode(Integration, self.integration)

    @property
    def coordination(self) -> tuple[Record, ...]:
        """What the orchestrator keeps of the run, as far as it is there."""
        kept = (self.manifest, self.triage, self.conflicts, self.integration)
        return tuple(record for record in kept if record is not None)

    @property
    def writing(self) -> bool:
        """Whether a program writes the draft, as far as the orchestrator wrote that down."""
        said = (self.synthesis.value or {}) if self.synthesis else {}
        return bool(said.get("begun_at")) and not said.get("ended_at")
