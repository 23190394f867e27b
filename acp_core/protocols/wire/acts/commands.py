"""`acp wire` where it does something: an agent is asked, and its answer is printed."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from acp_core.model.action import Outcome, OutcomeState, Preview
from acp_core.model.action_spec import ActionSpec
from acp_core.model.text import clean_line
from acp_core.protocols.kit import command, parser
from acp_core.protocols.kit.values import Values
from acp_core.protocols.wire.acts import sending, table
from acp_core.protocols.wire.queries import Object, ask, say_answer
from acp_core.protocols.wire.read import location
from acp_core.protocols.wire.schema import untrusted_json
from acp_core.protocols.wire.schema.basics import SCHEMA, Code, TaskState
from acp_core.protocols.wire.schema.bodies import shown_text
from acp_core.protocols.wire.schema.tasks import Task
from acp_core.protocols.wire.schema.untrusted_json import objects

if TYPE_CHECKING:
    from acp_core.protocols.wire.network.client import Client, Receipt

_NO_PEER: dict[str, str] = {
    Code.NOT_CONNECTED: "the agent has no peer; use --from NAME to message the agent itself",
    Code.AMBIGUOUS: "the agent has several peers: name one with --to (see `acp wire peers`)",
}


def send(values: Values) -> int:
    """Send a message; the exit code."""
    whom = values.peer or (values.agent if values.sender else "its peer")
    preview = sending.sending(values, whom)
    if values.dry_run:
        return _show(table.SENDING, preview, values)
    instead = {} if values.peer else _NO_PEER
    sent = ask(values, lambda client: _sent(client, values), instead)
    how = "waits for its receiver" if sent.queued else "sent"
    lines = [f"{sent.message_id} {how} ({sent.server_seq})"]
    if sent.task:
        lines += _task_lines(values, sent.task)
    if sent.reply:
        lines.append(shown_text(sent.reply.get("parts")))
    said = _end(values, table.SENDING, sent._asdict(), lines)
    return 1 if values.wait and not _is_done(sent) else said


async def _sent(client: Client, values: Values) -> Receipt:
    """Send it; with ``wait``, what became of the task that it made is waited for, else a reply."""
    if not (values.wait and values.new_task):
        return await sending.send_message(client, values)
    began = time.monotonic()
    sent = await sending.send_message(client, values, wait=None)
    left = max(1, math.ceil(values.wait - (time.monotonic() - began)))
    task = await client.settled(str(sent.task["id"]), left) if sent.task else {}
    return sent._replace(task=task or sent.task)


def _task_lines(values: Values, task: Object) -> list[str]:
    """Where a task stands; after waiting, also what it made, or what it needs."""
    known = untrusted_json.read_as(Task, task)
    error = f": {known.error}" if known.error else ""
    lines = [f"task {known.id}: {known.status}{error}"]
    if values.wait and known.artifact is not None:
        lines.append(known.artifact.text)
    if values.wait and known.status == TaskState.INPUT_REQUIRED:
        command = f"acp wire answer {shlex.quote(values.agent)} {known.id} TEXT"
        lines.append(f"waiting for input: {command}")
    return lines


def _is_done(sent: Receipt) -> bool:
    """Whether what was waited for came about: of a task its end, of a message no failure."""
    if sent.task:
        return sent.task.get("status") == TaskState.COMPLETED
    parts = sent.reply.get("parts") if sent.reply else None
    contents = [each.get("content") for each in objects(parts)]
    states = {each.get("status") for each in objects(contents)}
    return not states & {TaskState.FAILED.value, TaskState.INPUT_REQUIRED.value}


def answer(values: Values) -> int:
    """Give a task the input for which it waits; the exit code."""
    preview = sending.answering(values)
    return _on_task(
        table.ANSWERING, preview, values, lambda its: its.resume(values.task, values.text)
    )


def cancel(values: Values) -> int:
    """Cancel a task; the exit code."""
    preview = sending.canceling(values)
    return _on_task(table.CANCELING, preview, values, lambda its: its.cancel(values.task))


def _on_task(
    spec: ActionSpec, preview: Preview, values: Values, work: Callable[[Client], Awaitable[Object]]
) -> int:
    if values.dry_run:
        return _show(spec, preview, values)
    task = ask(values, work)
    return _end(values, spec, task, [f"{task.get('id')}: {task.get('status')}"])


def connect(values: Values) -> int:
    """Have an agent keep a connection; the exit code. Whether it comes about is not waited for."""
    if values.dry_run:
        return _show(table.CONNECTING, sending.connecting(values), values)
    found = ask(values, lambda client: client.connect(values.link))
    known = " (already known)" if found.get("already_connected") else ""
    return _end(values, table.CONNECTING, found, [f"{found.get('peer_id')}: connecting{known}"])


def move(values: Values) -> int:
    """Let another peer get what waits for one; the exit code."""
    if values.dry_run:
        return _show(table.MOVING, sending.moving(values.peer, values.to), values)

    async def work(client: Client) -> Object:
        old, new = [
            await sending.resolve_peer(client, each) or "" for each in (values.peer, values.to)
        ]
        return await client.move(old, new)

    told = ask(values, work)
    lines = [f"{told.get('moved')} waiting for {told.get('peer_id')} moved to {told.get('to')}"]
    return _end(values, table.MOVING, told, lines)


def forget(values: Values) -> int:
    """Drop a peer; the exit code."""
    if values.dry_run:
        return _show(table.FORGETTING, sending.forgetting(values.peer), values)

    async def work(client: Client) -> str:
        id = await sending.resolve_peer(client, values.peer) or ""
        await client.forget(id)
        return id

    id = ask(values, work)
    return _end(values, table.FORGETTING, {"peer_id": id}, [f"{id}: forgotten"])


def _end(values: Values, spec: ActionSpec, facts: Mapping[str, Any], lines: Sequence[str]) -> int:
    """Keep the act in the person's journal, as those of the screen are kept, and print its end."""
    outcome = Outcome(OutcomeState.DONE, clean_line(lines[0]))
    command.note(location.key_of(values.agent), spec, values, outcome)
    return say_answer(values, spec.name, facts, lines)


def _show(spec: ActionSpec, preview: Preview, values: Values) -> int:
    if values.json:
        parser.say_object(SCHEMA, spec.name, done=False, **parser.described(preview))
    else:
        parser.say_preview(preview)
    return 0
