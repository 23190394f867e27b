"""A program from its start to its end, and what is written of it then: a sub-agent's, or the integrator's.

The process that does this may be killed at any moment: whoever does it next finds the program, or
what it left, and goes on from there. A program whose work is done is not started again. What changed
outside of a sub-agent's workspace while it worked is noted. What the integrator writes is a draft: a
person approves it. Source: agent workspaces specification, "Return Value Contract", "Conflict
Prevention via Agent-Namespaced Paths" and "Orchestrator Integration Prompt Template".
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path

from acp_core.agents import output
from acp_core.agents.assignment import Assignment, perform
from acp_core.agents.live.turn import TurnScope
from acp_core.agents.program import Program, SpawnError
from acp_core.agents.session import Session
from acp_core.agents.state import Run
from acp_core.files import atomic
from acp_core.files.atomic import is_leftover
from acp_core.files.reading import Stamp, Unreadable, read_bounded, stamp
from acp_core.files.records import File, moment, read_record
from acp_core.files.transaction import MOVE, REPLACE, Write
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.discovery import IGNORED
from acp_core.protocols.kit.tools import tools_in
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.conduct.advance import watcher_alive
from acp_core.protocols.workspaces.conduct.team import Team
from acp_core.protocols.workspaces.read import scan
from acp_core.protocols.workspaces.read.manifest import (
    Object,
    attempt_of,
    is_running,
    layout,
    prompt_file,
    read_json,
    read_manifest,
    return_file,
    stored_return,
)
from acp_core.protocols.workspaces.schema import (
    ORCHESTRATOR,
    Dispatch,
    Layout,
    Task,
    Triage,
    encode,
    iso,
)
from acp_core.protocols.workspaces.write import integration, step
from acp_core.protocols.workspaces.write.step import Step, locked

LINGER = 60.0  # seconds that a program may go on after its status file was written

_LOOK = 0.5  # seconds between two looks at what people decided

VARIABLE = "ACP_WORKSPACES_TASK"  # tells a program, and whoever looks for it, what it is for

_OVER = ("gap", "skip", "orchestrator-does", "rerun")


class AgentAttempt(Assignment):
    """One attempt of one agent.

    Args:
        session: the agent's, entered.
        team: the programs of the run.
        agent: the agent's name.
        attempt: which attempt this is.
    """

    def __init__(self, session: Session, team: Team, agent: str, attempt: int) -> None:
        self._session, self._team = session, team
        self._agent = agent
        self._place: Layout = layout(team.folder)
        self._entry, self._task = _entry(self._place, agent)
        self._dispatch = schema.decode_object(Dispatch, self._entry)
        self._looked = 0.0
        self._triage: Stamp | None = None
        self._decision = ""
        task, limit = self._task, self._task.timeout or team.timeout
        super().__init__(
            f"{self._place.root}|{task.task_id}|{attempt}|{self._dispatch.dispatched}".replace(
                "\0", "|"
            ),
            VARIABLE,
            note=task.task[:200],
            title=f"attempt {attempt}: {task.task_id}",
            attempt=attempt,
            timeout=limit,
            late=team.late(limit),
            turn=task.task_id,
        )

    def run(self) -> None:
        """Do it, or what is left of it.

        Raises:
            Refused: the run's files do not allow it.
            OSError: something cannot be written.
        """
        if attempt_of(self._entry) != self.attempt or not is_running(self._entry):
            return
        try:
            run = perform(self._session, self)
        except SpawnError as error:
            self._session.say(str(error))
            self._close(f"could not be started: {error}", [], set())
            return
        self._keep(run)
        others = self._others()
        before = load_tree(self._tree())
        outside: list[str] = []
        if before is not None:
            outside = changed_files(
                before, file_tree(self._place, self._agent), self._place, others
            )
        how = run.exit or "ended unseen"
        self._close(f"{how} ({run.stopped})" if run.stopped else how, outside, others)
        if self.is_done():
            self._session.update(turns=self._session.state.turns + 1)
        self._session.record(run, turn=self._task.task_id, attempt=self.attempt, mode="task")

    def begin(self) -> None:
        """Keep what the run's folder holds, to see later what changed outside of the workspace."""
        save_tree(self._tree(), file_tree(self._place, self._agent))

    def program(self) -> Program:
        """The program that was chosen for the agent."""
        return self._team.program(self._agent, str(self._place.workspace(self._agent)))

    def scope(self) -> TurnScope:
        """It may change files in its workspace, and nowhere else."""
        workspace = str(self._place.workspace(self._agent))
        return TurnScope(
            self.note, folders=(workspace,), confined=True, permissions=self._team.permissions
        )

    def tools(self) -> tuple[str, ...]:
        """Those of the protocol's participants."""
        return tools_in("workspaces")

    def prompt(self) -> str:
        """What the manifest's prompt file says; the program gets a copy, which nobody can change."""
        written = Path(self._dispatch.prompt_file)
        inside = prompt_file(self._place, self._entry, self._task)
        if written != inside:
            raise SpawnError(f"the manifest names a prompt that is not {self._agent}'s")
        return inside.read_text(encoding="utf-8", errors="replace")

    def is_done(self) -> bool:
        """Whether its status file stands there, written since it was dispatched."""
        path = Path(self._dispatch.status_file)
        at = self._dispatch.dispatched_at
        found = stamp(path)
        own = path.parent == self._place.workspace(self._agent) and not path.is_symlink()
        if found is None or at is None or not own:
            return False
        file = File(path.name, path, found.size, moment(found.modified / 1e9))
        record = read_record(file, scan.LIMIT)
        return record.value is not None and file.changed.timestamp() >= int(at.timestamp())

    def check(self, run: Run) -> str:
        """Why the program should be stopped now, or ""."""
        if time.monotonic() - self._looked < _LOOK:
            return ""
        self._looked = time.monotonic()
        return self.withdrawn() or self._lingers(run)

    def withdrawn(self) -> str:
        """Why a person wants it no more, or ""."""
        return f"a person decided: {self._decision}" if self._decided() in _OVER else ""

    def _decided(self) -> str:
        """What a person decided on this attempt, read again when it changes."""
        now = stamp(self._place.triage)
        if now != self._triage:
            with contextlib.suppress(Refused):
                value = read_json(self._place.triage)
                self._decision = decided(value, self._task.task_id, self.attempt)
                self._triage = now
        return self._decision

    def _lingers(self, run: Run) -> str:
        """It said that it is through, and goes on."""
        if not self.is_done():
            return ""
        path = Path(self._dispatch.status_file)
        written = stamp(path)
        at = moment(written.modified / 1e9) if written else run.started
        quiet = max(at, run.last_output or run.started)
        late = (utc_now() - quiet).total_seconds() > LINGER
        return "it kept running after writing its status" if late else ""

    def _keep(self, run: Run) -> None:
        """Keep what it returned, once."""
        stream = self._team.stream(self._agent, run.live)
        text = read_return(Path(run.out), stream) if run.out else ""
        path = return_file(self._place, self._entry, self._task)
        if schema.parse_object(text) is None:  # it holds more than the object
            path = path.with_name(f"{path.stem}.txt")
        stored = stored_return(self._place, self._entry, self._task)
        if text.strip() and stored is None:
            with locked(self._place), contextlib.suppress(FileExistsError):
                atomic.create(path, text.encode(errors="backslashreplace"))

    def _others(self) -> set[str]:
        """Who may have worked at the same time."""
        began = self._dispatch.dispatched_at
        found = set()
        for name, entry in read_manifest(self._place).entries.items():
            other = schema.decode_object(Dispatch, entry)
            over = other.ended_at and began and other.ended_at < began
            alone = not other.is_dispatched or over
            if name != self._agent and not alone:
                found.add(name)
        return found

    def _tree(self) -> Path:
        return self._session.where.folder / f"tree-{self.attempt}.json"

    def _close(self, how: str, outside: list[str], others: set[str]) -> None:
        """Write into the manifest that it ended: from here on it is not run again."""
        now = utc_now()

        def alter(entry: Object) -> None:
            if attempt_of(entry) != self.attempt:
                return
            entry |= {"ended_at": iso(now), "exit": how, "outside": outside}
            if outside:
                entry["outside_while"] = sorted(others)

        step.change_entry(self._place, self._agent, alter)
        with contextlib.suppress(OSError):
            self._tree().unlink(missing_ok=True)
        self._session.say(f"ended: {how}")


