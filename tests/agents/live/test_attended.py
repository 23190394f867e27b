"""Whether a person is there to answer, told by real terminals and a real page."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO

import pytest

from acp_core.agents.live import answers
from acp_core.agents.live.answers import is_attended, page_used, terminals
from acp_core.agents.live.policy import Gate, judge_of
from acp_core.agents.live.turn import MARK, Order
from tests.agents.live import messages
from tests.agents.support import ROOT, wait_for
from tests.support.terminal import Terminal

WEB_DRIVER = "textual.drivers.web_driver:WebDriver"
SHELL = [
    sys.executable,
    "-c",
    "import os; print(os.ttyname(0), 'ready'); print('typed', input()); input()",
]


def shell(**variables: str) -> Terminal:
    return Terminal(SHELL, env={**os.environ, **variables})


def name_of(terminal: Terminal) -> str:
    terminal.wait_for("ready")
    return next(line for line in terminal.text.splitlines() if "ready" in line).split()[0]


def test_a_terminal_that_somebody_types_into_makes_it_attended_for_a_while() -> None:
    with shell() as terminal:
        name = name_of(terminal)
        os.utime(name, (0, 0))
        assert terminals()[name] == 0
        terminal.send("hello\n")
        terminal.wait_for("typed hello")
        used = datetime.fromtimestamp(terminals()[name], UTC)
        assert is_attended(used + timedelta(minutes=14))
    assert not is_attended(datetime.now(UTC) + timedelta(minutes=16))


def test_a_terminal_that_is_opened_later_is_seen_too() -> None:
    with shell() as first:
        assert name_of(first) in terminals()
        with shell() as later:
            assert name_of(later) in terminals()


def test_the_terminal_of_an_agents_command_is_no_persons() -> None:
    with shell(**{MARK: "reviewer"}) as terminal:
        assert name_of(terminal) not in terminals()


def test_a_dashboard_that_only_a_browser_shows_makes_it_attended_once_somebody_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TEXTUAL_DRIVER": WEB_DRIVER}
    command = [sys.executable, "-m", "acp_tui", str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env) as page:  # fmt: skip
        assert page.stdin is not None and page.stdout is not None
        try:
            assert page.stdout.readline() == b"__GANGLION__\n"
            send(page.stdin, b"M", json.dumps({"type": "focus"}).encode())
            assert page.stdout.read(1) == b"D"  # it draws, and nobody has used it
            assert page_used() is None
            send(page.stdin, b"D", b"j")
            wait_for(lambda: page_used() is not None, "the note that it is used")
        finally:
            page.kill()
    used = datetime.now(UTC) + timedelta(days=1)  # later than any terminal of this machine
    os.utime(tmp_path / "state" / "page-used", (used.timestamp(), used.timestamp()))
    assert is_attended(used + timedelta(minutes=14))
    assert not is_attended(used + timedelta(minutes=16))


def send(page: IO[bytes], kind: bytes, data: bytes) -> None:
    """Send a packet as the server of the page does."""
    page.write(kind + len(data).to_bytes(4, "big") + data)
    page.flush()


async def test_a_request_has_a_time_limit_only_where_somebody_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    order = Order(str(tmp_path), (), "", folder=str(tmp_path), participant="ann")
    with shell() as terminal:
        name_of(terminal)
        gate = Gate(order, judge_of(order), lambda **note: None)
        asked = asyncio.create_task(gate.answer(messages.shell("claude", "ls"), None))
        while not answers.waiting():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        (opened,) = answers.waiting()
        assert opened.until == opened.asked + answers.ATTENDED
        gate.withdraw()
        await asked
