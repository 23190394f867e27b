"""``acp relay``: a relay of one's own."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from acp_core.model.errors import CommandError
from acp_core.protocols.wire.network import secrets

PORT = 7700


def relay_parser() -> argparse.ArgumentParser:
    """The parser of ``acp relay``."""
    parser = argparse.ArgumentParser(
        prog="acp relay",
        description="Let agents meet that cannot reach each other (ACP v0.8, binding C), until"
        " interrupted. Nothing is kept: what is on its way waits at its sender.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="where it listens (this machine alone)")
    parser.add_argument("--port", type=int, default=PORT, help="(%(default)s; 0: any)")
    secrets.add_option(parser, "key", secrets.RELAY_KEY, "who opens a room has to show it")
    parser.add_argument("--json", action="store_true", help="say where it listens as JSON")
    return parser


def relay(arguments: Sequence[str]) -> int:
    """Run ``acp relay``; returns the exit code."""
    from acp_core.protocols.wire.commands.agent import need_libraries
    from acp_core.protocols.wire.network.links import is_host, is_loopback

    given = relay_parser().parse_args(list(arguments))
    need_libraries()
    if not is_host(given.host):
        raise CommandError(f"--host: no name and no address: {given.host}")
    if not 0 <= given.port < 65536:
        raise CommandError("--port: 0 to 65535 is needed")
    key = secrets.take("key", given.key, given.key_file, secrets.RELAY_KEY)
    if not is_loopback(given.host) and not key:
        raise CommandError("--key-file: it is needed where others can reach the relay")
    import uvicorn

    from acp_core.protocols.wire.conduct.agent.sockets import bind, more_files, shown
    from acp_core.protocols.wire.network.links import authority
    from acp_core.protocols.wire.network.relay.app import Relay

    try:
        made = bind(given.host, given.port)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CommandError(f"port {given.port}: {reason}") from None
    more_files()
    url = f"http://{authority(shown(given.host), made.getsockname()[1])}"
    # The socket listens already: who comes from now on is served.
    print(json.dumps({"url": url}) if given.json else f"the relay is ready: {url}", flush=True)
    config = uvicorn.Config(
        Relay(key).application(),
        http="h11", ws="none", lifespan="off", log_config=None, access_log=False,
        server_header=False, timeout_keep_alive=60, timeout_graceful_shutdown=1,
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[made])
    return 0
