"""Reporting what came of a message or task: to its sender, and in the task."""

from __future__ import annotations

from typing import Any

from acp_core.files.decode import text
from acp_core.protocols.wire.conduct.agent import sending, tasks
from acp_core.protocols.wire.conduct.agent.core import Agent
from acp_core.protocols.wire.conduct.answering.jobs import Job, Material
from acp_core.protocols.wire.conduct.answering.outcome import Outcome
from acp_core.protocols.wire.schema import MESSAGE, REPLY, Code, Json, Refusal
from acp_core.protocols.wire.schema.bodies import Draft
from acp_core.protocols.wire.schema.parts import data_part, text_part
from acp_core.protocols.wire.state import TERMINAL, TaskState
from acp_core.protocols.wire.write import tasks as stored
from acp_core.protocols.wire.write.database import Tx

_OVER = {state.value for state in TERMINAL}


def is_over(task: Json | None) -> bool:
    """Whether nothing can follow in a task; also where it is kept no longer."""
    return task is None or task["status"] in _OVER


async def begin(agent: Agent, task_id: str) -> None:
    """Say of a task that it is worked on."""
    await _change(agent, task_id, TaskState.WORKING, None, None)


async def report(agent: Agent, job: Job, material: Material, told: Outcome) -> None:
    """Report an outcome. Doing it again, after a crash in between, changes nothing.

    A message gets a reply. A task gets its artifact, its error or its question, and its message
    a reply as well where it waits for one.

    Raises:
        Refusal: the queue of the peer is full.
    """
    message = material.message or {}
    waits = text(message.get("correlation_id")) is not None
    if material.message is not None and (job.task_id is None or waits):
        await _send(agent, job, material, told, REPLY)
    if job.task_id is None:
        return
    asks = told.status is TaskState.INPUT_REQUIRED
    if asks and not waits and told.parts:
        await _send(agent, job, material, told, MESSAGE)
    artifact = {"parts": told.parts} if told.parts and not asks else None
    if told.status is TaskState.FAILED:
        artifact = None
    await _change(agent, job.task_id, told.status, artifact, told.error or None)


async def _change(
    agent: Agent, id: str, status: TaskState, artifact: Json | None, error: str | None
) -> None:
    def work(tx: Tx) -> str | None:
        task = stored.get(tx.db, id)
        if task is None or is_over(task):  # canceled meanwhile, or told before a crash
            return None
        if tasks.update(tx, task, status, artifact, error) and tasks.tell(tx, task):
            return str(task["peer_id"])
        return None

    peer_id = await agent.store.write(work)
    if peer_id:
        agent.peers.queued(peer_id)


async def _send(agent: Agent, job: Job, material: Material, told: Outcome, type: str) -> None:
    parts = told.parts
    if told.status is TaskState.FAILED:
        failure: dict[str, Any] = {"status": "failed", "error": told.error}
        parts = [*parts, text_part(f"failed: {told.error}"), data_part(failure)]
    if not parts and type == REPLY and not (material.message or {}).get("correlation_id"):
        return  # nothing was said, and nobody waits
    draft = _draft(agent, job, material, parts or [text_part("")], type)
    try:
        await sending.answer(agent, draft, material.peer_id, type)
    except Refusal as refusal:
        if refusal.code is Code.TOO_LARGE:
            short = text_part(f"the answer is too large to be sent: {refusal.message}")
            draft = _draft(agent, job, material, [short], type)
            await sending.answer(agent, draft, material.peer_id, type)
        elif refusal.code is not Code.NOT_FOUND:  # a peer that was forgotten is told nothing
            raise


def _draft(agent: Agent, job: Job, material: Material, parts: list[Json], type: str) -> Draft:
    message = material.message or {}
    carried = {}
    if type == REPLY:
        asked = text(message.get("correlation_id"))
        carried["correlation_id"] = str(message["message_id"]) if asked is None else asked
    context = message.get("context_id") or (material.task or {}).get("context_id")
    return Draft(
        parts=parts,
        role="agent",
        message_id=f"msg_{agent.instance_id[-8:]}_{job.id:08x}",
        task_id=job.task_id,
        context_id=text(context),
        peer_id=material.peer_id,
        sender=None,
        sync=False,
        timeout=0.0,
        create_task=False,
        carried=carried,
    )
