"""Runs ``acp`` in processes that can be killed, several at once, without starting Python for each.

Run as a program it is a small server, which has imported everything and forks; `Looker` is the other end.
"""

from __future__ import annotations

import contextlib
import json
import os
import pkgutil
import signal
import subprocess
import sys
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from acp_core import cli, diagnosis, fleet, history
from tests.faults import lowered
from tests.faults.fleet_reader import HERE
from tests.faults.looking import FAULT, Ran


class Look(NamedTuple):
    """A command that was begun, and where it writes."""

    pid: int
    place: str


class Looker:
    """Begins commands and waits for them."""

    def __init__(self) -> None:
        self._server = self._serving()
        self._begun: set[int] = set()

    def _serving(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.faults.looker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).resolve().parents[2],
            text=True,
        )

    def begin(self, place: Path, *words: str, alone: bool = False, **env: str) -> Look:
        """Begin a command.

        Args:
            place: what it prints goes into files that begin so.
            words: its words.
            alone: whether it starts no reading process.
            env: more variables of the environment.
        """
        request = {"words": words, "place": str(place), "alone": alone, "env": env}
        look = Look(self._ask(request), str(place))
        self._begun.add(look.pid)
        return look

    def end(self, look: Look) -> Ran:
        """Wait for a command; its exit code is negative where it was killed.

        Raises:
            AssertionError: a fault of acp's own shows.
        """
        code = self._ask({"wait": look.pid})
        self._begun.discard(look.pid)
        out, err = (Path(look.place + name).read_text() for name in (".out", ".err"))
        assert "Traceback" not in err and FAULT not in err, err
        return Ran(code, out, err)

    def _ask(self, request: dict[str, Any]) -> int:
        assert self._server.stdin and self._server.stdout
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())

    def begin_anew(self) -> None:
        """End all that was begun, after a failure: a command may not have ended."""
        if self._begun:
            self.close()
            self._server = self._serving()

    def close(self) -> None:
        """End the server, and whatever it began that nobody waited for."""
        assert self._server.stdin and self._server.stdout
        for pid in self._begun:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._begun.clear()
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()


def _serve() -> None:
    from acp_tui.__main__ import main
    from tests.faults.shim import import_everything

    import_everything()
    for package in (cli, diagnosis, fleet, history):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith(".__main__"):
                import_module(found.name)
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            print(os.waitstatus_to_exitcode(status), flush=True)
            continue
        pid = os.fork()
        if not pid:
            _child(main, request)
        print(pid, flush=True)


def _child(main: Any, request: dict[str, Any]) -> None:
    code = 99
    try:
        os.environ.update(request["env"])
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        for number, name in ((1, ".out"), (2, ".err")):
            made = os.open(request["place"] + name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
            os.dup2(made, number)
        lowered.big_fleets("" if request["alone"] else HERE)
        code = main(request["words"])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 2
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
