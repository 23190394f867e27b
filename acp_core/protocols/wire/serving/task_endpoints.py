"""Endpoints of tasks (core specification, section 3)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from starlette.types import ASGIApp

from acp_core.protocols.wire import state
from acp_core.protocols.wire.conduct import messages as conduct_messages
from acp_core.protocols.wire.conduct import tasks
from acp_core.protocols.wire.read import store
from acp_core.protocols.wire.read.store import TaskFilter
from acp_core.protocols.wire.schema import bodies
from acp_core.protocols.wire.schema.basics import (
    ROLES,
    TERMINAL,
    Code,
    Json,
    TaskState,
    WireError,
    invalid,
    new_id,
)
from acp_core.protocols.wire.schema.bodies import Draft, check_parts, data_part, parts_of
from acp_core.protocols.wire.serving.requests import PEER, Call, answer, page
from acp_core.protocols.wire.write import records
from acp_core.protocols.wire.write.database import Tx

Changing = Callable[[Tx], tuple[Json, bool]]

"""Changes a task; says also whether its peer will be told."""

_PAUSES = {TaskState.INPUT_REQUIRED.value, *(each.value for each in TERMINAL)}


async def listing(call: Call) -> ASGIApp:
    """``GET /tasks``: a bare list, or a page where JSON is asked for by name."""
    status = call.text("status", "state")
    limit, offset = call.count("limit"), call.count("offset")
    cursor = call.text("cursor")
    sort, newest = call.newest_first("created_at", "updated_at")
    wanted = TaskFilter(
        status=status,
        peer_id=call.text("peer_id"),
        context_id=call.text("context_id"),
        direction=call.text("direction"),
        created_after=call.time_text("created_after"),
        updated_after=call.time_text("updated_after"),
    )
    found, total = await call.agent.store.read(
        lambda db: store.find_tasks(
            db, wanted, limit, offset, sort=sort, newest=newest, cursor=cursor
        )
    )
    if not call.wrapped:
        return answer(found)
    content = page(found, total, limit, offset, "tasks")
    content["next_cursor"] = found[-1]["id"] if found and len(found) == limit else None
    return answer(content)


async def create(call: Call) -> ASGIApp:
    """``POST /tasks``: a task of our own, for a peer (``delegate``), or from a peer."""
    body = await call.body()
    role = body.get("role")
    if role is not None and role not in ROLES:
        raise invalid('role: must be "user" or "agent"')
    parts = _input(body)
    id, context = bodies.take(body, "task_id"), bodies.take(body, "context_id")
    message_id, peer_id = bodies.take(body, "message_id"), bodies.take(body, "peer_id")
    if call.rights != PEER and (bodies.take(body, "delegate") or peer_id is not None):
        return await _delegate(call, parts, id, context, message_id, peer_id)
    direction = tasks.RECEIVED if call.rights == PEER else tasks.LOCAL

    def work(tx: Tx) -> Json:
        return tasks.create(tx, direction, parts, id=id, message_id=message_id, context_id=context)

    return _task_answer(await call.agent.store.write(work), 201)


async def _delegate(
    call: Call,
    parts: list[Json],
    id: str | None,
    context: str | None,
    message_id: str | None,
    peer_id: str | None,
) -> ASGIApp:
    draft = Draft(
        parts,
        "user",
        message_id,
        id or new_id("task"),
        context,
        peer_id,
        None,
        False,
        0.0,
        True,
        {},
    )
    sent = await conduct_messages.send(call.agent, draft, peer_id)
    if sent.task is None:
        raise WireError(Code.NOT_FOUND, "the message was sent before, without a task")
    return _task_answer(sent.task, 201)


def _input(body: Json) -> list[Json]:
    """What a new task is about, in whichever form it was given."""
    given = body.get("input")
    if isinstance(given, dict) and "parts" in given:
        return check_parts(given["parts"])
    for value in (body, given, body.get("payload")):
        if isinstance(value, dict):
            parts = parts_of(value)
            if parts is not None:
                return parts
    for name in ("payload", "input"):
        if body.get(name) is not None:
            return [data_part(body[name])]
    raise invalid("parts, text, input or payload is missing")


async def get(call: Call) -> ASGIApp:
    """``GET /tasks/{id}``."""
    return answer(await _task(call))


async def _task(call: Call) -> Json:
    id = call.path("id")
    task = await call.agent.store.read(lambda db: store.find_task(db, id))
    if task is None or not _may_see(call, task):
        raise WireError(Code.NOT_FOUND, "no such task")
    return task


def _may_see(call: Call, task: Json) -> bool:
    """Who showed the link's token sees the tasks that came in this way; at a bridge, all."""
    all_of_them = call.rights != PEER or call.agent.bridge is not None
    return all_of_them or (task["direction"] == tasks.RECEIVED and task["peer_id"] is None)


