"""Actions that others ask for: refused, unless the bridge's owner allowed them by name.

Who asks makes a task of a data part ``{"action": NAME, "inputs": {..}, "dry_run": false}``.
"""

from __future__ import annotations

import logging
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from acp_core.model import Action, OutcomeState
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.contract import Watched
from acp_core.protocols.kit import owner_inputs, schema
from acp_core.protocols.kit.wording import reason
from acp_core.protocols.wire.bridge import written
from acp_core.protocols.wire.bridge.feed import TURN
from acp_core.protocols.wire.bridge.setup import BridgeSetup
from acp_core.protocols.wire.conduct.agent import tasks
from acp_core.protocols.wire.conduct.agent.core import Agent
from acp_core.protocols.wire.schema import Json
from acp_core.protocols.wire.schema.lenient import fields_of, objects
from acp_core.protocols.wire.schema.parts import data_part
from acp_core.protocols.wire.state import TaskState
from acp_core.protocols.wire.write import tasks as stored
from acp_core.protocols.wire.write.database import Tx

logger = logging.getLogger("acp.wire")
_PAGE = 100


class Asked(BaseModel):
    """What somebody asks to be done; fields beside it are no inputs, and those of the owner are refused."""

    model_config = ConfigDict(extra="allow", strict=True)

    action: str
    inputs: dict[str, Any] = {}
    dry_run: bool = False


class Done(BaseModel):
    """What came of it."""

    state: str
    sentence: str
    changes: list[str] = []
    preview: Json | None = None  # of a dry run, all that it says


class Acting:
    """Does what is asked for, one thing after the other."""

    def __init__(self, agent: Agent, watched: Watched, setup: BridgeSetup) -> None:
        self._agent, self._watched, self._setup = agent, watched, setup

    async def follow(self) -> None:
        """Look at every task that comes."""
        hub = self._agent.hub
        await self._give_up()
        while not hub.closed:
            place = hub.last
            while task := await self._submitted():
                await self._work_on(task)
            await hub.grown(place, 60.0)

    async def _give_up(self) -> None:
        """What was begun before a crash is not repeated: nobody knows how far it came."""

        def work(tx: Tx) -> None:
            found, _ = stored.page(tx.db, stored.TaskFilter(status="working"), 1000)
            for task in found:
                if not str(task["id"]).startswith(TURN):
                    error = "the bridge ended meanwhile: check whether the action was done"
                    tasks.update(tx, task, TaskState.FAILED, None, error)
                    tasks.tell(tx, task)

        await self._agent.store.write(work)

    async def _submitted(self) -> Json | None:
        found, _ = await self._agent.store.read(
            lambda db: stored.page(db, stored.TaskFilter(status="submitted"), _PAGE)
        )
        return next((each for each in found if each["direction"] != tasks.DELEGATED), None)

    async def _work_on(self, task: Json) -> None:
        await self._enter(task, TaskState.WORKING, None, "")
        error, done = "", None
        try:
            done = await self._do(_asked(task))
        except (Refused, OSError) as refused:
            error = reason(refused)
        except Exception as fault:
            logger.exception("an action failed")
            error = f"{type(fault).__name__} inside the bridge"
        ended = TaskState.COMPLETED if done else TaskState.FAILED
        artifact = {"parts": [data_part(done.model_dump())]} if done else None
        await self._enter(task, ended, artifact, error)

    async def _enter(self, task: Json, state: TaskState, artifact: Json | None, error: str) -> None:
        def work(tx: Tx) -> str | None:
            now = stored.get(tx.db, task["id"])
            if now is None or TaskState(now["status"]).terminal:
                return None
            news = tasks.update(tx, now, state, artifact, error or None)
            return str(now["peer_id"]) if news and tasks.tell(tx, now) else None

        peer_id = await self._agent.store.write(work)
        if peer_id:
            self._agent.peers.queued(peer_id)

    async def _do(self, asked: Asked) -> Done:
        return await carry_out(self._watched, self._setup.folder, self._setup.allowed, asked)


async def carry_out(watched: Watched, folder: str, allowed: frozenset[str], asked: Asked) -> Done:
    """Do what is asked for, or show what it would do, where that is allowed.

    Raises:
        Refused: it is not, or cannot be done now.
    """
    if asked.action not in allowed:
        names, name = ", ".join(sorted(allowed)) or "none", clean_line(asked.action, 60)
        raise Refused(f"the action {name} is not allowed here (allowed: {names})")
    owner_inputs.check_beside(asked.action, asked.model_extra or ())
    return await watched.call(
        lambda opened: perform(watched.action(opened, asked.action), asked, folder)
    )


def _asked(task: Json) -> Asked:
    """The action that a task asks for.

    Raises:
        Refused: none.
    """
    for part in objects(fields_of(task.get("input")).get("parts")):
        content = fields_of(part.get("content"))
        if "action" in content:
            try:
                return Asked.model_validate(content)
            except ValidationError as error:
                raise Refused(first_problem(error)) from None
    raise Refused('this is a bridge: send a data part {"action": .., "inputs": {..}}')


def perform(action: Action | None, asked: Asked, folder: str) -> Done:
    """Do what is asked for, or show what it would do.

    Args:
        action: the action of that name as it can be done now; None where there is none.
        asked: with which inputs.
        folder: the collaboration's, which is not told.

    Raises:
        Refused: it cannot be done now.
    """
    if action is None:
        raise Refused(f"{clean_line(asked.action, 60)} cannot be done now")
    try:
        inputs = owner_inputs.from_others(action, asked.inputs)
    except ValidationError as error:
        raise Refused(first_problem(error)) from None
    preview = action.preview(inputs)
    if preview.refused:
        raise Refused(preview.refused)
    if asked.dry_run:
        told = written.preview(preview, folder)
        changes = [f"{each['verb']} {each['path']}" for each in told["changes"]]
        return Done(state="preview", sentence=preview.sentence, changes=changes, preview=told)
    outcome = action.perform(inputs)
    if outcome.state in (OutcomeState.REFUSED, OutcomeState.UNKNOWN):
        raise Refused(outcome.sentence)
    return Done(state=outcome.state.value, sentence=outcome.sentence)


def first_problem(error: ValidationError) -> str:
    """What is wrong with what was asked for, on one line."""
    name, said = next(schema.problems(error))
    return clean_line(f"{name or 'inputs'}: {said}", 300)
