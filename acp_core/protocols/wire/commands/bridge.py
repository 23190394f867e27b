"""``acp bridge``: a collaboration in a folder, to be seen from another machine."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from acp_core.model.errors import CommandError

if TYPE_CHECKING:
    from acp_core.protocols.wire.conduct.agent.place import Running


def bridge_parser() -> argparse.ArgumentParser:
    """The parser of ``acp bridge``."""
    parser = argparse.ArgumentParser(
        prog="acp bridge",
        description="Serve the collaboration in a folder as an ACP agent, until interrupted: whoever"
        " has the link sees it live (acp LINK), and can do nothing that --allow does not name.",
    )
    parser.add_argument("folder", help="the collaboration's folder")
    parser.add_argument("--name", help="what the agent is called (after the folder)")
    parser.add_argument("--host", default="127.0.0.1", help="where it listens (this machine alone);"
                        " elsewhere the link's token is asked for")  # fmt: skip
    parser.add_argument("--port", type=int, help="for peers (7801, or as last time; 0: any)")
    parser.add_argument("--http-port", type=int, help="for HTTP (100 above the other)")
    parser.add_argument("--allow-host", action="append", default=[], metavar="NAME",
                        help="a further name under which it is asked for")  # fmt: skip
    parser.add_argument("--allow", action="append", default=[], metavar="ACTION",
                        help="others may do this (acp act FOLDER lists what there is)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="say where it listens as JSON")
    return parser


def bridge(arguments: Sequence[str]) -> int:
    """Run ``acp bridge``; returns the exit code."""
    from acp_core.protocols.wire.commands import agent

    given = bridge_parser().parse_args(list(arguments))
    agent.need_libraries()
    from acp_core.protocols.discovery import identify
    from acp_core.protocols.registry import WATCH, handed_in, installed
    from acp_core.protocols.wire.bridge.setup import KEPT, TAKEN, BridgeSetup
    from acp_core.protocols.wire.conduct.agent.config import Config, Limits
    from acp_core.protocols.wire.schema import is_name

    folder = os.path.abspath(given.folder)
    found = identify(given.folder, installed())
    if found is None:
        raise CommandError(f"{given.folder}: no collaboration")
    name = given.name or _named(folder)
    if not is_name(name):
        raise CommandError("--name: 1 to 64 printable characters are needed")
    agent.check_place(given)
    config = Config(
        name=name,
        description=f"{found.protocol.title}: {os.path.basename(folder)}"[:200],
        host=given.host,
        port=given.port,
        http_port=given.http_port,
        hosts=tuple(given.allow_host),
        bridge=BridgeSetup(folder, handed_in(WATCH), frozenset(given.allow)),
        retention=KEPT,
        limits=Limits(message=TAKEN),
    )

    def ready(about: Running) -> None:
        if given.json:
            print(json.dumps(about._asdict()), flush=True)
            return
        from acp_core.cli.output import say

        say(
            f"{about.name} is served: {about.http_url}\nto see it elsewhere: {about.shown_by}",
            now=True,
        )

    return agent.run(config, ready)


def _named(folder: str) -> str:
    kept = "".join(sign for sign in os.path.basename(folder) if sign.isprintable()).strip()
    digest = hashlib.sha256(folder.encode(errors="surrogateescape")).hexdigest()[:4]
    return f"{kept[:50] or 'folder'} bridge {digest}"