def decided(value: Object | None, task_id: str, attempt: int) -> str:
    """What was decided last on an attempt; "" for nothing."""
    about = [
        each.decision
        for each in schema.decode_object(Triage, value).decisions
        if each.task_id == task_id and each.attempt in (None, attempt)
    ]
    return about[-1] if about else ""


def _entry(place: Layout, agent: str) -> tuple[Object, Task]:
    manifest = read_manifest(place)
    entry = manifest.entries.get(agent)
    if entry is None:
        raise Refused(f"{place.manifest} does not list {agent}")
    return entry, manifest.tasks[agent]


GUARDED_FILES = 20_000  # files of a tree that are compared

MOST_CHANGES = 50  # changes that are told of

_BYTES = 32 << 20

Tree = dict[str, list[int]]

"""Name relative to the run -> size, time of the last change in ns, inode."""


def file_tree(place: Layout, agent: str) -> Tree:
    """Every file of the run but those of the agent's workspace and those that orchestrators keep."""
    found: Tree = {}
    left_out = {str(place.base / agent), str(place.coord)}
    pending = [str(place.root)]
    while pending and len(found) < GUARDED_FILES:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.path in left_out or entry.name in IGNORED or is_leftover(entry.name):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                        continue
                    stat = entry.stat(follow_symlinks=False)
                    name = os.path.relpath(entry.path, place.root)
                    found[name] = [stat.st_size, stat.st_mtime_ns, stat.st_ino]
        except OSError:
            continue
    return found


