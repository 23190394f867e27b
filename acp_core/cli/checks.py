"""The checks of ``acp doctor``. Each looks at one thing and says what to do where it is not well.

In this order: what a check says; folders that several accounts share, stores of shared
collaborations, agents' programs that presets know; then versions, folders, the terminal, how
changes are noticed, and optional parts. Protocols of other distributions: `acp_core.cli.protocol_checks`.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import locale
import os
import platform
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import NamedTuple

from acp_core import __version__
from acp_core.agents import presets, spawn
from acp_core.agents import program as agents_program
from acp_core.agents.live import binding
from acp_core.agents.presets import Preset, PresetError
from acp_core.cli import plain_signs
from acp_core.files import atomic, claims, locked
from acp_core.loops import parking
from acp_core.model.errors import AcpError
from acp_core.model.text import clean_line
from acp_core.person import paths as places
from acp_core.person import settings
from acp_core.person.permissions import Permissions
from acp_core.person.permissions import parse as parse_permissions
from acp_core.person.settings import SettingsError, load
from acp_core.stores.address import (
    POSTGRES,
    Address,
    is_address,
    is_shared,
    parse,
    pinned_address,
    without_password,
)


class State(str, Enum):
    """How a check came out. What is ``OPTIONAL`` is absent, and nothing suffers by it."""

    OK = "ok"
    WARN = "warn"
    MISSING = "missing"
    OPTIONAL = "optional"


class Check(NamedTuple):
    """What was looked at, what was found, and what to do (empty where it is well)."""

    group: str
    name: str
    state: State
    value: str
    advice: str = ""


_SHARING = "Sharing"

_MOST = 2_000  # folders that are looked at
_LEFT_OUT = frozenset({".git", "node_modules", ".venv", "__pycache__"})


@dataclass(frozen=True, slots=True)
class Me:
    """The account that asks.

    Attributes:
        uid: its number.
        name: its name.
        groups: the numbers of its groups, its own first.
    """

    uid: int
    name: str
    groups: tuple[int, ...]

    @staticmethod
    def here() -> Me:
        """The account of this process."""
        uid = claims.uid()
        return Me(uid, claims.account(uid), (os.getgid(), *os.getgroups()))


def sharing(paths: Sequence[str], me: Me | None = None) -> Iterator[Check]:
    """A check for each folder that is shared, or that several accounts use all the same.

    Args:
        paths: the folders.
        me: who asks; by default the account of this process.
    """
    if not hasattr(os, "getgroups"):
        return
    me = me or Me.here()
    for path in paths:
        try:
            found = os.stat(path)
        except OSError:
            continue
        if stat.S_ISDIR(found.st_mode):
            yield from _shared_folder(path, found, me)


def _shared_folder(path: str, found: os.stat_result, me: Me) -> Iterator[Check]:
    others = _others(path, found, me)
    group = atomic.group_name(found.st_gid)
    is_meant = bool(found.st_mode & stat.S_ISGID) or _lets_others_in(found, me)
    if not is_meant and not others:
        return  # one account's own
    who = f"used by {', '.join(others)} too" if others else f"for the group {group}"
    if not atomic.is_shared(found):
        lacks = [
            *([] if found.st_mode & stat.S_IWGRP else ["is not writable by its group"]),
            *([] if found.st_mode & stat.S_ISGID else ["does not pass its group on (setgid)"]),
        ]
        yield Check(_SHARING, path, State.WARN, f"{who}, but {' and '.join(lacks)}", _mend(path))
    elif closed := _closed(path):
        value = f"{who}, but {len(closed)} folders in it are not, such as {closed[0]}"
        yield Check(_SHARING, path, State.WARN, value, _mend(path))
    else:
        yield Check(_SHARING, path, State.OK, f"shared with the group {group}")
    if me.uid != 0 and me.uid != found.st_uid and found.st_gid not in me.groups:
        advice = f"sudo usermod -aG {shlex.quote(group)} {shlex.quote(me.name)}"
        value = f"{me.name} is not in the group {group}"
        yield Check(_SHARING, path, State.WARN, value, f"{advice}; it holds from the next login")


def _lets_others_in(found: os.stat_result, me: Me) -> bool:
    """Whether its group may write, and is more than an account's own group."""
    return bool(found.st_mode & stat.S_IWGRP) and found.st_gid != me.groups[0]


