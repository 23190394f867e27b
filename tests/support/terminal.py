"""A real terminal for measurements and tests: a program in a pseudo-terminal, its screen, its bytes.

The screen is drawn by ``pyte`` where that is installed. Without it, what the program wrote
last stands in for the screen, without its control sequences.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Any

# Sequences that the emulator would print as text: private ones, and strings for the terminal.
_UNKNOWN = re.compile(
    rb"\x1b[\]P_^][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[<>=][0-9;:]*[a-zA-Z]"
    rb"|\x1b\[\??[0-9;]*\$[a-z]|\x1b\[\?[0-9;]*u|\x1b\[[0-9;]*:[0-9;:]*m"
)
_UNFINISHED = re.compile(rb"\x1b(?:\[[0-9;:?<>=$ ]*|[\]P_^][^\x07\x1b]*\x1b?)?$")
_ANSWERS = {
    b"\x1b[c": b"\x1b[?62;4c",
    b"\x1b[?u": b"\x1b[?0u",
    b"\x1b[?2026$p": b"\x1b[?2026;2$y",
    b"\x1b[?2048$p": b"\x1b[?2048;0$y",
}


_CONTROL = re.compile(rb"\x1b\[[0-9;:?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>78]|[\x00-\x08\x0b-\x1f]")
ENOUGH = 1 << 16  # bytes that are drawn at once
MORE = 0.001  # s in which the next part of a picture comes
_KEPT = 200_000  # bytes of what was written last that stand in for a screen


class NotShown(AssertionError):
    """What was waited for did not come; the message holds the screen."""


class Written:
    """In place of an emulator: what was written last, without control sequences."""

    def __init__(self) -> None:
        self._text = b""

    @property
    def display(self) -> list[str]:
        """The text, as one line."""
        return [self._text.decode(errors="replace")]

    def feed(self, data: bytes) -> None:
        """Take what the program wrote."""
        self._text = (self._text + _CONTROL.sub(b"", data))[-_KEPT:]


def emulator() -> str:
    """What draws the screen: "pyte", or "" where it is not installed."""
    try:
        import pyte  # noqa: F401
    except ImportError:
        return ""
    return "pyte"


class Terminal:
    """Runs ``command`` in a pseudo-terminal of the given size until the block ends."""

    def __init__(
        self,
        command: list[str],
        *,
        columns: int = 120,
        rows: int = 36,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self._screen: Any
        self._stream: Any
        if emulator():
            import pyte

            self._screen = pyte.Screen(columns, rows)
            self._stream = pyte.ByteStream(self._screen)
        else:
            self._screen = self._stream = Written()
        self._rest = b""
        self.arrived = 0.0  # when the last bytes came, on the clock of `time.perf_counter`
        self.raw = bytearray()
        self.ended = False
        self.exit_code: int | None = None
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        for name in ("COLUMNS", "LINES", "NO_COLOR", "TMUX", "TEXTUAL"):
            environment.pop(name, None)
        environment.update(env or {})
        size = struct.pack("HHHH", rows, columns, 0, 0)
        self.begun = time.perf_counter()
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, size)
                if cwd is not None:
                    os.chdir(cwd)
                os.execvpe(command[0], command, environment)
            finally:
                os._exit(127)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, size)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def text(self) -> str:
        """The screen as lines of text."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def send(self, keys: str) -> None:
        """Press keys, given as what the terminal would send."""
        os.write(self._fd, keys.encode())

    def hang_up(self) -> None:
        """Close the window: the program loses its terminal."""
        os.close(self._fd)
        self._fd = os.open(os.devnull, os.O_RDONLY)
        self.ended = True  # nothing comes any more

    def echoes(self) -> bool:
        """Whether the terminal shows what is typed, as a shell's does."""
        return bool(termios.tcgetattr(self._fd)[3] & termios.ECHO)

    def run(self, seconds: float) -> None:
        """Let the program run for a while."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self.ended:
            self.pump(left)

    def wait_for(self, text: str, timeout: float = 30.0) -> float:
        """Wait until ``text`` is on the screen; when the bytes came that brought it.

        Raises:
            NotShown: it did not come, or the program ended before.
        """
        end = time.monotonic() + timeout
        while text not in self.text:
            if self.ended:
                raise NotShown(f"ended before {text!r} was shown:\n{self.text}")
            left = end - time.monotonic()
            if left <= 0:
                raise NotShown(f"{text!r} was not shown within {timeout} s:\n{self.text}")
            self.pump(min(left, 0.2))
        return self.arrived

    def wait_for_end(self, timeout: float = 30.0) -> int:
        """Wait until the program ends; returns its exit code (128 + signal when killed)."""
        end = time.monotonic() + timeout
        while not self.ended:
            left = end - time.monotonic()
            if left <= 0:
                raise NotShown(f"still running after {timeout} s:\n{self.text}")
            self.pump(min(left, 0.2))
        while not os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
            if time.monotonic() > end:
                raise NotShown(f"without its terminal it is still running after {timeout} s")
            time.sleep(0.02)
        return self._reap()

    def close(self) -> None:
        """End the program, whatever it does."""
        if self.exit_code is None:
            try:
                os.killpg(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                os.kill(self.pid, signal.SIGKILL)
            self._reap()
        os.close(self._fd)

    def _reap(self) -> int:
        if self.exit_code is None:
            _, status = os.waitpid(self.pid, 0)
            code = os.waitstatus_to_exitcode(status)
            self.exit_code = code if code >= 0 else 128 - code
        return self.exit_code

    def pump(self, timeout: float) -> bool:
        """Take what the program writes within ``timeout`` seconds; whether anything came."""
        ready, _, _ = select.select([self._fd], [], [], timeout)
        if not ready:
            return False
        data = self._read()
        if not data:
            self.ended = True
            return False
        self.raw += data
        for question, answer in _ANSWERS.items():
            if question in data:
                os.write(self._fd, answer)
        data = self._rest + data
        unfinished = _UNFINISHED.search(data)
        self._rest = unfinished.group() if unfinished and len(unfinished.group()) < 4096 else b""
        if self._rest:
            data = data[: -len(self._rest)]
        self._stream.feed(_UNKNOWN.sub(b"", data))
        return True

    def _read(self) -> bytes:
        """What there is, to its end; notes when that came.

        A terminal hands out 4 kB at a time, and drawing them here takes longer than the next
        ones to come: the emulator's time must not be taken for the program's.
        """
        parts: list[bytes] = []
        taken = 0
        while taken < ENOUGH and (not parts or select.select([self._fd], [], [], MORE)[0]):
            try:
                part = os.read(self._fd, ENOUGH)
            except OSError:
                part = b""
            if not part:  # what was read before is drawn first; the end shows at the next reading
                break
            self.arrived = time.perf_counter()
            parts.append(part)
            taken += len(part)
        return b"".join(parts)