async def update(call: Call) -> ASGIApp:
    """``POST /tasks/{id}:update``: the worker says where the task stands."""
    body = await call.body()
    await _task(call)
    given = body.get("status", body.get("state"))
    if given is None:
        raise invalid("status is missing")
    wanted, artifact = state.task_state(given), tasks.artifact_of(body)
    error, id = bodies.take(body, "error"), call.path("id")

    def work(tx: Tx) -> tuple[Json, bool]:
        task = tasks.find(tx, id)
        if task["direction"] == tasks.DELEGATED:
            raise WireError(
                Code.FORBIDDEN, "only the peer that works on this task can report on it"
            )
        news = tasks.update(tx, task, wanted, artifact, error)
        return task, news and tasks.tell(tx, task)

    return _task_answer(await _changed(call, work))


async def cancel(call: Call) -> ASGIApp:
    """``POST /tasks/{id}:cancel``; one that is canceled already stays so."""
    await call.body(empty=True)
    await _task(call)
    id = call.path("id")

    def work(tx: Tx) -> tuple[Json, bool]:
        task = tasks.find(tx, id)
        news = tasks.update(tx, task, TaskState.CANCELED, None, None)
        return task, news and tasks.tell(tx, task)

    task = await _changed(call, work)
    return answer({**task, "ok": True, "task_id": id, "task": task})


async def resume(call: Call) -> ASGIApp:
    """``POST /tasks/{id}:continue``: the input for which the task waits."""
    body = await call.body()
    task, parts = await _task(call), parts_of(body)
    if parts is None:
        raise invalid("parts (or text) is missing")
    state.resumed(TaskState(task["status"]))
    id, agent = call.path("id"), call.agent
    message_id = bodies.take(body, "message_id") or new_id("msg")
    if task["direction"] == tasks.DELEGATED:
        context = task["context_id"]
        draft = Draft(parts, "user", message_id, id, context, None, None, False, 0.0, False, {})
        await conduct_messages.send(agent, draft, task["peer_id"])

    def work(tx: Tx) -> tuple[Json, bool]:
        now = tasks.find(tx, id)
        tasks.update(tx, now, state.resumed(TaskState(now["status"])), None, None)
        if now["direction"] == tasks.DELEGATED:
            return now, False
        envelope = {"type": "acp.message", "message_id": message_id, "ts": now["updated_at"],
                    "from": agent.config.name, "role": "user", "parts": parts, "task_id": id}  # fmt: skip
        if now["context_id"]:
            envelope["context_id"] = now["context_id"]
        records.add_message(
            tx, "in", "owner", message_id, now["peer_id"], lambda seq: (envelope, {})
        )
        return now, tasks.tell(tx, now)

    return _task_answer(await _changed(call, work))


async def wait(call: Call) -> ASGIApp:
    """``GET /tasks/{id}/wait``: the task when it is over or asks something; 202 when it is not."""
    seconds = bodies.bounded_seconds(call.text("timeout"), "timeout")
    began, hub = time.monotonic(), call.agent.hub
    while True:
        place = hub.last
        task = await _task(call)
        left = began + seconds - time.monotonic()
        waited = round(time.monotonic() - began, 3)
        if task["status"] in _PAUSES:
            return answer({"ok": True, "task": task, "waited": waited})
        if left <= 0 or hub.closed:
            return answer({"ok": True, "task": task, "waited": waited, "timeout": True}, 202)
        await hub.grown(place, left)
        await asyncio.sleep(0)


async def _changed(call: Call, work: Changing) -> Json:
    task, told = await call.agent.store.write(work)
    if told:
        call.agent.peers.queued(task["peer_id"])
    return task


def _task_answer(task: Json, status: int = 200) -> ASGIApp:
    return answer({**task, "ok": True, "task": task}, status)