def _others(path: str, found: os.stat_result, me: Me) -> tuple[str, ...]:
    """The other accounts that own it, or took claims in it."""
    seen = [*claims.listed(path, "loops"), claims.seen(path, claims.CONDUCT)]
    uids = {found.st_uid, *(each.owner.uid for each in seen if each.owner)} - {me.uid}
    return tuple(sorted(claims.account(uid) for uid in uids))


def _closed(path: str) -> list[str]:
    """The folders below a shared one that are not shared themselves."""
    found: list[str] = []
    count = 0
    for above, names, _ in os.walk(path):
        names[:] = sorted(name for name in names if name not in _LEFT_OUT)
        for name in names:
            folder = Path(above, name)
            count += 1
            if count > _MOST:
                return found
            with contextlib.suppress(OSError):  # it has just gone
                if not folder.is_symlink() and not atomic.is_shared(folder.stat()):
                    found.append(os.path.relpath(folder, path))
    return found


def _mend(path: str) -> str:
    place = shlex.quote(path)
    return (
        f"as its owner: chmod -R g+rwX {place}; find {place} -type d -exec chmod g+s {{}} +; "
        f"before that, chgrp -R GROUP {place} gives it to another group"
    )


_STORES = "Stores"


def stores(paths: Sequence[str]) -> Iterator[Check]:
    """The checks of each database that is named, or in which a named folder is shared.

    Args:
        paths: folders, and addresses of stores.
    """
    seen: set[str] = set()
    for path in paths:
        try:
            address = _address(path)
        except AcpError as error:
            name = clean_line(without_password(path.partition("?")[0]), 200)
            yield Check(_STORES, name, State.WARN, "cannot be used", str(error))
            continue
        if address is None or address.engine != POSTGRES or address.url in seen:
            continue
        seen.add(address.url)
        yield from _database(address.url)


def _address(path: str) -> Address | None:
    if is_address(path):
        return parse(path)
    return pinned_address(path) if is_shared(path) else None


def _database(url: str) -> Iterator[Check]:
    from acp_core.stores.postgres.health import examine

    for fact in examine(url):
        state = State.WARN if fact.advice else State.OK
        value = fact.value if fact.name != "connection" else f"{clean_line(url, 200)}: {fact.value}"
        yield Check(_STORES, fact.name, state, value, fact.advice)


_AGENT_PROGRAMS = "Agent programs"

_ONCE = "acp starts it for each attempt"


def agents(folders: Sequence[str] = ()) -> Iterator[Check]:
    """What keeps loops from waking; each preset's program: where, and which version it says it is.

    Args:
        folders: where agents work: some programs want to be told which folders to trust.
    """
    silent = parking.silent()
    if silent:
        name = f"process {silent.process.pid}"
        yield Check(
            _AGENT_PROGRAMS,
            "loop supervisor",
            State.WARN,
            name,
            f"{silent.sentence}: {silent.cure}",
        )
    allowed = Permissions()
    try:
        settings = load()
        allowed = parse_permissions(settings.permissions)
        known = presets.load(settings.presets)
    except SettingsError:  # told by the check of the settings themselves
        known = dict(presets.bundled())
    except PresetError as error:
        yield Check(_AGENT_PROGRAMS, "presets", State.WARN, str(error), "correct it in config.toml")
        known = dict(presets.bundled())
    asked = [preset for preset in known.values() if preset.program]
    check = partial(_program, folders=folders, allowed=allowed)
    with ThreadPoolExecutor() as pool:  # each takes its time to start
        for checks in pool.map(check, asked):
            yield from checks


def _program(preset: Preset, folders: Sequence[str], allowed: Permissions) -> tuple[Check, ...]:
    try:
        program = spawn.resolve(preset.program)
    except spawn.SpawnError as error:
        return (Check(_AGENT_PROGRAMS, preset.name, State.OPTIONAL, str(error), preset.install),)
    version = spawn.version(program, preset.version_args)
    value = " ".join(filter(None, (version or "version unknown", f"({program})")))
    if preset.tested:
        value += f"; acp was tested with {'it' if version == preset.tested else preset.tested}"
    may = Check(_AGENT_PROGRAMS, f"{preset.name} may", State.OK, _may(preset))
    found = Check(_AGENT_PROGRAMS, preset.name, State.OK, value)
    return (found, *_login(preset), _live(preset, allowed), *_trust(preset, folders), may)


