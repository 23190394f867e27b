"""``acp agent``, ``acp bridge`` and ``acp relay``: what serves until it is interrupted."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from acp_core.files import interrupts
from acp_core.model.action_field import Field, Kind
from acp_core.model.errors import InvalidInput, NetworkError, NotStarted, Refused, Unusable
from acp_core.model.text import clean_line
from acp_core.protocols.discovery import identify
from acp_core.protocols.kit.command_line import say, say_json, warn
from acp_core.protocols.kit.values import Values, require, seconds
from acp_core.protocols.registry import WATCH, handed_in, installed
from acp_core.protocols.wire.network import links as network_links
from acp_core.protocols.wire.network.links import (
    ALL_INTERFACES,
    authority,
    check_host,
    check_interface,
    is_loopback,
    need_libraries,
    outward_address,
    parse,
)
from acp_core.protocols.wire.schema import bodies
from acp_core.protocols.wire.schema.basics import SCHEMA, WireError, is_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from acp_core.protocols.wire.bridge import Allowed
    from acp_core.protocols.wire.conduct.agent import Config
    from acp_core.protocols.wire.conduct.answering import Setup
    from acp_core.protocols.wire.network.agent_directory import Running


def run_agent(values: Values) -> int:
    """Run an agent; the exit code.

    Raises:
        Refused: it cannot be started.
    """
    fill_in_options(values)
    need_libraries()
    _check(values)
    _trust(values)
    # With --stdio the standard output belongs to the peer.
    stream = sys.stderr if values.stdio else sys.stdout
    if values.open_loopback:
        warn(f"any account on this machine can act as the owner of {values.name} (--open-loopback)")
    return serve(_config(values), lambda about: _say(about, values, stream))


def _check(values: Values) -> None:
    if not is_name(values.name):
        raise Refused("--name is required: 1 to 64 printable characters")
    require(values.spec.fields, values)
    check_host(values.host)
    if values.open_loopback and not is_loopback(values.host):
        raise Refused("--open-loopback: other machines can reach the agent, so a token is required")
    if not (values.advertise_mdns or values.advertise_token):
        return
    if values.tls_cert:
        raise Refused("--advertise-mdns cannot be combined with TLS: announced links have none")
    if is_loopback(values.host):
        raise Refused(
            "--advertise-mdns: no other machine can reach the agent"
            " (allow others with --host 0.0.0.0)"
        )
    check_interface("--mdns-interface", values.mdns_interface)


def _trust(values: Values) -> None:
    from acp_core.protocols.wire.network import client

    client.also(values.ca)


def _config(values: Values) -> Config:
    from acp_core.protocols.wire.conduct.agent import Config
    from acp_core.protocols.wire.network import client as network_client
    from acp_core.protocols.wire.schema.bodies import skills_from_file

    return Config(
        name=values.name,
        description=values.description,
        skills=skills_from_file(values.skills, "--skills"),
        host=values.host,
        port=values.port,
        http_port=values.http_port,
        tcp_port=values.tcp_port,
        relay=values.relay,
        relay_key=network_links.take_secret(
            "relay-key", values.relay_key, values.relay_key_file, network_links.RELAY_KEY
        ),
        advertise=values.advertise_mdns or values.advertise_token,
        advertise_token=values.advertise_token,
        interface=values.mdns_interface,
        stdio=values.stdio,
        children=tuple(map(_words, values.run_peer)),
        secret=network_links.take_secret(
            "secret", values.secret, values.secret_file, network_links.SECRET
        ),
        identity=values.identity,
        join=tuple(values.join),
        hosts=tuple(values.allow_host),
        open_loopback=values.open_loopback,
        tls=network_client.check_pair(values.tls_cert, values.tls_key),
        webhook_hosts=tuple(values.webhook_host),
        on_message=_answering(values),
        sync=values.sync,
    )


def _answering(values: Values) -> Setup | None:
    """The program that answers, where one is asked for."""
    from dataclasses import replace

    from acp_core.protocols.wire.conduct.answering import SetupError, choose

    if values.on_message is None:
        return None
    try:
        chosen = choose(values.on_message, values.workdir, values.model)
    except SetupError as error:
        raise Refused(str(error)) from None
    return replace(
        chosen,
        at_once=values.jobs,
        seconds=float(values.timeout),
        permissions=values.permissions,
        once=values.once,
    )


def _words(command: str) -> tuple[str, ...]:
    """A command line as the words that it has; no shell reads it."""
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise Refused(f"--run-peer: {command}: {error}") from None
    if not words:
        raise Refused("--run-peer requires a command")
    return words


def _say(about: Running, values: Values, stream: Any) -> None:
    links = [about.link, about.tcp_link, about.relay_link]
    if about.tls_cert:
        links.insert(0, f"{about.http_url}/{parse(about.link).token}")
    lines = [f"{about.name} is ready: {about.http_url}"]
    lines += [f"link for peers: {link}" for link in links if link]
    lines += say_where(about, values.host)
    if values.json:
        lines = [json.dumps({"schema": SCHEMA, "command": "agent", **about._asdict()})]
    print("\n".join(lines), file=stream, flush=True)


def say_where(about: Running, host: str) -> list[str]:
    """What its owner has to know: its token, and how others reach it where it listens everywhere."""
    own = f"acp wire token {shlex.quote(about.name)}"
    lines = [f"token for the HTTP interface: {own}"]
    if host in ALL_INTERFACES:
        link = about.link if not about.tls_cert else f"{about.http_url}/{parse(about.link).token}"
        given = link.replace("127.0.0.1", outward_address() or "ADDRESS", 1)
        lines.append(f"from other machines (insert this machine's name or address): {given}")
    return lines


def serve(config: Config, ready: Callable[[Running], None]) -> int:
    """Run an agent until it is asked to end; the exit code.

    Raises:
        Refused: it cannot be started.
    """
    from acp_core.protocols.wire.serving import process

    _log_safely()
    try:
        process.run(config, ready)
    except (InvalidInput, NetworkError, NotStarted, WireError, Unusable) as error:
        raise Refused(str(error)) from None
    return 0


def _log_safely() -> None:
    """Warnings go to the standard error; names and texts of strangers are made safe there."""
    import logging

    class Safe(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            line = clean_line(f"acp agent: {record.getMessage()}", limit=2000)
            return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Safe())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("websockets").setLevel(logging.CRITICAL)
    logging.getLogger("uvicorn").setLevel(logging.ERROR)  # any stranger could fill the log


_LARGEST = 1 << 20  # bytes

_READERS: dict[str, Callable[[object, str], Any]] = {"skills": bodies.skills_from_file}
"""What a file can say of an option beyond what its words can."""

_TYPES: dict[Kind, tuple[type, ...]] = {
    Kind.NUMBER: (int,),
    Kind.FLAG: (bool,),
    Kind.DURATION: (int, float, str),
}

_NEEDED = {
    Kind.NUMBER: "a whole number",
    Kind.FLAG: "true or false",
    Kind.DURATION: 'a number of seconds, or a duration such as "20m"',
}


def fill_in_options(values: Values) -> None:
    """Take what was not given as an option from the file that ``values.config`` names, if one is.

    Args:
        values: those of the command; ``spec`` describes it, ``said`` names what was given.

    Raises:
        Refused: the file cannot be read, or says what no option takes.
    """
    if not values.config:
        return
    known = {
        name: each
        for each in (*values.spec.fields, _JSON)
        for name in (each.name, *(old[2:].replace("-", "_") for old in each.old_options))
        if each.name != "config"
    }
    for name, value in _content(values.config).items():
        field = known.get(name.replace("-", "_"))
        if field is None:
            options = ", ".join(sorted(known))
            raise Refused(f"{values.config}: {name}: unknown option (options: {options})")
        read = _read(field, value, f"{values.config}: {name}")
        if field.name not in values.said:
            setattr(values, field.name, read)
        elif field.kind is Kind.LIST:
            setattr(values, field.name, [*read, *getattr(values, field.name)])


_JSON = Field("json", kind=Kind.FLAG)


def _content(path: str) -> dict[str, Any]:
    import tomllib

    from acp_core.files.reading import Unreadable, read_bounded

    try:
        return tomllib.loads(read_bounded(path, _LARGEST).decode())
    except Unreadable as error:
        raise Refused(f"{path}: {error.reason}") from None
    except (ValueError, RecursionError) as error:
        raise Refused(f"{path}: not TOML: {error}") from None


def _read(field: Field, value: Any, where: str) -> Any:
    """The value of a field that a file gives; one of a list may stand alone."""
    reader = _READERS.get(field.name)
    if reader:
        return reader(value, where)
    several = field.kind is Kind.LIST
    each = value if several and isinstance(value, list) else [value]
    types = _TYPES.get(field.kind, (str,))
    if any(type(one) not in types for one in each):
        raise Refused(f"{where}: must be {_NEEDED.get(field.kind, 'a text in quotes')}")
    if field.choices and value not in field.choices:
        raise Refused(f"{where}: {value!r} is not one of {', '.join(field.choices)}")
    if several:
        return each
    try:
        return seconds(str(value)) if field.kind is Kind.DURATION else value
    except ValueError as error:
        raise Refused(f"{where}: {error}") from None


def run_relay(values: Values) -> int:
    """Run a relay until it is interrupted; the exit code.

    Raises:
        Refused: it cannot be started.
    """
    need_libraries()
    check_host(values.host)
    key = network_links.take_secret("key", values.key, values.key_file, network_links.RELAY_KEY)
    if not is_loopback(values.host) and not key:
        raise Refused("--key-file is required if other machines can reach the relay")
    import uvicorn

    from acp_core.protocols.wire.network import client as client_module
    from acp_core.protocols.wire.network.links import loopback_or
    from acp_core.protocols.wire.serving.process import bind, more_files
    from acp_core.protocols.wire.serving.relay import Relay

    cert, own_key = client_module.check_pair(values.tls_cert, values.tls_key) or (None, None)
    try:
        made = bind(values.host, values.port)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Refused(f"port {values.port}: {reason}") from None
    more_files()
    _say_relay(
        f"{'https' if cert else 'http'}://{authority(loopback_or(values.host), made.getsockname()[1])}",
        values.json,
    )
    config = uvicorn.Config(
        Relay(key).application(), ssl_certfile=cert, ssl_keyfile=own_key,
        http="h11", ws="none", lifespan="off", log_config=None, access_log=False,
        server_header=False, timeout_keep_alive=60, timeout_graceful_shutdown=1,
    )  # fmt: skip
    interrupts.run_loop(lambda: uvicorn.Server(config).serve(sockets=[made]))
    return 0


def _say_relay(url: str, as_json: bool) -> None:
    """Say where it is: the socket listens already, and who comes from now on is served."""
    if as_json:
        say_json({"schema": SCHEMA, "command": "relay", "url": url})
    else:
        say(f"the relay is ready: {url}")
    sys.stdout.flush()


def run_bridge(values: Values) -> int:
    """Serve the collaboration; the exit code.

    Raises:
        Refused: there is none, or it cannot be served.
    """
    need_libraries()
    allowed: list[Allowed] = []
    config = _bridge_config(values, allowed.extend)

    def ready(about: Running) -> None:
        if values.json:
            acts = [each._asdict() for each in allowed]
            say_json({"schema": SCHEMA, "command": "bridge", **about._asdict(), "allowed": acts})
        else:
            say(f"{about.name} is served: {about.http_url}")
            say(f"to view it on another machine: {about.shown_by}")
            for line in (*_say_allowed(allowed), *say_where(about, values.host)):
                say(line)
        sys.stdout.flush()

    return serve(config, ready)


def _say_allowed(allowed: list[Allowed]) -> list[str]:
    """What who has the link can do, for the owner to read."""
    may = "who has the link can read everything in the folder, and ask for"
    if not allowed:
        return [f"{may} nothing"]
    acts = [
        f"  {each.name}: {each.note or ', '.join(each.inputs) or 'without inputs'}"
        for each in allowed
    ]
    own = "programs, commands, folders, permissions, budgets and models stay yours to choose"
    return [f"{may}:", *acts, own]


def _bridge_config(values: Values, tell: Callable[[list[Allowed]], object]) -> Config:
    from acp_core.protocols.wire.bridge import KEPT, TAKEN, BridgeSetup
    from acp_core.protocols.wire.conduct.agent import Config, Limits
    from acp_core.protocols.wire.network import client as client_module

    folder = os.path.abspath(values.folder)
    found = identify(values.folder, installed())
    if found is None:
        raise Refused(f"{values.folder}: no collaboration")
    name = values.name or _named(folder)
    if not is_name(name):
        raise Refused("--name: must be 1 to 64 printable characters")
    check_host(values.host)
    return Config(
        name=name,
        description=f"{found.protocol.title}: {os.path.basename(folder)}"[:200],
        host=values.host,
        port=values.port,
        http_port=values.http_port,
        hosts=tuple(values.allow_host),
        tls=client_module.check_pair(values.tls_cert, values.tls_key),
        bridge=BridgeSetup(folder, handed_in(WATCH), frozenset(values.allow), tell),
        retention=KEPT,
        limits=Limits(message=TAKEN),
    )


def _named(folder: str) -> str:
    plain = "".join(sign for sign in os.path.basename(folder) if sign.isprintable()).strip()
    digest = hashlib.sha256(folder.encode(errors="surrogateescape")).hexdigest()[:4]
    return f"{plain[:50] or 'folder'} bridge {digest}"
