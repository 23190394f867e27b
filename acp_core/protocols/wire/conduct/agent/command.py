"""``acp agent``: an agent that others can reach, until it is interrupted."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from acp_core.model.errors import InvalidInput, NetworkError, NotStarted, Refused, Unusable
from acp_core.model.text import clean_line
from acp_core.protocols.kit.command_line import warn
from acp_core.protocols.kit.values import Values, require
from acp_core.protocols.wire.actions.names import SCHEMA
from acp_core.protocols.wire.conduct.agent import option_file
from acp_core.protocols.wire.conduct.agent.sockets import EVERYWHERE, outward
from acp_core.protocols.wire.network import secrets
from acp_core.protocols.wire.network.libraries import need_libraries
from acp_core.protocols.wire.network.links import (
    check_host,
    check_interface,
    is_loopback,
    parse,
)
from acp_core.protocols.wire.schema import Refusal, is_name

if TYPE_CHECKING:
    from acp_core.protocols.wire.conduct.agent.config import Config
    from acp_core.protocols.wire.conduct.agent.place import Running
    from acp_core.protocols.wire.conduct.answering.setup import Setup


def run(values: Values) -> int:
    """Run an agent; the exit code.

    Raises:
        Refused: it cannot be started.
    """
    option_file.fill_in(values)
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
    from acp_core.protocols.wire.network import trust

    trust.also(values.ca)


def _config(values: Values) -> Config:
    from acp_core.protocols.wire.conduct.agent.config import Config
    from acp_core.protocols.wire.network import trust
    from acp_core.protocols.wire.schema.skills import from_file

    return Config(
        name=values.name,
        description=values.description,
        skills=from_file(values.skills, "--skills"),
        host=values.host,
        port=values.port,
        http_port=values.http_port,
        tcp_port=values.tcp_port,
        relay=values.relay,
        relay_key=secrets.take(
            "relay-key", values.relay_key, values.relay_key_file, secrets.RELAY_KEY
        ),
        advertise=values.advertise_mdns or values.advertise_token,
        advertise_token=values.advertise_token,
        interface=values.mdns_interface,
        stdio=values.stdio,
        children=tuple(map(_words, values.run_peer)),
        secret=secrets.take("secret", values.secret, values.secret_file, secrets.SECRET),
        identity=values.identity,
        join=tuple(values.join),
        hosts=tuple(values.allow_host),
        open_loopback=values.open_loopback,
        tls=trust.check_pair(values.tls_cert, values.tls_key),
        webhook_hosts=tuple(values.webhook_host),
        on_message=_answering(values),
        sync=values.sync,
    )


def _answering(values: Values) -> Setup | None:
    """The program that answers, where one is asked for."""
    from dataclasses import replace

    from acp_core.protocols.wire.conduct.answering.setup import SetupError, choose

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
    if host in EVERYWHERE:
        link = about.link if not about.tls_cert else f"{about.http_url}/{parse(about.link).token}"
        given = link.replace("127.0.0.1", outward() or "ADDRESS", 1)
        lines.append(f"from other machines (insert this machine's name or address): {given}")
    return lines


def serve(config: Config, ready: Callable[[Running], None]) -> int:
    """Run an agent until it is asked to end; the exit code.

    Raises:
        Refused: it cannot be started.
    """
    from acp_core.protocols.wire.conduct.agent import serve as serving

    _log_safely()
    try:
        serving.run(config, ready)
    except (InvalidInput, NetworkError, NotStarted, Refusal, Unusable) as error:
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
