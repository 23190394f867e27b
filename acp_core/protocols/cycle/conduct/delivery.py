"""Feedback for an agent at work: its live session gets it at once, where the agent takes messages.

Otherwise it waits for the agent's next run, like feedback to an agent that rests. Where an
orchestrator is killed between the delivery and its note of it, the next one finds it in the session's
journal, and does not deliver it again.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from acp_core.agents.live import turn
from acp_core.agents.live.turn import Steering
from acp_core.agents.loop_directory import LoopDirectory
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.read.orchestrator_spec import ORCHESTRATOR
from acp_core.protocols.cycle.schema import Object
from acp_core.protocols.cycle.write import changes
from acp_core.protocols.cycle.write.changes import at
from acp_core.protocols.cycle.write.coordination import note


class Mailbox:
    """Feedback for one run. The orchestrator fills it; the thread that watches the run delivers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[tuple[tuple[str, ...], str]] = []
        self._known: set[str] = set()
        self._delivered: list[str] = []
        self._recalled: frozenset[str] = frozenset()  # delivered already, as the journal tells

    def new(self, entries: Sequence[Object]) -> list[Object]:
        """The feedback that was not put in yet."""
        return [each for each in entries if schema.text(each.get("id")) not in self._known]

    def put(self, entries: Sequence[Object], text: str) -> None:
        """Have feedback delivered.

        Args:
            entries: the feedback, as the state holds it.
            text: the message that it makes.
        """
        ids = tuple(schema.text(each.get("id")) for each in entries)
        self._known.update(ids)
        with self._lock:
            if self._recalled.issuperset(ids):
                self._delivered += ids
            else:
                self._waiting.append((ids, text))

    def deliver(self, where: LoopDirectory, number: int) -> None:
        """Give the agent what waits; what it does not take waits for its next run.

        Args:
            where: the agent's place.
            number: of the run.
        """
        while self._waiting and turn.can_steer(where):
            with self._lock:
                ids, text = self._waiting.pop(0)
            with contextlib.suppress(OSError):
                if turn.steer(where, Steering(number, text, ORCHESTRATOR, ids)).delivered:
                    with self._lock:
                        self._delivered += ids

    def recall(self, journal: Path) -> None:
        """Find out what an orchestrator before this one delivered, and noted nowhere.

        Args:
            journal: the run's.
        """
        found = turn.delivered(journal)
        with self._lock:
            self._recalled = found
            for ids, text in [each for each in self._waiting if found.issuperset(each[0])]:
                self._waiting.remove((ids, text))
                self._delivered += ids

    def delivered(self) -> list[str]:
        """The ids of feedback that the agent took since the last call."""
        with self._lock:
            found, self._delivered = self._delivered, []
        return found


def sent(state: Object, now: datetime, name: str, run: str, ids: Sequence[str]) -> None:
    """Note that an agent got feedback in the middle of a run.

    Args:
        state: the cycle's state.
        now: the time.
        name: the agent.
        run: the name of the run.
        ids: of the feedback.
    """
    for each in changes.entries(state, "feedback_log"):
        if each.get("id") in ids and not each.get("sent_at"):
            each |= {"sent_at": at(now), "run": run}
            note(state, now, name, f"got feedback {each['id']} while at work, run {run}")
