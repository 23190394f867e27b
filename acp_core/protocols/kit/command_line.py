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
