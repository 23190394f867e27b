"""Whatever an agent's store holds: verdict, causes, offers and refusals agree, and every cure works."""

from __future__ import annotations

import asyncio
import contextlib
import io
import itertools
import os
import shlex
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from acp_core import model
from acp_core.__main__ import no_dashboard
from acp_core.cli.main import run
from acp_core.diagnosis import actions
from acp_core.model import Action, Matter, OutcomeState, Snapshot, Verdict
from acp_core.model.errors import Refused
from acp_core.model.format import is_said
from acp_core.protocols.kit import guard
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from acp_core.protocols.wire import matters
from acp_core.protocols.wire.collaboration import AgentFolder
from acp_core.protocols.wire.conduct.agent import Agent, Config
from acp_core.protocols.wire.network import agent_directory
from acp_core.protocols.wire.read import folder as reading
from acp_core.protocols.wire.schema.basics import ANSWER, CANCEL, FORGET, MOVE
from acp_core.protocols.wire.serving.process import bind, listening, open_agent
from tests.diagnosis.support import problems
from tests.protocols.wire import stores
from tests.protocols.wire.support import PATIENCE, ROOT
from tests.support import examples, forked

Command = Callable[..., tuple[int, str]]
numbers = itertools.count()
pytestmark = pytest.mark.usefixtures("in_memory")
damages = st.lists(st.sampled_from(sorted(stores.DAMAGE)), max_size=2, unique=True)


class Here:
    """An agent that runs in a thread, under the lock of its folder, as `acp agent` runs it."""

    def __init__(self, name: str, folder: Path) -> None:
        self._name, self._folder = name, folder
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._go)

    def __enter__(self) -> Here:
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        if self._error is not None:
            self._thread.join(PATIENCE)
            raise self._error
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(PATIENCE)
        self._loop.close()

    def _go(self) -> None:
        try:
            self._loop.run_until_complete(self._run())
        except BaseException as error:
            self._error = error
        self._ready.set()

    async def _run(self) -> None:
        self._end = asyncio.Event()
        agent = await open_agent(Config(name=self._name, sync="normal"), self._folder)
        try:
            async with listening(agent, bind("127.0.0.1", 0), bind("127.0.0.1", 0)):
                agent.peers.start()
                agent_directory.announce_running(self._folder, _about(agent))
                self._ready.set()
                await self._end.wait()
        finally:
            await agent.close()


def _about(agent: Agent) -> agent_directory.Running:
    return agent_directory.Running(
        agent.config.name, 1, agent.link or "", agent.http_url or "", agent.owner_token
    )


@contextmanager
def started(name: str) -> Iterator[None]:
    """The agent runs; refused as `acp agent` refuses it."""
    with agent_directory.claimed(name) as folder:
        guard.check(matters.obstacles(folder, reading.problem(folder)), matters.START)
        with Here(name, folder):
            yield


