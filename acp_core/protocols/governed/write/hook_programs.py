"""Running a hook's program: a payload file, an environment, a timeout, and nothing left behind.

Source: governed protocol specification, "Coordinator hooks" (the contract of plugin hooks). Standard
library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from acp_core.files.secrets import mask
from acp_core.model.text import clean_line
from acp_core.protocols.governed.schema import Object

_GRACE = 2.0  # seconds between SIGTERM and SIGKILL

_TAIL = 4_000  # bytes of what it printed that are looked at


_MOST = 1 << 20  # bytes of its standard output that are kept


class Ran(NamedTuple):
    """How it ended: ``code`` is None where it was ended at its timeout.

    ``output`` is the end of what it printed, safe to show; ``out`` its standard output as it is.
    """

    code: int | None
    output: str
    out: bytes = b""


@contextlib.contextmanager
def payload_file(payload: Object) -> Iterator[str]:
    """A file with the payload, which only the user may read; it is removed afterwards.

    Raises:
        OSError: it cannot be written.
    """
    descriptor, path = tempfile.mkstemp(prefix="acp-hook-", suffix=".json")
    try:
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump(payload, file, ensure_ascii=False, indent=1)
            file.write("\n")
        yield path
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


def run(
    words: Sequence[str],
    root: Path,
    env: Mapping[str, str],
    seconds: float,
    most: int,
    given: str = os.devnull,
) -> Ran:
    """Run a program and wait for it; with it ends whatever it started.

    Args:
        words: the program and its arguments; no shell takes part.
        root: where it runs.
        env: all of its environment.
        seconds: after which it is ended.
        most: characters of what it printed that are kept.
        given: the file that is its standard input.

    Raises:
        OSError: it cannot be started.
    """
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        open(given, "rb") as read,
    ):
        process = subprocess.Popen(
            list(words),
            cwd=root,
            env=dict(env),
            stdin=read,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        late = False
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            late = True
            _signal(process, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)
        finally:
            _signal(process, signal.SIGKILL)
            process.wait()
        output = "\n".join(filter(None, (_tail(out), _tail(err))))
        out.seek(0)
        printed = out.read(_MOST)
    code = None if late else process.returncode
    return Ran(code, clean_line(mask(output)[-most:], most), printed)


def _tail(file: IO[bytes]) -> str:
    file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
    return file.read().decode("utf-8", "replace").strip()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """To the whole group: also to what the program started and left behind."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, number)
