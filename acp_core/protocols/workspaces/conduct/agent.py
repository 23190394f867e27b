"""One sub-agent's program from its start to its end, and what is written of it then.

Source: agent workspaces specification, "Return Value Contract". The process that does this may be
killed at any moment: whoever does it next finds the program, or what it left, and goes on from
there. A program whose work is done is not started again.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from acp_core.agents import spawn
from acp_core.agents.spawn import Command, SpawnError, Values
from acp_core.agents.state import Phase, Run
from acp_core.agents.supervise import Runner
from acp_core.files import atomic
from acp_core.files.reading import Stamp, stamp
from acp_core.files.records import File, moment, read_record
from acp_core.model.clock import utc_now
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.conduct import guard, recovery, returned
from acp_core.protocols.workspaces.conduct.team import Choice, Team
from acp_core.protocols.workspaces.read import scan
from acp_core.protocols.workspaces.schema.plan import Task
from acp_core.protocols.workspaces.write import Refused
from acp_core.protocols.workspaces.write import manifest as manifests
from acp_core.protocols.workspaces.write.layout import Layout, layout, locked, read_json
from acp_core.protocols.workspaces.write.manifest import Object

LINGER = 60.0  # seconds that a program may go on after its status file was written
_LOOK = 0.5  # seconds between two looks at what people decided
_OVER = ("gap", "skip", "orchestrator-does", "rerun")


class Work:
    """One attempt of one agent.

    Args:
        runner: holds the agent's lock.
        team: the programs of the run.
        agent: the agent's name.
        attempt: which attempt this is.
    """

    def __init__(self, runner: Runner, team: Team, agent: str, attempt: int) -> None:
        self._runner, self._team = runner, team
        self._agent, self._attempt = agent, attempt
        self._place: Layout = layout(team.folder)
        self._entry, self._task = _entry(self._place, agent)
        self._looked = 0.0
        self._triage: Stamp | None = None
        self._decision = ""

    @property
    def _token(self) -> str:
        dispatched = schema.text(self._entry.get("dispatched_at"))
        return f"{self._place.root}\0{self._task.task_id}\0{self._attempt}\0{dispatched}".replace(
            "\0", "|"
        )

    def run(self) -> None:
        """Do it, or what is left of it.

        Raises:
            Refused: the run's files do not allow it.
            OSError: something cannot be written.
        """
        if manifests.attempt(self._entry) != self._attempt or not manifests.is_open(self._entry):
            return
        try:
            run = self._ended()
        except SpawnError as error:
            self._runner.say(str(error))
            self._close(f"could not be started: {error}", [], set())
            return
        self._keep(run)
        others = self._others()
        before = guard.kept(self._tree())
        outside: list[str] = []
        if before is not None:
            outside = guard.changed(
                before, guard.tree(self._place, self._agent), self._place, others
            )
        how = run.exit or "ended unseen"
        self._close(f"{how} ({run.stopped})" if run.stopped else how, outside, others)
        if self._has_ended():
            self._runner.update(turns=self._runner.state.turns + 1)
        self._runner.record(run, turn=self._task.task_id, attempt=self._attempt, mode="task")

    def _ended(self) -> Run:
        """The program's run, once it has ended: begun now, or by somebody before us."""
        state, unfinished = self._runner.state, self._runner.unfinished()
        ours = state.turn == self._token and state.run is not None and state.run.number == state.own
        if unfinished is not None and ours:
            self._runner.say(f"taking over process {unfinished.process.pid}")
            self._runner.update(phase=Phase.RUNNING)
            return self._runner.take_over(unfinished, self._check)
        if unfinished is not None and unfinished.process.alive():
            self._runner.say("an earlier attempt still runs: it is stopped first")
            self._runner.take_over(unfinished, lambda _: "it is run once more")
        if ours and state.run is not None:
            return state.run
        orphan = recovery.orphan(self._runner, self._token)
        if orphan is not None:
            self._runner.say(f"taking over process {orphan.process.pid}, whose start was not noted")
            self._runner.update(phase=Phase.RUNNING, run=orphan)
            return self._runner.take_over(orphan, self._check)
        if self._has_ended() or recovery.has_spoken(self._runner, self._token):
            self._runner.say("it ended before anybody looked: it is not run again")
            return recovery.unseen(self._runner, self._token)
        return self._start()

    def _start(self) -> Run:
        number = self._runner.next_number()
        guard.keep(self._tree(), guard.tree(self._place, self._agent))
        self._runner.update(
            turn=self._token,
            own=number,
            attempt=self._attempt,
            phase=Phase.RUNNING,
            note=self._task.task[:200],
        )
        self._runner.say(f"attempt {self._attempt}: {self._task.task_id}")
        return self._runner.run(self._command(number), self._check)

    def _command(self, number: int) -> Command:
        choice = self._team.choice(self._agent)
        if choice is None:
            raise SpawnError(f"no program was chosen for {self._agent}")
        written = Path(schema.text(self._entry.get("prompt_file")))
        inside = manifests.prompt_file(self._place, self._entry, self._task)
        if written != inside:
            raise SpawnError(f"the manifest names a prompt that is not {self._agent}'s")
        text = inside.read_text(encoding="utf-8", errors="replace")
        prompt = self._runner.file(number, "prompt")  # a copy: nobody else can change it
        atomic.replace(prompt, text.encode(), sync=False)
        return command_of(choice, self._team, self._runner, text, str(prompt), self._token)

    def _has_ended(self) -> bool:
        """Whether its status file stands there, written since it was dispatched."""
        path = Path(schema.text(self._entry.get("status_file")))
        at = schema.moment(self._entry.get("dispatched_at"))
        found = stamp(path)
        own = path.parent == self._place.workspace(self._agent) and not path.is_symlink()
        if found is None or at is None or not own:
            return False
        file = File(path.name, path, found.size, moment(found.modified / 1e9))
        record = read_record(file, scan.LIMIT)
        return record.value is not None and file.changed.timestamp() >= int(at.timestamp())

    def _check(self, run: Run) -> str:
        """Why the program should be stopped now, or ""."""
        if self._task.timeout is not None:
            took = (utc_now() - run.started).total_seconds()
            if took > self._task.timeout:
                return f"not through after {self._task.timeout:g} s"
        if time.monotonic() - self._looked < _LOOK:
            return ""
        self._looked = time.monotonic()
        if self._decided() in _OVER:
            return f"a person decided: {self._decision}"
        return self._lingers(run)

    def _decided(self) -> str:
        """What a person decided on this attempt, read again when it changes."""
        now = stamp(self._place.triage)
        if now != self._triage:
            with contextlib.suppress(Refused):
                value, _ = read_json(self._place.triage)
                self._decision = decided(value, self._task.task_id, self._attempt)
                self._triage = now
        return self._decision

    def _lingers(self, run: Run) -> str:
        """It said that it is through, and goes on."""
        if not self._has_ended():
            return ""
        path = Path(schema.text(self._entry.get("status_file")))
        written = stamp(path)
        at = moment(written.modified / 1e9) if written else run.started
        quiet = max(at, run.last_output or run.started)
        late = (utc_now() - quiet).total_seconds() > LINGER
        return "it had written its status and went on running" if late else ""

    def _keep(self, run: Run) -> None:
        """Keep what it returned, once."""
        text = returned.said(Path(run.out), self._stream()) if run.out else ""
        path = manifests.return_file(self._place, self._entry, self._task)
        if text.strip() and not path.exists():
            with locked(self._place), contextlib.suppress(FileExistsError):
                atomic.create(path, text.encode(errors="backslashreplace"))

    def _stream(self) -> str:
        choice = self._team.choice(self._agent)
        return choice.resolved().stream if choice else "text"

    def _others(self) -> set[str]:
        """Who may have worked at the same time."""
        began = schema.moment(self._entry.get("dispatched_at"))
        found = set()
        for name, entry in manifests.read(self._place).entries.items():
            ended = schema.moment(entry.get("ended_at"))
            alone = not entry.get("dispatched_at") or (ended and began and ended < began)
            if name != self._agent and not alone:
                found.add(name)
        return found

    def _tree(self) -> Path:
        return self._runner.where.folder / f"tree-{self._attempt}.json"

    def _close(self, how: str, outside: list[str], others: set[str]) -> None:
        """Write into the manifest that it ended: from here on it is not run again."""
        now = utc_now()

        def alter(entry: Object) -> None:
            if manifests.attempt(entry) != self._attempt:
                return
            entry |= {"ended_at": manifests.iso(now), "exit": how, "outside": outside}
            if outside:
                entry["outside_while"] = sorted(others)

        manifests.change(self._place, self._agent, alter)
        with contextlib.suppress(OSError):
            self._tree().unlink(missing_ok=True)
        self._runner.say(f"ended: {how}")


