"""A database as people set it up: prepared, looked at, with rights, and listed."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from acp_core.stores.engine import Asked, HostState, StoreRefused
from acp_core.stores.postgres import link
from acp_core.stores.postgres.hosts import Overview
from tests.stores.databases import begun, change, engine, line, prepared
from tests.stores.hosts import ID, Host, started
from tests.support.postgres import Server

NEXT = link.VERSION + 1
NEXT_VERSION = "alter table acp.collab add column title text not null default ''"


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host("a", tmp_path)


def database_of(url: str) -> str:
    return url.split("@/")[1].partition("?")[0]


def as_user(url: str, user: str) -> str:
    return url.replace("://admin@", f"://{user}@")


@pytest.fixture
def writer(postgres: Server, database: str) -> str:
    """The address of the database for an account that is only a member of acp_writer."""
    if not postgres.sql("select 1 from pg_roles where rolname = 'anna'"):
        postgres.sql("create role anna login in role acp_writer")
    return as_user(database, "anna")


def test_a_database_is_prepared_once(postgres: Server, host: Host) -> None:
    url = postgres.database()
    refused = host.acp("store", "list", url)
    assert (refused.returncode, "run `acp store init postgresql://" in refused.stderr) == (8, True)
    said = host.done("store", "init", url)
    assert "created tables of version 1\n" in said and f"version {link.VERSION}\n" in said
    assert " is ready: acp share FOLDER '" in said
    opened, tip = begun(url)
    assert f"nothing to do: the tables have version {link.VERSION}\n" in host.done(
        "store", "init", url
    )
    told = json.loads(host.done("store", "init", url, "--json"))
    assert (told["version_before"], told["version"], told["made"]) == (
        link.VERSION,
        link.VERSION,
        [],
    )
    assert {each["name"]: each["value"] for each in told["checks"]}["fsync"] == "on"
    assert opened.read(None).tip == tip
    opened.close()


@pytest.mark.parametrize(
    ("address", "code", "words"),
    [
        (
            "postgresql://anna:hunter22@127.0.0.1:1/team",
            2,
            "a password does not belong into an address",
        ),
        (
            "postgresql://anna@127.0.0.1:1/team?password=hunter22",
            2,
            "use a service file or the environment",
        ),
        (
            "postgresql://anna@127.0.0.1:1/team",
            6,
            "postgresql://anna@127.0.0.1:1/team cannot be reached",
        ),
        ("postgresql://anna@127.0.0.1:1/team#one", 2, "name a database"),
        ("git+ssh://anna@host/x", 2, "name a database"),
        ("postgresql://anna@127.0.0.1:1/team?nonsense=1", 2, "invalid URI query parameter"),
    ],
)
def test_an_address_that_cannot_be_used(host: Host, address: str, code: int, words: str) -> None:
    ran = host.acp("store", "init", address)
    assert ran.returncode == code and words in ran.stderr, ran.stderr
    assert "hunter22" not in ran.stdout + ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_the_password_comes_from_the_environment(mortal_postgres: Server, host: Host) -> None:
    url = mortal_postgres.database()
    mortal_postgres.sql("alter role admin password 'hunter22'")
    rules = mortal_postgres.place / "data" / "pg_hba.conf"
    rules.write_text("local all all scram-sha-256\n")
    mortal_postgres.kill()
    mortal_postgres.start()
    refused = host.acp("store", "init", url)
    assert refused.returncode == 8 and "no password supplied" in refused.stderr
    host.env["PGPASSWORD"] = "hunter22"
    assert "is ready" in host.done("store", "init", url)


def test_a_database_of_another_encoding_is_refused(postgres: Server, host: Host) -> None:
    url = postgres.database(encoding="'SQL_ASCII'", template="template0")
    ran = host.acp("store", "init", url)
    assert ran.returncode == 8 and "acp needs UTF8" in ran.stderr


def test_tables_are_brought_up_to_date_and_newer_ones_left_alone(database: str, host: Host) -> None:
    """By an update that stands in for the next one."""
    opened, tip = begun(database)
    opened.close()
    connection = link.connect(database)
    done = link.prepare(connection, (*link.steps(), NEXT_VERSION))
    assert (done.before, done.after) == (link.VERSION, NEXT)
    assert done.made == (f"tables of version {NEXT}",)
    kept = connection.execute("select name, title from acp.collab").fetchall()
    assert kept == [("one", "")]
    connection.close()
    with (
        engine(database) as newer,
        pytest.raises(
            StoreRefused,
            match=rf"a newer acp \(version {NEXT}; this acp uses {link.VERSION}\): update acp",
        ),
    ):
        newer.read(tip)
    ran = host.acp("store", "init", database)
    assert ran.returncode == 8 and f"tables of a newer acp (version {NEXT}" in ran.stderr


def test_an_update_that_fails_leaves_all_as_it_was(database: str) -> None:
    import psycopg

    connection = link.connect(database)
    with pytest.raises(psycopg.Error):
        link.prepare(connection, (*link.steps(), f"{NEXT_VERSION}; select 1/0"))
    assert link.version(connection) == link.VERSION
    assert link.prepare(connection).made == ()
    connection.close()


def test_earlier_tables_are_named(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "VERSION", NEXT)
    with (
        engine(database) as opened,
        pytest.raises(
            StoreRefused, match=rf"an earlier acp \(version {NEXT - 1}; .* run `acp store init"
        ),
    ):
        opened.read(None)


def test_two_prepare_at_once(postgres: Server) -> None:
    url = postgres.database()
    made: list[tuple[str, ...]] = []

    def prepare() -> None:
        connection = link.connect(url)
        made.append(link.prepare(connection).made)
        connection.close()

    threads = [threading.Thread(target=prepare) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert sorted("tables of version 1" in each for each in made) == [False, False, False, True]


@pytest.mark.parametrize(
    "statement",
    [
        "update acp.event set line = 'x'",
        "delete from acp.event",
        "truncate acp.event cascade",
        "update acp.revision set sha256 = sha256('x')",
        "delete from acp.revision",
        "update acp.blob set data = 'x'",
        "delete from acp.doc",
        "update acp.doc set digest = null",
        "delete from acp.collab",
        "update acp.collab set name = 'two'",
        "update acp.ask set request = '{}'",
        "update acp.ask set who = 'admin'",
        "delete from acp.ask",
        "insert into acp.ask (collab, id, host, request, who) select id, repeat('b', 24), 'h', '{}', 'admin' from acp.collab",
        (
            "insert into acp.revision (collab, number, mark, seq, lines, size, sha256, about, who)"
            " select id, 9, mark, seq, lines, size, sha256, '{}', 'admin' from acp.collab"
        ),
        "alter table acp.event disable trigger all",
        "drop schema acp cascade",
        "insert into acp.version (version) values (9)",
        "create table acp.mine (x int)",
    ],
)
def test_a_writer_cannot_rewrite_history(postgres: Server, writer: str, statement: str) -> None:
    import psycopg

    opened, tip = begun(writer, documents={"a.md": b"a"})
    opened.ask(Asked("a" * 24, "laptop", "stop", "writer"))
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        postgres.sql(statement, url=writer)
    assert opened.read(None).tip == tip
    assert opened.requests("laptop")[0].proven == "anna"
    opened.close()


@pytest.mark.parametrize(
    "statement",
    [
        "update acp.collab set revision = revision - 1",
        "update acp.collab set revision = revision + 1, size = 0",
        "update acp.collab set revision = revision + 2",
        "insert into acp.blob (digest, data) values (sha256('good'), 'bad')",
        (
            "insert into acp.collab (name, revision, mark, seq, lines, size, sha256, protocol, phase, waiting)"
            " select '../x', 1, mark, 1, 1, 1, sha256, '', '', '{}' from acp.collab"
        ),
    ],
)
def test_what_a_writer_may_write_is_checked(postgres: Server, writer: str, statement: str) -> None:
    import psycopg

    opened, _ = begun(writer)
    with pytest.raises(psycopg.errors.CheckViolation):
        postgres.sql(statement, url=writer)
    opened.close()


def test_a_reader_reads_only(postgres: Server, database: str) -> None:
    if not postgres.sql("select 1 from pg_roles where rolname = 'ben'"):
        postgres.sql("create role ben login in role acp_reader", "create role carl login")
    opened, tip = begun(database)
    with engine(as_user(database, "ben")) as reading:
        assert reading.read(None).tip == tip
        with pytest.raises(StoreRefused, match="is your role a member of acp_writer"):
            reading.publish(tip, change(1, 2))
    denied = pytest.raises(StoreRefused, match="permission denied")
    with engine(as_user(database, "carl")) as nobody, denied:
        nobody.read(None)
    opened.close()


def checks(host: Host, url: str) -> dict[str, dict[str, str]]:
    told = json.loads(host.acp("doctor", url, "--json").stdout)["checks"]
    return {each["name"]: each for each in told if each["group"] == "Stores"}


def test_the_doctor_looks_at_a_database(
    postgres: Server, database: str, writer: str, host: Host
) -> None:
    found = checks(host, database)
    assert found["fsync"]["state"] == found["tables"]["state"] == "ok"
    assert (
        found["rights"]["state"] == "warn" and "can change the history" in found["rights"]["value"]
    )
    found = checks(host, writer)
    assert found["rights"]["value"] == "anna can read and add, and cannot change the history"
    assert {each["state"] for each in found.values()} == {"ok"}
    postgres.sql(f"alter database {database_of(database)} set synchronous_commit = off")
    assert (
        "sets it to on for its own sessions"
        in checks(host, database)["synchronous_commit"]["advice"]
    )
    postgres.sql(f"alter database {database_of(database)} reset synchronous_commit")
    assert "acp store init" in checks(host, postgres.url("postgres"))["tables"]["advice"]
    assert (
        "cannot be reached" in checks(host, "postgresql://a@127.0.0.1:1/x")["connection"]["advice"]
    )


def test_the_doctor_warns_of_a_server_that_syncs_nothing(host: Host) -> None:
    from tests.support.postgres import NoServer, running

    try:
        with running(fsync="off", full_page_writes="off") as server:
            url = prepared(server.database())
            found = checks(host, url)
            assert "a power failure can lose acknowledged events" in found["fsync"]["advice"]
            assert found["full_page_writes"]["state"] == "warn"
            assert "note: fsync: off: a power failure" in host.done("store", "init", url)
    except NoServer as reason:
        pytest.skip(str(reason))


def test_all_collaborations_of_a_store_are_followed(postgres: Server, database: str) -> None:
    overview = Overview(database)
    assert overview.refresh() == frozenset()
    begun(database, "two", phase="drafting\0", waiting=("writer",))[0].close()
    opened, tip = begun(database)
    assert overview.wait(30)
    seen: frozenset[str] = frozenset()
    while seen != {"one", "two"}:
        overview.wait(30)
        seen |= overview.refresh()
    two = overview.listed["two"]
    assert (two.phase, two.waiting, two.seq, two.last) == ("drafting", ("writer",), 1, line(1))
    opened.tell(HostState("laptop", "anna", "b", "1", {"writer": {"pid": 3}}))
    tip = opened.publish(tip, change(1, 2, phase="reviewing"))
    assert overview.wait(30) and overview.refresh() == {"one"}
    assert [each.state.host for each in overview.listed["one"].runners] == ["laptop"]
    postgres.sql("notify acp, 'no-such 7'", "notify acp, 'one 1'", url=database)
    overview.wait(0.3)
    assert overview.refresh() == frozenset()
    opened.close()
    overview.close()


def test_a_change_of_which_no_notice_came_is_listed(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, tip = begun(database)
    overview = Overview(database)
    overview.refresh()
    monkeypatch.setattr("acp_core.stores.postgres.link.send", lambda *_: None)
    opened.publish(tip, change(1, 2))
    assert not overview.wait(0.1)
    assert overview.refresh() == {"one"}
    opened.close()
    overview.close()


def test_a_list_is_made_safe(database: str, host: Host) -> None:
    begun(database, phase="\x1b[31mred\u202e", waiting=("\x1b]0;x\x07",))[0].close()
    begun(database, "two", phase="done")[0].close()
    said = host.done("store", "list", database)
    assert "\x1b" not in said and "\u202e" not in said and "2 of 2 collaborations" in said
    told = json.loads(host.done("store", "list", database, "--json", "--phase", "done"))
    assert [each["id"] for each in told["collaborations"]] == ["two"]


def test_a_folder_is_shared_over_a_database(database: str, writer: str, tmp_path: Path) -> None:
    """From init to the reader's review on another host, as another member of acp_writer."""
    a, b = Host("a", tmp_path), Host("b", tmp_path)
    started(a)
    a.done_here("share", writer, "--id", ID, "--yes")
    b.done("join", f"{database}#{ID}", str(b.folder))
    assert a.files() == b.files()
    a.write("proposal.md", "# The proposal\n")
    a.appended("writer", "proposal_submitted", "--reply-to", "1", "--doc", "proposal.md")
    b.done("wait", "--folder", str(b.folder), "--participant", "reader", "--interval", "0.1")
    assert b.read("proposal.md") == b"# The proposal\n"
    assert b.appended("reader", "review_submitted", "--reply-to", "2", "--review", "Fine.") == 3
    a.sync()
    assert a.files() == b.files()
    refused = b.append("writer", "proposal_revised", "--reply-to", "3")
    assert refused.returncode == 7, refused.stderr
    listed = json.loads(a.done("store", "list", database, "--json"))["collaborations"]
    assert [(each["id"], each["phase"], each["seq"]) for each in listed] == [(ID, "revising", 3)]


@pytest.mark.parametrize(
    "step", ["postgres locked", "postgres before notice", "after publish", "before log"]
)
def test_an_append_that_was_killed_is_done_once(database: str, tmp_path: Path, step: str) -> None:
    a = Host("a", tmp_path)
    started(a)
    a.done_here("share", database, "--id", ID, "--yes")
    a.write("proposal.md", "# The proposal\n")
    words = a.event("writer", "proposal_submitted", "--reply-to", "1", "--doc", "proposal.md")
    assert a.at(step, *words).returncode == -9
    again = a.acp(*words)
    a.sync()
    assert [each["event"] for each in a.log()] == ["initialized", "proposal_submitted"], (
        again.stderr
    )
    assert a.acp_here("validate").returncode == 0
