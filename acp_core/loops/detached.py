"""``python -m acp_core.loops.detached``: a loop in the background.

Started by `acp_core.loops.launch.start`, which gives it its spec on the standard input, and to
which it says on its standard output that it runs, or why it does not.
"""

from __future__ import annotations

import contextlib
import os
import sys

from acp_core.loops import process
from acp_core.loops.launch import READY, LaunchError
from acp_core.loops.spec import Spec
from acp_core.programs import codec


def main() -> int:
    """Run the loop that is asked for. Returns its exit code."""
    try:
        spec = codec.decode(Spec, sys.stdin.buffer.read(1 << 20))
    except codec.CodecError as error:
        return _refuse(str(error))
    if os.fork():
        os._exit(0)  # nobody has to wait for the loop: it belongs to the system now
    try:
        return process.run(spec, ready=_let_go)
    except LaunchError as error:
        return _refuse(str(error))


def _refuse(text: str) -> int:
    with contextlib.suppress(OSError):
        os.write(1, f"{text}\n".encode(errors="replace"))
    return 2


def _let_go() -> None:
    """Say that the loop runs, and hold nothing of whoever started it any longer."""
    with contextlib.suppress(OSError):
        os.write(1, READY)
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    os.close(nothing)


if __name__ == "__main__":
    sys.exit(main())
