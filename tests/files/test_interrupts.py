"""Ctrl+C at the worst moments: raised by the very code that runs then, so that no luck is needed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.hygiene.sources import ROOT

BEGIN = f"""
import signal, sys, time, weakref
sys.path.insert(0, {str(ROOT)!r})
from acp_core.files import interrupts

def ctrl_c(*_):
    signal.raise_signal(signal.SIGINT)

def wait():
    print("waits", flush=True)
    time.sleep(60)
    return 0

interrupts.begin()
"""
IN_A_DESTRUCTOR = """
class Dropped:
    def __del__(self):
        ctrl_c()
        print("all of it", flush=True)

def command():
    Dropped()
    return wait()
"""
IN_AN_IMPORT = """
class Named:
    def __set_name__(self, owner, name):
        ctrl_c()

class Finder:
    def find_spec(self, *_):
        type("Owner", (), {"name": Named()})

def command():
    sys.meta_path.insert(0, Finder())
    import wave
    return wait()
"""
IN_A_CALLBACK = """
def command():
    gone = set()
    ref = weakref.ref(gone, ctrl_c)
    del gone
    return wait()
"""
IN_A_HALF_MADE_LOOP = """
import asyncio
from asyncio.selector_events import BaseSelectorEventLoop as Loop
made = Loop._make_self_pipe
Loop._make_self_pipe = lambda self: (ctrl_c(), made(self))

async def work():
    await asyncio.sleep(0)
    wait()

def command():
    return interrupts.run_loop(work)
"""
IN_A_LOOP = """
import asyncio
async def work():
    try:
        ctrl_c()
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0)
        print("cleaned up", flush=True)

def command():
    return interrupts.run_loop(work)
"""
IN_A_CLOSED_LOOP = """
import asyncio
from asyncio.selector_events import BaseSelectorEventLoop as Loop
closed = Loop._close_self_pipe
Loop._close_self_pipe = lambda self: (closed(self), ctrl_c())

async def work():
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, print)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, print)
    return 0

def command():
    return interrupts.run_loop(work)
"""
TWICE = """
def command():
    try:
        ctrl_c()
    finally:
        ctrl_c()
        wait()
"""
END = """
try:
    code = interrupts.heeding(command)
except KeyboardInterrupt:
    code = 130
sys.exit(code)
"""


def run(script: str) -> tuple[int, str, str]:
    """Run a script under a bare Python, which has imported no more than acp itself has.

    Returns:
        Its exit code, and what it wrote.
    """
    command = [sys.executable, "-I", "-S", "-c", script]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout, ran.stderr


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (IN_A_DESTRUCTOR, "all of it\nwaits\n"),
        (IN_AN_IMPORT, "waits\n"),
        (IN_A_CALLBACK, "waits\n"),
        (IN_A_HALF_MADE_LOOP, ""),
        (IN_A_LOOP, "cleaned up\n"),
        (IN_A_CLOSED_LOOP, ""),
        (TWICE, ""),
    ],
    ids=["destructor", "import", "callback", "half-made loop", "loop", "closed loop", "twice"],
)
def test_an_interrupt_in_a_command_ends_it_without_a_word(command: str, said: str) -> None:
    code, out, err = run(BEGIN + command + END)
    assert (code, err) == (130, "")
    assert out in (said, said.removesuffix("waits\n"))  # it comes again within 10 ms


def test_before_and_after_a_command_an_interrupt_ends_the_process() -> None:
    assert run(BEGIN + "ctrl_c()\nwait()") == (130, "", "")
    after = "print('done')\ncode = interrupts.heeding(lambda: 5)\nctrl_c()\nwait()"
    assert run(BEGIN + after) == (5, "done\n", "")


def test_who_is_started_with_interrupts_ignored_goes_on() -> None:
    ignored = BEGIN.replace("interrupts.begin()", "signal.signal(2, signal.SIG_IGN)")
    script = f"{ignored}interrupts.begin()\ninterrupts.heeding(lambda: ctrl_c() or 0)\nprint('on')"
    assert run(script) == (0, "on\n", "")


def test_elsewhere_a_loop_is_as_pythons() -> None:
    """A process that did not ask for it, and another thread."""
    work = "import asyncio\nasync def work():\n    await asyncio.sleep(0)\n    return 7\n"
    unasked = BEGIN.replace("interrupts.begin()", "")
    assert run(f"{unasked}{work}print(interrupts.run_loop(work))") == (0, "7\n", "")
    thread = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def command():\n    return ThreadPoolExecutor().submit(interrupts.run_loop, work).result()"
    )
    assert run(BEGIN + work + thread + END) == (7, "", "")
