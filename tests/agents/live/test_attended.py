"""Whether a person is there to answer, told by real terminals."""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core.agents.live import answers
from acp_core.agents.live.attended import is_attended, terminals
from acp_core.agents.live.gate import Gate
from acp_core.agents.live.scoped import judge_of
from acp_core.agents.live.state import MARK, Order
from tests.agents.live import messages
from tests.support.terminal import Terminal

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


def test_the_terminal_of_an_agents_command_is_no_persons() -> None:
    with shell(**{MARK: "reviewer"}) as terminal:
        assert name_of(terminal) not in terminals()


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
