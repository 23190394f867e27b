"""How the dashboard writes to a terminal, and how the terminal is given back however it ends.

`Terminal` is the one place that says something to the terminal itself, past the screen: its title,
its bell, its notices. It is off where nobody is behind a terminal (the browser, a test).

A signal that ends the process is taken for the wish to leave: the dashboard ends in order, and then
the process ends by that very signal, so that a shell or a supervisor reads its true code. Where
an orderly end takes too long (nobody reads what is drawn, or something hangs), or the signal comes
again, the terminal is put back directly.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import datetime
from functools import partial
from io import StringIO
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from acp_tui.text import safe_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from textual.app import App
    from textual.driver import Driver
    from textual.events import DeliveryComplete, DeliveryFailed

    from acp_tui.app import AcpApp


def terminal_driver(driver: type[Driver]) -> type[Driver]:
    """The driver for a terminal, or that for a page in a browser.

    It tells the app's `Terminal` of itself, and writes with the signs that the terminal has
    (`acp_core.cli.plain_signs`).
    """
    if "TEXTUAL_DRIVER" in os.environ:
        from acp_tui.terminal.browser_page import page_driver

        return page_driver(driver)
    from acp_core.cli import plain_signs

    signs = plain_signs.wanted(os.environ)

    class TerminalDriver(driver):  # type: ignore[valid-type, misc]
        """Writes what the terminal can show."""

        def __init__(self, app: Any, **options: Any) -> None:
            super().__init__(app, **options)
            _take_in_turn(signal.SIGTSTP, signal.SIGCONT)
            app.terminal.connect(self)

    if signs == plain_signs.ALL:
        return TerminalDriver
    known = plain_signs.table(signs)

    class PlainDriver(TerminalDriver):
        """Writes what a terminal with few signs can show."""

        def write(self, data: str) -> None:
            super().write(data.translate(known))

    return PlainDriver


def _take_in_turn(*signals: signal.Signals) -> None:
    """Have the event loop call what Textual's driver does on signals, between two other calls.

    The driver writes to the terminal then. In the midst of a write it would wait for a lock that the very
    same thread holds, and the dashboard would hang.
    """
    loop = asyncio.get_running_loop()
    for number in signals:
        handler = signal.getsignal(number)
        if callable(handler):
            signal.signal(number, partial(_soon, loop, handler))


def _soon(
    loop: asyncio.AbstractEventLoop,
    handler: Callable[[int, FrameType | None], Any],
    number: int,
    frame: FrameType | None,
) -> None:
    loop.call_soon_threadsafe(handler, number, None)


PATIENCE = 3.0
"""Seconds that an orderly end may take."""

_WRITING = 1.0  # seconds in which a terminal takes what it is told last

_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)

_LEAVE = (
    "\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"  # no reports of the mouse
    "\x1b[?1004l\x1b[?2004l\x1b[?2048l\x1b[?7h\x1b[<u"  # none of focus, paste, size; plain keys
    "\x1b[?1049l\x1b[?25h\x1b[0m"  # the screen of before, with its cursor
)


def terminal_guard(leave: Callable[[], object]) -> AbstractContextManager[object]:
    """What gives the terminal back when the block ends; nothing where a browser shows the page."""
    return nullcontext() if "TEXTUAL_DRIVER" in os.environ else TerminalGuard(leave)


class TerminalGuard:
    """Puts the terminal back as it was when the block ends, or the process is ended.

    To be used in the main thread, around the program that draws.

    Args:
        leave: Ends that program in order; called by its event loop.
    """

    def __init__(self, leave: Callable[[], object]) -> None:
        self._leave = leave
        self._received: int | None = None
        self._before: dict[int, Any] = {}
        self._attributes = _attributes()

    def __enter__(self) -> TerminalGuard:
        for number in _SIGNALS:
            # Whoever starts it may have it ignore a signal; but without its terminal it is of no use.
            if number == signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None and error is not None:
            self._fail(kind, error, trace)
        for number, before in self._before.items():
            signal.signal(number, before)
        if self._received is not None:
            _end_by(self._received)

    def _fail(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        """End with a fault that went past the program, whose thread may still wait for keys."""
        self._restore()
        if not isinstance(error, SystemExit):
            sys.excepthook(kind, error, trace)
            sys.stderr.flush()
        os._exit(error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else 1)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self._received is not None:
            self._end_now()
            return
        self._received = number
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # it does not run yet, or no more
            self._end_now()
        else:
            threading.Thread(target=self._wait, name="acp-ending", daemon=True).start()
            loop.call_soon_threadsafe(self._leave)

    def _wait(self) -> None:
        """End the process where an orderly end did not come."""
        threading.Event().wait(PATIENCE)
        self._end_now()

    def _end_now(self) -> None:
        writing = threading.Thread(target=self._restore, name="acp-terminal", daemon=True)
        writing.start()
        writing.join(_WRITING)
        _end_by(self._received or signal.SIGTERM)

    def _restore(self) -> None:
        # A process in the background would be stopped for touching the terminal.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        with suppress(OSError, AttributeError, ValueError):  # the terminal may be gone
            os.write(sys.__stderr__.fileno(), _LEAVE.encode())  # type: ignore[union-attr]
        if self._attributes is not None:
            with suppress(termios.error, OSError, ValueError):
                termios.tcsetattr(sys.__stdin__, termios.TCSANOW, self._attributes)  # type: ignore[arg-type]


def _attributes() -> list[Any] | None:
    try:
        return termios.tcgetattr(sys.__stdin__)  # type: ignore[arg-type]
    except (termios.error, ValueError, OSError, TypeError):
        return None


def _end_by(number: int) -> None:
    """End this process by a signal, as if it had never been taken."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(128 + number)


