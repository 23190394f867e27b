"""A governed run is recorded, and every moment of it can be seen again."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core.fleet import Fleet
from acp_core.history.moments import EVENT
from acp_core.history.past import Past
from acp_core.history.recorder import Recorder
from acp_core.history.store import open_recording
from acp_core.model.clock import utc_now
from acp_core.protocols.discovery import identify
from acp_core.protocols.governed.conduct.taking import take
from acp_core.protocols.registry import bundled
from tests.agents.support import wait_for
from tests.protocols.governed.acting import accept, approve_gate, dispatch

STATE = ".agentxchain/state.json"


def is_recorded(root: Path) -> bool:
    """Whether the newest recorded version of the state is the one that stands there."""
    store = open_recording(str(root))
    if store is None:
        return False
    try:
        latest = {name: whole.hex() for name, (_, _, whole, _) in store.latest().items()}
    finally:
        store.close()
    return latest.get(STATE) == hashlib.sha256((root / STATE).read_bytes()).hexdigest()


async def carried(root: Path) -> None:
    """Carry the run through its first phase while a fleet records each step."""
    fleet = Fleet([root], recorder=Recorder("test"))

    async def follow() -> None:
        async for _ in fleet.changes():
            pass

    def carry() -> None:
        def done(work: Callable[[], object], what: str) -> None:
            work()
            wait_for(lambda: is_recorded(root), f"{what} to be recorded")
            time.sleep(0.05)  # people are slower: file times are those of the system's last tick

        def step() -> None:
            given = dispatch(root, now=datetime.now(UTC))
            assert take(root, given.turn_id).staged

        done(lambda: None, "the beginning")
        done(step, "the turn")
        done(lambda: accept(root, now=datetime.now(UTC)), "the accepted turn")
        done(
            lambda: approve_gate(root, by="olga", comment="Good.", now=datetime.now(UTC)),
            "the gate",
        )

    following = asyncio.create_task(follow())
    await asyncio.to_thread(carry)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    await fleet.close()


@pytest.mark.slow
async def test_each_moment_of_a_run_is_seen_again(root: Path) -> None:
    await carried(root)
    found = identify(root, bundled())
    assert found is not None
    past = Past(found, utc_now())
    try:
        then = {
            moment.what.partition(": ")[2]: past.at(place).snapshot
            for place, moment in enumerate(past.moments)
            if moment.kind == EVENT
        }
        assert then["run_started"].phase == "planning"
        assert [need.code for need in then["gate_pending"].needs] == ["GATE"]
        assert then["phase_entered"].phase == "implementation"
        assert [document.id for document in then["turn_dispatched"].documents]
    finally:
        past.close()
