"""Where agents are: their own folders, those that run on this machine, and addresses elsewhere.

An agent elsewhere is known by a key without its token: keys are shown, recorded and compared.
Tokens that were given with links are remembered by this process alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from acp_core.files import atomic
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import NotStarted
from acp_core.model.matter import Matter, damage
from acp_core.model.text import clean_line
from acp_core.person.paths import state_folder
from acp_core.protocols.kit.guard import refusal
from acp_core.protocols.wire.network import links
from acp_core.protocols.wire.network.links import TOKEN_VARIABLE, LinkError, authority
from acp_core.protocols.wire.schema import basics
from acp_core.protocols.wire.schema.basics import HTTP_OFFSET, WS_PORT, Json
from acp_core.protocols.wire.schema.bodies import is_web_address

_RUNS = "agent.json"

_LARGEST = 1 << 16

_PAUSE = 0.02  # seconds between two tries

TRIES, TRIES_UNANNOUNCED = 20, 250
"""How often a start tries to get the lock. Who lists the agents that run holds it for a moment,
on a busy machine for longer; an agent that has announced itself keeps it."""


class AgentRunning(NotStarted):
    """An agent of that name runs already; the message is one line."""


class Running(NamedTuple):
    """An agent of this user that runs, as it says itself."""

    name: str
    pid: int
    link: str
    http_url: str
    owner_token: str
    tcp_link: str = ""
    relay_link: str = ""
    tls_cert: str = ""

    @property
    def shown_by(self) -> str:
        """The command that opens it on another machine: by its link, where HTTP is where a link
        has it looked for, else by its HTTP address."""
        link = links.parse(self.link)
        if link.http == self.http_url:
            return f"acp {self.link}"
        return f"{links.TOKEN_VARIABLE}={link.token} acp {self.http_url}"


def folder_of(name: str) -> Path:
    """The folder of the agent of this name; it need not exist."""
    plain = quote(name, safe="")
    return agents_root() / (plain.replace(".", "%2E") if not plain.strip(".") else plain)


@contextlib.contextmanager
def claimed(name: str) -> Iterator[Path]:
    """The folder of an agent, held by this process alone.

    Raises:
        AgentRunning: another process holds it.
        OSError: it cannot be made.
    """
    folder = folder_of(name)
    atomic.private_folder(folder)
    with open(folder / "lock", "a+b", opener=atomic.private_opener) as file:
        tries = 0
        while not _lock_file(file):
            tries += 1
            about = _read(folder / _RUNS)
            announced = about is not None and _may_live(about.pid)
            if tries >= (TRIES if announced else TRIES_UNANNOUNCED):
                other = held_by_another(folder, name, about.pid if about else None)
                raise AgentRunning(refusal((other,)))
            time.sleep(_PAUSE)
        _no_longer(folder)  # one that was killed left it behind
        try:
            yield folder
        finally:
            _no_longer(folder)


def _no_longer(folder: Path) -> None:
    with contextlib.suppress(OSError):
        os.unlink(folder / _RUNS)


def announce_running(folder: Path, running: Running) -> None:
    """Put an agent into the list; its owner alone can read that."""
    before = os.umask(0o077)
    try:
        atomic.replace(folder / _RUNS, json.dumps(running._asdict()).encode(), sync=False)
    finally:
        os.umask(before)


def running_agents() -> list[Running]:
    """The agents of this user that run now, by name."""
    try:
        folders = sorted(agents_root().iterdir())
    except OSError:
        return []
    found = [running_in(folder) for folder in folders]
    return [each for each in found if each]


def running_in(folder: Path) -> Running | None:
    """The agent that runs in a folder of its own, or None."""
    for _ in range(3):
        about = _read(folder / _RUNS)
        if about is None or about.name != unquote(folder.name) or not _is_held(folder):
            return None
        if _may_live(about.pid):
            return about
        time.sleep(_PAUSE)  # killed: who holds the lock now takes this announcement away
    return about  # its process is of another machine's or container's numbers


def find_running(name: str) -> Running | None:
    """The agent of this name, if it runs."""
    return next((each for each in running_agents() if each.name == name), None)


def running_at(url: str) -> Running | None:
    """The agent of this user that runs at an HTTP address of this machine, or None."""
    wanted = _web(url)
    return next(
        (each for each in running_agents() if wanted and _web(each.http_url) == wanted), None
    )


def _web(url: str) -> tuple[str, str, int | None] | None:
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").lower()
        port = parts.port
    except ValueError:
        return None
    if parts.path.strip("/"):
        return None
    return parts.scheme, "" if links.is_loopback(host) else host, port


def no_such_agent(name: str) -> str:
    """That no agent of this name runs, and which do, in a line."""
    names = ", ".join(each.name for each in running_agents()) or "none"
    return f"no running agent {name} (running: {names})"


def agents_root() -> Path:
    """The folder in which all agents of this user keep their own; it need not exist."""
    return state_folder() / "wire"


def _read(path: Path) -> Running | None:
    try:
        fields: Json = json.loads(read_bounded(path, _LARGEST))
        made = Running(**fields)
    except (Unreadable, ValueError, TypeError, RecursionError):
        return None
    texts = (text for name, text in made._asdict().items() if name != "pid")
    fine = all(isinstance(text, str) for text in texts) and isinstance(made.pid, int)
    return made if fine else None


def _is_held(folder: Path) -> bool:
    try:
        with open(folder / "lock", "rb") as file:
            return not _lock_file(file, shared=True)  # several may look at the same time
    except OSError:
        return False


def _may_live(pid: int) -> bool:
    """Whether a process of this number may be there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True