def command_of(
    choice: Choice, team: Team, runner: Runner, text: str, prompt: str, token: str
) -> Command:
    """The command that does a piece of work.

    Raises:
        SpawnError: it cannot be started.
    """
    values = Values(
        folder=team.folder,
        workdir=team.workdir or team.folder,
        drafts=str(runner.where.drafts),
        prompt=text,
        prompt_file=prompt,
        model=choice.model,
    )
    made = spawn.build(choice.resolved(), values, choice.program or None)
    return Command(made.argv, made.cwd, {**made.env, recovery.TOKEN: token}, made.stdin)


def decided(value: Object | None, task_id: str, attempt: int) -> str:
    """What was decided last on an attempt; "" for nothing."""
    found = ""
    entries = (value or {}).get("decisions")
    for entry in entries if isinstance(entries, list) else []:
        about = isinstance(entry, dict) and entry.get("task_id") == task_id
        if about and entry.get("attempt", attempt) == attempt:
            found = schema.text(entry.get("decision"))
    return found


def _entry(place: Layout, agent: str) -> tuple[Object, Task]:
    manifest = manifests.read(place)
    entry = manifest.entries.get(agent)
    if entry is None:
        raise Refused(f"{place.manifest} does not name {agent}")
    return entry, manifest.tasks[agent]
