"""A PostgreSQL database as a store: what is published stays as it is, whoever else is there."""

from __future__ import annotations

import hashlib
import json
import threading
import time

import pytest

from acp_core.stores.address import BadAddress
from acp_core.stores.engine import (
    Asked,
    HistoryRewritten,
    HostState,
    Lease,
    NotInStore,
    StoreRefused,
    Tip,
    TipMoved,
)
from tests.stores.databases import acknowledged, begun, change, client, engine, events, line
from tests.support.postgres import Server

LEASE = Lease("wri ter", "here", "boot", "anna", 1, "2026-01-01T00:00:00Z", "append")
ODD = {
    'a b/"q\\md; drop table acp.event; --': b"x\r\n\0\xff'",
    "plain.md": b"",
    "\udcff not utf-8": b"%s %(x)s {}",
    "long/" * 900: b"its name is longer than an index takes",
}


def test_what_is_published_is_read_as_it_was(database: str) -> None:
    opened, tip = begun(database, documents=ODD, leases={"wri ter": LEASE}, protocol=b"\0\xff")
    with opened, engine(database) as other:
        read = other.read(None)
        assert (read.tip, read.added, read.protocol, read.whole) == (tip, line(1), b"\0\xff", True)
        assert read.documents == ODD
        assert read.leases == {"wri ter": LEASE}
        later = opened.publish(
            tip,
            change(1, 2, documents={"plain.md": None, "new.md": b"n"}, leases={"wri ter": None}),
        )
        read = other.read(tip)
        assert (read.tip, read.added, read.whole) == (later, line(2), False)
        assert read.documents == {"plain.md": None, "new.md": b"n"}
        assert read.leases == {}
        same = other.read(later)
        assert (same.added, same.protocol, same.documents) == (b"", b"{}", {})
        assert set(other.read(None).documents) == {*ODD, "new.md"} - {"plain.md"}
        assert Tip(*json.loads(json.dumps(later))) == later


@pytest.mark.parametrize(
    "log",
    [
        b'{"seq":1,"from":"a\\u0000\\ud800","key":"k\\u0000"}\n{"seq":2,"from":"a\\u0000\\ud800","key":"k\\u0000"}\n',
        b"\xff\xfe no JSON\r\n\n  \n[1]\nnull\n",
        b'{"key":"' + b"k" * 100_000 + b'","from":"a"}\n',
        b"[" * 100_000 + b"\n",
        b"",
    ],
)  # fmt: skip
def test_a_log_is_kept_byte_for_byte_whatever_it_holds(database: str, log: bytes) -> None:
    with engine(database) as opened:
        tip = opened.publish(None, change(1)._replace(log=log, line=None, seq=0))
        read = opened.read(None)
        assert (read.added, read.tip) == (log, tip)
        assert tip.sha256 == hashlib.sha256(log).hexdigest()


def test_only_who_read_last_can_publish(database: str) -> None:
    opened, tip = begun(database)
    with opened, engine(database) as other:
        with pytest.raises(TipMoved):
            other.publish(None, change(1))
        other.publish(tip, change(1, 2))
        with pytest.raises(TipMoved):
            opened.publish(tip, change(1, 2))
        with pytest.raises(TipMoved):
            opened.publish(tip._replace(id="1-no mark"), change(1, 2))
        assert len(events(database)) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        change(1, 2, log=b"other" + line(2)),
        change(1, 2, log=line(1) + b"half a line"),
        change(1, 2, documents={"large.md": b"x" * ((16 << 20) + 1)}),
        change(1, 2, documents={f"{n}.md": b"" for n in range(2_001)}),
        change(1, 2, leases={"a": LEASE._replace(host="\0")}),
        change(1, 2, leases={"a": LEASE._replace(host="\ud800")}),
        change(1, 2, documents={"\ud800": b""}),
    ],
    ids=["another log", "half a line", "large", "many", "nul", "surrogate", "name"],
)
def test_what_cannot_be_kept_is_refused_and_nothing_of_it_stays(
    database: str, wrong: object
) -> None:
    opened, tip = begun(database)
    with opened:
        with pytest.raises(StoreRefused):
            opened.publish(tip, wrong)  # type: ignore[arg-type]
        assert opened.read(None).tip == tip
        opened.publish(tip, change(1, 2))


def test_a_key_is_in_the_log_once(database: str) -> None:
    opened, tip = begun(database, sender="anna", key="k")
    with opened:
        with pytest.raises(StoreRefused, match="an event with this sender and key"):
            opened.publish(tip, change(1, 2, sender="anna", key="k"))
        tip = opened.publish(tip, change(1, 2, sender="ben", key="k"))
        opened.publish(tip, change(1, 2, 3, sender="ben", key=""))


@pytest.mark.slow
def test_eight_processes_append_to_one_log(database: str) -> None:
    begun(database)[0].close()
    told = acknowledged([client(database, "one", f"c{n}", 12) for n in range(8)])
    found = events(database)
    assert len(told) == 8 * 12 == len(found) - 1
    assert {str(each["key"]): each["seq"] for each in found[1:]} == told


def test_a_collaboration_that_is_not_there(database: str) -> None:
    with engine(database) as opened:
        with pytest.raises(NotInStore, match="acp share"):
            opened.read(None)
        with pytest.raises(NotInStore):
            opened.tell(HostState("a", "anna", "", "1"))
        with pytest.raises(TipMoved):
            opened.publish(
                Tip("1-00", 1, len(line(1)), hashlib.sha256(line(1)).hexdigest()), change(1, 2)
            )


