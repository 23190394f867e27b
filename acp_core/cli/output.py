"""What commands print: to a terminal with its width and colours, or to a file or a pipe.

Text that is printed is made safe here once more: arguments, paths and messages of
exceptions never were part of a Snapshot.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from acp_core.model import ActionSpec, Snapshot
from acp_core.model.text import clean, clean_line

STYLES = {
    "head": "1",
    "dim": "2",
    "need": "1;33",
    "good": "32",
    "warning": "33",
    "error": "31",
    "live": "36",
}
SHORT = 60  # characters of an input up to which a list names it
_COLOURS = re.compile(rf"(\x1b\[(?:0|{'|'.join(STYLES.values())})m)")
# What JSON would leave as it is although a terminal, or a reader's eye, may obey it.
_UNSAFE = re.compile(
    "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Terminal:
    """Where text goes: ``width`` in cells (None: as wide as it needs), and whether in colour."""

    width: int | None = None
    colour: bool = False

    def paint(self, text: str, style: str) -> str:
        """``text`` in a style of `STYLES`, or as it is."""
        if not (self.colour and style and text):
            return text
        return f"\x1b[{STYLES[style]}m{text}\x1b[0m"


def terminal() -> Terminal:
    """What the standard output is. A file or a pipe has no colours, and no width unless
    ``COLUMNS`` says one; ``NO_COLOR`` (not empty) and ``TERM=dumb`` turn colours off.
    """
    shown = sys.stdout.isatty()
    colour = shown and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    columns = os.environ.get("COLUMNS", "")
    if shown or columns.isdecimal():
        return Terminal(shutil.get_terminal_size((80, 24)).columns, colour)
    return Terminal(None, colour)


def say(text: str = "", *, now: bool = False) -> None:
    """Print text, made safe but for the colours of `Terminal.paint`.

    Args:
        text: One line or several.
        now: Do not keep it back until there is more: somebody is waiting for it.
    """
    if "\x1b" in text:  # every second piece is one of our own sequences
        pieces = _COLOURS.split(text)
        pieces[::2] = map(clean, pieces[::2])
        text = "".join(pieces)
    else:
        text = clean(text)
    print(text, flush=now)


def warn(text: str) -> None:
    """Say on the standard error what did not go as it should."""
    print(f"warning: {clean(text)}", file=sys.stderr)


def complain(text: str) -> None:
    """Say on the standard error what is wrong, where the command goes on with what is not."""
    print(f"error: {clean(text)}", file=sys.stderr)


def typed(snapshot: Snapshot) -> str:
    """The shortest way to name the collaboration's folder from here, safe to show."""
    near = os.path.relpath(snapshot.key) if os.path.isabs(snapshot.key) else snapshot.key
    return clean_line(min(near, snapshot.key, key=len), limit=4096)


def act_command(
    snapshot: Snapshot,
    action: str,
    given: Iterable[tuple[str, str]] = (),
    longest: int = 8192,
) -> str:
    """The command that does an action of a collaboration, with its inputs, ready to be typed.

    Inputs that are longer than ``longest`` are left out: the action has a default for them. What a
    person must choose stands in it in capitals, see `to_choose`.
    """
    words = ["acp", "act", typed(snapshot), action]
    for name, value in given:
        if len(value) > longest:
            continue
        flag = f"--{name.replace('_', '-')}"
        words += [flag] if value == "true" else [flag, value]
    for name, placeholder in to_choose(snapshot, action, given).items():
        words += [f"--{name.replace('_', '-')}", placeholder]
    return clean_line(" ".join(shlex.quote(word) for word in words), limit=8192)


def to_choose(
    snapshot: Snapshot, action: str, given: Iterable[tuple[str, str]] = ()
) -> dict[str, str]:
    """The inputs that a person must choose before an action can be done, and what stands for them."""
    from acp_core.protocols.kit import command  # late: only who prints such commands needs it

    spec = _act(snapshot, action)
    if spec is None:
        return {}
    left = command.unsaid(spec, (name for name, _ in given))
    return {each.name: command.placeholder(each) for each in left}


def choice_hint(snapshot: Snapshot, action: str, given: Iterable[tuple[str, str]] = ()) -> str:
    """What a person must choose before `act_command` can be run; "" where it is complete."""
    left = to_choose(snapshot, action, given).values()
    return f"you choose {' and '.join(left)}: add --help to see what is possible" if left else ""


def fitting(
    snapshot: Snapshot, action: str, given: Iterable[tuple[str, str]]
) -> tuple[tuple[str, str], ...]:
    """Those inputs of one action that are chosen for another one, too."""
    from acp_core.model.action_field import Kind

    spec = _act(snapshot, action)
    choices = (
        (each for each in spec.fields if Kind.CHOICE in (each.kind, each.items)) if spec else ()
    )
    names = {each.name for each in choices}
    return tuple((name, value) for name, value in given if name in names)


def _act(snapshot: Snapshot, action: str) -> ActionSpec | None:
    """The description of an act by its name: of the protocol, or about loops."""
    from acp_core.loops.acts import table  # late, as above
    from acp_core.protocols.kit import command as kit_command

    own = kit_command.act(snapshot.protocol, action)
    return own or next((each for each in table.ACTS if each.name == action), None)


def dump(value: object, *, indent: int | None = 2) -> str:
    """JSON that keeps every script readable and is harmless on a terminal.

    Strings stay exact: what is unsafe to show is written as ``\\uXXXX``.
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _UNSAFE.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)
