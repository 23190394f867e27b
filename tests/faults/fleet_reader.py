"""A process that reads for a fleet until it does what ``ACP_TESTS_READER`` says.

That is ``WHICH WHAT NUMBER``: ``one`` or ``all`` of those that read do it, before they write for the
so many-th time. Each leaves a file with its id in the folder that ``ACP_TESTS_READERS`` names.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from acp_core.fleet import reader
from tests.faults import lowered

HERE = "tests.faults.fleet_reader"
_NOTES = "ACP_TESTS_READERS"
_BUSY, _FOR_EVER = 0.3, 3_600.0  # s

_Write = Callable[[int, bytes], None]


def _kill(out: int, data: bytes, write: _Write) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _tear(out: int, data: bytes, write: _Write) -> None:
    write(out, data[: len(data) // 2])
    os.kill(os.getpid(), signal.SIGKILL)


def _stop(out: int, data: bytes, write: _Write) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _end(out: int, data: bytes, write: _Write) -> None:
    os._exit(0)


def _wait(out: int, data: bytes, write: _Write) -> None:
    time.sleep(_BUSY)
    write(out, data)


def _hang(out: int, data: bytes, write: _Write) -> None:
    time.sleep(_FOR_EVER)


def _garbage(out: int, data: bytes, write: _Write) -> None:
    write(out, b"\xff{]\n")


def _twice(out: int, data: bytes, write: _Write) -> None:
    write(out, data + data)


def _exchange(out: int, data: bytes, write: _Write) -> None:
    """Each has what was made of another one."""
    answers = [json.loads(line) for line in data.splitlines()]
    keys = [key for key, *_ in answers]
    told = [[key, *rest] for key, (_, *rest) in zip(keys[1:] + keys[:1], answers, strict=True)]
    write(out, b"".join(json.dumps(each).encode() + b"\n" for each in told))


def _change(out: int, data: bytes, write: _Write) -> None:
    """Somebody replaces a file meanwhile, by one of the same size; at once, so that none sees a half."""
    path = Path(json.loads(data.splitlines()[0])[0], "protocol.json")
    with contextlib.suppress(OSError):
        made = Path(os.environ[_NOTES], f"{os.getpid()}-made")
        made.write_bytes(path.read_bytes().replace(b"a", b"A"))
        made.replace(path)
    write(out, data)


def rename(folder: Path) -> None:
    """Change a letter of what rows show of a shared folder, and nothing of size or time."""
    for path in (folder / "protocol.json", folder / "events.jsonl"):
        with contextlib.suppress(OSError):
            found, data = path.stat(), path.read_bytes()
            path.write_bytes(data.replace(b"a", b"A") if b"a" in data else data.replace(b"A", b"a"))
            os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


WHAT: dict[str, Callable[[int, bytes, _Write], None]] = {
    "kill": _kill,
    "tear": _tear,
    "stop": _stop,
    "end": _end,
    "wait": _wait,
    "hang": _hang,
    "garbage": _garbage,
    "twice": _twice,
    "exchange": _exchange,
    "change": _change,
}


def main() -> int:
    """Read. Returns the exit code."""
    notes = Path(os.environ[_NOTES])
    (notes / str(os.getpid())).touch()
    lowered.big_fleets(HERE)
    which, what, number = (os.environ.get("ACP_TESTS_READER") or "all nothing 0").split()
    left, write = int(number), reader.write

    def odd(out: int, data: bytes) -> None:
        nonlocal left
        left -= 1
        if left or what not in WHAT or (which == "one" and not _is_first(notes)):
            write(out, data)
        else:
            WHAT[what](out, data, write)

    reader.write = odd
    return reader.main()


def _is_first(notes: Path) -> bool:
    with contextlib.suppress(FileExistsError):
        (notes / "first").touch(exist_ok=False)
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
