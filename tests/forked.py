"""`acp` as a process that need not import first: forked from one that has imported everything.

Run as a program it is a small server: a request a line on the standard input, an answer a line on
the standard output. It has one thread and starts nothing itself, so that forking is safe. What it
forks is a process like any other, with its own environment, folder, input and output. `run` is the
other end. With ``ACP_TESTS_FRESH`` set every command is a fresh interpreter instead.
"""

from __future__ import annotations

import atexit
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
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[1]
FRESH = "ACP_TESTS_FRESH"
_LEFT_OUT = ("acp_tui.screens", "acp_tui.widgets", "acp_core.bench")  # heavy, and not for commands
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
    global _server
    if _server is None or _server.poll() is not None:
        _server = subprocess.Popen(
            [sys.executable, "-m", "tests.forked"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            cwd=ROOT, text=True, encoding="utf-8",
        )  # fmt: skip
        atexit.register(_end, _server)
    assert _server.stdin and _server.stdout
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "0").write_text(typed, encoding="utf-8")
        request = {"argv": arguments, "cwd": str(cwd), "env": dict(env), "place": place}
        _server.stdin.write(json.dumps(request) + "\n")
        _server.stdin.flush()
        code = int(_server.stdout.readline())
        out, err = ((Path(place) / name).read_text(encoding="utf-8") for name in "12")
    return subprocess.CompletedProcess(["acp", *arguments], code, out, err)


def _end(server: subprocess.Popen[str]) -> None:
    assert server.stdin and server.stdout
    server.stdin.close()
    server.wait()
    server.stdout.close()


def _serve() -> None:
    _import_everything()
    gc.freeze()  # what is forked touches none of it
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _be(request)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _import_everything() -> None:
    import acp_core
    import acp_tui.__main__

    for package in (acp_core, acp_tui):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            name = module.name
            if not name.endswith("__main__") and not name.startswith(_LEFT_OUT):
                importlib.import_module(name)


def _be(request: dict[str, Any]) -> NoReturn:
    """Be the process that was asked for."""
    import time

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
    _serve()
