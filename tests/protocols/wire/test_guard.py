"""Nothing is written into a store that is broken, or whose disk is: refused, explained and offered alike."""

from __future__ import annotations

import os
import shlex
import sqlite3
import subprocess
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from acp_core.diagnosis.actions import actions
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from acp_core.protocols.wire.collaboration import open_agent
from acp_core.protocols.wire.network.agent_directory import folder_of
from tests.diagnosis.support import problems
from tests.protocols.wire.support import OWNER, Process, acp, until

OPTIONS = ("--port", "0", "--http-port", "0", "--sync", "normal")


def store(name: str) -> Path:
    return folder_of(name) / "wire.sqlite3"


def cut(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute("PRAGMA journal_mode=DELETE")
    path.write_bytes(path.read_bytes()[:8192])


def without_log(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE log")


@pytest.mark.parametrize("spoil", [cut, without_log])
def test_a_broken_store_is_not_used_and_the_cure_works(spoil: object) -> None:
    with Process("My A", *OPTIONS):
        pass
    assert callable(spoil)
    spoil(store("My A"))
    before = store("My A").read_bytes()
    code, refused = acp("agent", "--name", "My A", *OPTIONS)
    assert (code, refused.count("\n")) == (2, 1)
    assert "the store of this agent cannot be used (wire.sqlite3 cannot be read: " in refused
    assert store("My A").read_bytes() == before

    here = open_agent(str(folder_of("My A")))
    seen = here.refresh(datetime.now(UTC))
    (cause,) = problems(here, DiagnosisContext(seen, Clock(seen.as_of)))
    here.close()
    assert cause.sentence in refused
    assert cause.instruction in refused
    assert cause.sentence in acp("why", str(folder_of("My A")))[1]
    subprocess.run(["sh", "-c", cause.instruction.partition(";")[0]], check=True)
    started = shlex.split(cause.instruction.partition(";")[2].partition(" then creates")[0])
    assert started == ["acp", "agent", "--name", "My A"]
    with Process("My A", *OPTIONS):
        assert acp("wire", "peers", "My A")[0] == 0


def test_another_process_that_uses_the_store_is_named() -> None:
    with Process("A", *OPTIONS) as agent:
        code, refused = acp("agent", "--name", "A", *OPTIONS)
        assert code == 2
        assert (
            f"an agent named 'A' is already running ({folder_of('A')}): stop it (kill {agent.pid})"
            in refused
        )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to_offers_nothing() -> None:
    with Process("A", *OPTIONS):
        here = open_agent(str(folder_of("A")))
        folder_of("A").chmod(0o500)
        try:
            seen = here.refresh(datetime.now(UTC))
            assert [each.code for each in seen.obstacles] == ["E20"]
            assert all(each.personal for each in actions(here, seen))
        finally:
            folder_of("A").chmod(0o700)
            here.close()


def test_a_disk_that_is_full_is_said_wherever_somebody_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from acp_core.protocols.kit import guard

    with Process("A", *OPTIONS):
        here = open_agent(str(folder_of("A")))
        monkeypatch.setattr(guard, "_LEAST_FREE", 1 << 60)
        seen = here.refresh(datetime.now(UTC))
        assert [each.code for each in seen.obstacles] == ["E20"]
        assert all(each.personal for each in actions(here, seen))
        (cause,) = problems(here, DiagnosisContext(seen, Clock(seen.as_of)))
        assert "no space left" in cause.sentence
        monkeypatch.undo()
        after = here.refresh(datetime.now(UTC))
        assert not after.obstacles
        assert not all(each.personal for each in actions(here, after))
        assert here.refresh(after.as_of) is after
        here.close()


def test_ports_of_last_time_that_are_none_are_chosen_anew() -> None:
    with Process("A", *OPTIONS):
        pass
    with closing(sqlite3.connect(store("A"))) as db:
        db.execute("INSERT OR REPLACE INTO meta VALUES ('ports', 'x 7')")
        db.commit()
    with Process("A", "--sync", "normal"):
        assert acp("wire", "peers", "A")[0] == 0


def test_a_key_that_is_none_is_damage() -> None:
    with Process("A", *OPTIONS):
        pass
    with closing(sqlite3.connect(store("A"))) as db:
        db.execute("UPDATE meta SET value = 'x' WHERE key = 'instance_seed'")
        db.commit()
    code, refused = acp("agent", "--name", "A", *OPTIONS)
    assert (code, "its key or its tokens are invalid" in refused) == (2, True)


def test_after_a_kill_nobody_is_taken_for_connected_who_is_not() -> None:
    with Process("A", *OPTIONS) as a:
        with Process("B", *OPTIONS) as b:
            link = {"link": b.link}
            httpx.post(f"{a.url}/peers/connect", json=link, auth=OWNER, trust_env=False)
            until(lambda: "connected" in acp("wire", "peers", "A")[1], "the connection")
            a.kill()
        a.start()
        here = open_agent(str(folder_of("A")))
        try:
            panel = next(
                each for each in here.refresh(datetime.now(UTC)).panels if each.id == "peers"
            )
            assert [row.cells[2] for row in panel.rows] == ["away"]
        finally:
            here.close()
