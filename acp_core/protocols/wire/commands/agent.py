"""``acp agent``: an agent that others can reach, in one line."""

from __future__ import annotations

import argparse
import importlib.util
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from acp_core.model.errors import CommandError
from acp_core.protocols.wire.network import secrets

if TYPE_CHECKING:
    from acp_core.protocols.wire.conduct.agent.config import Config
    from acp_core.protocols.wire.conduct.agent.place import Running
    from acp_core.protocols.wire.conduct.answering.setup import Setup

_NUMBERS = ("port", "http_port", "tcp_port", "at_once", "time_limit")
_FLAGS = ("json", "stdio", "advertise_mdns", "advertise_token")
_KINDS: dict[str, type] = dict.fromkeys(_NUMBERS, int) | dict.fromkeys(_FLAGS, bool)
NEEDED = ("starlette", "uvicorn", "websockets", "httpx", "cryptography")


def agent_parser() -> argparse.ArgumentParser:
    """The parser of ``acp agent``."""
    parser = argparse.ArgumentParser(
        prog="acp agent",
        description="Run an agent that others reach over the network (ACP v0.8), until interrupted.",
    )
    parser.add_argument("--config", metavar="FILE", help="TOML with these options, by their names")
    parser.add_argument("--name", help="what it is called; its state is kept under it")
    parser.add_argument("--description", default="", help="what it does, in a sentence")
    parser.add_argument("--skills", default="", metavar="A,B", help="what it can do")
    parser.add_argument("--host", default="127.0.0.1", help="where it listens (this machine alone)")
    parser.add_argument("--port", type=int, help="for peers (7801, or as last time; 0: any)")
    parser.add_argument("--http-port", type=int, help="for HTTP (100 above the other)")
    parser.add_argument("--allow-host", action="append", default=[], metavar="NAME",
                        help="a further name under which it is asked for")  # fmt: skip
    parser.add_argument("--webhook-host", action="append", default=[], metavar="HOST",
                        help="events may be posted to this host (this machine)")  # fmt: skip
    parser.add_argument("--join", action="append", default=[], metavar="LINK",
                        help="keep a connection to this agent")  # fmt: skip
    parser.add_argument("--tcp-port", type=int, metavar="PORT",
                        help="take peers over TCP too (0: any port)")  # fmt: skip
    parser.add_argument("--relay", metavar="URL",
                        help="be reached by a relay too (`acp relay` runs one)")  # fmt: skip
    secrets.add_option(parser, "relay-key", secrets.RELAY_KEY, "what that relay asks for")
    parser.add_argument("--advertise-mdns", action="store_true",
                        help="say on the local network that it is there, without its token")  # fmt: skip
    parser.add_argument("--advertise-token", action="store_true",
                        help="with its token: everybody there can connect")  # fmt: skip
    parser.add_argument("--mdns-interface", default="", metavar="ADDRESS",
                        help="the interface for that, by its address")  # fmt: skip
    parser.add_argument("--stdio", action="store_true",
                        help="who starts it is a peer, over standard input and output")  # fmt: skip
    parser.add_argument("--run-peer", action="append", default=[], metavar="COMMAND",
                        help="run this program as a peer, over its standard input and output")  # fmt: skip
    secrets.add_option(parser, "secret", secrets.SECRET, "sign with a secret that all peers share")
    parser.add_argument("--identity", nargs="?", const="~/.acp/identity.json", metavar="PATH",
                        help="sign with a key of its own (~/.acp/identity.json)")  # fmt: skip
    parser.add_argument("--on-message", metavar="COMMAND",
                        help="answer messages and tasks by this program: a preset (claude, codex,"
                        " ...) or a command; never through a shell")  # fmt: skip
    parser.add_argument("--workdir", metavar="DIR", help="where that program runs (here)")
    parser.add_argument("--model", default="", help="the model that it is told to use")
    parser.add_argument("--at-once", type=int, default=4, metavar="N",
                        help="so many run at the same time (%(default)s)")  # fmt: skip
    parser.add_argument("--time-limit", type=int, default=1800, metavar="SECONDS",
                        help="one that takes longer is ended (%(default)s)")  # fmt: skip
    parser.add_argument("--sync", choices=("full", "normal"), default="full",
                        help="what is acknowledged survives a loss of power, or only a crash")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="say where it listens as JSON")
    return parser


