"""What a person can do through an agent that runs, bound to it: send, answer, cancel, connect, forget."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from acp_core.files import interrupts
from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.model.action_spec import ActionSpec
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.kit.binding import Context, Narrowed, bind_all, bind_named, bound
from acp_core.protocols.kit.values import Values
from acp_core.protocols.wire.acts import sending as acts_sending
from acp_core.protocols.wire.acts import table
from acp_core.protocols.wire.acts.table import OFFERED
from acp_core.protocols.wire.network import agent_directory
from acp_core.protocols.wire.network.client import AgentError, Client
from acp_core.protocols.wire.read import folder, log_entries
from acp_core.protocols.wire.read.folder import Reach, Reading
from acp_core.protocols.wire.schema import untrusted_json
from acp_core.protocols.wire.schema.basics import ITSELF
from acp_core.protocols.wire.schema.people import PeerSeen

ANSWERS, PAUSE = 3.0, 0.2  # seconds within which a new peer answers, and between two questions

_LABEL = 160  # characters of what a choice is called

Work = Callable[[Client, Values], Awaitable[str | Outcome]]


@dataclass(frozen=True, slots=True)
class OpenAgent:
    """An agent as it was read when its actions are bound to it; ``key``: what commands call it."""

    key: str
    reading: Reading

    @property
    def reach(self) -> Reach:
        """Where it is asked.

        Raises:
            Refused: it cannot be asked now.
        """
        if self.reading.reach is None:
            raise Refused("the agent cannot be reached")
        return self.reading.reach

    @property
    def owned(self) -> Reading:
        """What was read of it, where all may be done with it.

        Raises:
            Refused: only its owner may do more than send.
        """
        if not self.reach.owner:
            raise Refused("only the agent's owner can do this")
        return self.reading


def open_agent(context: Context) -> OpenAgent:
    """The agent that an action is bound to; read where nobody did.

    Raises:
        Refused: nothing is known of it here.
    """
    if isinstance(context, OpenAgent):
        return context
    path = Path(context.key) if "/" in context.key else agent_directory.folder_of(context.key)
    if "://" in context.key or not folder.is_store(path):
        raise Refused(f"{context.key}: you run no agent of this name on this machine")
    source = folder.Source(path)
    try:
        return OpenAgent(context.key, source.read())
    except folder.CannotRead as error:
        raise Refused(str(error)) from None
    finally:
        source.close()


def sending(context: Context, now: datetime) -> Action:
    """Send a text, a file or data."""
    opened = open_agent(context)
    owner, peers = opened.reach.owner, opened.reading.peers
    met = [_id(peer.id) for peer in peers if peer.met] if owner else []
    labels = _names(opened.reading) if owner else {}

    async def work(client: Client, values: Values) -> str:
        sent = await acts_sending.send_message(client, values)
        return f"{'Waiting for its receiver' if sent.queued else 'Sent'}: {sent.message_id}."

    choices = (*met, ITSELF)
    return through(
        table.SENDING,
        opened,
        lambda values: acts_sending.sending(values, labels.get(values.peer, values.peer)),
        work,
        {"peer": {"choices": choices, "labels": labels, "default": choices[0]}},
    )


def answering(context: Context, now: datetime) -> Action:
    """Give a task the input it is waiting for."""
    opened = open_agent(context)
    reading = opened.owned
    asking = {
        task.id: task
        for task in reading.tasks
        if task.asks_us and task.is_whole and not task.is_orphan(reading.met)
    }
    questions = log_entries.questions(list(asking.values()), reading.entries)
    labels = {id: f"{questions.get(id) or t.about} · {id}" for id, t in asking.items()}
    narrowed = {"task": _choice(labels)}

    def preview(values: Values) -> Preview:
        asked = questions.get(values.task, "")
        return acts_sending.answering(values, f"Question: {asked}" if asked else "")

    async def work(client: Client, values: Values) -> str:
        task = await client.resume(values.task, values.text)
        return f"Answered: {values.task} is {task.get('status')}."

    return through(table.ANSWERING, opened, preview, work, narrowed, offered=bool(asking))


def canceling(context: Context, now: datetime) -> Action:
    """Cancel a task."""
    opened = open_agent(context)
    still = [task for task in opened.owned.tasks if task.is_open and task.is_whole]
    labels = {task.id: task.sentence for task in still}

    def preview(values: Values) -> Preview:
        return acts_sending.canceling(values, labels.get(values.task, ""))

    async def work(client: Client, values: Values) -> str:
        task = await client.cancel(values.task)
        return f"{values.task} is {task.get('status')}."

    narrowed = {"task": _choice(labels)}
    return through(table.CANCELING, opened, preview, work, narrowed, offered=bool(still))


def connecting(context: Context, now: datetime) -> Action:
    """Keep a connection to the agent behind a link."""
    opened = open_agent(context)
    _ = opened.owned
    return through(table.CONNECTING, opened, acts_sending.connecting, _connect, {})


async def _connect(client: Client, values: Values) -> Outcome:
    id = str((await client.connect(values.link.strip())).get("peer_id"))
    known = ""
    for _ in range(round(ANSWERS / PAUSE)):
        peer = untrusted_json.read_as(PeerSeen, await client.peer(id))
        name = f"{peer.name} ({peer.id})"
        if peer.connected:
            return Outcome(OutcomeState.DONE, clean_line(f"Connected to {name}."))
        known = f"{name} is not connected yet: {peer.trouble or 'no answer'}"
        await asyncio.sleep(PAUSE)
    return Outcome(OutcomeState.REQUESTED, clean_line(f"{known}; acp keeps trying."))


def moving(context: Context, now: datetime) -> Action:
    """Let another peer get what waits for one that is away."""
    opened = open_agent(context)
    reading, labels = opened.owned, _names(opened.owned)
    waiting = {_id(id): queue.waiting for id, queue in reading.queues.items()}
    away = {_id(p.id): labels[_id(p.id)] for p in reading.peers
            if not p.connected and _id(p.id) in waiting}  # fmt: skip
    others = {_id(p.id): labels[_id(p.id)] for p in reading.peers if p.met}
    first = next((p for p in reading.peers if _id(p.id) in away), None)
    heir = folder.heir(first, reading) if first else None

    def preview(values: Values) -> Preview:
        old, new = (labels.get(each, each) for each in (values.peer, values.to))
        return acts_sending.moving(old, new, waiting.get(values.peer, 0))

    async def work(client: Client, values: Values) -> str:
        told = await client.move(values.peer, values.to)
        return f"{told.get('moved')} moved to {labels.get(values.to, values.to)}."

    to = _choice(others)
    narrowed = {"peer": _choice(away), "to": to | {"default": _id(heir.id)} if heir else to}
    ours = bool(reading.card.get("instance_id"))  # agents of other makes cannot
    offered = ours and bool(away) and len(others) > 1
    return through(table.MOVING, opened, preview, work, narrowed, offered=offered)


def forgetting(context: Context, now: datetime) -> Action:
    """Drop a peer, and what waits for it."""
    opened = open_agent(context)
    labels = _names(opened.owned)
    waiting = {_id(id): queue.waiting for id, queue in opened.reading.queues.items()}

    def preview(values: Values) -> Preview:
        name = labels.get(values.peer, values.peer)
        return acts_sending.forgetting(name, waiting.get(values.peer, 0))

    async def work(client: Client, values: Values) -> str:
        await client.forget(values.peer)
        return f"{labels.get(values.peer, values.peer)} has been forgotten."

    narrowed = {"peer": _choice(labels)}
    return through(table.FORGETTING, opened, preview, work, narrowed, offered=bool(labels))


def through(
    spec: ActionSpec,
    opened: OpenAgent,
    preview: Callable[[Values], Preview],
    work: Work,
    narrowed: Narrowed,
    *,
    offered: bool = True,
) -> Action:
    """An action that asks the agent to do ``work``."""
    reach = opened.reach

    async def ask(values: Values) -> str | Outcome:
        async with Client(reach.url, reach.token) as client:
            return await work(client, values)

    def perform(values: Values) -> Outcome:
        try:
            answer = interrupts.run_loop(lambda: ask(values))
        except AgentError as error:
            state = OutcomeState.UNKNOWN if error.unsure else OutcomeState.REFUSED
            return Outcome(state, clean_line(str(error)))
        done = OutcomeState.DONE
        return answer if isinstance(answer, Outcome) else Outcome(done, clean_line(answer))

    return bound(spec, opened, preview, perform, narrowed=narrowed, offered=offered)


def _choice(labels: dict[str, str]) -> dict[str, object]:
    called = {id: clean_line(label, _LABEL) for id, label in labels.items()}
    return {"choices": tuple(called), "labels": called, "default": next(iter(called), None)}


def _names(reading: Reading) -> dict[str, str]:
    """What peers are called, by their ids."""
    names = {_id(peer.id): clean_name(peer.name, 64) for peer in reading.peers}
    return {id: clean_line(f"{name} ({id})", _LABEL) for id, name in names.items()}


def _id(id: str) -> str:
    return clean_line(id, 64)


def actions(key: str, reading: Reading, now: datetime) -> Sequence[Action]:
    """What can be done now, most wanted first; nothing while the agent cannot be asked.

    Args:
        key: what commands call the agent.
        reading: what is known of it.
        now: the time.
    """
    return bind_all(OFFERED, OpenAgent(key, reading), now)


def action(name: str, key: str, reading: Reading, now: datetime) -> Action | None:
    """One of them by its name, without the others; None where there is none of that name.

    Raises:
        Refused: it cannot be done now.
    """
    return bind_named(OFFERED, name, OpenAgent(key, reading), now)
