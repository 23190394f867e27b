"""Killing a command before its k-th file operation, or making that operation fail.

Run as a program it is a small server: one request a line on the standard input, one answer a
line on the standard output. It has imported everything already and forks for each request, so
that a run costs milliseconds, and it is a process of its own with one thread, so that forking
is safe. `Faults` is the other end.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.faults import lowered
from tests.faults.recorder import Recorder

KILLED = 137
CHANGING = (
    "open", "write", "replace", "rename", "link", "unlink", "mkdir", "fsync", "fdatasync",
    "ftruncate", "fchmod", "close",
)  # fmt: skip
READING = ("fstat", "stat", "lstat", "lseek", "pread", "read", "listdir")
ERRORS = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC, "EINTR": errno.EINTR}


class Run(NamedTuple):
    """How a run ended: its exit code, which operations it got to, and what it printed.

    Of a ``record`` the operations are those of `recorder.Recorder`, and ``data`` is its.
    """

    code: int
    names: tuple[str, ...]
    out: str
    err: str
    data: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Run(code={self.code}, out={self.out!r}, err={self.err!r})"

    @property
    def calls(self) -> int:
        """How many operations it got to."""
        return len(self.names)


class Faults:
    """Runs commands in which something goes wrong."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.shim"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).resolve().parents[2],
            text=True,
            encoding="utf-8",
        )

    def run(
        self, *argv: str, kind: str = "none", at: int = 0, env: dict[str, str] | None = None
    ) -> Run:
        """Run ``acp`` with these arguments.

        Args:
            argv: the command's name and its arguments.
            kind: ``kill`` (before operation ``at``), ``tear`` (killed in the middle of the first write
                from there on), ``short`` (the write takes only a half), a name of `ERRORS` (it
                fails so), ``record`` (nothing does), or ``none``.
            at: which operation, from 1.
            env: more variables of the environment.
        """
        assert self._server.stdin and self._server.stdout
        request = {"argv": argv, "kind": kind, "at": at, "env": env or {}}
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        answer = json.loads(self._server.stdout.readline())
        names, data = tuple(answer["names"]), tuple(answer.get("data", ()))
        return Run(answer["code"], names, answer["out"], answer["err"], data)

    def close(self) -> None:
        """End the server."""
        assert self._server.stdin and self._server.stdout
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()


class _Injector:
    """Counts file operations, and lets the chosen one go wrong."""

    def __init__(self, kind: str, at: int, on_kill: Any) -> None:
        self.kind, self.at, self.on_kill = kind, at, on_kill
        self.names: list[str] = []

    def install(self) -> None:
        names = CHANGING if self.kind in ("kill", "tear", "short", "count") else CHANGING + READING
        for name in names:
            setattr(os, name, self._wrap(name, getattr(os, name)))

    def _wrap(self, name: str, real: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.names.append(name)
            # The operations of two runs may differ by one: torn is the first write from there on.
            torn = self.kind == "tear" and name == "write" and len(self.names) >= self.at > 0
            if torn or len(self.names) == self.at:
                self._go_wrong(name, real, args)
                if self.kind == "short" and name == "write":
                    return real(args[0], bytes(args[1])[: len(args[1]) // 2])
            if name in ("fsync", "fdatasync"):
                return None  # nobody pulls the plug here, and disks are slow
            return real(*args, **kwargs)

        return call

    def _go_wrong(self, name: str, real: Any, args: Any) -> None:
        if self.kind == "kill":
            self.on_kill()
        if self.kind == "tear" and name == "write":
            real(args[0], bytes(args[1])[: len(args[1]) // 2])
            self.on_kill()
        if self.kind in ERRORS:
            if name == "close":
                real(*args)
            number = ERRORS[self.kind]
            raise OSError(number, os.strerror(number))


def _serve() -> None:
    from acp_core.protocols import registry

    commands = {c.name: registry.load(c.target) for p in registry.bundled() for c in p.commands}
    commands["watch an agent"] = _watch
    import_everything()
    for line in sys.stdin:
        request = json.loads(line)
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            _child(commands, request, writing)
        os.close(writing)
        with open(reading, "rb") as pipe:
            answer = json.loads(pipe.read() or b"{}")
        _, status = os.waitpid(pid, 0)
        answer["code"] = os.waitstatus_to_exitcode(status)
        print(json.dumps({"names": [], "out": "", "err": ""} | answer), flush=True)


def _watch(arguments: list[str]) -> int:
    """What runs beside a dispatched agent of workspaces: no command, but a process of its own."""
    from acp_core.protocols.workspaces.conduct.detached import watch

    folder, agent, attempt = arguments
    watch(folder, agent, int(attempt))
    return 0


def import_everything() -> None:
    """So that a run does not spend its time on imports, nor on waiting for writers: none is there."""
    import difflib  # noqa: F401
    import pkgutil
    from importlib import import_module

    from acp_core.files import locked
    from acp_core.protocols.folder.read import facts

    locked.QUIET = 0.0
    assert facts.Facts.__init__.__kwdefaults__
    facts.Facts.__init__.__kwdefaults__["grace"] = 0.0

    for protocol in ("folder", "workspaces", "governed", "cycle"):
        package = import_module(f"acp_core.protocols.{protocol}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".skill.data" not in found.name:
                import_module(found.name)
    lowered.as_told()


def _child(commands: dict[str, Any], request: dict[str, Any], pipe: int) -> None:
    real_write, out, err = os.write, io.StringIO(), io.StringIO()

    def answer() -> None:
        text = {
            "names": injector.names or recorder.calls,
            "data": recorder.data,
            "out": out.getvalue(),
            "err": err.getvalue(),
        }
        data = json.dumps(text).encode()
        while data:
            data = data[real_write(pipe, data) :]

    def die() -> None:
        answer()
        os._exit(KILLED)

    os.environ.update(request["env"])
    sys.stdin = io.StringIO()
    injector = _Injector(request["kind"], request["at"], die)
    recorder = Recorder()
    name, *arguments = request["argv"]
    code = 99
    try:
        (recorder if request["kind"] == "record" else injector).install()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = commands[name](arguments)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 2
    except BaseException as error:  # a traceback is what must never happen
        err.write(f"TRACEBACK {error!r}")
        code = 98
    answer()
    os._exit(code)


if __name__ == "__main__":
    _serve()
