"""Where an agent elsewhere is: its address, its name for us, and the tokens that may open it.

A token never stands in a key: keys are shown, recorded and compared. What was given with a link
is remembered by this process alone.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from acp_core.protocols.wire.network import agent_directory, links
from acp_core.protocols.wire.network.links import TOKEN_VARIABLE, LinkError, authority
from acp_core.protocols.wire.schema import basics
from acp_core.protocols.wire.schema.basics import HTTP_OFFSET, WS_PORT
from acp_core.protocols.wire.schema.bodies import is_web_address

SCHEMES = ("acp", "http", "https")

_PORTS = {"http": 80, "https": 443}

_NEEDED = "expected acp://HOST:PORT/TOKEN or http://HOST:PORT"

_lock = threading.Lock()

_tokens: dict[str, tuple[str, ...]] = {}


class Address(NamedTuple):
    """Where an agent is. ``key`` names it, without any token."""

    key: str
    url: str
    host: str
    port: int
    token: str | None

    @property
    def name(self) -> str:
        """What it is called before it has said its name."""
        return authority(self.host, self.port)


class Way(NamedTuple):
    """One try to reach it."""

    url: str
    token: str | None


def locate(text: str, given: str | None = None) -> str:
    """The key of the agent at a link or an HTTP address; what opens it is remembered.

    Args:
        text: as a person wrote it.
        given: a token beside it; "" for none; None: that of the environment.

    Raises:
        LinkError: it is none; the message is one line, and never repeats a token.
    """
    address = parse(text)
    token = os.environ.get(TOKEN_VARIABLE, "") if given is None else given
    if token and not links.is_token(token):
        where = TOKEN_VARIABLE if given is None else "the token"
        raise LinkError(f"{where} must consist of letters, digits and _-.~")
    with _lock:
        known = _tokens.get(address.key, ())
        found = [each for each in (token, address.token, *known) if each]
        _tokens[address.key] = tuple(dict.fromkeys(found))
    return address.key


def key_of(agent: str) -> str:
    """What the fleet calls an agent that a command names: the folder of one that is this user's.

    Args:
        agent: its name on this machine, its folder, or where it is.

    Raises:
        LinkError: it is no address; the message is one line, and never repeats a token.
    """
    if "://" not in agent:
        return agent if "/" in agent else str(agent_directory.folder_of(agent))
    address = parse(agent)
    here = next((each for each in agent_directory.running() if _is_there(each, address)), None)
    return str(agent_directory.folder_of(here.name)) if here else address.key


def parse(text: str) -> Address:
    """The address that a text spells, or that a key is.

    Raises:
        LinkError: it is none; the message is one line, and never repeats a token.
    """
    if len(text) > 2048 or not text.isprintable() or any(sign.isspace() for sign in text):
        raise LinkError(_NEEDED)
    scheme = text.partition("://")[0].lower()
    if scheme not in SCHEMES:
        raise LinkError(_NEEDED)
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise LinkError("the link's host or port cannot be read") from None
    if parts.username is not None or parts.query or parts.fragment:
        raise LinkError("a link has no user, query or fragment")
    if port == 0:
        raise LinkError("the link's port is 0")
    host = (parts.hostname or "").lower()
    if scheme == "acp":
        return _of_link(text, host, port or WS_PORT, parts.path.strip("/"))
    if not is_web_address(text):
        raise LinkError(f"the address names no host: {_NEEDED}")
    path, token = parts.path.rstrip("/"), None
    if path.startswith("/tok_") and links.is_token(path[1:]):  # a link for HTTP alone
        path, token = "", path[1:]
    shown = authority(host, port) if port else (f"[{host}]" if ":" in host else host)
    key = f"{scheme}://{shown}{path}"
    return Address(key, key, host, port or _PORTS[scheme], token)


def ways(address: Address) -> Iterable[Way]:
    """The ways to reach it, the one with most rights first. Reads the list of those that run."""
    with _lock:
        tokens = _tokens.get(address.key, ())
    for running in agent_directory.running():
        if _is_there(running, address):
            yield Way(running.http_url, running.owner_token)
    for token in tokens:
        yield Way(address.url, token)
    yield Way(address.url, None)  # one that listens on this machine alone needs none


def _of_link(text: str, host: str, port: int, token: str) -> Address:
    if token:
        links.parse(text)
    elif not basics.is_host(host):
        raise LinkError("the link names no host")
    if port + HTTP_OFFSET > 65535:
        raise LinkError("the link's port leaves no place for HTTP: give http://HOST:PORT")
    web = f"http://{authority(host, port + HTTP_OFFSET)}"
    return Address(f"acp://{authority(host, port)}", web, host, port, token or None)


def _is_there(running: agent_directory.Running, address: Address) -> bool:
    """Whether an agent of this user that runs is the one at an address."""
    try:
        if address.key.startswith("acp://"):
            link = links.parse(running.link)
            same = (link.host.lower(), link.port) == (address.host, address.port)
            return same or (link.port == address.port and _both_here(link.host, address.host))
        there = urlsplit(running.http_url)
        return there.port == address.port and _both_here(there.hostname or "", address.host)
    except ValueError:
        return False


def _both_here(one: str, other: str) -> bool:
    return links.is_loopback(one) and links.is_loopback(other)


_LISTENED = 200  # folders of agents that are listened to, those that changed last


def running() -> tuple[tuple[str, ...], frozenset[Path]]:
    """The folders of those that run, and the folders in which one may begin to."""
    root = agent_directory.agents_root()
    found: list[tuple[float, Path]] = []
    with contextlib.suppress(OSError), os.scandir(root) as entries:
        for each in entries:
            with contextlib.suppress(OSError):
                if each.is_dir(follow_symlinks=False):
                    found.append((each.stat().st_mtime, Path(each.path)))
    listened = [path for _, path in sorted(found, reverse=True)[:_LISTENED]]
    keys = tuple(str(path) for path in listened if agent_directory.running_in(path))
    return keys, frozenset({root, *listened})
