"""What the system's own starter is given, so that interrupted loops go on after a restart.

A systemd user unit, a launchd agent or a line of the crontab: worked out here whole, so that a
person can look at it before it is written, and taken out again. It belongs to one account, and
runs `acp_core.loops.interrupted` once when the machine, or the person's session, has started.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import plistlib
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from acp_core.agents.background import importable
from acp_core.files import atomic
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import Refused
from acp_core.protocols.processes import RESUME

UNIT = "acp-loops.service"
_AGENT = "acp.loops"
_CRON = "# acp: resume interrupted loops"
_NAMES = (
    "PATH", "PYTHONPATH", "ACP_STATE", "ACP_CONFIG",
    "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME",
)  # fmt: skip
_LARGEST = 1 << 20  # bytes of a file
_PATIENCE = 30.0  # seconds for a program of the system
_NO_SECRETS = (
    "programs that start at boot see no variables of your shell but those above: an agent that "
    "needs another one, such as an API key, must get it from its own login"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """What one of the system's starters is given.

    Attributes:
        manager: which: ``systemd``, ``launchd`` or ``cron``.
        place: where it stands, for people.
        text: what is written; ``before`` what stands there now, "" for nothing.
        notes: what a person should know, or must do besides.
        put: writes a text there; with "" it takes away what stands there.
    """

    manager: str
    place: str
    text: str
    before: str
    notes: tuple[str, ...]
    put: Callable[[str], None]

    @property
    def is_written(self) -> bool:
        """Whether it stands there already, as it would be written."""
        return self.before == self.text

    @property
    def is_ours(self) -> bool:
        """Whether what stands there was written by acp, be it an earlier one."""
        return any(name in self.before for name in RESUME.names)


def entry(manager: str = "") -> Entry:
    """What would be written on this machine.

    Args:
        manager: one of `MANAGERS`; by default the one that this system has.

    Raises:
        Refused: there is none, or what it would be given cannot be written for it.
    """
    name = manager or _usual()
    return MANAGERS[name](_command(), _environment())


def _usual() -> str:
    if sys.platform == "darwin":
        return "launchd"
    if os.path.isdir("/run/systemd/system") and shutil.which("systemctl"):
        return "systemd"
    if shutil.which("crontab"):
        return "cron"
    raise Refused(
        "this system has neither systemd, launchd nor cron to start loops at boot; to write the "
        f"entry of one anyway, name it: --boot-manager {'|'.join(MANAGERS)}"
    )


def _command() -> tuple[str, ...]:
    return (sys.executable, "-P", "-m", RESUME.module)


def _environment() -> Mapping[str, str]:
    """The variables that a loop needs, as they are set here.

    Raises:
        Refused: one holds what no starter's file can.
    """
    found = {name: os.environ[name] for name in _NAMES if os.environ.get(name)} | importable()
    for name, value in found.items():
        if not value.isprintable():
            raise Refused(f"${name} holds characters that cannot be written into a unit")
    return found


def write(found: Entry) -> None:
    """Write an entry.

    Raises:
        Refused: something else stands there, or it cannot be written.
    """
    if found.before and not found.is_ours:
        raise Refused(f"{found.place} was not written by acp: acp does not replace it")
    _put(found, found.text)


def remove(found: Entry) -> None:
    """Take out what acp wrote.

    Raises:
        Refused: it was not written by acp, or cannot be removed.
    """
    if not found.is_ours:
        raise Refused(f"{found.place} holds nothing of acp")
    _put(found, "")


def _put(found: Entry, text: str) -> None:
    try:
        found.put(text)
    except (OSError, subprocess.SubprocessError) as error:
        raise Refused(f"{found.place}: {error}") from None


# --- systemd -----------------------------------------------------------------------------------


def _systemd(command: tuple[str, ...], environment: Mapping[str, str]) -> Entry:
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    path = Path(home) / "systemd" / "user" / UNIT
    variables = (f"Environment={_quoted(f'{name}={value}')}" for name, value in environment.items())
    text = "\n".join(
        (
            "# Written by acp launch --at-boot; acp launch --at-boot --remove removes it.",
            "[Unit]",
            "Description=Resume the loops of acp that a restart interrupted",
            "",
            "[Service]",
            "Type=oneshot",
            "RemainAfterExit=yes",
            "# stopping this unit stops no loop",
            "KillMode=process",
            *variables,
            f"ExecStart={' '.join(_quoted(word.replace('$', '$$')) for word in command)}",
            "",
            "[Install]",
            "WantedBy=default.target",
            "",
        )
    )
    _verify_unit(text)

    def put(text: str) -> None:
        link = path.parent / "default.target.wants" / UNIT
        link.unlink(missing_ok=True)
        if text:
            _replace(path, text)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
        else:
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError, subprocess.SubprocessError):  # it reads it when it starts
            _run("systemctl", "--user", "daemon-reload")

    notes = [_NO_SECRETS]
    user = getpass.getuser()
    if not os.path.exists(f"/var/lib/systemd/linger/{user}"):
        notes.append(
            f"systemd starts it when you log in; run `loginctl enable-linger {shlex.quote(user)}` to start "
            "it at boot"
        )
    return Entry("systemd", str(path), text, _read(path), tuple(notes), put)


def _quoted(word: str) -> str:
    """A word of a unit: quoted, and no specifier."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _verify_unit(text: str) -> None:
    """Have systemd check a unit, where it is there.

    Raises:
        Refused: it finds a fault.
    """
    if not shutil.which("systemd-analyze"):
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, UNIT)
        path.write_text(text, encoding="utf-8")
        try:
            ended = _run("systemd-analyze", "verify", "--user", str(path), XDG_RUNTIME_DIR=folder)
        except (OSError, subprocess.SubprocessError):
            return
        said = [line for line in ended.stderr.splitlines() if UNIT in line]
        if said:
            raise Refused(f"systemd would not accept the unit: {said[0]}")


