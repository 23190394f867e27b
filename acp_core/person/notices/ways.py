"""How a person is told outside of the terminal: the desktop, a command of theirs, a webhook.

No shell ever sees a text. Everything here may be slow; it belongs into a worker.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from acp_core.model.errors import InvalidInput
from acp_core.model.text import clean_line
from acp_core.person.notices.news import KINDS, Message, is_quiet

PATIENCE = 10.0  # seconds that a way may take
TERMINALS = ("off", "osc9", "osc777")
_PLACE = re.compile(r"\{(title|text|kind|collaboration|location|participant|reason|key)\}")


@dataclass(frozen=True, slots=True)
class Ways:
    """In which ways a person wants to be told: the table ``[notify]`` of ``config.toml``.

    Attributes:
        terminal: how the terminal is asked to show a notice: ``off``, ``osc9`` or ``osc777``.
        desktop: by ``notify-send`` or ``osascript``, where there is a desktop.
        command: a program with its arguments; ``{title}``, ``{text}``, ``{kind}``,
            ``{collaboration}``, ``{location}``, ``{participant}``, ``{reason}`` and ``{key}``
            stand for what is told; all of it comes as JSON to its standard input, too.
        webhook: an address that gets the same JSON by POST.
        quiet: hours in local time in which only the window's title tells, as ``22:00-07:00``.
        kinds: which kinds of news are told, where not those of `USUAL`.
    """

    terminal: str = "off"
    desktop: bool = True
    command: tuple[str, ...] = ()
    webhook: str = ""
    quiet: str = ""
    kinds: Mapping[str, bool] | None = None

    def tells(self, kind: str) -> bool:
        """Whether news of this kind are told."""
        return (self.kinds or {}).get(kind, kind in USUAL)


USUAL = ("stuck", "blocked", "need")


class WaysError(InvalidInput, ValueError):
    """The table is not what it should be: ``where`` in it, and what is needed."""

    def __init__(self, where: str, needed: str) -> None:
        super().__init__(f"{where}: {needed} is needed")
        self.where, self.needed = where, needed


def parse(table: Mapping[str, object]) -> Ways:
    """The ways that a table names.

    Raises:
        WaysError: something in it is not what it should be.
    """
    values: dict[str, object] = {}
    for name, value in table.items():
        check = _CHECKS.get(name)
        if check is None:
            raise WaysError(name, f"one of {', '.join(_CHECKS)}")
        values[name] = check(value, name)
    return Ways(**values)  # type: ignore[arg-type]


def _switch(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise WaysError(where, "true or false")
    return value


def _terminal(value: object, where: str) -> str:
    if value not in TERMINALS:
        raise WaysError(where, f"one of {', '.join(TERMINALS)}")
    return str(value)


def _words(value: object, where: str) -> tuple[str, ...]:
    words = value if isinstance(value, list) else None
    if words is None or not all(isinstance(word, str) and "\0" not in word for word in words):
        raise WaysError(where, "a list of texts: a program and its arguments")
    return tuple(words)


def _address(value: object, where: str) -> str:
    if not isinstance(value, str) or (value and not re.match(r"https?://[^/\s]", value)):
        raise WaysError(where, "an address that begins with https:// or http://")
    return value


def _hours(value: object, where: str) -> str:
    from datetime import time

    try:
        is_quiet(value if isinstance(value, str) else "-", time())
    except ValueError:
        raise WaysError(where, 'two times with a dash between them ("22:00-07:00")') from None
    return str(value)


def _kinds(value: object, where: str) -> dict[str, bool]:
    if not isinstance(value, dict):
        raise WaysError(where, "a table")
    for name in value:
        if name not in KINDS:
            raise WaysError(f"{where}.{name}", f"one of {', '.join(KINDS)}")
    return {name: _switch(chosen, f"{where}.{name}") for name, chosen in value.items()}


_CHECKS = {
    "terminal": _terminal,
    "desktop": _switch,
    "command": _words,
    "webhook": _address,
    "quiet": _hours,
    "kinds": _kinds,
}


def desktop_command(title: str, text: str) -> tuple[str, ...]:
    """The command that shows a notice on this machine's desktop; () where there is none."""
    if sys.platform == "darwin":
        program = shutil.which("osascript")
        script = "display notification (item 2 of argv) with title (item 1 of argv)"
        lines = ("-e", "on run argv", "-e", script, "-e", "end run")
        return (program, *lines, title, text) if program else ()
    if not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return ()
    program = shutil.which("notify-send")
    # the text of such a notice is markup
    return (
        (program, "--app-name=acp", "--", title, html.escape(text, quote=False)) if program else ()
    )


def own_command(command: Sequence[str], facts: Mapping[str, str]) -> tuple[str, ...]:
    """A person's command with what is told in its places. No text becomes an option."""

    def filled(word: str) -> str:
        made = _PLACE.sub(lambda found: facts[found[1]], word)
        return made if made == word or not made.startswith("-") or word[0] == "-" else f" {made}"

    return (*command[:1], *(filled(word) for word in command[1:]))


def facts_of(message: Message, key: str) -> dict[str, str]:
    """Everything about a message, by name."""
    return {
        "title": message.title,
        "text": message.text(key),
        "kind": message.kind,
        "collaboration": message.collaboration,
        "location": message.location,
        "participant": message.participant,
        "reason": message.reason,
        "key": key if message.action else "",
    }


def tell(message: Message, ways: Ways, key: str, *, desktop: bool = True) -> list[str]:
    """Tell a person in every way that they want.

    Args:
        message: What to say.
        ways: How.
        key: The key of the dashboard that mends it.
        desktop: Whether there is somebody before a desktop at all.

    Returns:
        What went wrong, a line each.
    """
    facts = facts_of(message, key)
    told = json.dumps({"schema": "acp.notice/1", **facts}, ensure_ascii=False).encode()
    problems: list[str] = []
    if desktop and ways.desktop:
        shown = desktop_command(facts["title"], facts["text"])
        problems += _run(shown, b"", "the desktop") if shown else ()
    if ways.command:
        problems += _run(own_command(ways.command, facts), told, "notify.command")
    if ways.webhook:
        problems += _post(ways.webhook, told)
    return problems


def _run(command: Sequence[str], told: bytes, what: str) -> list[str]:
    try:
        done = subprocess.run(
            command,
            input=told,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE,
            check=False,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return [f"{what}: {clean_line(command[0])} did not finish"]
    except OSError as error:
        return [f"{what}: {clean_line(command[0])}: {error.strerror or error}"]
    if done.returncode:
        return [f"{what}: {clean_line(command[0])} ended with exit code {done.returncode}"]
    return []


def _post(address: str, told: bytes) -> list[str]:
    from urllib.error import URLError
    from urllib.request import Request, urlopen

    request = Request(
        address, told, {"Content-Type": "application/json", "User-Agent": "acp"}, method="POST"
    )
    try:
        with urlopen(request, timeout=PATIENCE):
            return []
    except URLError as error:
        return [f"notify.webhook: {clean_line(str(error.reason), 200)}"]
    except (OSError, ValueError) as error:
        return [f"notify.webhook: {clean_line(str(error), 200)}"]