def test_a_database_that_was_put_back_is_noticed(postgres: Server, database: str) -> None:
    opened, tip = begun(database)
    with opened:
        tip = opened.publish(tip, change(1, 2))
    name = database.split("@/")[1].partition("?")[0]
    for copy in ("earlier", "other", "same"):
        postgres.sql(f"create database {name}_{copy} template {name}")
    with engine(database) as opened:
        seen = opened.publish(tip, change(1, 2, 3))

    def copied(copy: str) -> str:
        return database.replace(name, f"{name}_{copy}")

    put_back = pytest.raises(HistoryRewritten, match="holds seq 2, less than the 3")
    with engine(copied("earlier")) as opened, put_back:
        opened.read(seen)
    with engine(copied("other")) as opened:
        log = line(1) + line(2) + line(3, other=True)
        opened.publish(tip, change(1, 2, 3)._replace(log=log, line=None))
        with pytest.raises(HistoryRewritten, match="was rewritten"):
            opened.read(seen)
    with engine(copied("same")) as opened:
        again = opened.publish(tip, change(1, 2, 3, documents={"new.md": b"n"}))
        opened.publish(again, change(1, 2, 3, 4))
        read = opened.read(seen)
        assert (read.added, read.whole, read.documents) == (line(4), True, {"new.md": b"n"})


@pytest.mark.slow
def test_news_come_at_once_and_only_of_others(database: str) -> None:
    opened, tip = begun(database)
    with opened, engine(database) as other, engine(database, "two") as second:
        second.publish(None, change(1))
        assert not opened.wait(tip, 0.2)
        mine = opened.publish(tip, change(1, 2))
        assert not opened.wait(mine, 0.2)
        came: list[float] = []

        def wait() -> None:
            assert other.wait(mine, 60)
            came.append(time.monotonic())

        waiting = threading.Thread(target=wait)
        waiting.start()
        opened.publish(mine, change(1, 2, 3))
        waiting.join(30)
        assert came and other.wait(mine, 0), "it still stands elsewhere"
        assert not other.wait(other.read(mine).tip, 0.1)


def test_a_notice_of_somebody_else_ends_no_wait(postgres: Server, database: str) -> None:
    opened, tip = begun(database)
    with opened:
        for payload in ("one 99999", "one", "", "one -1", "one ²", f"one {'9' * 50}", "x" * 7_000):
            postgres.sql(f"notify acp, '{payload}'", url=database)
        assert not opened.wait(tip, 0.3)


def test_a_change_without_notice_is_found(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who made it was killed before it could tell."""
    monkeypatch.setattr("acp_core.stores.postgres.link.LOOK", 0.2)
    opened, tip = begun(database)
    with opened, engine(database) as other:
        assert not opened.wait(tip, 0.1)
        process = client(database, "one", "c", 1, "postgres before notice")
        assert opened.wait(tip, 60)
        assert process.wait(60) == -9
        assert other.read(tip).tip.seq == 2


def test_all_engines_of_a_process_have_one_connection(postgres: Server, database: str) -> None:
    engines = [begun(database, f"c{n}") for n in range(5)]
    rows = "select count(*) from pg_stat_activity where datname = current_database() and application_name ~ '^acp'"
    assert postgres.sql(rows, url=database) == [(1,)]
    waits = [threading.Thread(target=each.wait, args=(tip, 20)) for each, tip in engines]
    for wait in waits:
        wait.start()
    for each, tip in engines:
        each.publish(tip, change(1, 2))
    for wait in waits:
        wait.join(30)
        assert not wait.is_alive()
    for each, _ in engines:
        each.close()
    assert postgres.sql(rows, url=database) == [(0,)]


def test_what_hosts_say_and_ask(database: str) -> None:
    opened, _ = begun(database)
    with opened:
        state = HostState(
            "laptop", "anna", "b", "1", {"a": {"pid": 3, "x": "\0\ud800"}}, "t", "two"
        )
        opened.tell(state._replace(version="0"))
        opened.tell(state)
        (heard,) = opened.hosts()
        assert heard.state == state and heard.age is not None and heard.age < 60
        request = Asked("a" * 24, "laptop", "stop", "writer", "\0 please", "ben")
        opened.ask(request)
        opened.ask(request._replace(verb="start"))
        assert opened.requests("laptop") == [request._replace(proven="admin")]
        assert opened.requests("desk") == []
        opened.answer(request, "done", "it ended")
        (asked,) = opened.requests("laptop")
        assert (asked.state, asked.sentence) == ("done", "it ended")
        for wrong in (
            request._replace(id="../x"),
            request._replace(host="a b"),
            request._replace(id="b" * 24, seconds=float("nan")),
        ):
            with pytest.raises((StoreRefused, BadAddress)):
                opened.ask(wrong)


def test_the_last_hundred_requests_are_listed(database: str) -> None:
    opened, _ = begun(database)
    with opened:
        for number in range(103):
            opened.ask(Asked(f"{number:024x}", "laptop", "nudge", "writer"))
        found = opened.requests("laptop")
        assert [each.id for each in found] == [f"{number:024x}" for number in range(3, 103)]


def test_a_document_is_told_as_it_was_at_an_earlier_tip(database: str) -> None:
    opened, first = begun(database, documents={"proposal.md": b"one\r\n"})
    with opened:
        second = opened.publish(first, change(1, 2, documents={"proposal.md": b"two"}))
        third = opened.publish(second, change(1, 2, 3, documents={"proposal.md": None}))
        told = [opened.earlier(tip, "proposal.md") for tip in (first, second, third)]
        assert told == [b"one\r\n", b"two", None]
        assert opened.earlier(first._replace(id="--help"), "proposal.md") is None
        assert opened.earlier(first, "no-such.md") is None
