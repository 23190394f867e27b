"""The supervisor's end of the worker that reads collaborations (`acp_core.loops.due`)."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterable
from typing import IO, NamedTuple

from acp_core.agents.background import importable
from acp_core.protocols.processes import DUE

_PATIENCE = 20.0  # seconds for an answer: then the loops look themselves


class Answer(NamedTuple):
    """Who has something to do.

    Attributes:
        folder: the collaboration.
        due: the participants; all of them where that could not be found out.
    """

    folder: str
    due: frozenset[str]


class Worker:
    """A process that is there when it is needed: it ends by itself when it is idle."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._asked: Answer | None = None
        self._until = 0.0

    @property
    def busy(self) -> bool:
        """Whether an answer is waited for."""
        return self._asked is not None

    @property
    def answers(self) -> IO[bytes] | None:
        """What can be read once there is an answer, or the worker ended."""
        return self._process.stdout if self._process else None

    def seconds_left(self) -> float:
        """How long an answer may still take."""
        return self._until - time.monotonic()

    def ask(self, folder: str, participants: Iterable[str]) -> None:
        """Ask who of some participants has something to do. `answer` says it."""
        self._asked = Answer(folder, frozenset(participants))
        self._until = time.monotonic() + _PATIENCE
        line = json.dumps([folder, sorted(self._asked.due)]).encode() + b"\n"
        for _ in range(2):  # one that was idle may just be ending
            if self._write(line):
                return
        self._until = 0.0

    def _write(self, line: bytes) -> bool:
        try:
            if self._process is None or self._process.poll() is not None:
                self.close()
                self._process = _start()
            assert self._process.stdin is not None
            self._process.stdin.write(line)
        except OSError:
            self.close()
            return False
        return True

    def answer(self) -> Answer | None:
        """The answer to what was asked last; None where it is still waited for."""
        asked = self._asked
        if asked is None:
            return None
        out = self.answers
        if out is None or self.seconds_left() <= 0:
            self.close()
        elif not select.select([out], [], [], 0)[0]:
            return None
        self._asked = None
        try:
            return Answer(asked.folder, frozenset(json.loads(out.readline() if out else b"")))
        except (ValueError, TypeError):  # it has ended, or was ended
            self.close()
            return asked

    def close(self) -> None:
        """End it."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for each in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    if each:
                        each.close()


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", DUE.module],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={**os.environ, **importable()},
    )