def _live(preset: Preset, allowed: Permissions) -> Check:
    """Whether its turns are taken in a live session, or it is started for each attempt."""
    name = f"{preset.name} live"
    why = binding.missing(preset, os.getcwd()) if preset.live else ""
    is_live = bool(preset.live) and not why
    if unbound := binding.unbound(preset, allowed.policy, live=is_live):
        return Check(_AGENT_PROGRAMS, name, State.OPTIONAL, unbound)
    left = binding.left_open(preset, allowed, live=is_live)
    if not is_live:
        once = f"{_ONCE}: {why}" if why else _ONCE
        more = f"; {left}" if allowed != Permissions() else ""
        return Check(_AGENT_PROGRAMS, name, State.OPTIONAL if why else State.OK, f"{once}{more}")
    stays = "it stays for many turns, in a live session"
    decides = f"the policy {allowed.policy.value!r} decides what it asks"
    return Check(_AGENT_PROGRAMS, name, State.OK, "; ".join(filter(None, (stays, decides, left))))


def _trust(preset: Preset, folders: Sequence[str]) -> Iterator[Check]:
    """Whether its model gets tools where it would work."""
    if not agents_program.asks(preset):
        return
    name = f"{preset.name} tools"
    for folder in map(os.path.abspath, filter(os.path.isdir, folders)):
        if agents_program.missing(preset, folder):
            value = f"{preset.title} {agents_program.EFFECT}: {folder}"
            yield Check(
                _AGENT_PROGRAMS, name, State.WARN, value, agents_program.cure(preset, folder)
            )
        else:
            yield Check(_AGENT_PROGRAMS, name, State.OK, f"in {folder}")


def _login(preset: Preset) -> Iterator[Check]:
    """Whether there is a sign of a login: looked for, not tried."""
    name = f"{preset.name} login"
    for variable in preset.login_env:
        if os.environ.get(variable):
            yield Check(_AGENT_PROGRAMS, name, State.OK, f"by {variable}")
            return
    for path in preset.login_files:
        known = os.path.expanduser(os.path.expandvars(path))
        if os.path.isfile(known):
            yield Check(_AGENT_PROGRAMS, name, State.OK, f"by {known}")
            return
    if preset.login_env or preset.login_files:
        yield Check(_AGENT_PROGRAMS, name, State.OPTIONAL, "acp does not find one", preset.login)


def _may(preset: Preset) -> str:
    """What it may do without asking anybody."""
    if preset.permissions and "{permissions}" in preset.args:
        more = f" and those that begin with {', '.join(preset.allow)}" if preset.allow else ""
        own = f"; {preset.may}" if preset.may else ""
        return f"change files in its folders, and run the commands of its prompt{more}{own}"
    return preset.may or preset.caution or "acp does not know"


NEEDED = (
    "textual",
    "rich",
    "markdown-it-py",
    "watchfiles",
    "pydantic",
    "click",
    "platformdirs",
    "psutil",
    "python-dateutil",
    *(["inotify-simple"] if sys.platform == "linux" else []),
)
EXTRAS = {
    "wire": ("starlette", "uvicorn", "websockets", "httpx", "cryptography"),
    "web": ("textual-serve",),
    "live": ("agent-client-protocol",),
    "mcp": ("mcp",),
    "postgres": ("psycopg",),
}
ADDS = {
    "wire": "agents on the network: acp agent, acp bridge, acp relay, acp wire",
    "web": "the dashboard in a web browser: acp serve",
    "live": "live sessions with agents: their plan, tool calls and permission requests",
    "mcp": "tools for agents in place of commands: acp mcp",
    "postgres": "sharing over a PostgreSQL database: acp share, acp join, acp store",
}
"""What each extra adds."""
OLDEST_PYTHON = (3, 11)
FEW_WATCHES = 8192
INOTIFY = Path("/proc/sys/fs/inotify")


def versions() -> Iterator[Check]:
    """acp itself, Python, and the libraries that it needs."""
    group = "Versions"
    yield Check(group, "acp", State.OK, __version__)
    running = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info >= OLDEST_PYTHON:
        yield Check(group, "Python", State.OK, running)
    else:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        yield Check(group, "Python", State.MISSING, running, f"acp needs Python {oldest} or newer")
    for name in NEEDED:
        version = _version(name)
        advice = "" if version else f"pip install {name}"
        yield Check(group, name, State.OK if version else State.MISSING, version or "-", advice)
    if sys.platform == "win32":
        advice = (
            "on Windows acp only reads; run it under WSL to write (the lock on a log needs flock)"
        )
        yield Check(group, "system", State.WARN, "Windows: reading only", advice)


