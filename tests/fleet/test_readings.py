"""When the members of a fleet are read again: nothing that changes meanwhile is missed."""

from __future__ import annotations

import asyncio
import threading
from datetime import datetime
from pathlib import Path

import pytest

from acp_core.diagnosis.observer import Observer
from acp_core.fleet import live
from acp_core.fleet import readings as fleet_readings
from acp_core.fleet.member import Member
from acp_core.fleet.readings import Readings, WatchList
from acp_core.fleet.workers import PACE, Lane, Mail, Urgency, Workers
from acp_core.model import Snapshot
from acp_core.model.clock import utc_now
from tests.fleet.test_fleet import PATIENCE, only_toys, watching
from tests.support import toy

__all__ = ["only_toys"]


async def test_what_changes_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change comes when its file was read already, and before that reading ended."""
    monkeypatch.setattr(live, "NET", 10 * PATIENCE)  # no look but for a change
    monkeypatch.setattr(fleet_readings, "LEAST_BETWEEN_LOOKS", 10 * PATIENCE)
    one = toy.make(tmp_path / "one")
    has_read, may_end, refresh = threading.Event(), threading.Event(), toy.Toy.refresh

    def slow(self: toy.Toy, now: datetime) -> Snapshot:
        snapshot = refresh(self, now)
        has_read.set()
        assert may_end.wait(PATIENCE)
        return snapshot

    async with watching(tmp_path) as reader:
        monkeypatch.setattr(toy.Toy, "refresh", slow)
        toy.say(one, "ann", "said", "hello")
        seen = asyncio.create_task(reader.until(lambda: reader.events(one) == 2))
        await asyncio.to_thread(has_read.wait, PATIENCE)
        toy.say(one, "ann", "said", "hello again")
        reader.fleet.touch(str(one))
        await asyncio.sleep(10 * PACE)  # so that the change is heard while it is still being read
        may_end.set()
        await seen


def test_what_waits_to_be_read_is_not_put_in_the_queue_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first look at thousands is checked for unseen changes again and again while they wait."""
    hurried: list[Urgency] = []
    monkeypatch.setattr(Lane, "hurry", lambda lane, urgency: hurried.append(urgency))
    workers, mail = Workers(threads=0), Mail()
    readings = Readings(
        mail, workers, utc_now, {}, {}, WatchList(mail, lambda: ()), lambda *given: None, lambda: False
    )  # fmt: skip
    member = Member(str(tmp_path), None, 0, workers.lane(), Observer())
    for urgency in (Urgency.IDLE, Urgency.IDLE, Urgency.CALL, Urgency.IDLE, Urgency.CHANGE):
        readings.schedule(member, urgency)
    assert hurried == [Urgency.CALL, Urgency.CHANGE]
