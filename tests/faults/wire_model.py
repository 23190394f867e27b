"""An agent on the network beside a small model of it: messages, tasks, and the agent ended again."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from acp_core.protocols.wire.conduct.agent import Config
from tests.faults.looking import look
from tests.faults.models import Machine
from tests.protocols.wire.support import Served

_STATES = ("submitted", "working", "completed", "failed", "input_required", "canceled")
# core specification, section 3.3; a result may be reported on what is only submitted
_NEXT = {
    "submitted": {"submitted", "working", "completed", "failed", "input_required", "canceled"},
    "working": {"working", "completed", "failed", "input_required", "canceled"},
    "input_required": {"input_required", "working", "canceled"},
    "completed": {"completed"}, "failed": {"failed"}, "canceled": {"canceled"},
}  # fmt: skip
_IDS = ("t1", "t2", "t3")


class WireMachine(Machine):
    """Requests over real sockets to an agent that is ended and started now and then."""

    def begin(self) -> None:
        self.config = Config(name="A", sync="normal")
        self.agent = Served(self.root, self.config)
        self.tasks: dict[str, str] = {}
        self.seq = 0

    def teardown(self) -> None:
        self.agent.close()
        super().teardown()

    @rule(id=st.sampled_from(_IDS))
    def create(self, id: str) -> None:
        answer = self.agent.post("/tasks", {"text": "Cook", "task_id": id})
        assert answer.status_code < 500, answer.text
        if id not in self.tasks:
            assert answer.status_code in (200, 201), answer.text
            self.tasks[id] = answer.json()["task"]["status"]

    @rule(id=st.sampled_from((*_IDS, "none")), state=st.sampled_from(_STATES))
    def update(self, id: str, state: str) -> None:
        answer = self.agent.post(f"/tasks/{id}:update", {"status": state})
        known = self.tasks.get(id)
        legal = known is not None and state in _NEXT[known]
        assert answer.is_success == legal, (known, state, answer.text)
        if legal:
            self.tasks[id] = state

    @rule(id=st.sampled_from((*_IDS, "none")))
    def cancel(self, id: str) -> None:
        answer = self.agent.post(f"/tasks/{id}:cancel")
        known = self.tasks.get(id)
        legal = known is not None and known not in ("completed", "failed")
        assert answer.is_success == legal, (known, answer.text)
        if legal:
            self.tasks[id] = "canceled"

    @rule()
    def end_and_start_again(self) -> None:
        self.agent.close()
        self.agent = Served(self.root, self.config)

    @rule()
    def look_at_all(self) -> None:
        """The agent, and whoever reads its folder, tell of the same tasks; numbers only grow."""
        told: list[dict[str, Any]] = self.agent.get("/tasks")
        assert {task["id"]: task["status"] for task in told} == self.tasks
        snapshot = look(self.root)
        assert snapshot is not None
        orders = [event.order for event in snapshot.events]
        assert orders == sorted(set(orders))
        assert not orders or orders[-1] >= self.seq
        self.seq = orders[-1] if orders else self.seq
