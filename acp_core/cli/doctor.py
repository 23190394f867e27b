"""``acp doctor``: what acp runs on, whether it is well, and what to do where it is not.

Each check looks at one thing. In this order: what a check says; folders that several accounts share,
stores of shared collaborations, agents' programs that presets know; then versions, folders, the terminal,
how changes are noticed, and optional parts; then the protocols that other distributions bring. One that
was written for acp 0.1.0 or 0.2 may import modules that have moved, or override methods that are called
otherwise now: each such thing is named, with what it is called now.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import locale
import os
import platform
import re
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
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import NamedTuple

from acp_core import __version__
from acp_core.agents import presets
from acp_core.agents import program as agents_program
from acp_core.agents.live import binding
from acp_core.agents.presets import Preset, PresetError
from acp_core.agents.program import SpawnError, resolve, version
from acp_core.cli import output, plain_signs
from acp_core.cli.output import Cell, Column, Terminal, dump, say, terminal
from acp_core.files import atomic, claims, locked
from acp_core.loops import parking
from acp_core.model.errors import AcpError
from acp_core.model.spoken import mark
from acp_core.model.text import clean_line
from acp_core.person import paths as places
from acp_core.person import settings
from acp_core.person.permissions import Permissions
from acp_core.person.permissions import parse as parse_permissions
from acp_core.person.settings import SettingsError, load
from acp_core.protocols import registry
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit.values import Values
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
    from acp_core.stores.postgres.link import examine_database

    for fact in examine_database(url):
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
        program = resolve(preset.program)
    except SpawnError as error:
        return (Check(_AGENT_PROGRAMS, preset.name, State.OPTIONAL, str(error), preset.install),)
    known = version(program, preset.version_args)
    value = " ".join(filter(None, (known or "version unknown", f"({program})")))
    if preset.tested:
        value += f"; acp was tested with {'it' if known == preset.tested else preset.tested}"
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


_GROUP = "Protocols"
_LONGEST = 300  # characters of what a stranger's fault says
_KIT = "acp_core.protocols.kit"
_REGISTRY = "acp_core.protocols.registry"
_DISCOVERY = "acp_core.protocols.discovery"
_CONTRACT = "acp_core.protocols.contract"
_PAST = "acp_core.model.past"

MOVED = {
    **{
        f"acp_core.{name}": f"acp_core.model.{name}"
        for name in (
            "action", "clock", "format", "light", "turn",
        )
    },
    **{f"acp_core.{name}": "acp_core.model.snapshot" for name in ("cause", "question")},
    **{f"acp_core.{name}": _PAST for name in ("derivation", "story")},
    **{f"acp_core.model.{name}": "acp_core.model.snapshot" for name in ("cause", "obstacle", "question")},
    **{f"acp_core.model.{name}": _PAST for name in ("derivation", "marks", "story", "tracked")},
    "acp_core.model.sentence": "acp_core.model.format",
    "acp_core.arguments": f"{_KIT}.parser",
    "acp_core.attention": "acp_core.person.attention",
    "acp_core.case": f"{_KIT}.diagnosis",
    "acp_core.collaboration": _CONTRACT,
    "acp_core.command_line": f"{_KIT}.command_line",
    "acp_core.findings": f"{_KIT}.findings",
    "acp_core.human_journal": "acp_core.person.journal",
    "acp_core.invalid": f"{_KIT}.schema",
    "acp_core.kept": _PAST,
    "acp_core.loading": f"{_KIT}.documents",
    "acp_core.locations": "acp_core.protocols.locations",
    "acp_core.loop_words": "acp_core.loops.wording",
    "acp_core.manual": f"{_KIT}.parser",
    "acp_core.notify": "acp_core.person.notices",
    "acp_core.overview": "acp_core.fleet.overview",
    "acp_core.places": "acp_core.person.paths",
    "acp_core.programs": "acp_core.agents",
    "acp_core.refused": "acp_core.model.errors",
    "acp_core.search": "acp_core.fleet.search",
    "acp_core.settings": "acp_core.person.settings",
    "acp_core.signs": "acp_core.cli.signs",
    **{
        f"acp_core.protocols.{name}": f"{_REGISTRY}.{name}"
        for name in ("Protocol", "Command", "NAMES", "ENTRY_POINTS", "load", "bundled", "installed")
    },
    **{
        f"{_CONTRACT}.{name}": f"{_DISCOVERY}.{name}"
        for name in ("IGNORED", "DEPTH", "FOLDERS", "Discovery", "Changes", "Explorer", "identify")
    },
    f"{_CONTRACT}.discover": f"{_DISCOVERY}.discover",
    f"{_CONTRACT}.Found": f"{_DISCOVERY}.DiscoveredCollaboration",
    f"{_KIT}.diagnosis.Case": f"{_KIT}.diagnosis.DiagnosisContext",
    f"{_KIT}.diagnosis.Stranger": f"{_KIT}.diagnosis.UnmanagedProcess",
    "acp_core.protocols.newest": _DISCOVERY,
    f"{_PAST}.Kept": f"{_PAST}.TrackedFile",
    f"{_PAST}.Told": f"{_PAST}.PastLog",
    **{
        f"{_KIT}.{was}": f"{_KIT}.{now}"
        for was, now in (
            ("cards", "documents"), ("confirmation", "parser"), ("described", "command"), ("manual", "parser"),
            ("offers", "mirroring"), ("fast_args", "command_line"), ("options", "command_line"), ("printing", "parser"), ("quick", "command_line"),
            ("steady", "snapshots"), ("taking_part", "tools"), ("tool_names", "tools"),
            ("unseen_text", "findings"), ("validation", "schema"),
        )
    },
    **{
        f"acp_core.files.{was}": f"acp_core.files.{now}"
        for was, now in (
            ("kernel", "watch"), ("mirrored", "read_only"), ("mounts", "locked"), ("newer", "read_only"),
            ("owners", "claims"), ("owners.process", "claims.this_process"), ("poll", "watch"),
            ("run_folder", "claims"), ("writes", "transaction"),
        )
    },
    **{f"acp_core.person.notices.{name}": "acp_core.person.notices" for name in ("news", "sent", "ways")},
    "acp_core.person.pins": "acp_core.person.paths",
    **{
        f"acp_core.agents.{was}": f"acp_core.agents.{now}"
        for was, now in (
            ("attempt", "program"), ("caps", "budgets"), ("command_lines", "processes"), ("elsewhere", "session_lock"),
            ("error_lines", "failures"), ("folder_trust", "program"), ("hold", "session_lock"), ("installed", "presets"),
            ("limits", "failures"), ("parked", "processes"), ("place", "loop_directory"), ("reading", "logs"),
            ("record", "session"), ("shielded", "program"), ("signals", "session"), ("tool_servers", "permissions"),
            ("transcript", "output"), ("unnoted", "processes"), ("streams.progress", "progress"),
            *((f"streams.{name}", "streams") for name in ("claude", "codex", "gemini", "live", "opencode", "text")),
        )
    },
    **{
        f"acp_core.agents.live.{was}": f"acp_core.agents.live.{now}"
        for was, now in (
            ("asking", "answers"), ("attended", "answers"), ("command", "binding"), ("control", "turn"),
            ("journal", "updates"), ("questions", "requests"), ("scoped", "policy"), ("session", "runner"),
            ("shell_commands", "shell"), ("shell_words", "shell"),
        )
    },
    **{
        f"acp_core.stores.{was}": f"acp_core.stores.{now}"
        for was, now in (
            ("crowd", "git"), ("exclusive", "tree"), ("git_hosts", "git"), ("git_making", "git_objects"),
            ("git_words", "git_objects"), ("known", "base"), ("known.Known", "base.TipCache"), ("leases", "engine"),
            ("listing", "engine"), ("names", "tree"), ("news", "engine"), ("proof", "asking"), ("silence", "hosts"),
            ("steps", "engine"), ("postgres.followed", "postgres.engine"), ("postgres.news", "postgres.link"),
            ("postgres.overview", "postgres.hosts"), ("postgres.publishing", "postgres.engine"),
            ("postgres.reading", "postgres.engine"), ("postgres.tips", "postgres.engine"),
            ("postgres.watchdog", "postgres.link"), ("postgres.words", "postgres.link"),
        )
    },
}  # fmt: skip
"""Modules of 0.1.0 and 0.2, and names in modules, with what they are called now."""

RENAMED = {"kept": "tracked_files", "told": "past_log"}
"""Methods of 0.1.0's `Collaboration`, with what they are called now."""