# --- launchd -----------------------------------------------------------------------------------


def _launchd(command: tuple[str, ...], environment: Mapping[str, str]) -> Entry:
    path = Path(os.path.expanduser("~/Library/LaunchAgents")) / f"{_AGENT}.plist"
    text = plistlib.dumps(
        {
            "Label": _AGENT,
            "ProgramArguments": list(command),
            "EnvironmentVariables": dict(environment),
            "RunAtLoad": True,
            "AbandonProcessGroup": True,  # the loops go on
        }
    ).decode()

    def put(text: str) -> None:
        if text:
            _replace(path, text)
        else:
            path.unlink(missing_ok=True)

    notes = (_NO_SECRETS, "launchd starts it when you log in")
    return Entry("launchd", str(path), text, _read(path), notes, put)


# --- cron --------------------------------------------------------------------------------------


def _cron(command: tuple[str, ...], environment: Mapping[str, str]) -> Entry:
    """Two lines of the crontab: a comment, by which they are known again, and the command."""
    words = ["env", *(f"{name}={value}" for name, value in environment.items()), *command]
    line = f"@reboot {shlex.join(words)} >/dev/null 2>&1".replace("%", "\\%")
    text = f"{_CRON}\n{line}\n"
    table = _crontab()
    ours = _cron_lines(table)

    def put(text: str) -> None:
        others = "".join(each for each in _crontab().splitlines(True) if each not in ours)
        if others and not others.endswith("\n"):
            others += "\n"
        _run("crontab", "-", given=others + text, check=True)

    return Entry("cron", "your crontab", text, "".join(ours), (_NO_SECRETS,), put)


def _cron_lines(table: str) -> list[str]:
    """The lines that acp wrote: the comment, and the one behind it."""
    lines = table.splitlines(keepends=True)
    place = next((n for n, each in enumerate(lines) if each.strip() == _CRON), None)
    return [] if place is None else lines[place : place + 2]


def _crontab() -> str:
    """The person's crontab; "" where there is none.

    Raises:
        Refused: it cannot be read.
    """
    try:
        ended = _run("crontab", "-l")
    except (OSError, subprocess.SubprocessError) as error:
        raise Refused(f"crontab: {error}") from None
    if ended.returncode and "no crontab" not in ended.stderr:
        raise Refused(f"crontab: {ended.stderr.strip() or 'your crontab cannot be read'}")
    return "" if ended.returncode else ended.stdout


MANAGERS = {"systemd": _systemd, "launchd": _launchd, "cron": _cron}
"""What can start loops at boot."""


def _read(path: Path) -> str:
    with contextlib.suppress(OSError, Unreadable):
        return read_bounded(path, _LARGEST).decode(errors="replace")
    return ""


def _replace(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.replace(path, text.encode())


def _run(
    *words: str, given: str = "", check: bool = False, **env: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, input=given, capture_output=True, text=True, timeout=_PATIENCE, check=check,
        env={**os.environ, **env},
    )  # fmt: skip
