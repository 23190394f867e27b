"""What a person can do through an agent that runs: send, answer, cancel, connect."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from acp_core.files.text import clean_line
from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.protocols.wire import tasks
from acp_core.protocols.wire.client import Client, WireError
from acp_core.protocols.wire.links import LinkError, parse
from acp_core.protocols.wire.parts import data_part, file_part, is_web_address, text_part
from acp_core.protocols.wire.reading import Reach, Reading
from acp_core.protocols.wire.schema import MAX_ID, Json

_MULTILINE: dict[str, Any] = {"format": "multiline"}
AGENT = "this agent"
PERSON = "human"  # who sends, where a person writes to the agent itself
Doing = Callable[[Client, Any], Awaitable[str]]


def actions(reading: Reading) -> list[Action]:
    """What can be done now, most wanted first; nothing while the agent cannot be asked."""
    reach = reading.reach
    if reach is None:
        return []
    if not reach.owner:
        return [_send(reach, [AGENT])]
    made = []
    asking = [tasks.id_of(task) for task in reading.tasks if tasks.asks_us(task)]
    if asking:
        made.append(_answer(reach, asking))
    met = [clean_line(peer.id, 64) for peer in reading.peers if peer.met]
    made.append(_send(reach, [*met, AGENT]))
    still = [tasks.id_of(task) for task in reading.tasks if tasks.is_open(task)]
    if still:
        made.append(_cancel(reach, still))
    made.append(_connect(reach))
    return made


def _send(reach: Reach, peers: list[str]) -> Action:
    inputs = create_model(
        "Send",
        peer=(
            _choice(peers),
            Field(peers[0], title="To", description="A peer, by its id, or the agent itself."),
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
            parts.append(file_part(given.file))
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
        return Preview(f"Sends {len(parts)} part{'s'[: len(parts) > 1]} to {given.peer}.")

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


def _answer(reach: Reach, asking: list[str]) -> Action:
    inputs = create_model(
        "Answer",
        task=(_choice(asking), Field(asking[0], title="Task")),
        text=(str, Field(min_length=1, title="Answer", json_schema_extra=_MULTILINE)),
    )

    async def answer(client: Client, given: Any) -> str:
        task = await client.resume(given.task, given.text)
        return f"Answered: {given.task} is {task.get('status')}."

    def preview(given: Any) -> Preview:
        return Preview(f"Gives {given.task} the input for which it waits.")

    sentence = "Give a task the input for which it waits."
    return _action(reach, tasks.ANSWER, "Answer a task", sentence, inputs, preview, answer)


def _cancel(reach: Reach, still: list[str]) -> Action:
    inputs = create_model("Cancel", task=(_choice(still), Field(still[0], title="Task")))

    async def cancel(client: Client, given: Any) -> str:
        task = await client.cancel(given.task)
        return f"{given.task} is {task.get('status')}."

    def preview(given: Any) -> Preview:
        return Preview(f"Cancels {given.task}, here and at the peer that shares it.")

    sentence = "Cancel a task: nothing can follow then."
    return _action(
        reach, tasks.CANCEL, "Cancel a task", sentence, inputs, preview, cancel, risky=True
    )


def _connect(reach: Reach) -> Action:
    inputs = create_model(
        "Connect", link=(str, Field(title="Link", description="acp://HOST:PORT/TOKEN"))
    )

    def preview(given: Any) -> Preview:
        try:
            return Preview(f"Keeps a connection to {parse(given.link).safe}.")
        except LinkError as error:
            return Preview("", refused=str(error))

    async def connect(client: Client, given: Any) -> str:
        answer = await client.connect(given.link)
        return f"Connecting: {answer.get('peer_id')}."

    sentence = "Keep a connection to the agent behind a link."
    return _action(
        reach, "connect", "Connect a peer", sentence, inputs, preview, connect, asks=True
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
    asks: bool = False,
) -> Action:
    done = OutcomeState.REQUESTED if asks else OutcomeState.DONE

    async def ask(given: Any) -> str:
        async with Client(reach.url, reach.token) as client:
            return await doing(client, given)

    def perform(given: Any) -> Outcome:
        try:
            return Outcome(done, clean_line(asyncio.run(ask(given))))
        except WireError as error:
            state = OutcomeState.UNKNOWN if error.unsure else OutcomeState.REFUSED
            return Outcome(state, clean_line(str(error)))

    return Action(name, label, sentence, inputs, preview, perform, risky=risky)


def _choice(values: list[str]) -> Any:
    return Literal[tuple(values)]