def folders() -> Iterator[Check]:
    """Where acp keeps what is its own."""
    import platformdirs

    group = "Folders"
    for name, folder, use in (
        ("settings", places.config_folder(), "acp reads config.toml from here"),
        ("state", places.state_folder(), "acp keeps acknowledgements, backups and logs here"),
        (
            "cache",
            Path(platformdirs.user_cache_dir("acp", appauthor=False)),
            ("can be deleted at any time"),
        ),
    ):
        yield _folder(group, name, folder, use)
    _, problem = _settings()
    if problem:
        yield Check(group, settings.FILE, State.WARN, "cannot be used", problem)


def _settings() -> tuple[settings.Settings, str]:
    """The person's settings (or the defaults), and what is wrong with them."""
    try:
        return settings.load(), ""
    except settings.SettingsError as error:
        return settings.Settings(), str(error)


def _folder(group: str, name: str, folder: Path, use: str) -> Check:
    here = folder
    while not os.path.lexists(here) and here != here.parent:
        here = here.parent
    if not here.is_dir():
        advice = f"{here} is in the way: not a folder"
        return Check(group, name, State.WARN, str(folder), advice)
    if not os.access(here, os.W_OK | os.X_OK):
        advice = f"{here} cannot be written; {use}"
        return Check(group, name, State.WARN, str(folder), advice)
    made = "" if here == folder else " (made when it is needed)"
    return Check(group, name, State.OK, f"{folder}{made}")


def terminal_checks() -> Iterator[Check]:
    """What the terminal can show."""
    group = "Terminal"
    shown = sys.stdout.isatty() and sys.stdin.isatty()
    kind = os.environ.get("TERM", "")
    if shown:
        yield Check(group, "terminal", State.OK, kind or "TERM is not set")
    else:
        advice = "the dashboard needs a terminal; the other commands do not"
        yield Check(group, "terminal", State.OPTIONAL, "not a terminal", advice)
    size = shutil.get_terminal_size((0, 0))
    if shown and size.columns:
        small = size.columns < 80 or size.lines < 24
        value = f"{size.columns} x {size.lines}"
        advice = "use a terminal of at least 80 x 24" if small else ""
        yield Check(group, "size", State.WARN if small else State.OK, value, advice)
    yield _colours(group, kind)
    encoding = (getattr(sys.stdout, "encoding", "") or locale.getpreferredencoding()).lower()
    signs = plain_signs.printed(os.environ)
    if signs == plain_signs.WORDS:
        value = f"{encoding.upper()}, words instead of signs ({plain_signs.VARIABLE})"
        yield Check(group, "encoding", State.OK, value)
    elif signs == plain_signs.CONSOLE:
        yield Check(group, "encoding", State.OK, "UTF-8, limited to the signs of the console")
    elif encoding.replace("-", "") == "utf8" and signs == plain_signs.ALL:
        yield Check(group, "encoding", State.OK, "UTF-8")
    else:
        advice = "acp prints plain signs; set LANG=C.UTF-8 or another UTF-8 locale"
        yield Check(group, "encoding", State.WARN, encoding, advice)
    yield _clipboard(group)


def _colours(group: str, kind: str) -> Check:
    if os.environ.get("NO_COLOR"):
        return Check(group, "colours", State.OK, "none (NO_COLOR)")
    if os.environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return Check(group, "colours", State.OK, "16 million (COLORTERM)")
    if "256" in kind:
        return Check(group, "colours", State.OK, "256 (TERM)")
    if kind in ("", "dumb"):
        return Check(group, "colours", State.OPTIONAL, "none", "every state has a sign and a word")
    return Check(
        group, "colours", State.OK, ("16 (set COLORTERM=truecolor if the terminal supports it)")
    )


