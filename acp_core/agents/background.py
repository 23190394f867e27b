"""Processes of ours in the background: started as modules, they outlive whoever started them.

The starter gives the module what it needs on the standard input; the module says on its standard
output that it runs, or in one line why it does not. Then it belongs to the system.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import TypeVar

import acp_core
from acp_core.agents import codec
from acp_core.model.errors import NotStarted

_READY = b"ready\n"
_ASKED = 1 << 20  # bytes of what is asked for
Ready = Callable[[], None]
T = TypeVar("T")


def importable() -> dict[str, str]:
    """What makes this acp importable for a child that runs it as a module."""
    ours = os.path.dirname(os.path.dirname(os.path.abspath(acp_core.__file__)))
    others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    if ours in others or os.path.basename(ours) in ("site-packages", "dist-packages"):
        return {}
    return {"PYTHONPATH": os.pathsep.join([ours, *others])}


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a child that runs a module of this acp."""
    return {**os.environ, **importable(), **(more or {})}


def start(
    module: str,
    words: tuple[str, ...] = (),
    given: bytes = b"",
    env: Mapping[str, str] | None = None,
) -> None:
    """Start a module that calls `run`, and wait until it runs.

    Args:
        module: its name.
        words: its arguments.
        given: for its standard input.
        env: more environment variables.

    Raises:
        NotStarted: it does not run.
    """
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=environment(env),
            start_new_session=True,
        )
    except OSError as error:
        raise NotStarted(f"{sys.executable}: {error.strerror or error}") from None
    with process:
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(given)
            process.stdin.close()
        answer = process.stdout.readline(4096)
        if answer != _READY:
            answer += process.stdout.read(1 << 16)
            said = answer.decode(errors="replace").strip().splitlines()
            raise NotStarted(said[-1] if said else "")


def run(work: Callable[[Ready], int], *refusals: type[Exception]) -> int:
    """Do the work in a process for which nobody has to wait.

    Args:
        work: calls what it is given once it runs; gives the exit code.
        refusals: exceptions that say why it does not run.

    Returns:
        The exit code; 2 where it was refused.
    """
    if os.fork():
        os._exit(0)  # nobody has to wait for it: it belongs to the system now
    try:
        return work(_let_go)
    except refusals as error:
        return refuse(str(error))


def run_asked(kind: type[T], work: Callable[[T, Ready], int], *refusals: type[Exception]) -> int:
    """As `run`, for work that is asked for on the standard input.

    Args:
        kind: the dataclass that says what is asked for.
        work: gets it, and is called as by `run`.
        refusals: exceptions that say why it does not run.

    Returns:
        The exit code; 2 where it was refused.
    """
    try:
        asked = codec.decode(kind, sys.stdin.buffer.read(_ASKED))
    except codec.CodecError as error:
        return refuse(str(error))
    return run(lambda ready: work(asked, ready), *refusals)


def refuse(text: str) -> int:
    """Tell the starter why it does not run. Returns the exit code."""
    with contextlib.suppress(OSError):
        os.write(1, f"{text}\n".encode(errors="replace"))
    return 2


def _let_go() -> None:
    """Say that it runs, and hold nothing of whoever started it any longer."""
    with contextlib.suppress(OSError):
        os.write(1, _READY)
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    os.close(nothing)
