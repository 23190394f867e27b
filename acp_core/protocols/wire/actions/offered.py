"""What a person can do through an agent that runs: send, answer, cancel, connect, forget."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from acp_core.files.text import clean_line
from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.model.format import count
from acp_core.protocols.wire.network.client import Client, WireError
from acp_core.protocols.wire.network.links import LinkError, has_token, parse_any
from acp_core.protocols.wire.read.folder import Reach, Reading
from acp_core.protocols.wire.schema import MAX_ID, Json, tasks
from acp_core.protocols.wire.schema.parts import data_part, file_at, is_web_address, text_part

_MULTILINE: dict[str, Any] = {"format": "multiline"}
_WORDS = {"text": "a text", "file": "a file", "data": "data"}
AGENT = "this agent"
PERSON = "human"  # who sends, where a person writes to the agent itself
ANSWERS, LOOK = 3.0, 0.2  # seconds within which a new peer answers, and between two looks
Doing = Callable[[Client, Any], Awaitable[str | Outcome]]


def actions(reading: Reading) -> list[Action]:
    """What can be done now, most wanted first; nothing while the agent cannot be asked."""
    reach = reading.reach
    if reach is None:
        return []
    if not reach.owner:
        return [_send(reach, [AGENT], {})]
    made = []
    called = {clean_line(peer.id, 64): clean_line(peer.name, 64) for peer in reading.peers}
    asking = [task for task in reading.tasks if tasks.asks_us(task)]
    if asking:
        made.append(_answer(reach, asking, reading))
    met = [clean_line(peer.id, 64) for peer in reading.peers if peer.met]
    made.append(_send(reach, [*met, AGENT], called))
    still = [task for task in reading.tasks if tasks.is_open(task)]
    if still:
        made.append(_cancel(reach, still))
    made.append(_connect(reach))
    if called:
        made.append(_forget(reach, reading, called))
    return made


def _send(reach: Reach, peers: list[str], called: dict[str, str]) -> Action:
    inputs = create_model(
        "Send",
        peer=(
            _choice(peers),
            Field(
                peers[0],
                title="To",
                description="A peer, or the agent itself.",
                json_schema_extra=_labels(_called(called)),
            ),
        ),
        text=(str, Field("", title="Text", json_schema_extra=_MULTILINE)),
        file=(str, Field("", title="File", description="An http:// or https:// address.")),
        data=(str, Field("", title="Data", description="JSON.")),
        context=(str, Field("", title="Context", description="The conversation it belongs to.")),
        task=(bool, Field(False, title="As a task", description="Its state is told back.")),
    )

    def content(given: Any) -> list[Json] | str:
        """The parts, or what is wrong."""
        parts = [text_part(given.text)] if given.text else []
        if given.file:
            if not is_web_address(given.file):
                return "File: an http:// or https:// address is needed"
            parts.append(file_at(given.file))
        if given.data:
            try:
                parts.append(data_part(json.loads(given.data)))
            except (ValueError, RecursionError):
                return "Data: this is not JSON"
        return parts or "there is nothing to send: give a text, a file or data"

    def preview(given: Any) -> Preview:
        parts = content(given)
        if isinstance(parts, str):
            return Preview("", refused=parts)
        if len(given.context) > MAX_ID:
            return Preview("", refused=f"Context: at most {MAX_ID} characters")
        said = [_WORDS[str(part["type"])] for part in parts]
        what = " and ".join(filter(None, (", ".join(said[:-1]), said[-1])))
        return Preview(f"Sends {what} to {_called(called).get(given.peer, given.peer)}.")

    async def send(client: Client, given: Any) -> str:
        parts = content(given)
        if isinstance(parts, str):
            raise WireError(parts)
        here = given.peer == AGENT
        sent = await client.send(
            parts,
            to=None if here else given.peer,
            sender=PERSON if here else None,
            context_id=given.context or None,
            create_task=given.task,
        )
        return f"{'Waits for its receiver' if sent.queued else 'Sent'}: {sent.message_id}."

    sentence = "Send a text, a file or data; a peer that is away gets it when it returns."
    return _action(reach, "send", "Send a message", sentence, inputs, preview, send)


def _answer(reach: Reach, asking: list[Json], reading: Reading) -> Action:
    ids = [tasks.id_of(task) for task in asking]
    questions = tasks.questions(asking, reading.entries)
    labels = {
        id: f"{questions.get(id) or tasks.about(task)} · {id}"
        for id, task in zip(ids, asking, strict=True)
    }
    inputs = create_model(
        "Answer",
        task=(_choice(ids), Field(ids[0], title="Task", json_schema_extra=_labels(labels))),
        text=(
            str,
            Field(
                min_length=1,
                title="Answer",
                json_schema_extra=_MULTILINE,
                description=questions.get(ids[0], "") if len(ids) == 1 else "",
            ),
        ),
    )

    async def answer(client: Client, given: Any) -> str:
        task = await client.resume(given.task, given.text)
        return f"Answered: {given.task} is {task.get('status')}."

    def preview(given: Any) -> Preview:
        asked = questions.get(given.task, "")
        notes = (f"It asks: {asked}",) if asked else ()
        return Preview(f"Gives {given.task} the input for which it waits.", notes=notes)

    sentence = "Give a task the input for which it waits."
    return _action(reach, tasks.ANSWER, "Answer a task", sentence, inputs, preview, answer)


def _cancel(reach: Reach, still: list[Json]) -> Action:
    about = {tasks.id_of(task): task for task in still}
    ids = list(about)
    labels = {id: tasks.described(task) for id, task in about.items()}
    inputs = create_model(
        "Cancel",
        task=(_choice(ids), Field(ids[0], title="Task", json_schema_extra=_labels(labels))),
    )

    async def cancel(client: Client, given: Any) -> str:
        task = await client.cancel(given.task)
        return f"{given.task} is {task.get('status')}."

    def preview(given: Any) -> Preview:
        said = f"Cancels {given.task}, here and at the peer that shares it."
        return Preview(said, notes=(labels[given.task],))

    sentence = "Cancel a task: nothing can follow then."
    return _action(
        reach, tasks.CANCEL, "Cancel a task", sentence, inputs, preview, cancel, risky=True
    )


def _connect(reach: Reach) -> Action:
    about = "acp://HOST:PORT/TOKEN, tcp://, acp+wss:// (a relay), or the agent's http:// address."
    inputs = create_model(
        "Connect", link=(str, Field(min_length=1, title="Link", description=about))
    )

    def preview(given: Any) -> Preview:
        text = given.link.strip()
        try:
            if text.startswith(("http://", "https://")) and not has_token(text):
                if not is_web_address(text):
                    raise LinkError("an agent's address is http://HOST:PORT")
                return Preview(f"Keeps a connection to the agent whose card is at {text}.")
            return Preview(f"Keeps a connection to {parse_any(text).safe}.")
        except LinkError as error:
            return Preview("", refused=str(error))

    async def connect(client: Client, given: Any) -> Outcome:
        id = str((await client.connect(given.link.strip())).get("peer_id"))
        said = ""
        for _ in range(round(ANSWERS / LOOK)):
            peer = await client.peer(id)
            name = f"{peer.get('name')} ({peer.get('id')})"
            if peer.get("connected") is True:
                return Outcome(OutcomeState.DONE, clean_line(f"Connected to {name}."))
            said = f"{name} is not reached yet: {peer.get('error') or 'no answer'}"
            await asyncio.sleep(LOOK)
        return Outcome(OutcomeState.REQUESTED, clean_line(f"{said}; it is tried again."))

    sentence = "Keep a connection to the agent behind a link."
    return _action(reach, "connect", "Connect a peer", sentence, inputs, preview, connect)


def _forget(reach: Reach, reading: Reading, called: dict[str, str]) -> Action:
    ids = list(called)
    inputs = create_model(
        "Forget",
        peer=(
            _choice(ids),
            Field(ids[0], title="Peer", json_schema_extra=_labels(_called(called))),
        ),
    )
    waiting = {clean_line(id, 64): queue.waiting for id, queue in reading.queues.items()}

    def preview(given: Any) -> Preview:
        number = waiting.get(given.peer, 0)
        lost = (f"{count(number, 'message')} that it has not acknowledged will not reach it",)
        said = f"Forgets {_called(called)[given.peer]}, and ends the connection with it."
        return Preview(said, warnings=lost if number else ())

    async def forget(client: Client, given: Any) -> str:
        await client.forget(given.peer)
        return f"{_called(called)[given.peer]} is forgotten."

    sentence = "Drop a peer: its key, its connection, and what waits for it."
    return _action(
        reach, tasks.FORGET, "Forget a peer", sentence, inputs, preview, forget, risky=True
    )


def _action(
    reach: Reach,
    name: str,
    label: str,
    sentence: str,
    inputs: type[BaseModel],
    preview: Callable[[Any], Preview],
    doing: Doing,
    *,
    risky: bool = False,
) -> Action:
    async def ask(given: Any) -> str | Outcome:
        async with Client(reach.url, reach.token) as client:
            return await doing(client, given)

    def perform(given: Any) -> Outcome:
        try:
            said = asyncio.run(ask(given))
            if isinstance(said, Outcome):
                return said
            return Outcome(OutcomeState.DONE, clean_line(said))
        except WireError as error:
            state = OutcomeState.UNKNOWN if error.unsure else OutcomeState.REFUSED
            return Outcome(state, clean_line(str(error)))

    return Action(name, label, sentence, inputs, preview, perform, risky=risky)


def _choice(values: list[str]) -> Any:
    return Literal[tuple(values)]


def _called(called: dict[str, str]) -> dict[str, str]:
    """What the choices of a peer are called, by its id."""
    return {id: f"{name} ({id})" for id, name in called.items()}


def _labels(labels: dict[str, str]) -> Any:
    return {"labels": {id: clean_line(label, 160) for id, label in labels.items()}}
