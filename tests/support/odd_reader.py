"""A process that reads for a fleet, as it should, or doing what ``ACP_TESTS_READER`` says.

It leaves a file with its id in the folder that ``ACP_TESTS_READERS`` names.
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

from acp_core.files import tree_state
from acp_core.fleet import reader

HERE = "tests.support.odd_reader"
LONG = 3_600.0  # s


def _killed(data: bytes) -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return data


def _one_killed(data: bytes) -> bytes:
    """The first one that gets so far."""
    with contextlib.suppress(FileExistsError):
        _note().parent.with_suffix(".killed").touch(exist_ok=False)
        return _killed(data)
    return data


def _hangs(data: bytes) -> bytes:
    time.sleep(LONG)
    return data


def _elsewhere(data: bytes) -> bytes:
    return data.replace(b'["/', b'["/elsewhere/', 1)


def _exchanged(data: bytes) -> bytes:
    """Each with what was made of another one."""
    answers = [json.loads(line) for line in data.splitlines()]
    if len(answers) == 1:
        return _elsewhere(data)  # there is no other one
    keys = [key for key, *_ in answers]
    told = [[key, *rest] for key, (_, *rest) in zip(keys[1:] + keys[:1], answers, strict=True)]
    return b"".join(json.dumps(each).encode() + b"\n" for each in told)


def _changed(data: bytes) -> bytes:
    """Somebody works on one of them meanwhile."""
    folder = Path(json.loads(data.splitlines()[0])[0])
    with (folder / "review.md").open("a") as file:
        file.write("\n## Late\n\nOne word more.\n")
    return data


def _told(data: bytes) -> bytes:
    """Leave a note of everything that it holds."""
    names = [
        os.readlink(f"/proc/self/fd/{each}") for each in sorted(os.listdir("/proc/self/fd"))[:-1]
    ]
    told = {"files": names, "nice": os.nice(0), "modules": sorted(sys.modules)}
    _note().write_text(json.dumps(told))
    return data


KINDS: dict[str, Callable[[bytes], bytes]] = {
    "killed": _killed,
    "one killed": _one_killed,
    "hangs": _hangs,
    "garbage": lambda data: b"\xff{]\n",
    "other JSON": lambda data: b'[1, 2]\n"x"\n',
    "a damaged entry": lambda data: data.replace(b'["folder"', b"[7", 1),
    "a line without an end": lambda data: b"x" * 4_096,
    "another folder": _elsewhere,
    "exchanged": _exchanged,
    "changed": _changed,
    "told": _told,
    "": lambda data: data,
}  # fmt: skip


def _note() -> Path:
    return Path(os.environ["ACP_TESTS_READERS"], str(os.getpid()))


def main() -> int:
    """Read. Returns the exit code."""
    _note().touch()
    kind, write = os.environ.get("ACP_TESTS_READER", ""), reader.write
    if kind == "cannot start":
        return 1
    tree_state.now = lambda: time.time() + LONG
    reader.write = lambda out, data: write(out, KINDS[kind](data))
    return reader.main()


if __name__ == "__main__":
    sys.exit(main())
