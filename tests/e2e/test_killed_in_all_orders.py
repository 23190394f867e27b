"""Dashboard, loop, runner and agent are killed one after the other while an agent asks for something.

A dashboard that is opened anew shows what it finds, and starts nothing; what is asked is answered
there by a key; the turn is taken once, and nobody is left behind.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import pytest

from acp_core.agents.live import answers
from acp_core.agents.live.answers import OpenRequest
from tests.agents.live.support import left_of
from tests.agents.support import is_gone
from tests.e2e.dashboards import ALLOW, answer_by_key, dashboard
from tests.loops.support import stop_all
from tests.loops.test_live import record, where
from tests.loops.test_live_kills import VICTIMS, Turn
from tests.support.examples import MANY
from tests.support.terminal import Terminal
from tests.support.waiting import until

PATIENCE = 240.0  # seconds; nothing passes or fails by being quicker
DASHBOARD = "dashboard"
ORDERS = tuple(permutations((DASHBOARD, *VICTIMS)))
USUAL = (
    (DASHBOARD, "loop", "runner", "agent"),
    ("loop", DASHBOARD, "agent", "runner"),
    ("runner", "agent", DASHBOARD, "loop"),
    ("agent", "runner", "loop", DASHBOARD),
)
ASKS = "both " * 6  # at each turn for one command that no policy knows

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def nobody_left() -> Iterator[None]:
    yield
    stop_all()


def tried() -> Iterator[object]:
    """Four orders, in which each comes first, second, third and last; all where more are wanted."""
    for order in ORDERS if MANY > 100 else USUAL:
        yield pytest.param(order, id="-".join(order))


def kill(pid: int) -> None:
    """Kill one; another's death may have ended it already."""
    if not is_gone(pid):
        os.kill(pid, signal.SIGKILL)
    until(lambda: is_gone(pid), "its end", PATIENCE)


def request_of(turn: Turn, *but: OpenRequest) -> OpenRequest:
    """The request that is open, and is none of these."""
    known = {each.id for each in but}

    def found() -> OpenRequest | None:
        return next((e for e in answers.waiting(str(turn.folder)) if e.id not in known), None)

    opened = until(found, "a request", PATIENCE)
    assert opened is not None
    return opened


def opened_anew(turn: Turn, killed: Terminal, *dead: str) -> Terminal:
    """The dashboard after one that was killed: it shows what there is, and starts nothing.

    Args:
        turn: which it shows.
        killed: the dashboard before, still alive.
        dead: who was killed before it.
    """
    kill(killed.pid)
    killed.close()
    waits = {"runner", "agent"}.isdisjoint(dead)
    at_work = {each for each in left_of(where(turn.folder, "server")) if not is_gone(each)}
    terminal = dashboard(turn.folder)
    terminal.wait_for("asks" if waits else "server", PATIENCE)
    now = {each for each in left_of(where(turn.folder, "server")) if not is_gone(each)}
    if waits or "loop" in dead:  # else its loop resumes the session meanwhile
        assert now <= at_work
    return terminal


def test_a_dashboard_after_a_killed_one_answers_what_that_one_showed(tmp_path: Path) -> None:
    turn = Turn(tmp_path, ASKS, "edits")
    opened, victims = request_of(turn), turn.everybody()
    killed = dashboard(turn.folder)
    killed.wait_for("asks", PATIENCE)
    with opened_anew(turn, killed) as terminal:
        assert turn.everybody() == victims
        assert answers.is_published(opened)
        answer_by_key(terminal, opened, ALLOW, PATIENCE)
        turn.finish([])
    assert [each["state"] for each in record() if each["command"].startswith("touch")] == ["allow"]


@pytest.mark.parametrize("order", tried())
def test_a_turn_is_taken_once_whoever_is_killed_after_whom(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    turn = Turn(tmp_path, ASKS, "edits")
    opened, before, victims = request_of(turn), turn.at_work(), turn.everybody()
    terminal = dashboard(turn.folder)
    try:
        terminal.wait_for("asks", PATIENCE)
        for number, name in enumerate(order):
            if name != DASHBOARD:
                kill(victims[name].pid)
                continue
            terminal = opened_anew(turn, terminal, *order[:number])
        turn.start()
        answer_by_key(terminal, request_of(turn, opened), ALLOW, PATIENCE)
        turn.finish(before)
    finally:
        terminal.close()
    by_people = [each["state"] for each in record() if each["command"].startswith("touch")]
    assert by_people.count("allow") == 1