def acp(*words: str) -> tuple[int, str]:
    """A command of acp; its exit code, and all that it says."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = run(words, no_dashboard)
    return code, out.getvalue()


@contextmanager
def opened(folder: Path) -> Iterator[AgentFolder]:
    here = AgentFolder(str(folder))
    try:
        yield here
    finally:
        here.close()


def seen(here: AgentFolder) -> tuple[Snapshot, tuple[Matter, ...]]:
    now = datetime.now(UTC)
    snapshot = here.refresh(now)
    return snapshot, problems(
        here, DiagnosisContext(snapshot, Clock(now), has_turns=here.has_turns)
    )


def refusals(snapshot: Snapshot) -> str:
    """What is said where nothing can be done."""
    return guard.refusal(snapshot.obstacles) if snapshot.obstacles else ""


def as_process(*words: str) -> tuple[int, str]:
    """The same of a command that a person types."""
    ran = forked.run(words, ROOT, {**os.environ, "PYTHONPATH": str(ROOT)}, "")
    return ran.returncode, ran.stdout + ran.stderr


def agree(
    folder: Path, snapshot: Snapshot, causes: tuple[Matter, ...], why: Command | None
) -> None:
    """What the commands say of it is what is known of it."""
    keys = {cause.key for cause in causes}
    assert {each.key for each in snapshot.obstacles} <= keys
    code, checked = acp("validate", str(folder))
    assert "should not happen" not in checked
    why_code, because = (2 if snapshot.obstacles else 0), refusals(snapshot)
    if why is not None:
        why_code, because = why("why", str(folder))
    if snapshot.obstacles:
        (obstacle,) = snapshot.obstacles
        assert (code, why_code) == (2, 2)
        assert obstacle.sentence in checked
        assert obstacle.sentence in because
        assert obstacle.instruction in checked
        return
    assert code == {Verdict.INVALID: 2, Verdict.WARNINGS: 1, Verdict.VALID: 0}[snapshot.verdict]
    assert all(
        each.code in checked
        for each in snapshot.findings
        if each.severity is not model.Severity.ADVICE
    )
    if why is not None:
        said = " ".join(because.split())
        headlines = [" ".join(cause.sentence.split()) for cause in causes if cause.wanted]
        assert all(is_said(headline, said) for headline in headlines), (headlines, said)


def check(spec: stores.Spec, wrong: list[str], choice: int, why: Command) -> None:
    name = f"Agent {next(numbers)}"
    folder = stores.make(name, spec)
    try:
        for each in wrong:
            with contextlib.suppress(sqlite3.Error):  # a store that is broken already
                stores.DAMAGE[each](folder)
        with opened(folder) as here:
            snapshot, causes = seen(here)
            agree(folder, snapshot, causes, None if choice % 20 else why)
            found = actions.actions(here, snapshot)
            assert all(each.personal for each in found)  # nobody can be asked
            if snapshot.obstacles:
                mended(name, snapshot)
            with started(name):
                running(folder, here, causes, choice, why)
    finally:
        shutil.rmtree(folder)


def mended(name: str, snapshot: Snapshot) -> None:
    """It is not started as it is, and the cure that is printed makes room for a new store."""
    (obstacle,) = snapshot.obstacles
    with pytest.raises(Refused) as refused, started(name):
        pass
    assert obstacle.sentence in str(refused.value)
    command, _, then = obstacle.instruction.partition("; ")
    if not then:  # in words: another program wrote it
        assert "another version" in obstacle.sentence
        command = matters.broken(agent_directory.folder_of(name), "").instruction.partition("; ")[0]
    else:
        assert shlex.split(then.partition(" then creates")[0]) == ["acp", "agent", "--name", name]
    subprocess.run(["sh", "-c", command], check=True)


def running(
    folder: Path, here: AgentFolder, before: tuple[Matter, ...], choice: int, why: Command
) -> None:
    """Once it runs, all that is offered can be done, and what would be refused is not offered."""
    snapshot, causes = seen(here)
    agree(folder, snapshot, causes, None if choice % 20 else why)
    assert not {cause.key for cause in causes if cause.code == "wire-stopped"}
    found = actions.actions(here, snapshot)
    offered = {each.name: each for each in found if not each.personal}
    for cause in causes:
        for name in filter(None, (cause.remedy, *cause.others)):
            assert name in offered, (cause.code, name)
    refuses(here, offered)
    acts = [(name, value) for name in offered for value in chosen(offered[name])]
    if causes and choice % 2:
        cured(here, causes[choice // 2 % len(causes)], offered)
    elif acts:
        name, value = acts[choice // 2 % len(acts)]
        given = value if isinstance(value, dict) else {}
        outcome = perform(offered[name], **given)
        assert outcome.state is OutcomeState.DONE, (name, given, outcome.sentence)


def perform(action: Action, **given: Any) -> model.Outcome:
    words = {"text": "Yes.", "link": ""}
    names = {each.name for each in action.fields or ()}
    filled = {name: value for name, value in words.items() if name in names} | given
    inputs = action.inputs(**filled)
    preview = action.preview(inputs)
    assert not preview.refused, (action.name, filled, preview.refused)
    return action.perform(inputs)


def chosen(action: Action) -> list[dict[str, str]]:
    """What can be chosen in the form of an act that needs no other agent."""
    choices = {each.name: each.choices for each in action.fields or () if each.choices}
    if action.name == MOVE:
        return [
            {"peer": peer, "to": to}
            for peer in choices["peer"] for to in choices["to"] if to != peer
        ]  # fmt: skip
    field = {ANSWER: "task", CANCEL: "task", FORGET: "peer"}.get(action.name)
    return [{field: value} for value in choices.get(field, ())] if field else []


def refuses(here: AgentFolder, offered: dict[str, Action]) -> None:
    """A task that is over is not offered to be canceled, nor one that asks nothing to be answered."""
    tasks = next(panel for panel in here.refresh(datetime.now(UTC)).panels if panel.id == "tasks")
    for id, status, *_ in (row.cells for row in tasks.rows):
        for name, able in (
            (CANCEL, status not in ("completed", "failed", "canceled")),
            (ANSWER, status == "input_required"),
        ):
            ids = [each["task"] for each in chosen(offered[name])] if name in offered else []
            assert able or id not in ids, (name, id, status)


def cured(here: AgentFolder, cause: Matter, offered: dict[str, Action]) -> None:
    """What a cause names as its remedy, and each other way, is done and ends it."""
    if not cause.remedy:
        assert cause.instruction
        return
    outcome = perform(offered[cause.remedy], **dict(cause.given))
    assert outcome.state is OutcomeState.DONE, (cause, outcome.sentence)
    assert cause.key not in {each.key for each in seen(here)[1]}, cause


ONE = settings(max_examples=15, derandomize=True, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=examples.MANY, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@ONE
@given(stores.specs, damages, st.integers(0, 40))
def test_verdict_causes_offers_and_refusals_agree(
    spec: stores.Spec, wrong: list[str], choice: int
) -> None:
    note(str(wrong))
    check(spec, wrong, choice, as_process)


@pytest.mark.slow
@examples.PATIENT
@MANY
@given(stores.specs, damages, st.integers(0, 40))
def test_they_agree_in_very_many_stores(spec: stores.Spec, wrong: list[str], choice: int) -> None:
    check(spec, wrong, choice, acp)
