"""Where an agent keeps its own things, and the list of those that run."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from acp_core.files import atomic, modes
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import NotStarted
from acp_core.model.snapshot import Obstacle
from acp_core.model.text import clean_line
from acp_core.person.paths import state_folder
from acp_core.protocols.kit.guard import refusal
from acp_core.protocols.wire.network import links
from acp_core.protocols.wire.schema.basics import Json

_RUNS = "agent.json"

_LARGEST = 1 << 16


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
    modes.private_folder(folder)
    with open(folder / "lock", "a+b", opener=modes.private_opener) as file:
        tries = 20  # who lists the agents that run holds the lock for a moment
        while not _lock(file):
            tries -= 1
            if not tries:
                about = _read(folder / _RUNS)
                other = held_by_another(folder, name, about.pid if about else None)
                raise AgentRunning(refusal((other,)))
            time.sleep(0.02)
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


def running() -> list[Running]:
    """The agents of this user that run now, by name."""
    try:
        folders = sorted(agents_root().iterdir())
    except OSError:
        return []
    found = [running_in(folder) for folder in folders]
    return [each for each in found if each]


def running_in(folder: Path) -> Running | None:
    """The agent that runs in a folder of its own, or None."""
    about = _read(folder / _RUNS)
    fits = about is not None and about.name == unquote(folder.name)
    return about if fits and _is_held(folder) else None


def find_running(name: str) -> Running | None:
    """The agent of this name, if it runs."""
    return next((each for each in running() if each.name == name), None)


def running_at(url: str) -> Running | None:
    """The agent of this user that runs at an HTTP address of this machine, or None."""
    wanted = _web(url)
    return next((each for each in running() if wanted and _web(each.http_url) == wanted), None)


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
    names = ", ".join(each.name for each in running()) or "none"
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
            return not _lock(file)
    except OSError:
        return False


def _lock(file: IO[bytes]) -> bool:
    """Hold the lock as long as the file is open; False where somebody else does."""
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def held_by_another(folder: Path, name: str, pid: int | None) -> Obstacle:
    """Another process uses the store."""
    where, called = clean_line(str(folder), 200), clean_line(repr(name), 80)
    sentence = f"an agent named {called} is already running ({where})"
    cure = f"stop it (kill {pid}), or choose another --name" if pid else "choose another --name"
    return Obstacle("wire-held", sentence, cure, key="obstacle:wire-held")