def _clipboard(group: str) -> Check:
    """Copying goes through the terminal (OSC 52), so that it works over ssh too."""
    name = "clipboard"
    if os.environ.get("TMUX"):
        mode = _output("tmux", "show-options", "-gv", "set-clipboard")
        if mode == "on":
            return Check(group, name, State.OK, "through tmux (set-clipboard on)")
        advice = "to copy, put `set -s set-clipboard on` into tmux.conf"
        return Check(group, name, State.WARN, f"tmux, set-clipboard {mode or 'unknown'}", advice)
    if os.environ.get("STY"):
        return Check(
            group,
            name,
            State.WARN,
            "screen",
            ("GNU screen does not pass OSC 52: copying does not work"),
        )
    if sys.platform == "darwin" and os.environ.get("TERM_PROGRAM") == "Apple_Terminal":
        return Check(
            group,
            name,
            State.WARN,
            "Terminal.app",
            ("the terminal does not support OSC 52: copying does not work"),
        )
    return Check(group, name, State.OK, "OSC 52, if the terminal allows it")


def watching(paths: Sequence[str]) -> Iterator[Check]:
    """Whether changes are noticed at once, and locks hold, where the collaborations are."""
    group = "Files"
    for path in paths:
        yield _file_system(group, path, locked.kind(path, locked.here()))
    watches = _number(INOTIFY / "max_user_watches")
    if watches is not None:
        few = watches < FEW_WATCHES
        advice = f"sysctl fs.inotify.max_user_watches={FEW_WATCHES * 16}" if few else ""
        value = f"acp can watch {watches:,} folders"
        yield Check(group, "inotify watches", State.WARN if few else State.OK, value, advice)
    instances = _number(INOTIFY / "max_user_instances")
    if instances is not None:
        few = instances < 16
        advice = "sysctl fs.inotify.max_user_instances=128" if few else ""
        value = f"{instances:,} programs can watch folders"
        yield Check(group, "inotify instances", State.WARN if few else State.OK, value, advice)


def _file_system(group: str, path: str, kind: str) -> Check:
    if not os.path.exists(path):
        return Check(group, path, State.WARN, "not there", "name a folder that exists")
    if not kind:
        return Check(group, path, State.OK, "file system unknown")
    if not locked.is_shared(kind):
        return Check(group, path, State.OK, f"{kind}: locks work, and changes show at once")
    advice = "acp checks for changes every 0.3 s; "
    if kind.startswith("nfs"):
        advice += "locks work only if every machine mounts it with locking (NFSv4, no local_lock)"
    else:
        advice += "locks do not work here: only run agents on one machine"
    return Check(group, path, State.WARN, f"{kind}: shared with other machines", advice)


def programs() -> Iterator[Check]:
    """Programs that are of use where they are there."""
    group = "Programs"
    known, _ = _settings()
    editor = known.editor or os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    word = editor.split()[0] if editor.split() else ""
    if word and shutil.which(word):
        yield Check(group, "editor", State.OK, editor)
    elif word:
        yield Check(
            group, "editor", State.WARN, editor, "not found: set $EDITOR to an installed editor"
        )
    else:
        advice = "set $EDITOR (or `editor` in config.toml) to edit documents"
        yield Check(group, "editor", State.OPTIONAL, "not set", advice)
    for name, use in (
        ("git", "working copies for agents"),
        ("tmux", "a dashboard that keeps running when you disconnect"),
    ):
        found = shutil.which(name)
        if found:
            yield Check(group, name, State.OK, found)
        else:
            yield Check(group, name, State.OPTIONAL, "-", f"useful for {use}")


def extras() -> Iterator[Check]:
    """Optional parts of acp, which bring libraries of their own: what each adds, and how to get it."""
    for extra, names in EXTRAS.items():
        absent = [name for name in names if not _version(name)]
        if absent:
            advice = (
                f"adds {ADDS[extra]}; to get it, run {_installer()} 'acp-tui[{extra}]'"
                f" (in a checkout of acp: pip install '.[{extra}]')"
            )
            value = f"without {', '.join(absent)}"
            yield Check("Extras", extra, State.OPTIONAL, value, advice)
        else:
            value = ", ".join(f"{name} {_version(name)}" for name in names)
            yield Check("Extras", extra, State.OK, value)


def _installer() -> str:
    """The command that adds packages to the environment in which acp runs: pip's, pipx's or uv's."""
    if os.path.exists(os.path.join(sys.prefix, "pipx_metadata.json")):
        return "pipx runpip acp-tui install"
    try:
        by = importlib.metadata.distribution("acp-tui").read_text("INSTALLER") or ""
    except importlib.metadata.PackageNotFoundError:
        by = ""
    return f"uv pip install --python {sys.executable}" if by.strip() == "uv" else "pip install"


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _output(*command: str) -> str:
    """What a small program prints; "" where it fails."""
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=2, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return ran.stdout.strip()
