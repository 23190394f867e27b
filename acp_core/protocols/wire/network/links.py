"""Links by which agents are reached, and the secrets that commands are given with them.

Links are ``acp://host:port/token``, ``tcp://``, ``http://``, and those of a relay. What stands in a
command's words is seen by everybody on the machine who lists the processes: secrets are taken from
files or the environment as well.
"""

from __future__ import annotations

import contextlib
import importlib.util
import ipaddress
import os
import re
import socket
import stat
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from acp_core.model.action_field import Field, Kind
from acp_core.model.errors import InvalidInput, Refused
from acp_core.protocols.kit.command_line import warn
from acp_core.protocols.wire.schema.basics import HTTP_OFFSET, WS_PORT, is_host

SCHEMES = ("acp", "tcp")

RELAYS = ("acp+wss", "acp+ws")  # over HTTPS and over HTTP

WEB = {"http": 80, "https": 443}  # over HTTP alone, and the usual port

_TOKEN = re.compile(r"[A-Za-z0-9_\-.~]{1,128}")

_WITH_TOKEN = re.compile(r"https?://[^/?#]+/tok_[A-Za-z0-9_\-.~]{1,124}/?", re.IGNORECASE)

TOKEN_VARIABLE = "ACP_WIRE_TOKEN"
"""The environment variable with what opens a link that is given as an argument."""


class LinkError(InvalidInput, ValueError):
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


class RelayLink(NamedTuple):
    """A room of a relay: ``http`` is the relay's address, without the room."""

    scheme: str
    host: str
    port: int | None
    token: str

    def __str__(self) -> str:
        return f"{self._place}/acp/{self.token}"

    @property
    def http(self) -> str:
        """The relay's HTTP address."""
        scheme = "https" if self.scheme == "acp+wss" else "http"
        return f"{scheme}:{self._place.partition(':')[2]}"

    @property
    def safe(self) -> str:
        """The link without its token: for logs and messages."""
        return f"{self._place}/acp/…"

    @property
    def _place(self) -> str:
        return f"{self.scheme}://{authority(self.host, self.port)}"


class HttpLink(NamedTuple):
    """Where an agent is reached over HTTP alone, and the token that it asks for."""

    scheme: str
    host: str
    port: int
    token: str

    def __str__(self) -> str:
        return f"{self.http}/{self.token}"

    @property
    def http(self) -> str:
        """The address of its HTTP interface."""
        return f"{self.scheme}://{authority(self.host, self.port)}"

    @property
    def safe(self) -> str:
        """The link without its token: for logs and messages."""
        return f"{self.http}/…"


AnyLink = Link | RelayLink | HttpLink


def authority(host: str, port: int | None) -> str:
    """``host:port``, with brackets around an IPv6 address; the host alone without a port."""
    shown = f"[{host}]" if ":" in host else host
    return shown if port is None else f"{shown}:{port}"


def parse(text: str) -> Link:
    """The link that ``text`` spells, which leads to an agent itself.

    Raises:
        LinkError: it is none; the message never repeats a token.
    """
    link = parse_any(text)
    if isinstance(link, RelayLink):
        raise LinkError("this link belongs to a relay: only an agent can use it (--join)")
    if isinstance(link, HttpLink):
        raise LinkError("this link is for an agent (--join); other programs use http://host:port")
    return link


def has_token(text: str) -> bool:
    """Whether an HTTP address is a link: with a token behind it, as agents make them."""
    return _WITH_TOKEN.fullmatch(text) is not None


