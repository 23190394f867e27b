"""For pytest: collect all tests once, then run some of them in forked processes, on request.

The process that asks (``trials``) sends an object in a line, and reads what becomes of it in lines.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import json
import os
import socket
import subprocess
import sys
import time
from typing import IO, Any, NoReturn, cast

import pytest

from tests.mutation.patching import Loaded, Unpatchable
from tests.support import forked

CHANNEL = "ACP_TRIALS"  # the number of the socket of the process that asks
MARK = "ACP_TRIAL"  # in the environment of every process of one trial

_failed: list[str] = []


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> object:
    """In place of running the tests: wait for requests."""
    with socket.socket(fileno=int(os.environ.pop(CHANNEL))) as channel:
        serve(session, channel.makefile("rw", encoding="utf-8"))
    return True


@pytest.hookimpl
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember what failed, in the process that ran it."""
    if report.failed:
        _failed.append(f"{report.when}: {str(report.longrepr).rstrip()[-2000:]}")


def serve(session: pytest.Session, channel: IO[str]) -> None:
    """Answer requests until there are no more."""
    items = {item.nodeid: item for item in session.items}
    forked.import_everything()
    loaded = Loaded()
    gc.collect()
    gc.freeze()  # what is forked touches none of it
    _tell(channel, tests=list(items))
    for line in channel:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _be(request, [items[name] for name in request["tests"]], loaded, channel)
        _tell(channel, pid=child)
        _, status = os.waitpid(child, 0)
        _tell(channel, ended=os.waitstatus_to_exitcode(status))


def _be(
    request: dict[str, Any], items: list[pytest.Item], loaded: Loaded, channel: IO[str]
) -> NoReturn:
    """Run the tests until one fails, and tell which."""
    code = 1
    try:
        os.setsid()
        os.environ["PYTEST_DEBUG_TEMPROOT"] = request["place"]
        os.environ[MARK] = request["mark"]
        if request["changed"] is not None:
            path = request["path"]
            loaded.change(path, request["source"], request["changed"])
        forked.use(cast("subprocess.Popen[str]", _Commands()))
        code = _run(items, channel)
    except Unpatchable:
        _tell(channel, unpatchable=True)
    except BaseException as error:
        _tell(channel, failed=f"{type(error).__name__}: {error}"[:2000])
    finally:
        os._exit(code)


def _run(items: list[pytest.Item], channel: IO[str]) -> int:
    for item, after in zip(items, [*items[1:], None], strict=True):
        _tell(channel, begins=item.nodeid)
        begun = time.monotonic()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        if _failed:
            _tell(channel, failed=_failed[0])
            return 1
        _tell(channel, passed=time.monotonic() - begun)
    return 0


def _tell(channel: IO[str], **what: object) -> None:
    channel.write(json.dumps(what) + "\n")
    channel.flush()


class _Commands:
    """The process from which commands are forked: itself a fork of this one, with the change."""

    def __init__(self) -> None:
        asked, self._asks = os.pipe()
        self._reads, answers = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            self._serve(asked, answers)
        os.close(asked)
        os.close(answers)
        self.stdin = os.fdopen(self._asks, "w", encoding="utf-8")
        self.stdout = os.fdopen(self._reads, encoding="utf-8")

    def _serve(self, asked: int, answers: int) -> NoReturn:
        os.close(self._asks)
        os.close(self._reads)
        os.dup2(asked, 0)
        os.dup2(answers, 1)
        os.close(asked)
        os.close(answers)
        atexit._clear()  # what pytest and its plugins do at their end is not for commands
        sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), "utf-8")
        sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8")
        sys.path_importer_cache.clear()
        with contextlib.suppress(BrokenPipeError):
            forked.serve()
        os._exit(0)

    def poll(self) -> int | None:
        pid, status = os.waitpid(self._pid, os.WNOHANG) if self._pid else (0, 0)
        return os.waitstatus_to_exitcode(status) if pid else None

    def kill(self) -> None:
        os.kill(self._pid, 9)

    def wait(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
