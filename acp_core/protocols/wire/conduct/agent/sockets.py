"""Sockets that listen."""

from __future__ import annotations

import contextlib
import socket

from acp_core.model.errors import NetworkError

EVERYWHERE = ("0.0.0.0", "::")


class CannotListen(NetworkError):
    """No socket can be had; the message is one line."""


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0: at any.

    Raises:
        OSError, OverflowError: it cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, so that asyncio turns off the delay of small packets (40 ms) on each connection.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(2048)
    except BaseException:
        made.close()
        raise
    made.setblocking(False)
    return made


def reachable(host: str) -> str:
    """The address by which this machine itself reaches what listens at ``host``."""
    return "127.0.0.1" if host in EVERYWHERE else host


def outward() -> str:
    """The address of this machine in the network that leads furthest; "" where there is none.

    It is asked of the system, and nothing is sent.
    """
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.connect(("192.0.2.1", 9))
        return str(asked.getsockname()[0])
    return ""


def more_files() -> None:
    """Each stream and connection takes a file: ask for as many as the system gives."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(65536, hard) if hard != resource.RLIM_INFINITY else 65536
    if soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
