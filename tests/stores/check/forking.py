"""`acp` as processes that are forked from one that has imported everything, many at a time.

Run as a program it is the server: a request a line on its standard input; the process number and the
end of each process a line on its standard output. It has one thread. `Forks` is the other end.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import psutil

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 300.0  # more than acp itself waits for an answer of `acp sync`
_IMPORTED = (
    "acp_core.stores",
    "acp_core.cli",
    "acp_core.protocols.folder",
    "acp_core.protocols.kit",
)

_USED = ("acp_tui.__main__", "tests.faults.clocks", "tests.stores.process")


class Running:
    """A process of `Forks`."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.pid = 0
        self.code: int | None = None
        self._begun = threading.Event()
        self._ended = threading.Event()

    def told(self, answer: Mapping[str, Any]) -> None:
        """What the server says of it."""
        if "pid" in answer:
            self.pid = answer["pid"]
            self._begun.set()
        else:
            self.code = answer["code"]
            self._ended.set()

    def ends_within(self, seconds: float) -> bool:
        """Wait for its end, so long at most; whether it came."""
        return self._ended.wait(seconds)

    def wait(self) -> int:
        """Wait for its end; its exit code, that of a kill negative."""
        if not self._ended.wait(PATIENCE):
            self.kill()
            raise AssertionError(f"a command hangs: {self.said()}")
        assert self.code is not None
        return self.code

    def kill(self, *, alone: bool = False) -> None:
        """SIGKILL, for all that it has started, too, unless ``alone``."""
        self._begun.wait(PATIENCE)
        if self._ended.is_set():
            return
        try:
            top = psutil.Process(self.pid)
            top.suspend()  # it cannot start another one meanwhile
            for each in [] if alone else top.children(recursive=True):
                _signal(each.pid, signal.SIGKILL)
        except psutil.Error:
            pass
        _signal(self.pid, signal.SIGKILL)

    def signal(self, number: int) -> None:
        """Send it a signal, as long as it runs."""
        self._begun.wait(PATIENCE)
        if not self._ended.is_set():
            _signal(self.pid, number)

    def printed(self) -> str:
        """What it has written to its standard output."""
        return (self.place / "out").read_text(encoding="utf-8", errors="replace")

    def said(self) -> str:
        """What it has written to its standard error."""
        return (self.place / "err").read_text(encoding="utf-8", errors="replace")


class Forks:
    """A server, and the processes that it has forked.

    Args:
        place: a folder for what they print.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        self._place.mkdir(parents=True, exist_ok=True)
        self._all: dict[int, Running] = {}
        self._lock = threading.Lock()
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.stores.check.forking"], cwd=ROOT, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        threading.Thread(target=self._listen, daemon=True).start()

    def start(
        self, words: Sequence[str], env: Mapping[str, str], *, step: str = "", clock: float = 0.0
    ) -> Running:
        """Start ``acp``.

        Args:
            words: its arguments.
            env: its whole environment.
            step: a wish of `tests.stores.process`.
            clock: by how many seconds its clock is ahead.
        """
        with self._lock:
            id = len(self._all)
            place = self._place / str(id)
            place.mkdir()
            for name in ("out", "err"):
                (place / name).touch()
            made = self._all[id] = Running(place)
            request = {
                "id": id,
                "words": [*words],
                "env": dict(env),
                "place": str(place),
                "step": step,
                "clock": clock,
            }
            assert self._server.stdin
            self._server.stdin.write(json.dumps(request) + "\n")
            self._server.stdin.flush()
        return made

    def run(
        self, words: Sequence[str], env: Mapping[str, str], *, clock: float = 0.0
    ) -> tuple[int, str]:
        """Run ``acp`` to its end; its exit code, and all that it said."""
        process = self.start(words, env, clock=clock)
        code = process.wait()
        return code, process.printed() + process.said()

    def close(self) -> None:
        """End the server, and whatever of it still runs."""
        for each in self._all.values():
            if each.code is None and each.pid:
                each.kill()
        assert self._server.stdin
        self._server.stdin.close()
        self._server.wait(30)

    def _listen(self) -> None:
        assert self._server.stdout
        with self._server.stdout as lines:
            for line in lines:
                answer = json.loads(line)
                self._all[answer["id"]].told(answer)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _serve() -> None:
    for each in _USED:
        importlib.import_module(each)
    for name in _IMPORTED:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    gc.freeze()  # what is forked touches none of it
    ready, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    running: dict[int, int] = {}
    given = b""
    while True:
        select.select([0, ready], [], [])
        if select.select([ready], [], [], 0)[0]:
            os.read(ready, 4096)
        _reap(running)
        if not select.select([0], [], [], 0)[0]:
            continue
        data = os.read(0, 1 << 16)
        if not data:
            return
        *lines, given = (given + data).split(b"\n")
        for line in lines:
            request = json.loads(line)
            pid = os.fork()
            if pid == 0:
                os.close(ready)
                os.close(wake)
                _be(request)
            running[pid] = request["id"]
            print(json.dumps({"id": request["id"], "pid": pid}), flush=True)


def _reap(running: dict[int, int]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        print(
            json.dumps({"id": running.pop(pid), "code": os.waitstatus_to_exitcode(status)}),
            flush=True,
        )


def _be(request: Mapping[str, Any]) -> NoReturn:
    """Be the process that was asked for."""
    code: object = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(
                os.open(os.path.join(request["place"], name), os.O_WRONLY | os.O_APPEND), number
            )
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["env"]["HOME"])
        code = _command(request)
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


def _command(request: Mapping[str, Any]) -> int:
    import tempfile

    from acp_core.stores.engine import fault_point
    from acp_tui.__main__ import main
    from tests.faults.clocks import jumped
    from tests.stores.process import At

    time.tzset()
    tempfile.tempdir = None
    sys.argv = ["acp", *request["words"]]
    if request["step"]:
        fault_point.listener = At(request["step"])
    with jumped(request["clock"]) if request["clock"] else contextlib.nullcontext():
        return main(request["words"])


if __name__ == "__main__":
    _serve()