def _lock_file(file: IO[bytes], *, shared: bool = False) -> bool:
    """Hold the lock as long as the file is open; False where somebody else does."""
    import fcntl

    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def held_by_another(folder: Path, name: str, pid: int | None) -> Matter:
    """Another process uses the store."""
    where, called = clean_line(str(folder), 200), clean_line(repr(name), 80)
    sentence = f"an agent named {called} is already running ({where})"
    cure = f"stop it (kill {pid}), or choose another --name" if pid else "choose another --name"
    return damage("wire-held", sentence, cure, key="obstacle:wire-held")


SCHEMES = ("acp", "http", "https")

_PORTS = {"http": 80, "https": 443}

_NEEDED = "expected acp://HOST:PORT/TOKEN or http://HOST:PORT"

_tokens_lock = threading.Lock()

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
    address = parse_address(text)
    token = os.environ.get(TOKEN_VARIABLE, "") if given is None else given
    if token and not links.is_token(token):
        where = TOKEN_VARIABLE if given is None else "the token"
        raise LinkError(f"{where} must consist of letters, digits and _-.~")
    with _tokens_lock:
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
        return agent if "/" in agent else str(folder_of(agent))
    address = parse_address(agent)
    here = next((each for each in running_agents() if _is_there(each, address)), None)
    return str(folder_of(here.name)) if here else address.key


def parse_address(text: str) -> Address:
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


def ways_to(address: Address) -> Iterable[Way]:
    """The ways to reach it, the one with most rights first. Reads the list of those that run."""
    with _tokens_lock:
        tokens = _tokens.get(address.key, ())
    for running in running_agents():
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


def _is_there(running: Running, address: Address) -> bool:
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


def running_keys_and_folders() -> tuple[tuple[str, ...], frozenset[Path]]:
    """The folders of those that run, and the folders in which one may begin to."""
    root = agents_root()
    found: list[tuple[float, Path]] = []
    with contextlib.suppress(OSError), os.scandir(root) as entries:
        for each in entries:
            with contextlib.suppress(OSError):
                if each.is_dir(follow_symlinks=False):
                    found.append((each.stat().st_mtime, Path(each.path)))
    listened = [path for _, path in sorted(found, reverse=True)[:_LISTENED]]
    keys = tuple(str(path) for path in listened if running_in(path))
    return keys, frozenset({root, *listened})