def agent(arguments: Sequence[str]) -> int:
    """Run ``acp agent``; returns the exit code."""
    given = _given(list(arguments))
    need_libraries()
    from acp_core.protocols.wire.conduct.agent.config import Config
    from acp_core.protocols.wire.schema import is_name
    from acp_core.protocols.wire.schema.skills import from_option

    if not is_name(given.name):
        raise CommandError("--name: it is needed, 1 to 64 printable characters")
    check_place(given)
    _check_advertising(given)
    secret = secrets.take("secret", given.secret, given.secret_file, secrets.SECRET)
    relay_key = secrets.take("relay-key", given.relay_key, given.relay_key_file, secrets.RELAY_KEY)
    config = Config(
        name=given.name,
        description=given.description,
        skills=from_option(given.skills),
        host=given.host,
        port=given.port,
        http_port=given.http_port,
        tcp_port=given.tcp_port,
        relay=given.relay,
        relay_key=relay_key,
        advertise=given.advertise_mdns or given.advertise_token,
        advertise_token=given.advertise_token,
        interface=given.mdns_interface,
        stdio=given.stdio,
        children=tuple(map(_words, given.run_peer)),
        secret=secret,
        identity=given.identity,
        join=tuple(given.join),
        hosts=tuple(given.allow_host),
        webhook_hosts=tuple(given.webhook_host),
        on_message=_answering(given),
        sync=given.sync,
    )

    def ready(about: Running) -> None:
        lines = [f"{about.name} is ready: {about.http_url}"]
        links = (about.link, about.tcp_link, about.relay_link)
        lines += [f"link for peers: {link}" for link in links if link]
        if given.json:
            lines = [json.dumps(about._asdict())]
        # With --stdio the standard output belongs to the peer.
        print("\n".join(lines), file=sys.stderr if given.stdio else sys.stdout, flush=True)

    return run(config, ready)


def check_place(given: argparse.Namespace) -> None:
    """Check where somebody wants an agent to listen.

    Raises:
        CommandError: nobody can listen there.
    """
    from acp_core.protocols.wire.network.links import is_host

    if not is_host(given.host):
        raise CommandError(f"--host: no name and no address: {given.host}")
    for option in ("port", "http_port", "tcp_port"):
        value = getattr(given, option, None)
        if value is not None and not 0 <= value < 65536:
            raise CommandError(f"--{option.replace('_', '-')}: 0 to 65535 is needed")


def _check_advertising(given: argparse.Namespace) -> None:
    from acp_core.protocols.wire.network.links import is_loopback

    if not (given.advertise_mdns or given.advertise_token):
        return
    if is_loopback(given.host):
        raise CommandError(
            "--advertise-mdns: nobody could reach the agent, which listens on this machine alone"
            " (--host 0.0.0.0 lets others in)"
        )
    check_interface("--mdns-interface", given.mdns_interface)


def check_interface(option: str, address: str) -> None:
    """Check that an interface is named by its address.

    Raises:
        CommandError: it is not.
    """
    from ipaddress import AddressValueError, IPv4Address

    try:
        IPv4Address(address or "0.0.0.0")
    except AddressValueError:
        raise CommandError(f"{option}: an IPv4 address is needed: {address}") from None