_SAVE, _RESTORE = "\x1b[22;2t", "\x1b[23;2t"  # the terminal keeps its titles on a stack

TITLE_LENGTH = 120

NOTICE_LENGTH = 300


class Terminal:
    """The terminal that an app runs in."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._title: str | None = None
        self._driver: Driver | None = None

    def connect(self, driver: Driver) -> None:
        """Write by ``driver`` from now on, in the order of its pictures."""
        self._driver = driver

    @property
    def reachable(self) -> bool:
        """Whether there is one: not in a browser, and not without a screen."""
        return not (self._app.is_headless or self._app.is_web)

    def title(self, text: str) -> None:
        """Set the window's title; the one before comes back by `restore`."""
        title = safe_line(text)[:TITLE_LENGTH]
        if title == self._title or not self.reachable:
            return
        self._write(("" if self._title is not None else _SAVE) + f"\x1b]2;{title}\x1b\\")
        self._title = title

    def restore(self) -> None:
        """Give the window the title back that it had."""
        if self._title is not None:
            self._write(_RESTORE)
            self._title = None

    def bell(self) -> None:
        """Ring, once."""
        if self.reachable:
            self._app.bell()

    def notice(self, title: str, text: str, way: str) -> None:
        """Have the terminal show a notice; ``way`` is ``osc9``, ``osc777`` or ``off``."""
        if way == "off" or not self.reachable:
            return
        name, words = safe_line(title)[:TITLE_LENGTH], safe_line(text)[:NOTICE_LENGTH]
        if way == "osc777":  # its parts end at semicolons
            self._write(f"\x1b]777;notify;{name.replace(';', ',')};{words.replace(';', ',')}\x1b\\")
        else:
            self._write(f"\x1b]9;{name}: {words}\x1b\\")

    def _write(self, sequence: str) -> None:
        if self._driver is not None:
            self._driver.write(sequence)
            self._driver.flush()


NAME = "screenshot of acp"
"""What the delivery is called: Textual announces its own as markup, which ours is not."""


class Screenshots:
    """Saves the screen of an app as SVG.

    Args:
        app: The dashboard.
    """

    def __init__(self, app: AcpApp) -> None:
        self._app = app

    def take_soon(self) -> None:
        """Save the screen as it is when the command palette is gone."""
        self._app.set_timer(0.1, self._deliver)

    def _deliver(self) -> None:
        name = f"acp-{datetime.now():%Y-%m-%d-%H%M%S}.svg"
        picture = StringIO(self._app.export_screenshot(title="acp"))
        self._app.deliver_text(picture, save_filename=name, name=NAME)

    def report(self, event: DeliveryComplete | DeliveryFailed) -> None:
        """Say where the picture was saved, or why it was not."""
        if event.name != NAME:
            return
        path, problem = getattr(event, "path", None), getattr(event, "exception", None)
        if problem is not None:
            self._app.tell(f"Could not save the screenshot: {problem}", "error")
        else:
            self._app.tell(f"Saved {path}" if path else "Saved")
