"""What `acp wire` asks agents and prints: their tasks, peers, cards, skills, and what happens there."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from acp_core.files import interrupts
from acp_core.model.action_spec import Answer
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.kit.command_line import say, say_json
from acp_core.protocols.kit.parser import say_object
from acp_core.protocols.kit.values import Values
from acp_core.protocols.wire.network import agent_directory
from acp_core.protocols.wire.network.links import TOKEN_VARIABLE, check_interface, need_libraries
from acp_core.protocols.wire.schema import basics, observed
from acp_core.protocols.wire.schema.basics import SCHEMA
from acp_core.protocols.wire.schema.bodies import shown_text
from acp_core.protocols.wire.schema.observed import Content, PeerReport, People, Task

if TYPE_CHECKING:
    from acp_core.protocols.wire.network.client import Client, Event
    from acp_core.protocols.wire.network.lan import Neighbour

T = TypeVar("T")
Object = dict[str, Any]
_LINE = 4_000  # characters of a line of what others said
_DAY = 86_400


def ask(
    values: Values, work: Callable[[Client], Awaitable[T]], instead: Mapping[str, str] = {}
) -> T:
    """What the agent that is named answers.

    Args:
        values: those of the command: ``agent`` and ``token``.
        work: asks it.
        instead: what to say of errors with these codes.

    Raises:
        Refused: it refuses, or cannot be asked.
    """

    need_libraries()
    from acp_core.protocols.wire.network import client as network_client
    from acp_core.protocols.wire.network.client import AgentError, Client

    network_client.also(values.ca)

    async def asked() -> T:
        async with Client(values.agent, _token(values)) as client:
            return await work(client)

    try:
        return interrupts.run_loop(asked)
    except AgentError as error:
        why = instead.get(error.code, str(error))
        raise Refused(why, 1 if error.status else 2) from None


def _token(values: Values) -> str | None:
    """What opens the agent; an agent of this user needs nothing, so the environment is for others."""
    elsewhere = "://" in values.agent
    return values.token or (os.environ.get(TOKEN_VARIABLE) if elsewhere else None) or None


def say_answer(values: Values, verb: str, facts: Mapping[str, Any], lines: Sequence[str]) -> int:
    """Print what an agent answered to an act; the exit code."""
    if values.json:
        say_json({"schema": SCHEMA, "command": verb, **_others(facts)})
    else:
        for line in lines:
            say(_line(line))
    return 0


def _others(facts: Mapping[str, Any]) -> Object:
    """What an agent said, which names no schema and no command of ours."""
    return {name: value for name, value in facts.items() if name not in ("schema", "command")}


def _line(text: str) -> str:
    return clean_line(text, _LINE)


def agents(values: Values) -> Answer:
    """This user's agents that run."""
    running = agent_directory.running_agents()
    listed = [
        {
            "name": each.name,
            "pid": each.pid,
            "url": each.http_url,
            "folder": str(agent_directory.folder_of(each.name)),
        }
        for each in running
    ]
    lines = [f"{a['name']}  {a['url']}  process {a['pid']}  {a['folder']}" for a in listed]
    return Answer({"agents": listed}, tuple(lines) or ("you have no running agents here",))


def token(values: Values) -> Answer:
    """The owner's token of an agent of this user that runs.

    Raises:
        Refused: none of that name runs.
    """
    found = agent_directory.find_running(values.agent)
    if found is None:
        raise Refused(agent_directory.no_such_agent(values.agent))
    return Answer({"token": found.owner_token, "url": found.http_url}, (found.owner_token,))


def tasks(values: Values) -> Answer:
    """An agent's tasks."""
    query: dict[str, str | int] = {"status": values.status} if values.status else {}
    known = ask(values, lambda client: client.tasks(limit=1000, **query))
    return Answer({"tasks": known}, tuple(map(_task_line, known)))


def _task_line(task: Object) -> str:
    known = basics.read_as(Task, task)
    return _line(f"{known.id}  {known.status}  {known.input.text}")


def peers(values: Values) -> Answer:
    """The peers that an agent knows."""
    known = ask(values, lambda client: client.peers())
    return Answer({"peers": known}, tuple(map(_peer_line, known)))


def _peer_line(peer: Object) -> str:
    known = basics.read_as(PeerReport, peer)
    here = "connected" if known.connected else f"away {known.trouble}".rstrip()
    counts = f"{known.sent} sent, {known.received} received, {known.queued} wait"
    return _line(f"{known.id}  {known.name}  {here}  {counts}")


def card(values: Values) -> Answer:
    """What an agent says of itself."""
    known = ask(values, lambda client: client.card())
    about = f"{known.get('name')}  ACP {known.get('acp_version')}  {known.get('description') or ''}"
    lines = [about.rstrip(), *([f"link: {known['link']}"] if known.get("link") else [])]
    for skill in known.get("skills") or []:
        lines.append(f"skill: {skill.get('id') if isinstance(skill, dict) else skill}")
    facts = {name: value for name, value in known.items() if name not in ("self", "peer", "verb")}
    return Answer(_others(facts), tuple(map(_line, lines)))


def skills(values: Values) -> Answer:
    """What an agent can do."""
    known = ask(values, lambda client: client.skills(values.query))
    lines = (f"{each.get('id')}  {each.get('description') or each.get('name')}" for each in known)
    return Answer({"skills": known}, tuple(map(_line, lines)))


def stream(values: Values) -> int:
    """Print everything that happens at an agent, until interrupted."""

    async def follow(client: Client) -> None:
        async for event in client.stream(values.since):
            _say_event(event, values.json)

    ask(values, follow)
    return 0


def _say_event(event: Event, as_json: bool) -> None:
    if as_json:
        is_message = event.data.get("parts") is not None
        data = observed.handed_on(event.data, event.data, People()) if is_message else event.data
        say_json({"seq": event.seq, "event": event.kind, "data": data})
    else:
        say(_line(f"{event.seq:>6}  {event.kind:<13} {_summary(event.data)}"))
    sys.stdout.flush()


def _summary(data: Object) -> str:
    """An event in a few words."""
    if data.get("parts") is not None:
        missing = f" ({unsigned})" if (unsigned := observed.unsigned(data)) else ""
        return f"{observed.sender(data, People()).words}: {shown_text(data['parts'])}{missing}"
    if data.get("artifact") is not None:
        return f"{data.get('task_id')}: {basics.read_as(Content, data['artifact']).text}"
    names = ("task_id", "name", "state", "event", "error", "agent")
    return " ".join(str(data[name]) for name in names if data.get(name))


def discover(values: Values) -> int:
    """Print which agents say on the local network that they are there."""
    check_interface("--interface", values.interface)
    if not 0 < values.seconds <= _DAY:
        raise Refused("--seconds: more than 0, and no more than a day")
    need_libraries()
    from acp_core.protocols.wire.network import lan
    from acp_core.protocols.wire.network.lan import Heard

    heard = Heard()
    listener = lan.Listener(heard, None if values.json else _say_neighbour)

    async def work() -> None:
        async with lan.listening(listener, values.interface):
            await asyncio.sleep(values.seconds)

    try:
        interrupts.run_loop(work)
    except lan.NoMulticast as error:
        raise Refused(str(error)) from None
    known = heard.listed(time.time())
    if values.json:
        say_object(SCHEMA, "discover", agents=known)
    elif not known:
        say("no agents found")
    return 0


def _say_neighbour(found: Neighbour) -> None:
    where = found.link or f"{found.as_json()['http_url']} (token not announced)"
    say(clean_line(f"{found.said.name}  {where}", limit=1000))
    sys.stdout.flush()