def run(config: Config, ready: Callable[[Running], None]) -> int:
    """Run an agent until it is asked to end; returns the exit code.

    Raises:
        CommandError: it cannot be started.
    """
    from acp_core.protocols.wire.conduct.agent import serve
    from acp_core.protocols.wire.conduct.agent.place import AgentRunning
    from acp_core.protocols.wire.conduct.agent.sockets import CannotListen
    from acp_core.protocols.wire.conduct.agent.stdio import NoPipe
    from acp_core.protocols.wire.network.identity import IdentityError
    from acp_core.protocols.wire.network.lan.network import NoMulticast
    from acp_core.protocols.wire.schema import Refusal
    from acp_core.protocols.wire.write.database import StoreError

    _log_safely()
    try:
        serve.run(config, ready)
    except (
        AgentRunning,
        StoreError,
        IdentityError,
        CannotListen,
        NoPipe,
        NoMulticast,
        Refusal,
    ) as error:
        raise CommandError(str(error)) from None
    return 0


def _answering(given: argparse.Namespace) -> Setup | None:
    """The program that answers, where one is asked for."""
    from dataclasses import replace

    from acp_core.protocols.wire.conduct.answering.setup import SetupError, choose

    for option in ("at_once", "time_limit"):
        if not 0 < getattr(given, option) < 1_000_000:
            raise CommandError(f"--{option.replace('_', '-')}: a number above zero is needed")
    if given.on_message is None:
        return None
    try:
        chosen = choose(given.on_message, given.workdir, given.model)
    except SetupError as error:
        raise CommandError(str(error)) from None
    return replace(chosen, at_once=given.at_once, seconds=float(given.time_limit))


def _words(command: str) -> tuple[str, ...]:
    """A command line as the words that it has; no shell reads it."""
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise CommandError(f"--run-peer: {command}: {error}") from None
    if not words:
        raise CommandError("--run-peer: a command is needed")
    return words


def _given(arguments: list[str]) -> argparse.Namespace:
    """The options, where they are not given those of the file that ``--config`` names."""
    parser = agent_parser()
    given = parser.parse_args(arguments)
    if given.config is None:
        return given
    import tomllib

    from acp_core.files.reading import Unreadable, read_bounded

    try:
        content = tomllib.loads(read_bounded(given.config, 1 << 20).decode())
    except Unreadable as error:
        raise CommandError(f"{given.config}: {error.reason}") from None
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{given.config}: not TOML: {error}") from None
    usual = vars(parser.parse_args([]))
    for name, value in content.items():
        known = name.replace("-", "_")
        if known not in usual or known == "config":
            options = ", ".join(sorted(each for each in usual if each != "config"))
            raise CommandError(f"{given.config}: {name}: no such option (there are: {options})")
        kind = _KINDS.get(known, str)
        listed = isinstance(usual[known], list)
        values = value if listed and isinstance(value, list) else [value]
        if any(type(each) is not kind for each in values):
            needed = {int: "a whole number", bool: "true or false", str: "a text in quotes"}[kind]
            raise CommandError(f"{given.config}: {name}: {needed} is needed")
        usual[known] = values if listed else value
    parser.set_defaults(**usual)
    return parser.parse_args(arguments)


def _log_safely() -> None:
    """Warnings go to the standard error; names and texts of strangers are made safe there."""
    import logging

    from acp_core.files.text import clean_line

    class Safe(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            said = clean_line(f"acp agent: {record.getMessage()}", limit=2000)
            return f"{said}\n{self.formatException(record.exc_info)}" if record.exc_info else said

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Safe())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("websockets").setLevel(logging.CRITICAL)
    logging.getLogger("uvicorn").setLevel(logging.ERROR)  # any stranger could fill the log


def need_libraries() -> None:
    """Say in one line what has to be installed, where something is missing.

    Raises:
        CommandError: something is.
    """
    lacking = missing()
    if lacking:
        names = ", ".join(lacking)
        raise CommandError(f"{names} is missing here: pip install 'acp-tui[wire]' installs it")


def missing() -> list[str]:
    """The libraries of the extra ``wire`` that are not installed."""
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]
