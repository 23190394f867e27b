"""``acp wire``: asking agents from the command line."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from acp_core.model.errors import CommandError
from acp_core.protocols.kit.argparse_parser import sentence
from acp_core.protocols.wire.commands.agent import need_libraries
from acp_core.protocols.wire.schema import Code

if TYPE_CHECKING:
    from acp_core.protocols.wire.network.client import Client

TOKEN_VARIABLE = "ACP_WIRE_TOKEN"  # as in `links`, which is not needed for the parser
WHERE = "an agent: its name here, http://HOST:PORT, or acp://HOST:PORT/TOKEN"


def wire_parser() -> argparse.ArgumentParser:
    """The parser of ``acp wire``."""
    parser = argparse.ArgumentParser(
        prog="acp wire", description="Ask an agent that runs (ACP v0.8), here or elsewhere."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _agents(commands)
    finding = commands.add_parser(
        "discover",
        help="list agents that say on the local network they are there",
        description="Print the agents that say on the local network that they are there.",
    )
    finding.add_argument("--seconds", type=float, default=35.0,
                         help="how long to listen (%(default)s; each says it every 30)")  # fmt: skip
    finding.add_argument("--interface", default="", metavar="ADDRESS",
                         help="the interface to listen at, by its address")  # fmt: skip
    finding.add_argument("--json", action="store_true", help="print JSON")
    send = _asking(commands, "send", "send a message to a peer of an agent, or to it (--from)")
    send.add_argument("text", nargs="?", help="what to say")
    send.add_argument("--to", metavar="PEER", help="to this peer, by its id or name (the only one)")
    send.add_argument("--file", action="append", default=[], metavar="URL", help="attach a file")
    send.add_argument("--data", action="append", default=[], metavar="JSON", help="attach data")
    send.add_argument("--context", metavar="ID", help="the conversation that it belongs to")
    send.add_argument("--task", metavar="ID", help="the task that it belongs to")
    send.add_argument("--new-task", action="store_true", help="make a task of it")
    send.add_argument("--id", metavar="ID", help="its id: sent again, it arrives once")
    send.add_argument(
        "--from", dest="sender", metavar="NAME", help="who says it: it goes to the agent itself"
    )
    send.add_argument("--wait", type=float, metavar="SECONDS", help="for a reply")
    stream = _asking(
        commands, "stream", "print a line for everything that happens, until interrupted"
    )
    stream.add_argument("--since", type=int, metavar="N", help="after this place of the log")
    tasks = _asking(commands, "tasks", "list an agent's tasks")
    tasks.add_argument("--status", help="only those that stand so")
    _asking(commands, "peers", "list the peers that an agent knows")
    connect = _asking(commands, "connect", "have an agent keep a connection to another one")
    connect.add_argument("link", help="acp://, tcp://, acp+wss:// (by a relay), or http://")
    _asking(commands, "card", "print an agent's card: what it says of itself")
    skills = _asking(commands, "skills", "list what an agent can do")
    skills.add_argument("query", nargs="?", default="", help="only what fits this")
    answer = _asking(commands, "answer", "give a task the input for which it waits")
    answer.add_argument("task", metavar="TASK", help="the id of the task")
    answer.add_argument("text", help="the answer")
    cancel = _asking(commands, "cancel", "cancel a task")
    cancel.add_argument("task", metavar="TASK", help="the id of the task")
    return parser


def wire(arguments: Sequence[str]) -> int:
    """Run ``acp wire``; returns the exit code."""
    given = wire_parser().parse_args(list(arguments))
    need_libraries()
    if given.command == "agents":
        return _running(given.json)
    if given.command == "discover":
        return _discover(given)
    return asyncio.run(_ask(given))


_NO_PEER: dict[str, str] = {
    Code.NOT_CONNECTED: "it has no peer to send to; --from NAME says it to the agent itself",
    Code.AMBIGUOUS: "it has more than one peer: name one with --to (`acp wire peers` lists them)",
}


async def _ask(given: argparse.Namespace) -> int:
    from acp_core.protocols.wire.network.client import Client, WireError

    try:
        async with Client(given.agent, _token(given)) as client:
            await _DO[given.command](client, given)
    except WireError as error:
        said = str(error)
        if given.command == "send" and given.to is None:
            said = _NO_PEER.get(error.code, said)
        raise CommandError(said, 1 if error.status else 2) from None
    return 0


async def _send(client: Client, given: argparse.Namespace) -> None:
    from acp_core.protocols.wire.schema import parts

    content = [] if given.text is None else [parts.text_part(given.text)]
    content += [parts.file_at(url) for url in given.file]
    for text in given.data:
        try:
            content.append(parts.data_part(json.loads(text)))
        except (ValueError, RecursionError):
            raise CommandError(f"--data: not JSON: {text[:100]}") from None
    if not content:
        raise CommandError("nothing to send: give a text, --file or --data")
    sent = await client.send(
        content,
        to=await _peer(client, given.to),
        message_id=given.id,
        context_id=given.context,
        task_id=given.task,
        sender=given.sender,
        create_task=given.new_task,
        wait=given.wait,
    )
    if given.json:
        _print(sent._asdict())
        return
    how = "waits for its receiver" if sent.queued else "sent"
    _say(f"{sent.message_id} {how} ({sent.server_seq})")
    if sent.task:
        _say(f"task {sent.task.get('id')}: {sent.task.get('status')}")
    if sent.reply:
        _say(parts.shown_text(sent.reply.get("parts")))


def _token(given: argparse.Namespace) -> str | None:
    """What opens the agent; an agent of this user needs nothing, so the environment is for others."""
    import os

    elsewhere = "://" in given.agent
    return given.token or (os.environ.get(TOKEN_VARIABLE) if elsewhere else None) or None


async def _peer(client: Client, named: str | None) -> str | None:
    """The id of the peer that is meant, which may be called by its name where only one has it."""
    if named is None:
        return None
    known = await client.peers()
    ids = [str(peer.get("id")) for peer in known]
    fitting = [str(peer.get("id")) for peer in known if peer.get("name") == named]
    if named in ids or not fitting:
        return named
    if len(fitting) > 1:
        raise CommandError(f"--to: {named} are {', '.join(fitting)}: give the id")
    return fitting[0]


async def _stream(client: Client, given: argparse.Namespace) -> None:
    async for event in client.stream(given.since):
        if given.json:
            _print({"seq": event.seq, "event": event.kind, "data": event.data}, indent=None)
        else:
            _say(f"{event.seq:>6}  {event.kind:<13} {_told(event.data)}")


def _told(data: dict[str, Any]) -> str:
    """An event in a few words."""
    from acp_core.protocols.wire.schema import parts

    if data.get("parts") is not None:
        return f"{data.get('from')}: {parts.shown_text(data['parts'])}"
    if data.get("artifact") is not None:
        artifact = data["artifact"]
        shown = parts.shown_text(artifact.get("parts")) if isinstance(artifact, dict) else ""
        return f"{data.get('task_id')}: {shown}"
    names = ("task_id", "name", "state", "event", "error", "agent")
    return " ".join(str(data[name]) for name in names if data.get(name))


async def _tasks(client: Client, given: argparse.Namespace) -> None:
    from acp_core.protocols.wire.schema import parts

    found = await client.tasks(limit=1000, **({"status": given.status} if given.status else {}))
    if given.json:
        _print(found)
        return
    for task in found:
        asked = task.get("input")
        said = parts.shown_text(asked.get("parts")) if isinstance(asked, dict) else ""
        _say(f"{task.get('id')}  {task.get('status')}  {said}")


async def _peers(client: Client, given: argparse.Namespace) -> None:
    found = await client.peers()
    if given.json:
        _print(found)
        return
    for peer in found:
        here = "connected" if peer.get("connected") else f"away {peer.get('error') or ''}".rstrip()
        counts = f"{peer.get('messages_sent')} sent, {peer.get('messages_received')} received"
        _say(f"{peer.get('id')}  {peer.get('name')}  {here}  {counts}, {peer.get('queued')} wait")


async def _connect(client: Client, given: argparse.Namespace) -> None:
    answer = await client.connect(given.link)
    known = " (known already)" if answer.get("already_connected") else ""
    _print(answer) if given.json else _say(f"{answer.get('peer_id')}: connecting{known}")


async def _card(client: Client, given: argparse.Namespace) -> None:
    card = await client.card()
    if given.json:
        _print({name: value for name, value in card.items() if name not in ("self", "peer")})
        return
    _say(
        f"{card.get('name')}  ACP {card.get('acp_version')}  {card.get('description') or ''}".rstrip()
    )
    _say(f"link: {card.get('link')}")
    for skill in card.get("skills") or []:
        _say(f"skill: {skill.get('id') if isinstance(skill, dict) else skill}")


async def _skills(client: Client, given: argparse.Namespace) -> None:
    found = await client.skills(given.query)
    if given.json:
        _print(found)
        return
    for skill in found:
        _say(f"{skill.get('id')}  {skill.get('description') or skill.get('name')}")


async def _answer(client: Client, given: argparse.Namespace) -> None:
    _show_task(await client.resume(given.task, given.text), given)


async def _cancel(client: Client, given: argparse.Namespace) -> None:
    _show_task(await client.cancel(given.task), given)


def _show_task(task: dict[str, Any], given: argparse.Namespace) -> None:
    _print(task) if given.json else _say(f"{task.get('id')}: {task.get('status')}")


_DO: dict[str, Callable[[Client, argparse.Namespace], Awaitable[None]]] = {
    "send": _send,
    "stream": _stream,
    "tasks": _tasks,
    "peers": _peers,
    "connect": _connect,
    "card": _card,
    "skills": _skills,
    "answer": _answer,
    "cancel": _cancel,
}


def _discover(given: argparse.Namespace) -> int:
    from acp_core.protocols.wire.commands.agent import check_interface
    from acp_core.protocols.wire.commands.discover import discover

    check_interface("--interface", given.interface)
    if not 0 < given.seconds <= 86400:
        raise CommandError("--seconds: more than 0, and no more than a day")
    found = discover(given.seconds, given.interface, not given.json)
    if given.json:
        _print(found)
    elif not found:
        _say("no agent said that it is there")
    return 0


def _running(as_json: bool) -> int:
    from acp_core.protocols.wire.conduct.agent import place

    found = place.running()
    if as_json:
        _print(
            [
                {
                    "name": each.name,
                    "pid": each.pid,
                    "url": each.http_url,
                    "folder": str(place.folder_of(each.name)),
                }
                for each in found
            ]
        )
        return 0
    for each in found:
        _say(f"{each.name}  {each.http_url}  process {each.pid}  {place.folder_of(each.name)}")
    if not found:
        _say("no agent of yours runs here")
    return 0


def _agents(commands: Any) -> None:
    what = "list the agents of yours that run here"
    parser = commands.add_parser("agents", help=what, description=sentence(what))
    parser.add_argument("--json", action="store_true", help="print JSON")


def _asking(commands: Any, name: str, what: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=what, description=sentence(what)
    )
    parser.add_argument("agent", help=WHERE)
    parser.add_argument("--token", help="the owner's token, where the agent asks for one; others on"
                        f" this machine see it: prefer {TOKEN_VARIABLE} in the environment")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _say(text: str) -> None:
    from acp_core.cli.output import say
    from acp_core.files.text import clean_line

    say(clean_line(text, limit=4000), now=True)


def _print(value: object, *, indent: int | None = 2) -> None:
    from acp_core.cli.output import dump, say

    say(dump(value, indent=indent), now=True)
