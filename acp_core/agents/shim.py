"""Runs one program and writes down how it ended, although whoever started it may be gone by then.

``python -I -S shim.py FOLDER PROGRAM WORD...`` holds ``FOLDER/lock`` as long as the program runs,
with its own process id in it, and leaves ``FOLDER/exit``: the exit code, or the signal's number
with a minus. In one folder a program is run once only. It leads its own process group; what the
program leaves running ends with it. Standard library only, and little of it: each run pays for it.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import time

LOCK, EXIT = "lock", "exit"
_ASKED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(folder: str, argv: list[str]) -> int:
    """Run the program of ``argv``; returns the exit code of this process."""
    lock = os.open(os.path.join(folder, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not _locked(lock) or os.path.exists(os.path.join(folder, EXIT)):
        return 0
    os.ftruncate(lock, 0)
    os.write(lock, b"%d" % os.getpid())
    for number in _ASKED:  # a handler, not SIG_IGN: the program would inherit that
        signal.signal(number, lambda *_: None)
    try:
        child = os.posix_spawn(
            argv[0], argv, os.environ, setsigdef=(signal.SIGPIPE, signal.SIGXFSZ)
        )
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except OSError as error:
        print(f"{argv[0]}: {error.strerror}", file=sys.stderr, flush=True)
        code = 127
    temporary = os.path.join(folder, f".{EXIT}")
    with open(temporary, "w", encoding="ascii", opener=_private) as file:
        file.write(str(code))
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, os.path.join(folder, EXIT))
    if os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    return 0


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _locked(lock: int) -> bool:
    for _ in range(25):  # who only looks whether it is held holds it for a moment
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            time.sleep(0.02)
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
