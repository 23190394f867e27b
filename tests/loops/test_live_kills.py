"""Loop, runner and agent are killed in every order in the middle of a live turn: the turn goes on, once.

In between, a person may answer what the agent asked. Each order is a story of its own: nobody who
was killed is started again before all of them are dead.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import psutil
import pytest

from acp_core.agents.live import answers
from acp_core.agents.live.answers import OpenRequest
from acp_core.agents.processes import Identity, identify
from acp_core.agents.state import Phase
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.person.permissions import Verdict
from tests.agents.live.support import left_of
from tests.agents.support import wait_for
from tests.loops.support import events, is_valid, log, make, start, state, wait_for_phase
from tests.loops.test_live import (
    agent,
    live,
    record,
    runner,
    taken_session,
    wait_for_request,
    where,
)

PATIENCE = 120.0  # seconds; nothing passes or fails by being quicker
VICTIMS = ("loop", "runner", "agent")
ANSWER = "answer"


def answered(*quick: tuple[str, ...]) -> Iterator[object]:
    """The same, with an answer before, in between or behind."""
    for number, order in enumerate(permutations(VICTIMS)):
        at = number % (len(VICTIMS) + 1)
        with_answer = (*order[:at], ANSWER, *order[at:])
        slow = () if with_answer in quick else (pytest.mark.slow,)
        yield pytest.param(with_answer, id="-".join(with_answer), marks=slow)


class Turn:
    """A live turn of server's, at work.

    Args:
        folder: where all of it lies.
        behaviour: of its agent, turn after turn.
        permissions: the policy.
    """

    def __init__(self, folder: Path, behaviour: str, permissions: str) -> None:
        self.folder = make(folder / "cache")
        self.permissions = permissions
        self.preset = live(folder / "a", behaviour=behaviour)
        self.start()

    def start(self) -> None:
        start(self.folder, "server", self.preset, permissions=self.permissions)

    def everybody(self) -> dict[str, Identity]:
        """Who is to be killed."""
        pids = {
            "loop": state(self.folder, "server").pid,
            "runner": runner(self.folder, "server"),
            "agent": agent(self.folder, "server"),
        }
        found = {name: identify(pid) for name, pid in pids.items()}
        return {name: process for name, process in found.items() if process}

    def at_work(self) -> list[Identity]:
        """Everything that works for the turn, what the agent started included."""
        pids = [state(self.folder, "server").pid, *left_of(where(self.folder, "server"))]
        below = [
            child.pid for pid in pids for child in psutil.Process(pid).children(recursive=True)
        ]
        return [each for each in map(identify, {*pids, *below}) if each]

    def finish(self, before: list[Identity]) -> None:
        """The turn was taken once, everybody of before is gone, and a stop leaves nobody."""
        wait_for(lambda: len(events(self.folder)) > 1, "the event", PATIENCE)
        wait_for_phase(self.folder, "server", Phase.WAITING)
        made = [(each["seq"], each["from"], each["event"]) for each in events(self.folder)[1:]]
        assert made == [(2, "server", "proposal_submitted")]
        assert is_valid(self.folder)
        assert not [each for each in before if each.alive()]
        given = [(each["session"], each["tool_call"]) for each in record() if each["state"] in ("allow", "reject")]  # fmt: skip
        assert len(given) == len(set(given))
        now = self.at_work()
        stop(self.folder)
        assert not [each for each in now if each.alive()]
        assert left_of(where(self.folder, "server")) == []


def stop(folder: Path) -> None:
    from acp_core.agents import registry

    assert registry.stop(str(folder), "server").done


def kill(process: Identity) -> None:
    """Kill one; another's death may have ended it already."""
    if process.alive():
        os.kill(process.pid, signal.SIGKILL)
    wait_for(lambda: not process.alive(), "its end", PATIENCE)


@pytest.mark.slow
@pytest.mark.parametrize("order", permutations(VICTIMS), ids="-".join)
def test_a_turn_goes_on_whoever_is_killed_first(tmp_path: Path, order: tuple[str, ...]) -> None:
    turn = Turn(tmp_path, "hang", "edits")
    wait_for(lambda: (run := state(turn.folder, "server").run) and run.tool, "the command", PATIENCE)  # fmt: skip
    before, victims = turn.at_work(), turn.everybody()
    for name in order:
        kill(victims[name])
    turn.start()
    turn.finish(before)
    if order[:2] != ("agent", "runner"):  # else the second crash comes before it can be resumed
        resumed = f"The session {taken_session(turn.folder)} is resumed."
        assert resumed in log(turn.folder, "server")


@pytest.mark.parametrize("order", answered(("loop", ANSWER, "agent", "runner")))
def test_what_is_asked_is_answered_once_whoever_is_killed_before_and_after(
    tmp_path: Path, order: tuple[str, ...]
) -> None:
    turn = Turn(tmp_path, "", "ask")
    opened = wait_for_request(turn.folder)
    before, victims = turn.at_work(), turn.everybody()
    allowed = False
    for name in order:
        if name == ANSWER:
            allowed = try_to_allow(opened)
        else:
            kill(victims[name])
    if order.index(ANSWER) > order.index("runner"):
        assert not allowed  # nobody waits for it any more
    turn.start()

    def finished() -> bool:
        for each in answers.waiting(str(turn.folder)):
            assert each.id != opened.id
            try_to_allow(each)
        return len(events(turn.folder)) > 1

    wait_for(finished, "the event", PATIENCE)
    turn.finish(before)


def try_to_allow(opened: OpenRequest) -> bool:
    """Allow a request; whether it was still open."""
    try:
        answers.answer(opened, Verdict.ALLOW, "ann", utc_now())
    except Refused:
        return False
    return True