def parse_any(text: str) -> AnyLink:
    """The link that ``text`` spells, to an agent or to a room of a relay.

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
    if parts.scheme not in (*SCHEMES, *RELAYS, *WEB):
        raise LinkError("a link starts with acp://, tcp://, http:// or acp+wss://")
    host = parts.hostname or ""
    if not is_host(host):
        raise LinkError("the link names no host")
    if parts.username is not None or parts.query or parts.fragment:
        raise LinkError("a link has no user, query or fragment")
    if parts.scheme in RELAYS:
        room = re.fullmatch(r"/acp/([A-Za-z0-9_-]{6,64})/?", parts.path)
        if port == 0 or room is None:
            raise LinkError("a relay's link is acp+wss://relay/acp/token")
        return RelayLink(parts.scheme, host, port, room[1])
    if port is None and parts.scheme == "tcp":
        raise LinkError("a tcp:// link needs a port")
    if port == 0:
        raise LinkError("the link's port is 0")
    token = parts.path.strip("/")
    if not _TOKEN.fullmatch(token):
        raise LinkError("the link has no token after the port, or an invalid one")
    if parts.scheme in WEB:
        return HttpLink(parts.scheme, host, port or WEB[parts.scheme], token)
    return Link(parts.scheme, host, port or WS_PORT, token)


def relay_at(address: str, token: str) -> RelayLink:
    """The link of a room at the relay of an HTTP address.

    Raises:
        LinkError: the address is none.
    """
    scheme, colon, rest = address.rstrip("/").partition("://")
    schemes = {"https": "acp+wss", "http": "acp+ws"}
    if not colon or scheme not in schemes or "/" in rest:
        raise LinkError("a relay's address is https://HOST or http://HOST:PORT")
    link = parse_any(f"{schemes[scheme]}://{rest}/acp/{token}")
    assert isinstance(link, RelayLink)
    return link


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


def check_host(host: str) -> None:
    """See to it that somebody can listen at a host.

    Raises:
        Refused: it is no name and no address.
    """
    if not is_host(host):
        raise Refused(f"--host: not a name or an address: {host}")


def check_interface(option: str, address: str) -> None:
    """See to it that an interface is named by its address; "" names the usual one.

    Raises:
        Refused: it is not.
    """
    from ipaddress import AddressValueError, IPv4Address

    try:
        IPv4Address(address or "0.0.0.0")
    except AddressValueError:
        raise Refused(f"{option}: must be an IPv4 address: {address}") from None


NEEDED = ("starlette", "uvicorn", "websockets", "httpx", "cryptography")


def need_libraries() -> None:
    """Say in one line what has to be installed, where something is missing.

    Raises:
        Refused: something is.
    """
    lacking = missing()
    if lacking:
        names = ", ".join(lacking)
        raise Refused(f"{names} is missing here: pip install 'acp-tui[wire]' installs it")


def missing() -> list[str]:
    """The libraries of the extra ``wire`` that are not installed."""
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


SECRET = "ACP_WIRE_SECRET"

RELAY_KEY = "ACP_RELAY_KEY"

_LARGEST_SECRET_FILE = 1 << 16


def secret_fields(name: str, variable: str, help: str) -> tuple[Field, Field]:
    """The inputs of a command that takes a secret in its words, in a file, or in a variable."""
    key = Field(name, metavar="KEY", optional=True)
    file = Field(f"{name}_file", help=f"Read what {key.option} says from this file.",
                 kind=Kind.FILE, optional=True)  # fmt: skip
    return key._replace(help=f"{help} {warning_of(variable, file.option)}"), file


def warning_of(variable: str, option: str = "") -> str:
    """What is said of an option that takes a secret, and what to use in its place."""
    others = f"{option}, or {variable}" if option else variable
    return f"Others on this machine see it: prefer {others} in the environment."


def take_secret(option: str, value: str | None, file: str | None, variable: str) -> str | None:
    """The secret that was given, or None.

    The variable counts where neither of the options is there. It is taken out of the
    environment, so that no program that is started from here gets it.

    Raises:
        Refused: it is given twice, is empty, or its file cannot be read.
    """
    kept = os.environ.pop(variable, "")
    if value is not None and file is not None:
        raise Refused(f"give either --{option} or --{option}-file")
    if file is not None:
        return _read_secret(f"--{option}-file", Path(file).expanduser())
    if value == "":
        raise Refused(f"--{option}: it is empty")
    return value if value is not None else (kept or None)


def _read_secret(option: str, path: Path) -> str:
    from acp_core.files.reading import Unreadable, read_bounded

    try:
        text = read_bounded(path, _LARGEST_SECRET_FILE).decode()
    except Unreadable as error:
        raise Refused(f"{option}: {path}: {error.reason}") from None
    except UnicodeDecodeError:
        raise Refused(f"{option}: {path}: no text in UTF-8") from None
    found = text.rstrip("\r\n")
    if not found:
        raise Refused(f"{option}: {path}: it is empty")
    if path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        warn(f"{path} can be read by others: fix it with chmod 600")
    return found


ALL_INTERFACES = ("0.0.0.0", "::")


def loopback_or(host: str) -> str:
    """The address by which this machine itself reaches what listens at ``host``."""
    return "127.0.0.1" if host in ALL_INTERFACES else host


def outward_address() -> str:
    """The address of this machine in the network that leads furthest; "" where there is none.

    It is asked of the system, and nothing is sent.
    """
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.connect(("192.0.2.1", 9))
        return str(asked.getsockname()[0])
    return ""
