"""Ctrl+C (SIGINT) ends acp without a word of Python's, at whatever moment it comes.

Python turns the signal into an exception, wherever the main thread happens to be. In an import, in
a destructor or while an event loop is made, nobody can handle it: it is printed with a traceback,
becomes another error, or is lost. So what it does depends on the moment:

* before a command runs, and after it: the process ends at once (`begin`);
* in a command: ``KeyboardInterrupt`` (`heeding`); during an import or a destructor, after that;
* in a command's event loop: what the loop does is cancelled (`run_loop`).

A second one ends the process at once. Processes that did not call `begin` are not concerned.
Standard library only.
"""

from __future__ import annotations

import _frozen_importlib  # what imports, whatever it is called once `importlib` is there
import os
import sys

TYPE_CHECKING = False

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Coroutine
    from types import FrameType
    from typing import Any, TypeVar

    T = TypeVar("T")
else:
    import _signal as signal  # `signal` without its enumerations, which cost more than all else here

INTERRUPTED = 130
_ASKED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN = 0.01  # seconds after which an interrupt that could not be obeyed comes again


class _State:
    """What an interrupt does now."""

    code = INTERRUPTED  # with which the process ends at once
    held = False  # an event loop is made, or ended
    waiting = False  # an interrupt came that could not be obeyed yet
    cancel: Callable[[], object] | None = None  # what the running event loop does


def begin() -> None:
    """From now on an interrupt ends this process at once, with exit code 130, but for what follows."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is to be ignored
        signal.signal(signal.SIGINT, _end)


def leave_to_others() -> None:
    """From now on an interrupt is what it is to any program in Python: the command is not acp's."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def heeding(command: Callable[[], int]) -> int:
    """Run a command that an interrupt stops; returns its exit code.

    Raises:
        KeyboardInterrupt: it was interrupted.
    """
    if signal.getsignal(signal.SIGINT) is not _end:
        return command()
    print_unraisable = sys.unraisablehook

    def ignored(about: sys.UnraisableHookArgs) -> None:
        if about.exc_type is KeyboardInterrupt:  # raised where nothing can be: it must not be lost
            _later()
        else:
            print_unraisable(about)

    try:
        sys.unraisablehook = ignored
        signal.signal(signal.SIGINT, _interrupt)
        code = command()
        sys.stdout.flush()
        _State.code = code  # what an interrupt would stop is done
        return code
    finally:
        signal.signal(signal.SIGINT, _end)
        sys.unraisablehook = print_unraisable


def run_loop(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What ``work`` returns, run in an event loop of its own, as by `asyncio.run`.

    An interrupt cancels it, once the loop runs; not before, and not while the loop is ended.

    Raises:
        KeyboardInterrupt: it was interrupted.
    """
    import asyncio
    import threading

    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not _interrupt
    ):
        return asyncio.run(work())
    asked = False

    async def heeded() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def cancel() -> None:
            nonlocal asked
            asked = True
            loop.call_soon_threadsafe(task.cancel)

        _State.cancel = cancel
        try:
            if _State.waiting:
                _State.waiting = False
                cancel()
            return await work()
        finally:
            _State.cancel = None
            for number in _ASKED:  # the work's own: a loop that is closed could not take them
                loop.remove_signal_handler(number)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGINT, _end if asked else _interrupt)

    return holding(lambda: _run(heeded, lambda: asked))


def _run(work: Callable[[], Coroutine[Any, Any, T]], interrupted: Callable[[], bool]) -> T:
    import asyncio

    try:
        with asyncio.Runner() as runner:
            return runner.run(work())
    except asyncio.CancelledError:
        if interrupted():
            raise KeyboardInterrupt from None
        raise


def holding(work: Callable[[], T]) -> T:
    """What ``work`` returns; an interrupt waits until then, or until an event loop takes it.

    Raises:
        KeyboardInterrupt: it was interrupted.
    """
    _State.held = True
    try:
        return work()
    finally:
        _State.held = False
        if _State.waiting:
            _State.waiting = False
            signal.raise_signal(signal.SIGINT)


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(_State.code)


def _interrupt(number: int, frame: FrameType | None) -> None:
    if _State.cancel is not None:
        signal.signal(signal.SIGINT, _end)
        _State.cancel()
    elif _State.waiting:
        os._exit(INTERRUPTED)
    elif _State.held:
        _State.waiting = True
    elif _cannot_raise(frame):
        _later()
    else:
        signal.signal(signal.SIGINT, _end)
        raise KeyboardInterrupt


def _cannot_raise(frame: FrameType | None) -> bool:
    """Whether an exception would not come through to the command."""
    while frame is not None and frame.f_code is not heeding.__code__:
        importing = frame.f_globals is _frozen_importlib.__dict__
        if importing or frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def _later() -> None:
    """Have the interrupt come once more in a moment: a thread can wait for that wherever we are."""
    import _thread
    import time

    def come_again() -> None:
        time.sleep(_AGAIN)
        _State.waiting = False
        os.kill(os.getpid(), signal.SIGINT)

    _State.waiting = True
    signal.signal(signal.SIGINT, _interrupt)
    _thread.start_new_thread(come_again, ())
