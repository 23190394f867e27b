"""`acp` as a process that need not import first: forked from one that has imported everything.

Run as a program it is a small server: a request a line on the standard input, an answer a line on
the standard output. It has one thread and starts nothing itself, so that forking is safe. What it
forks is a process like any other, with its own environment, folder, input and output. `run` is the
other end, and `start` for what goes on beside the test. With ``ACP_TESTS_FRESH`` set every command is a fresh interpreter instead.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]
FRESH = "ACP_TESTS_FRESH"
PATIENCE = 60.0
_LEFT_OUT = ("acp_tui.screens", "acp_tui.widgets", "tests.bench")  # heavy, and not for commands
_server: subprocess.Popen[str] | None = None


def can(env: Mapping[str, str]) -> bool:
    """Whether a process with this environment can be forked: no new interpreter is asked for."""
    own = {name for name in env if name.startswith("PYTHON")}
    same = {name for name in own if env[name] == os.environ.get(name)}
    return not os.environ.get(FRESH) and own - same <= {"PYTHONPATH"}


def run(
    arguments: tuple[str, ...], cwd: Path, env: Mapping[str, str], typed: str
) -> subprocess.CompletedProcess[str]:
    """Run ``acp`` with these arguments to its end."""
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "0").write_text(typed, encoding="utf-8")
        request = {"argv": arguments, "cwd": str(cwd), "env": dict(env), "place": place}
        code = _ask(request)
        out, err = ((Path(place) / name).read_text(encoding="utf-8") for name in "12")
    return subprocess.CompletedProcess(["acp", *arguments], code, out, err)


class Started:
    """A process that goes on beside the test."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.pid = int(self._once("pid"))

    def line(self) -> str:
        """The first line of its output; nothing where it ended without one."""
        ends = time.monotonic() + PATIENCE
        while True:
            ended = self._file("code").exists()
            said = self._file("1").read_text(encoding="utf-8")
            if "\n" in said or ended:
                return said.partition("\n")[0]
            assert time.monotonic() < ends, "waited too long for a line of a process"
            time.sleep(0.002)

    def said(self) -> str:
        """What it has written to its standard error."""
        return self._file("2").read_text(encoding="utf-8")

    def end(self, number: int) -> tuple[int, str]:
        """Send it a signal, and wait for its end; its exit code, and its standard error."""
        if not self._file("code").exists():
            with contextlib.suppress(ProcessLookupError):  # it ended just now, by itself
                os.kill(self.pid, number)
        return int(self._once("code")), self.said()

    def _file(self, name: str) -> Path:
        return self._place / name

    def _once(self, name: str) -> str:
        """What a file holds, once it is there."""
        ends = time.monotonic() + PATIENCE
        while not self._file(name).exists():
            assert time.monotonic() < ends, f"waited too long for the {name} of a process"
            time.sleep(0.002)
        return self._file(name).read_text(encoding="ascii")


def start(arguments: tuple[str, ...], cwd: Path, env: Mapping[str, str]) -> Started:
    """Start ``acp`` with these arguments; the test ends it."""
    place = Path(tempfile.mkdtemp())
    for name in "012":
        (place / name).touch()
    _ask({"argv": arguments, "cwd": str(cwd), "env": dict(env), "place": str(place), "keep": True})
    return Started(place)


def _ask(request: dict[str, Any]) -> int:
    """What the server answers."""
    global _server
    if _server is None or _server.poll() is not None:
        # It outlives the test that begins it, and is none of what that test started.
        env = {name: text for name, text in os.environ.items() if name != "ACP_STATE"}
        _server = subprocess.Popen(
            [sys.executable, "-m", "tests.support.forked"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            cwd=ROOT, env=env, text=True, encoding="utf-8",
        )  # fmt: skip
        atexit.register(_end, _server)
    assert _server.stdin and _server.stdout
    try:
        _server.stdin.write(json.dumps(request) + "\n")
        _server.stdin.flush()
        return int(_server.stdout.readline())
    except BaseException:  # a time limit, or an interrupt: its answer would be taken for the next
        _server.kill()
        _server = None
        raise


def _end(server: subprocess.Popen[str]) -> None:
    assert server.stdin and server.stdout
    server.stdin.close()
    server.wait()
    server.stdout.close()


def use(server: subprocess.Popen[str]) -> None:
    """Ask a server that another has started, in place of one of our own."""
    global _server
    _server = server


def serve() -> None:
    """Answer requests on the standard input until there are no more."""
    import_everything()
    gc.freeze()  # what is forked touches none of it
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            if request.get("keep"):
                _keep(request)
            _be(request)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _keep(request: dict[str, Any]) -> None:
    """Let the server go on; returns in the process that was asked for, whose end another awaits."""
    if os.fork():
        os._exit(0)
    child = os.fork()
    if child == 0:
        return
    _tell(request, "pid", child)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(FileNotFoundError):  # the test is over, with all of its files
        _tell(request, "code", os.waitstatus_to_exitcode(status))
    os._exit(0)


def _tell(request: dict[str, Any], name: str, value: int) -> None:
    path = os.path.join(request["place"], name)
    with open(f"{path}.new", "w", encoding="ascii") as file:
        file.write(str(value))
    os.rename(f"{path}.new", path)


def import_everything() -> None:
    """Load every module that a command may need."""
    import acp_core
    import acp_tui.__main__

    for package in (acp_core, acp_tui):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            name = module.name
            if not name.endswith("__main__") and not name.startswith(_LEFT_OUT):
                importlib.import_module(name)


def _be(request: dict[str, Any]) -> NoReturn:
    """Be the process that was asked for."""
    for number, (name, how) in enumerate((("0", "r"), ("1", "w"), ("2", "w"))):
        with open(os.path.join(request["place"], name), how) as file:
            os.dup2(file.fileno(), number)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), "utf-8")
    sys.stdout, sys.stderr = (
        io.TextIOWrapper(io.BufferedWriter(io.FileIO(n, "w", closefd=False)), "utf-8", errors,
                         line_buffering=n == 2)
        for n, errors in ((1, "strict"), (2, "backslashreplace"))
    )  # fmt: skip
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    if request["env"].get(FRESH):
        os.execv(sys.executable, [sys.executable, "-m", "acp_tui", *request["argv"]])
    time.tzset()
    tempfile.tempdir = None
    signal.signal(signal.SIGINT, signal.default_int_handler)
    known = request["env"].get("PYTHONPATH", "")
    sys.path[:0] = [path for path in known.split(os.pathsep) if path and path not in sys.path]
    sys.argv = ["acp", *request["argv"]]
    code: object = 1
    try:
        from acp_tui.__main__ import main

        code = main(request["argv"])
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    serve()
