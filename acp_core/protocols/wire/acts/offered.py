"""What is done through an agent that runs: in the dashboard, on the command line, as tools.

Send, answer, cancel, connect, move and forget, each with its preview. ``OpenAgent`` is the agent
that they are bound to; ``send`` to ``forget`` print the answer as `acp wire` does; ``TOOLS`` are
for the agent's own program. What needs the libraries of the extra ``wire`` is imported when an
agent is asked, so that a preview needs none of them.
"""

from __future__ import annotations

import asyncio
import json
import math
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acp_core.files import interrupts
from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.model.action_spec import PLACE, ActionSpec, Answer, By
from acp_core.model.errors import Refused
from acp_core.model.format import count
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.kit import command, parser
from acp_core.protocols.kit.binding import Context, Location, Narrowed, bind_all, bind_named, bound
from acp_core.protocols.kit.tools import WHO
from acp_core.protocols.kit.values import Values, completed
from acp_core.protocols.kit.wording import safe
from acp_core.protocols.wire import queries
from acp_core.protocols.wire.acts import table
from acp_core.protocols.wire.acts.table import OFFERED
from acp_core.protocols.wire.network import agent_directory
from acp_core.protocols.wire.network.links import LinkError, has_token, parse_any
from acp_core.protocols.wire.queries import Object, ask, say_answer
from acp_core.protocols.wire.read import folder
from acp_core.protocols.wire.read.folder import Reach, Reading
from acp_core.protocols.wire.schema import basics
from acp_core.protocols.wire.schema.basics import (
    ITSELF,
    MAX_ID,
    SCHEMA,
    Code,
    Json,
    TaskState,
    objects,
)
from acp_core.protocols.wire.schema.bodies import (
    data_part,
    file_at,
    is_web_address,
    shown_text,
    text_part,
)
from acp_core.protocols.wire.schema.observed import PERSON, PeerSeen, Task

if TYPE_CHECKING:
    from acp_core.protocols.wire.network.client import Client, Receipt

ANSWERS, PAUSE = 3.0, 0.2  # seconds within which a new peer answers, and between two questions

_LABEL = 160  # characters of what a choice is called