def changed_files(before: Tree, after: Tree, place: Layout, others: set[str]) -> list[str]:
    """What differs, safe to keep as JSON; the workspaces of ``others``, who work too, do not count."""
    own = tuple(os.path.join(place.base.name, other) + os.sep for other in others)
    names = before.keys() | after.keys()
    differs = sorted(n for n in names if before.get(n) != after.get(n) and not n.startswith(own))
    return [_plain(name) for name in differs[:MOST_CHANGES]]


def _plain(name: str) -> str:
    return name.replace(os.sep, "/").encode("utf-8", "backslashreplace").decode()


def save_tree(path: Path, found: Tree) -> None:
    """Keep a tree, so that whoever takes a run over can compare with it.

    Raises:
        OSError: it cannot be written.
    """
    data = json.dumps(found).encode(errors="surrogateescape")
    atomic.replace(path, data, sync=False, private=True)


def load_tree(path: Path) -> Tree | None:
    """A tree that was kept; None where there is none."""
    try:
        return schema.parse_object(read_bounded(path, _BYTES))
    except Unreadable:
        return None


RETURN_BYTES = 512 << 10  # bytes that are kept of what was said


def read_return(out: Path, stream: str) -> str:
    """What the program of a run said, as it is kept: all of a plain text, else its last messages.

    Args:
        out: the file into which it printed.
        stream: the form of what it printed, one of `streams.NAMES`.
    """
    data = output.read_end(out)
    text = data.decode(errors="replace") if stream == "text" else _messages(data, stream)
    encoded = text.encode(errors="backslashreplace")
    return encoded[-RETURN_BYTES:].decode(errors="replace")


def _messages(data: bytes, stream: str) -> str:
    """The last message, and before it the last one with an object, where it has none itself."""
    messages = output.parse(data, stream).messages
    for message in reversed(messages[-50:]):
        if schema.parse_return(message)[0] is not None:
            return message
    return messages[-1] if messages else ""


