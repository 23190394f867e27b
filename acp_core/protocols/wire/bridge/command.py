"""``acp bridge``: a collaboration in a folder, to be seen from another machine."""

from __future__ import annotations

import hashlib
import os
import sys
from typing import TYPE_CHECKING

from acp_core.model.errors import Refused
from acp_core.protocols.discovery import identify
from acp_core.protocols.kit.command_line import say, say_json
from acp_core.protocols.kit.values import Values
from acp_core.protocols.registry import WATCH, handed_in, installed
from acp_core.protocols.wire.network.links import check_host, need_libraries
from acp_core.protocols.wire.schema.basics import SCHEMA, is_name
from acp_core.protocols.wire.serving import command

if TYPE_CHECKING:
    from collections.abc import Callable

    from acp_core.protocols.wire.bridge.serving import Allowed
    from acp_core.protocols.wire.conduct.agent import Config
    from acp_core.protocols.wire.network.agent_directory import Running


def run(values: Values) -> int:
    """Serve the collaboration; the exit code.

    Raises:
        Refused: there is none, or it cannot be served.
    """
    need_libraries()
    allowed: list[Allowed] = []
    config = _config(values, allowed.extend)

    def ready(about: Running) -> None:
        if values.json:
            acts = [each._asdict() for each in allowed]
            say_json({"schema": SCHEMA, "command": "bridge", **about._asdict(), "allowed": acts})
        else:
            say(f"{about.name} is served: {about.http_url}")
            say(f"to view it on another machine: {about.shown_by}")
            for line in (*_say_allowed(allowed), *command.say_where(about, values.host)):
                say(line)
        sys.stdout.flush()

    return command.serve(config, ready)


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


def _config(values: Values, tell: Callable[[list[Allowed]], object]) -> Config:
    from acp_core.protocols.wire.bridge.serving import KEPT, TAKEN, BridgeSetup
    from acp_core.protocols.wire.conduct.agent import Config, Limits
    from acp_core.protocols.wire.network import trust

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
        tls=trust.check_pair(values.tls_cert, values.tls_key),
        bridge=BridgeSetup(folder, handed_in(WATCH), frozenset(values.allow), tell),
        retention=KEPT,
        limits=Limits(message=TAKEN),
    )


def _named(folder: str) -> str:
    plain = "".join(sign for sign in os.path.basename(folder) if sign.isprintable()).strip()
    digest = hashlib.sha256(folder.encode(errors="surrogateescape")).hexdigest()[:4]
    return f"{plain[:50] or 'folder'} bridge {digest}"