Work = Callable[["Client", Values], Awaitable[str | Outcome]]


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
        sent = await send_message(client, values)
        return f"{'Waiting for its receiver' if sent.queued else 'Sent'}: {sent.message_id}."

    choices = (*met, ITSELF)
    return through(
        table.SENDING,
        opened,
        lambda values: preview_sending(values, labels.get(values.peer, values.peer)),
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
    questions = folder.questions(list(asking.values()), reading.entries)
    labels = {id: f"{questions.get(id) or t.about} · {id}" for id, t in asking.items()}
    narrowed = {"task": _choice(labels)}

    def preview(values: Values) -> Preview:
        asked = questions.get(values.task, "")
        return preview_answering(values, f"Question: {asked}" if asked else "")

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
        return preview_canceling(values, labels.get(values.task, ""))

    async def work(client: Client, values: Values) -> str:
        task = await client.cancel(values.task)
        return f"{values.task} is {task.get('status')}."

    narrowed = {"task": _choice(labels)}
    return through(table.CANCELING, opened, preview, work, narrowed, offered=bool(still))


def connecting(context: Context, now: datetime) -> Action:
    """Keep a connection to the agent behind a link."""
    opened = open_agent(context)
    _ = opened.owned
    return through(table.CONNECTING, opened, preview_connecting, _connect, {})


async def _connect(client: Client, values: Values) -> Outcome:
    id = str((await client.connect(values.link.strip())).get("peer_id"))
    known = ""
    for _ in range(round(ANSWERS / PAUSE)):
        peer = basics.read_as(PeerSeen, await client.peer(id))
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
        return preview_moving(old, new, waiting.get(values.peer, 0))

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
        return preview_forgetting(name, waiting.get(values.peer, 0))

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
    from acp_core.protocols.wire.network.client import AgentError, Client

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


_AS_SAID = -1.0


async def send_message(client: Client, values: Values, *, wait: float | None = _AS_SAID) -> Receipt:
    """Send it, and wait for the reply where that is wanted.

    Args:
        client: asks the agent that sends.
        values: those of the act.
        wait: seconds to wait for a reply; None: not at all. By default what ``values`` say.

    Raises:
        Refused: there is nothing to send, or it cannot be sent.
        WireError: the agent does not take it.
    """
    content, itself = message_parts(values), values.peer == ITSELF
    return await client.send(
        content,
        to=None if itself else await resolve_peer(client, values.peer),
        message_id=values.id or None,
        context_id=values.context or None,
        task_id=values.task or None,
        sender=values.sender or (PERSON if itself else None),
        create_task=values.new_task,
        wait=values.wait if wait is _AS_SAID else wait,
    )


def message_parts(values: Values) -> list[Json]:
    """The parts of the message.

    Raises:
        Refused: there are none, or they cannot be sent.
    """
    if len(values.context) > MAX_ID:
        raise Refused(f"--context: at most {MAX_ID} characters")
    content = [text_part(values.text)] if values.text else []
    content += [_file(each) for each in values.file] + [_data(each) for each in values.data]
    if not content:
        raise Refused("nothing to send: give a text, --file or --data")
    return content


def _file(url: str) -> Json:
    if not is_web_address(url):
        raise Refused("--file: must be an http:// or https:// address")
    return file_at(url)


def _data(text: str) -> Json:
    try:
        return data_part(json.loads(text))
    except (ValueError, RecursionError):
        raise Refused(f"--data: not JSON: {text[:100]}") from None


async def resolve_peer(client: Client, named: str) -> str | None:
    """The id of the peer that is meant, which may be called by its name where only one has it.

    Raises:
        Refused: several have that name.
    """
    if not named:
        return None
    known = [basics.read_as(PeerSeen, peer) for peer in await client.peers()]
    fitting = [peer.id for peer in known if peer.name == named]
    if not fitting or any(peer.id == named for peer in known):
        return named
    if len(fitting) > 1:
        raise Refused(f"{named} is ambiguous ({', '.join(fitting)}): give the id")
    return fitting[0]


_WORDS = {"text": "a text", "file": "a file", "data": "data"}


def preview_sending(values: Values, name: str) -> Preview:
    """A message to whoever is called so.

    Raises:
        Refused: there is nothing to send, or it cannot be sent.
    """
    words = [_WORDS[str(part["type"])] for part in message_parts(values)]
    what = " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
    return Preview(f"Send {what} to {name}.")


def preview_answering(values: Values, question: str = "") -> Preview:
    """An answer to a task."""
    notes = (question,) if question else ()
    return Preview(f"Give {values.task} the input it is waiting for.", notes=notes)


def preview_canceling(values: Values, about: str = "") -> Preview:
    """The end of a task."""
    sentence = f"Cancel {values.task}, here and at the peer that shares it."
    return Preview(sentence, notes=(about,) if about else ())


def preview_connecting(values: Values) -> Preview:
    """A connection that is kept; tokens are left out.

    Raises:
        Refused: the link is none.
    """
    text = values.link.strip()
    try:
        if text.startswith(("http://", "https://")) and not has_token(text):
            if not is_web_address(text):
                raise Refused("an agent's address is http://HOST:PORT")
            return Preview(f"Keep a connection to the agent whose card is at {text}.")
        return Preview(f"Keep a connection to {parse_any(text).safe}.")
    except LinkError as error:
        raise Refused(str(error)) from None


def preview_moving(name: str, to: str, waiting: int = 0) -> Preview:
    """Another receiver of what waits for a peer."""
    what = count(waiting, "message") if waiting else "what waits"
    doubt = f"acp cannot verify that {to} is the same agent; it will read the messages for {name}"
    return Preview(f"Send {to} {what} for {name}, and its open tasks.", warnings=(doubt,))


def preview_forgetting(name: str, waiting: int = 0) -> Preview:
    """The end of what is known of a peer, and of the messages that wait for it."""
    lost = f"{count(waiting, 'message')} it has not acknowledged will be lost"
    sentence = f"Forget {name} and close the connection."
    return Preview(sentence, warnings=(lost,) if waiting else ())


_HERE = "acp_core.protocols.wire.acts.offered"

_TOLD = frozenset({"peer", "text", "context", "new_task"})

PEERS = table.PEERS._replace(
    sentence="List your peers: their ids, names, and whether they are connected.",
    answer=f"{_HERE}:list_own_peers",
    fields=(PLACE, WHO),
    by=By.PARTICIPANT,
)

SEND_MESSAGE = table.SENDING._replace(
    name="send_message",
    sentence="Send a text to one of your peers; it is delivered when an absent peer returns.",
    bind=f"{_HERE}:sending_as_agent",
    fields=(WHO, *(each for each in table.SENDING.fields if each.name in _TOLD)),
    by=By.PARTICIPANT,
    run="",
)

TOOLS = (PEERS, SEND_MESSAGE)


def list_own_peers(values: Values) -> Answer:
    """The peers of the agent."""
    reach = open_agent(Location(values.folder)).reach
    return queries.peers(Values(agent=reach.url, token=reach.token, ca=None))


def sending_as_agent(context: Context, now: datetime) -> Action:
    """Send a text to a peer, as the agent itself."""
    opened = open_agent(context)
    own = opened.owned
    met = tuple(each.id for each in own.peers if each.met)

    async def work(client: Client, values: Values) -> str:
        if values.participant != clean_name(own.name, 64):
            raise Refused(f"{safe(values.participant)} is a peer: you can only send as {own.name}")
        given = {name: getattr(values, name) for name in _TOLD}
        sent = await send_message(client, completed(table.SENDING.fields, given))
        return f"{'Waiting for its receiver' if sent.queued else 'Sent'}: {sent.message_id}."

    return through(
        SEND_MESSAGE,
        opened,
        lambda values: preview_sending(values, values.peer),
        work,
        {"peer": {"choices": met, "default": met[0] if len(met) == 1 else None}},
    )


_NO_PEER: dict[str, str] = {
    Code.NOT_CONNECTED: "the agent has no peer; use --from NAME to message the agent itself",
    Code.AMBIGUOUS: "the agent has several peers: name one with --to (see `acp wire peers`)",
}


def send(values: Values) -> int:
    """Send a message; the exit code."""
    whom = values.peer or (values.agent if values.sender else "its peer")
    preview = preview_sending(values, whom)
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
        return await send_message(client, values)
    began = time.monotonic()
    sent = await send_message(client, values, wait=None)
    left = max(1, math.ceil(values.wait - (time.monotonic() - began)))
    task = await client.settled(str(sent.task["id"]), left) if sent.task else {}
    return sent._replace(task=task or sent.task)


def _task_lines(values: Values, task: Object) -> list[str]:
    """Where a task stands; after waiting, also what it made, or what it needs."""
    known = basics.read_as(Task, task)
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
    return _asked(
        table.ANSWERING,
        lambda: preview_answering(values),
        values,
        lambda client: client.resume(values.task, values.text),
        _task_line,
    )


def cancel(values: Values) -> int:
    """Cancel a task; the exit code."""
    return _asked(
        table.CANCELING,
        lambda: preview_canceling(values),
        values,
        lambda client: client.cancel(values.task),
        _task_line,
    )


def _task_line(task: Object) -> str:
    return f"{task.get('id')}: {task.get('status')}"


def connect(values: Values) -> int:
    """Have an agent keep a connection; the exit code. Whether it comes about is not waited for."""

    def line(found: Object) -> str:
        known = " (already known)" if found.get("already_connected") else ""
        return f"{found.get('peer_id')}: connecting{known}"

    return _asked(
        table.CONNECTING,
        lambda: preview_connecting(values),
        values,
        lambda client: client.connect(values.link),
        line,
    )


def move(values: Values) -> int:
    """Let another peer get what waits for one; the exit code."""

    async def work(client: Client) -> Object:
        old, new = [await resolve_peer(client, each) or "" for each in (values.peer, values.to)]
        return await client.move(old, new)

    return _asked(
        table.MOVING,
        lambda: preview_moving(values.peer, values.to),
        values,
        work,
        lambda told: (
            f"{told.get('moved')} waiting for {told.get('peer_id')} moved to {told.get('to')}"
        ),
    )


def forget(values: Values) -> int:
    """Drop a peer; the exit code."""

    async def work(client: Client) -> Object:
        id = await resolve_peer(client, values.peer) or ""
        await client.forget(id)
        return {"peer_id": id}

    return _asked(
        table.FORGETTING,
        lambda: preview_forgetting(values.peer),
        values,
        work,
        lambda told: f"{told['peer_id']}: forgotten",
    )


def _asked(
    spec: ActionSpec,
    preview: Callable[[], Preview],
    values: Values,
    work: Callable[[Client], Awaitable[Object]],
    line: Callable[[Object], str],
) -> int:
    """Show what would be asked of an agent, or ask it and print its answer; the exit code."""
    if values.dry_run:
        return _show(spec, preview(), values)
    found = ask(values, work)
    return _end(values, spec, found, [line(found)])


def _end(values: Values, spec: ActionSpec, facts: Mapping[str, Any], lines: Sequence[str]) -> int:
    """Keep the act in the person's journal, as those of the screen are kept, and print its end."""
    outcome = Outcome(OutcomeState.DONE, clean_line(lines[0]))
    command.note(agent_directory.key_of(values.agent), spec, values, outcome)
    return say_answer(values, spec.name, facts, lines)


def _show(spec: ActionSpec, preview: Preview, values: Values) -> int:
    if values.json:
        parser.say_object(SCHEMA, spec.name, done=False, **parser.described(preview))
    else:
        parser.say_preview(preview)
    return 0