def plan_synthesis(place: Layout) -> Step:
    """What is written before the program starts; a draft that is there is put away.

    Raises:
        Refused: it is too early, or one is being written.
    """
    if is_synthesising(place):
        raise Refused("a program is already writing the final output")
    text = integration.synthesis_prompt(place)
    path = integration.draft_file(place)
    writes = []
    if os.path.lexists(path):
        kept = place.coord / "history" / "drafts"
        number = len(list(kept.iterdir())) + 1 if kept.is_dir() else 1
        writes.append(Write(kept / f"{number}-{path.name}", MOVE, source=path))
    record = {"begun_at": iso(utc_now()), "ended_at": None, "exit": None}
    read_json(_synthesis_record(place))  # what is none of ours is not overwritten
    prompt = place.draft / "prompt.md"
    folders = () if place.draft.is_dir() else (place.draft,)
    writes += [
        Write(prompt, REPLACE, text.encode()),
        Write(_synthesis_record(place), REPLACE, encode(record)),
    ]
    return Step(
        "Let a program write the draft of the final output.", tuple(writes), folders=folders
    )


def is_synthesising(place: Layout) -> bool:
    """Whether a process of this machine does it now."""
    return watcher_alive(place, ORCHESTRATOR)


def is_synthesis_open(place: Layout) -> bool:
    """Whether it was begun, and nobody saw its end."""
    with contextlib.suppress(Refused):
        value = read_json(_synthesis_record(place))
        return bool(value and value.get("begun_at") and not value.get("ended_at"))
    return False


class Synthesis(Assignment):
    """One try of a program to write the draft.

    Args:
        session: the orchestrator's, entered.
        team: the programs of the run.
    """

    def __init__(self, session: Session, team: Team) -> None:
        self._session, self._team = session, team
        self._place = layout(team.folder)
        value = read_json(_synthesis_record(self._place))
        key = f"{self._place.root}|{ORCHESTRATOR}|{(value or {}).get('begun_at')}"
        super().__init__(
            key,
            VARIABLE,
            note="integrates",
            title="writes the final output's draft",
            timeout=team.timeout,
            late=team.late(team.timeout),
        )

    def run(self) -> None:
        """Do it, or what is left of it.

        Raises:
            Refused: the run's files do not allow it.
            OSError: something cannot be written.
        """
        if not is_synthesis_open(self._place):
            return
        try:
            run = perform(self._session, self)
        except SpawnError as error:
            self._close(f"could not be started: {error}")
            return
        draft = integration.draft_file(self._place)
        if not draft.exists():
            stream = self._team.stream(ORCHESTRATOR, run.live)
            said = read_return(Path(run.out), stream).strip() if run.out else ""
            if said:
                with contextlib.suppress(FileExistsError):
                    atomic.create(draft, f"{said}\n".encode(errors="replace"))
        there = "" if draft.exists() else "; no draft written"
        how = f"{run.exit} ({run.stopped})" if run.stopped else run.exit
        self._close(f"{how or 'ended unseen'}{there}")

    def program(self) -> Program:
        """The program that was chosen to integrate."""
        return self._team.program(ORCHESTRATOR)

    def scope(self) -> TurnScope:
        """It may write the draft."""
        return TurnScope(
            self.title, folders=(str(self._place.draft),), permissions=self._team.permissions
        )

    def prompt(self) -> str:
        """What it is told: the orchestrator's integration prompt."""
        return integration.synthesis_prompt(self._place)

    def _close(self, how: str) -> None:
        with locked(self._place) as transaction:
            value = read_json(_synthesis_record(self._place))
            record = (value or {}) | {"ended_at": iso(utc_now()), "exit": how}
            write = Write(_synthesis_record(self._place), REPLACE, encode(record))
            transaction.commit("note how the integration ended", [write])
        self._session.say(f"ended: {how}")


def _synthesis_record(place: Layout) -> Path:
    return place.draft / "synthesis.json"