_NO_NAME = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")
_NO_ATTRIBUTE = re.compile(r"module '([\w.]+)' has no attribute '(\w+)'")


def protocols() -> Iterator[Check]:
    """Each protocol of another distribution: whether it loads, and what it calls otherwise."""
    for entry in entry_points(group=registry.ENTRY_POINTS):
        name = clean_line(entry.dist.name if entry.dist else entry.value)
        found = [clean_line(each, _LONGEST) for each in _protocol_problems(entry)]
        value = f"protocol {clean_line(entry.name)}"
        if not found:
            yield Check(_GROUP, name, State.OK, value)
        for problem in found:
            yield Check(_GROUP, name, State.WARN, value, f"{name}: {problem}")


def _protocol_problems(entry: EntryPoint) -> Iterator[str]:
    try:
        protocol = entry.load()
        if not isinstance(protocol, registry.Protocol):
            yield f"{entry.value} is not a {_REGISTRY}.Protocol"
            return
        for reference in (protocol.detect, protocol.open, protocol.create, protocol.past):
            if reference is not None:
                registry.load(reference)
    except Exception as error:  # somebody else's code: whatever it raises, it is told
        yield _load_failure(error)
        return
    yield from _overridden(Collaboration, protocol.open.partition(".")[0].partition(":")[0])


