"""The checks of ``acp doctor``. Each looks at one thing and says what to do where it is not well."""

from __future__ import annotations

import importlib.metadata
import locale
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from acp_core import __version__
from acp_core.cli import plain_signs
from acp_core.cli.check import Check, State
from acp_core.files import mounts
from acp_core.person import paths as places
from acp_core.person import settings

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


def everything(paths: Sequence[str]) -> list[Check]:
    """Every check, group after group; ``paths`` are folders that matter, and addresses of stores."""
    from acp_core.cli.agent_checks import agents
    from acp_core.cli.protocol_checks import protocols
    from acp_core.cli.sharing_checks import sharing
    from acp_core.cli.store_checks import stores
    from acp_core.stores.address import is_address

    folders_given = [path for path in paths if not is_address(path)]
    return [
        *versions(),
        *folders(),
        *terminal(),
        *watching(folders_given),
        *sharing(folders_given),
        *stores(paths),
        *programs(),
        *agents(folders_given),
        *protocols(),
        *extras(),
    ]


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


def terminal() -> Iterator[Check]:
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
        yield _file_system(group, path, mounts.kind(path, mounts.here()))
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
    if not mounts.is_shared(kind):
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
