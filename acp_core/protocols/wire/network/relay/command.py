"""``acp relay``: a relay of one's own."""

from __future__ import annotations

import sys

from acp_core.files import interrupts
from acp_core.model.errors import Refused
from acp_core.protocols.kit.command_line import say, say_json
from acp_core.protocols.kit.values import Values
from acp_core.protocols.wire.actions.names import SCHEMA
from acp_core.protocols.wire.network import secrets
from acp_core.protocols.wire.network.libraries import need_libraries
from acp_core.protocols.wire.network.links import authority, check_host, is_loopback


def run(values: Values) -> int:
    """Run a relay until it is interrupted; the exit code.

    Raises:
        Refused: it cannot be started.
    """
    need_libraries()
    check_host(values.host)
    key = secrets.take("key", values.key, values.key_file, secrets.RELAY_KEY)
    if not is_loopback(values.host) and not key:
        raise Refused("--key-file is required if other machines can reach the relay")
    import uvicorn

    from acp_core.protocols.wire.conduct.agent.sockets import bind, more_files, reachable
    from acp_core.protocols.wire.network import trust
    from acp_core.protocols.wire.network.relay.app import Relay

    cert, own_key = trust.check_pair(values.tls_cert, values.tls_key) or (None, None)
    try:
        made = bind(values.host, values.port)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise Refused(f"port {values.port}: {reason}") from None
    more_files()
    _say(
        f"{'https' if cert else 'http'}://{authority(reachable(values.host), made.getsockname()[1])}",
        values.json,
    )
    config = uvicorn.Config(
        Relay(key).application(), ssl_certfile=cert, ssl_keyfile=own_key,
        http="h11", ws="none", lifespan="off", log_config=None, access_log=False,
        server_header=False, timeout_keep_alive=60, timeout_graceful_shutdown=1,
    )  # fmt: skip
    interrupts.run_loop(lambda: uvicorn.Server(config).serve(sockets=[made]))
    return 0


def _say(url: str, as_json: bool) -> None:
    """Say where it is: the socket listens already, and who comes from now on is served."""
    if as_json:
        say_json({"schema": SCHEMA, "command": "relay", "url": url})
    else:
        say(f"the relay is ready: {url}")
    sys.stdout.flush()
