"""What happens to tasks: each function is part of one write to the store."""

from __future__ import annotations

from typing import Any

from acp_core.files import decode
from acp_core.protocols.wire import state
from acp_core.protocols.wire.read import store
from acp_core.protocols.wire.schema.basics import (
    TASK_UPDATED,
    Code,
    Json,
    TaskState,
    WireError,
    invalid,
    new_id,
    now_text,
)
from acp_core.protocols.wire.schema.bodies import check_parts, data_part, text, text_part
from acp_core.protocols.wire.schema.untrusted_json import encode
from acp_core.protocols.wire.write import records
from acp_core.protocols.wire.write.database import Tx

DELEGATED, RECEIVED, LOCAL = "delegated", "received", "local"

HISTORY = 100  # changes that a task remembers


def create(
    tx: Tx,
    direction: str,
    parts: list[Json],
    *,
    id: str | None = None,
    peer_id: str | None = None,
    message_id: str | None = None,
    context_id: str | None = None,
) -> Json:
    """A new task, submitted.

    Raises:
        Refusal: there is a task of that id.
    """
    id = id or new_id("task")
    if store.find_task(tx.db, id):
        raise invalid("a task with this id exists")
    now = now_text()
    task: Json = {
        "id": id,
        "status": TaskState.SUBMITTED.value,
        "created_at": now,
        "updated_at": now,
        "input": {"parts": parts},
        "message_id": message_id,
        "context_id": context_id,
        "peer_id": peer_id,
        "direction": direction,
        "history": [],
    }
    _enter(tx, task, TaskState.SUBMITTED)
    records.save_task(tx, task)
    return task


def find(tx: Tx, id: str) -> Json:
    """The task of this id.

    Raises:
        Refusal: there is none.
    """
    task = store.find_task(tx.db, id)
    if task is None:
        raise WireError(Code.NOT_FOUND, "no such task")
    return task


def update(tx: Tx, task: Json, wanted: TaskState, artifact: Json | None, error: str | None) -> bool:
    """Report where a task stands; says whether that is news.

    Raises:
        Refusal: it cannot come there (core specification, section 3.3).
    """
    current = TaskState(task["status"])
    result = artifact is not None and artifact != task.get("artifact")
    reason = error is not None and error != task.get("error")
    if current.terminal and (result or reason):
        raise invalid(f"the task is {current.value} and cannot change")
    way = state.steps(current, wanted)
    if result and wanted not in (TaskState.WORKING, TaskState.COMPLETED):
        raise invalid(f"a task that is {wanted.value} has no artifact")
    if result:
        task["artifact"] = artifact
    if reason:
        task["error"] = error
    for step in way[:-1]:
        _enter(tx, task, step)
    if result:  # told before the end, after which nobody listens
        body = {"type": "acp.artifact", "ts": now_text(), "task_id": task["id"],
                "context_id": task["context_id"], "artifact": artifact}  # fmt: skip
        records.add_log_entry(tx, "acp.artifact", body, task["id"])
    for step in way[-1:]:
        _enter(tx, task, step)
    if way or result or reason:
        task["updated_at"] = now_text()
        records.save_task(tx, task)
        return True
    return False


def tell(tx: Tx, task: Json) -> bool:
    """Put the news of a task on the way to the peer that shares it, if there is one."""
    peer_id = task.get("peer_id")
    if peer_id is None:
        return False
    frame: Json = {
        "type": TASK_UPDATED,
        "message_id": new_id("upd"),
        "ts": now_text(),
        "task_id": task["id"],
        "status": task["status"],
        "state": task["status"],
    }
    for name in ("artifact", "error", "context_id"):
        if task.get(name) is not None:
            frame[name] = task[name]
    records.queue_frame(tx, peer_id, frame["message_id"], encode(frame).decode(), counts=False)
    return True


def reported(tx: Tx, peer_id: str, frame: Json) -> None:
    """Take over what a peer says of a task: a worker reports, a requester cancels.

    Raises:
        Refusal: the task is not shared with that peer, or cannot come there.
    """
    id = text(frame, "task_id")
    task = store.find_task(tx.db, id) if id else None
    if task is None or task.get("peer_id") != peer_id:
        raise WireError(Code.NOT_FOUND, "no task of this id is shared with you")
    wanted = state.task_state(frame.get("status", frame.get("state")))
    if task["direction"] == RECEIVED and wanted is not TaskState.CANCELED:
        raise WireError(Code.FORBIDDEN, "only the peer that works on a task can report on it")
    current = TaskState(task["status"])
    if task["direction"] == DELEGATED and current is not wanted and _behind(current, wanted):
        update(tx, task, TaskState.WORKING, None, None)
    update(tx, task, wanted, artifact_of(frame), text(frame, "error"))


def _behind(current: TaskState, wanted: TaskState) -> bool:
    """Whether the worker went on from a question that it has got an answer to meanwhile."""
    return current is TaskState.INPUT_REQUIRED and wanted is not TaskState.CANCELED


def arrived(tx: Tx, peer_id: str | None, envelope: Json) -> Json | None:
    """Do what a message from outside means for the task that it names; returns a new task.

    An unknown task is a new one for us; the answer to a question lets the task go on.
    """
    id, parts = decode.text(envelope.get("task_id")), envelope.get("parts")
    if id is None:
        return None
    task = store.find_task(tx.db, id)
    if task is None:
        return create(
            tx,
            RECEIVED,
            parts if isinstance(parts, list) else [],
            id=id,
            peer_id=peer_id,
            message_id=decode.text(envelope.get("message_id")),
            context_id=decode.text(envelope.get("context_id")),
        )
    shared = task["direction"] == RECEIVED and task.get("peer_id") == peer_id
    if shared and task["status"] == TaskState.INPUT_REQUIRED.value:
        update(tx, task, TaskState.WORKING, None, None)
    return None


def artifact_of(body: Json) -> Json | None:
    """The artifact of an update: ``artifact``, or ``output`` as some clients call it.

    Raises:
        Refusal: its parts are none.
    """
    value: Any = body.get("artifact", body.get("output"))
    if value is None:
        return None
    if isinstance(value, dict) and "parts" in value:
        check_parts(value["parts"])
        return value
    if (
        isinstance(value, list)
        and value
        and all(isinstance(v, dict) and "type" in v for v in value)
    ):
        return {"parts": check_parts(value)}
    return {"parts": [text_part(value) if isinstance(value, str) else data_part(value)]}


def _enter(tx: Tx, task: Json, step: TaskState) -> None:
    task["status"] = step.value
    now = now_text()
    task["updated_at"] = now
    task["history"] = [*task["history"], {"status": step.value, "at": now}][-HISTORY:]
    body: Json = {
        "type": "acp.status",
        "ts": now,
        "task_id": task["id"],
        "state": step.value,
        "status": step.value,
        "context_id": task["context_id"],
        "peer_id": task["peer_id"],
        "direction": task["direction"],
    }
    if task.get("error") and step is TaskState.FAILED:
        body["error"] = task["error"]
    records.add_log_entry(tx, "acp.status", body, task["id"])
