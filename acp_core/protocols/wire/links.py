"""Links by which agents are reached: ``acp://host:port/token``, ``tcp://`` and plain HTTP."""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple
from urllib.parse import urlsplit

from acp_core.protocols.wire.schema import HTTP_OFFSET, WS_PORT

SCHEMES = ("acp", "tcp")
_TOKEN = re.compile(r"[A-Za-z0-9_\-.~]{1,128}")
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.\-_]{0,251}[A-Za-z0-9])?")


class LinkError(ValueError):
    """The text is no link; the message is one line that says why."""


class Link(NamedTuple):
    """Where an agent listens, and the token that it asks for."""

    scheme: str
    host: str
    port: int
    token: str

    def __str__(self) -> str:
        return f"{self.scheme}://{authority(self.host, self.port)}/{self.token}"

    @property
    def websocket(self) -> str:
        """The address of its WebSocket."""
        return f"ws://{authority(self.host, self.port)}/{self.token}"

    @property
    def http(self) -> str:
        """The address of its HTTP interface, where that is at its usual place."""
        return f"http://{authority(self.host, self.port + HTTP_OFFSET)}"

    @property
    def safe(self) -> str:
        """The link without its token: for logs and messages."""
        return f"{self.scheme}://{authority(self.host, self.port)}/…"


def authority(host: str, port: int) -> str:
    """``host:port``, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse(text: str) -> Link:
    """The link that ``text`` spells.

    Raises:
        LinkError: it is none; the message never repeats a token.
    """
    if len(text) > 512 or not text.isascii() or not text.isprintable() or " " in text:
        raise LinkError("a link is acp://host:port/token, in plain letters")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise LinkError("the link's host or port cannot be read") from None
    if parts.scheme not in SCHEMES:
        raise LinkError("a link starts with acp:// or tcp://")
    host = parts.hostname or ""
    if not is_host(host):
        raise LinkError("the link names no host")
    if parts.username is not None or parts.query or parts.fragment:
        raise LinkError("a link has no user, query or fragment")
    if port is None and parts.scheme == "tcp":
        raise LinkError("a tcp:// link needs a port")
    if port == 0:
        raise LinkError("the link's port is 0")
    token = parts.path.strip("/")
    if not _TOKEN.fullmatch(token):
        raise LinkError("the link has no token after the port, or one of other signs")
    return Link(parts.scheme, host, port or WS_PORT, token)


def is_host(host: str) -> bool:
    """Whether ``host`` is a name or an address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return _HOST.fullmatch(host) is not None
    return True


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach ``host``."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_token(text: str) -> bool:
    """Whether ``text`` can stand as the token of a link."""
    return _TOKEN.fullmatch(text) is not None
