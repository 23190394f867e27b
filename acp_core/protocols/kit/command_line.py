"""What protocols' commands have in common: parsing, printing, and ending well.

Bad input gets one line on the standard error and exit code 2, never a traceback. Everything
printed is made safe for a terminal. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace

from acp_core.model.action_field import PLACE, PRESETS, Field, Kind
from acp_core.model.errors import Refused
from acp_core.model.light import Any, TextIO
from acp_core.model.text import clean_line

INTERRUPTED = 130
BROKEN_PIPE = 141  # what a shell reports for a program that SIGPIPE ended
_LAST_WORK = frozenset({"atexit", "threading"})  # who leaves work for a process's end has these


def program(name: str) -> str:
    """How the command was called: as ``acp NAME``, or as a script of the portable skill."""
    return _called() if is_script() else f"acp {name}"


def is_script() -> bool:
    """Whether this process runs a script of the portable skill."""
    return _called().endswith(".py") and _called() != "__main__.py"


def _called() -> str:
    return os.path.basename(sys.argv[0]) if sys.argv else ""


def say(text: str = "", stream: TextIO | None = None) -> None:
    """Print one line, safely."""
    _write(clean_line(text, 100_000), stream or sys.stdout)


def say_json(value: Mapping[str, Any]) -> None:
    """Print one JSON object on one line; what is not ASCII is escaped, so that it is safe."""
    _write(json.dumps(value, default=str), sys.stdout)


def asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether the arguments of a command ask for JSON: those before a program's own, after ``--``."""
    return "--json" in (arguments[: arguments.index("--")] if "--" in arguments else arguments)


def complain(text: str) -> None:
    """Say on the standard error why the command ends without success."""
    _write(f"error: {clean_line(text, 2_000)}", sys.stderr)


def warn(text: str) -> None:
    """Say on the standard error what did not go as it should."""
    _write(f"warning: {clean_line(text, 2_000)}", sys.stderr)


def _write(line: str, stream: TextIO) -> None:
    try:
        stream.write(f"{line}\n")
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")


def run(
    command: Callable[[], int],
    *others: type[Exception],
    on_error: Callable[[str, int], None] | None = None,
) -> int:
    """Run a command's body; turn every failure into one line and an exit code.

    Args:
        command: gives the exit code.
        others: exceptions of which the message is a line that says what is wrong.
        on_error: says the same once more, in another form, with the exit code.
    """

    def failed(message: str, code: int) -> int:
        complain(message)
        if on_error is not None:
            on_error(message, code)
        return code

    try:
        code = command()
        sys.stdout.flush()
    except Refused as error:
        return failed(str(error), error.code)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        close_output()
        return BROKEN_PIPE
    except OSError as error:
        return failed(reason_of(error), 2)
    except others as error:
        return failed(str(error), 2)
    except (RecursionError, MemoryError) as error:
        return failed(f"a file is too large or nested too deeply ({type(error).__name__})", 2)
    return code


def end(code: int) -> None:
    """End this process here, unless work may be left for its end: then return.

    All else that Python does at its end is to free every object, which takes as long as dozens of
    imports.
    """
    if not _LAST_WORK.isdisjoint(sys.modules):
        return
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except (AttributeError, OSError, ValueError):  # None, broken or closed: Python's end knows how
        return
    os._exit(code)


def reason_of(error: OSError) -> str:
    """An error of the operating system in plain words, with the file that it is about."""
    reason = error.strerror or str(error) or type(error).__name__
    return f"{os.fsdecode(error.filename)}: {reason}" if error.filename else reason


def close_output() -> None:
    """Point the standard output at nothing: whoever read it is gone, or its disk is full."""
    with contextlib.suppress(OSError, ValueError):  # ValueError: it is no file at all
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)


_PLAIN = frozenset({Kind.TEXT, Kind.LINES, Kind.CHOICE, Kind.FOLDER, Kind.FILE, Kind.NUMBER,
                    Kind.DURATION})  # fmt: skip


