"""What becomes of appends where a client, the server or the wire between them fails."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from acp_core.stores.engine import InDoubt, StoreRefused, StoreUnreachable
from acp_core.stores.postgres import link
from tests.stores.databases import (
    acknowledged,
    begun,
    change,
    client,
    engine,
    events,
    prepared,
    wired,
)
from tests.support.postgres import Server


@pytest.mark.parametrize(
    ("step", "kept"),
    [("before publish", 0), ("postgres locked", 0), ("postgres before notice", 1), ("after publish", 1)],
)  # fmt: skip
def test_a_client_is_killed_at_each_step(database: str, step: str, kept: int) -> None:
    opened, _ = begun(database)
    killed = client(database, "one", "c", 1, step)
    assert killed.wait(60) == -signal.SIGKILL
    assert len(events(database)) == 1 + kept
    told = acknowledged([client(database, "one", "c", 2)])
    assert told == {"c-0": 2, "c-1": 3}, "the same key is the same event"
    assert len(events(database)) == 3
    opened.close()


@pytest.mark.slow
def test_a_stopped_client_holds_the_others_up_for_a_while_only(database: str) -> None:
    opened, tip = begun(database)
    stopped = client(database, "one", "slow", 1, "postgres locked=stop")
    _stopped(stopped.pid)
    try:
        with opened:
            opened.publish(tip, change(1, 2))
    finally:
        os.kill(stopped.pid, signal.SIGCONT)
    told = acknowledged([stopped])
    assert told == {"slow-0": 3}, "what it held was taken from it: it came later, and once"
    assert [each.get("key") for each in events(database)] == [None, None, "slow-0"]


def _stopped(pid: int) -> None:
    """Wait until a process is stopped."""
    deadline = time.monotonic() + 60
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
def test_the_server_is_killed_under_load(mortal_postgres: Server) -> None:
    url = prepared(mortal_postgres.database())
    begun(url)[0].close()
    clients = [client(url, "one", f"c{n}", 30) for n in range(3)]
    _wait_for_growth(url)
    mortal_postgres.kill()
    mortal_postgres.start()
    told = acknowledged(clients)
    found = events(url)
    assert {str(each["key"]): each["seq"] for each in found[1:]} == told
    assert len(told) == 3 * 30


def _wait_for_growth(url: str) -> None:
    """Wait until some appends have come in."""
    with engine(url) as opened:
        tip = opened.read(None).tip
        deadline = time.monotonic() + 60
        while opened.read(tip).tip.seq < tip.seq + 20:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_who_waits_outlives_the_server(mortal_postgres: Server) -> None:
    url = prepared(mortal_postgres.database())
    opened, tip = begun(url)
    ended: list[bool] = []
    waiting = threading.Thread(target=lambda: ended.append(opened.wait(tip, 60)))
    waiting.start()
    mortal_postgres.kill()
    mortal_postgres.start()
    with engine(url) as other:
        other.publish(tip, change(1, 2))
    waiting.join(60)
    assert ended == [True]
    opened.close()


def test_a_change_whose_answer_was_lost_is_known_to_be_made(
    postgres: Server, database: str
) -> None:
    with wired(postgres, database) as (wire, url):
        opened, tip = begun(url)
        wire.cut_at = b"commit\0"
        with opened:
            later = opened.publish(tip, change(1, 2, sender="a", key="k"))
            assert wire.cuts == 1
            assert opened.read(None).tip == later
    assert len(events(database)) == 2


def test_a_change_that_never_arrived_is_known_not_to_be_made(
    postgres: Server, database: str
) -> None:
    with wired(postgres, database) as (wire, url):
        opened, tip = begun(url)
        wire.cut_at, wire.let_through = b"commit\0", False
        with opened:
            with pytest.raises(StoreUnreachable):
                opened.publish(tip, change(1, 2))
            assert wire.cuts == 1
            assert opened.read(None).tip == tip


@pytest.mark.parametrize("let_through", [True, False])
def test_a_change_is_in_doubt_as_long_as_nobody_answers(
    postgres: Server, database: str, let_through: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "GRACE", 0.3)
    with wired(postgres, database) as (wire, url):
        opened, tip = begun(url)
        wire.cut_at, wire.let_through, wire.again = b"commit\0", let_through, False
        with opened:
            with pytest.raises(InDoubt, match="run the same command again"):
                opened.publish(tip, change(1, 2))
            with pytest.raises(StoreUnreachable):
                opened.read(tip)
            wire.again = True
            assert len(opened.read(None).added.splitlines()) == (2 if let_through else 1)


def test_a_change_made_new_is_in_doubt_where_nothing_of_it_is_seen(
    postgres: Server, database: str
) -> None:
    with wired(postgres, database) as (wire, url):
        wire.cut_at, wire.let_through = b"commit\0", False
        with engine(url) as opened:
            with pytest.raises(InDoubt):
                opened.publish(None, change(1))
            opened.publish(None, change(1))


def test_a_cut_before_the_change_leaves_no_doubt(postgres: Server, database: str) -> None:
    with wired(postgres, database) as (wire, url):
        opened, tip = begun(url)
        wire.cut_at = b"for update"
        with opened:
            with pytest.raises(StoreUnreachable):
                opened.publish(tip, change(1, 2))
            opened.publish(tip, change(1, 2))


def test_a_server_that_says_nothing_any_more_is_left(
    postgres: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "PATIENCE", 1.0)
    with wired(postgres, database) as (wire, url):
        opened, tip = begun(url)
        wire.cut_at, wire.silent = b"commit\0", True
        with opened:
            later = opened.publish(tip, change(1, 2))
            assert opened.read(None).tip == later
        assert wire.cuts == 1


def test_nobody_answers(tmp_path: Path) -> None:
    with (
        engine("postgresql://anna@127.0.0.1:1/team") as opened,
        pytest.raises(StoreUnreachable, match=r"the store .*127\.0\.0\.1:1/team cannot be reached"),
    ):
        opened.read(None)
    nowhere = f"postgresql://anna@/team?host={tmp_path}"
    with engine(nowhere) as opened, pytest.raises(StoreUnreachable):
        opened.publish(None, change(1))


@pytest.mark.parametrize(
    ("user", "database", "words"),
    [("nobody", "", "role .* does not exist"), ("admin", "no_such", "database .* does not exist")],
)
def test_a_server_that_turns_us_away_has_refused(
    postgres: Server, user: str, database: str, words: str
) -> None:
    with engine(postgres.url(database or "postgres", user)) as opened:
        with pytest.raises(StoreRefused, match=words) as refused:
            opened.read(None)
        assert refused.value.code == 8


def test_a_commit_is_on_the_disk_even_where_the_server_would_not_wait(
    postgres: Server, database: str
) -> None:
    name = database.split("@/")[1].partition("?")[0]
    postgres.sql(f"alter database {name} set synchronous_commit = off")
    try:
        connection = link.connect(database)
        assert connection.execute("show synchronous_commit").fetchone() == ("on",)
        connection.close()
    finally:
        postgres.sql(f"alter database {name} reset synchronous_commit")


def test_a_read_only_server_is_named(postgres: Server, database: str) -> None:
    opened, tip = begun(database)
    name = database.split("@/")[1].partition("?")[0]
    opened.close()
    postgres.sql(f"alter database {name} set default_transaction_read_only = on")
    try:
        with engine(database) as opened:
            assert json.loads(opened.read(None).added) == {"seq": 1}
            with pytest.raises(StoreRefused, match="name the main server"):
                opened.publish(tip, change(1, 2))
    finally:
        postgres.sql(f"alter database {name} reset default_transaction_read_only")