def _load_failure(error: Exception) -> str:
    """Why it cannot be loaded; of what has moved, where that is now."""
    missing = _missing_name(error)
    now = _now(missing)
    if now:
        return f"cannot be loaded: {missing} was renamed to {now}"
    return f"cannot be loaded: {type(error).__name__}: {error}"


def _missing_name(error: Exception) -> str:
    """The dotted name that could not be imported; "" where it was something else."""
    if isinstance(error, ModuleNotFoundError):
        return error.name or ""
    if match := _NO_NAME.match(str(error)):
        return f"{match[2]}.{match[1]}"
    match = _NO_ATTRIBUTE.match(str(error))
    return f"{match[1]}.{match[2]}" if match else ""


def _now(name: str) -> str:
    """What a dotted name of 0.1.0 or 0.2 is called now; "" where that is not known."""
    outer, _, last = name.rpartition(".")
    return MOVED.get(name) or (f"{now}.{last}" if outer and (now := _now(outer)) else "")


def _overridden(kind: type[object], package: str) -> Iterator[str]:
    """Methods of a package's collaborations that nobody calls any more."""
    for each in kind.__subclasses__():
        if each.__module__.partition(".")[0] == package:
            for old, new in RENAMED.items():
                if old in vars(each):
                    yield f"{each.__qualname__}.{old} is never called: it was renamed to {new}"
        yield from _overridden(each, package)


SCHEMA = "acp.doctor/1"
LOOKS = {
    State.OK: ("✓ ok", "good"),
    State.WARN: ("! warn", "warning"),
    State.MISSING: ("✗ missing", "error"),
    State.OPTIONAL: ("○ absent", "dim"),
}


def doctor(given: Values) -> int:
    """Print the checks, or the object."""
    checks = everything(given.paths or (".",))
    if given.json:
        told = [check._asdict() | {"state": check.state.value} for check in checks]
        say(dump({"schema": SCHEMA, "ok": not _is_any_missing(checks), "checks": told}))
    else:
        for line in render(checks, terminal()):
            say(line)
    return 1 if _is_any_missing(checks) else 0


def _is_any_missing(checks: Sequence[Check]) -> bool:
    return any(check.state is State.MISSING for check in checks)


def render(checks: Sequence[Check], shown_on: Terminal) -> list[str]:
    """The lines: a table for each group, what to do under what is not well."""
    columns = (Column("", 2), Column("", 6), Column("", 8), Column("", 12))
    rows = [
        [Cell(""), Cell(*LOOKS[check.state]), Cell(check.name), Cell(check.value)]
        for check in checks
    ]
    lines: list[str] = []
    group = ""
    for check, line in zip(checks, output.table(columns, rows, shown_on)[1:], strict=True):
        if check.group != group:
            group = check.group
            lines += (
                ["", shown_on.paint(group, "head")] if lines else [shown_on.paint(group, "head")]
            )
        lines.append(line)
        if check.advice:
            lines += output.wrap(
                check.advice, shown_on, indent="      ", first=f"    {mark('→', 'fix:')} "
            )
    return lines


def everything(paths: Sequence[str]) -> list[Check]:
    """Every check, group after group; ``paths`` are folders that matter, and addresses of stores."""
    from acp_core.stores.address import is_address

    folders_given = [path for path in paths if not is_address(path)]
    return [
        *versions(),
        *folders(),
        *terminal_checks(),
        *watching(folders_given),
        *sharing(folders_given),
        *stores(paths),
        *programs(),
        *agents(folders_given),
        *protocols(),
        *extras(),
    ]