def quick(arguments: Sequence[str], fields: Sequence[Field]) -> SimpleNamespace | None:
    """What plainly written arguments say, option by option.

    Returns:
        The values by the fields' names, those that are not given at their ``empty``. None where
        anything is abbreviated, joined, missing or wrong: then the parser must say what it means
        (see `parser`).
    """
    known = {each.option: each for each in fields}
    given: dict[str, Any] = {}
    placed = []
    words = iter(arguments)
    for word in words:
        field = known.get(word)
        if field is None:
            placed.append(word)
            continue
        value = True if field.kind is Kind.FLAG else _value(field, next(words, "-"))
        if value is None:
            return None
        given[field.name] = value
    by_position = (each for each in fields if each.position and each.name not in given)
    for word in placed:
        field = next(by_position, None)
        value = None if field is None else _value(field, word)
        if field is None or value is None:
            return None
        given[field.name] = value
    if any(each.required and not given.get(each.name) for each in fields):
        return None
    return SimpleNamespace(**{each.name: given.get(each.name, each.empty) for each in fields})


def _value(field: Field, word: str) -> Any:
    """What a word says for a field; None where that must be looked at more closely."""
    if word.startswith("-") or field.kind not in _PLAIN:
        return None
    if field.kind is Kind.DURATION:
        plain = word.isascii() and word.replace(".", "", 1).isdigit() and len(word) < 8
        return float(word) if plain and field.least is field.most is None else None
    if field.kind is Kind.NUMBER:
        plain = word.isascii() and word.isdigit() and len(word) < 16
        return int(word) if plain and field.least is field.most is None else None
    return None if field.choices and word not in field.choices else word


FOLDER = PLACE
"""The collaboration, by position or by name; the folder in which one stands where none is given."""

NAMED_FOLDER = PLACE._replace(default=None, required=True)
"""The collaboration, by position or by name, and always said: that of the commands that agents run."""

JSON = Field("json", help="Print one JSON object.", kind=Kind.FLAG, form=False)

DRY_RUN = Field(
    "dry_run", help="Show what would change; change nothing.", kind=Kind.FLAG, form=False
)

MATTER = Field(
    "matter", help="Refuse if the card has changed since `acp card` showed this digest.",
    metavar="DIGEST", form=False,
)  # fmt: skip

YES = Field("yes", help="Do not ask for confirmation.", kind=Kind.FLAG, form=False)

BY = Field(
    "by",
    "By",
    "Record this name as the person who acts [default: your account].",
    metavar="NAME",
    form=False,
)

REASON = Field("reason", "Reason", "Say why.", Kind.LINES, required=True, metavar="TEXT")

AGENT = Field(
    "agent", "Agent", "Choose the agent of one participant, or (without NAME) of all others.",
    Kind.LIST, metavar="[NAME=]PRESET", form=False, suggests=PRESETS, owner=True,
)  # fmt: skip

MODEL = Field("model", "Model", "Choose the agent's model (empty: the agent's default).",
              metavar="NAME", owner=True)  # fmt: skip

TIMEOUT = Field("timeout", "Timeout", "Time limit of one attempt.", Kind.DURATION, owner=True)
DEADLINE = Field("deadline", "Deadline", "Time limit of the whole run.", Kind.DURATION, owner=True)

JOBS = Field("jobs", "Agents at the same time", "Limit how many agents work at once.", Kind.NUMBER,
             owner=True)  # fmt: skip

RETRIES = Field("retries", "Retries", "Limit how often a failed attempt is repeated.", Kind.NUMBER,
                owner=True)  # fmt: skip

DETACH = Field(
    "detach", help="Run in the background: do not wait for the end.", kind=Kind.FLAG, form=False
)

ONCE = Field(
    "once", help="Start the agent for each attempt, even if it can hold a live session.",
    kind=Kind.FLAG, form=False, owner=True,
)  # fmt: skip

PERMISSIONS = Field(
    "permissions", "Permissions",
    "Decide what a live session may do without asking (default: the policy in config.toml).",
    Kind.CHOICE, choices=("ask", "edits", "all", "none"), metavar="POLICY", form=False,
    owner=True,
)  # fmt: skip

BUDGET = Field(
    "budget", "Budgets",
    "Limit what is spent: SCOPE is turn, participant, collaboration or day; AMOUNT is 2.50usd or "
    "10Mtokens.", Kind.LIST, metavar="SCOPE=AMOUNT", owner=True,
)  # fmt: skip

FORCE = Field("force", "Overwrite", "Overwrite existing files.", Kind.FLAG)

UNLOCKED = Field(
    "unlocked", help="Write even if locks do not work on this file system.",
    kind=Kind.FLAG, form=False,
)  # fmt: skip
