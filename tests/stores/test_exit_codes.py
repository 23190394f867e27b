"""What people read, and the exit code, where `test_texts` has it of a repository only, or not at all."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core.stores import hosts as stores_hosts
from acp_core.stores.address import parse
from acp_core.stores.engine import HostState
from acp_core.stores.hosts import open_engine
from tests.stores.databases import prepared
from tests.stores.hosts import ID, ROOT, Host, git, shared, started
from tests.stores.test_shared_folder import REF, proposed
from tests.support.postgres import Server
from tests.support.waiting import until

PROPOSING = ("writer", "proposal_submitted", "--reply-to", "1")
REVIEWING = ("reader", "review_submitted", "--reply-to", "2", "--review", "Fine.")


def over(place: Path, url: str, *names: str) -> list[Host]:
    """Hosts that share a collaboration in a database; the first one has begun it."""
    hosts = [Host(name, place) for name in names]
    started(hosts[0])
    hosts[0].done("share", str(hosts[0].folder), url, "--id", ID, "--yes")
    for each in hosts[1:]:
        each.done("join", f"{url}#{ID}", str(each.folder))
    return hosts


@pytest.mark.slow
def test_the_exit_codes_over_postgresql(mortal_postgres: Server, tmp_path: Path) -> None:
    """7: acts elsewhere; 8: refused, with the server's words; 9: put back, or gone; 6: not reached."""
    url = prepared(mortal_postgres.database())
    a, b = over(tmp_path, url, "a", "b")
    database = url.split("@/")[1].partition("?")[0]
    mortal_postgres.sql(f"create database earlier template {database}")
    proposed(a)
    b.sync()
    before = b.files()

    ran = b.append("writer", "blocked", "--reply-to", "2")
    assert ran.returncode == 7, ran
    assert "writer acts on host a (" in ran.stderr and "`--take` moves it here" in ran.stderr

    mortal_postgres.sql("create role ben login in role acp_reader")
    ben = Host("ben", tmp_path)
    ben.done("join", f"{url.replace('://admin@', '://ben@')}#{ID}", str(ben.folder))
    ran = ben.append(*REVIEWING)
    assert ran.returncode == 8 and "is your role a member of acp_writer" in ran.stderr, ran
    assert len(ben.log()) == 2

    def becomes(name: str, kept: str) -> None:
        """Have another database stand in the place of the store, as after a restored backup."""
        for each in (database, name):
            mortal_postgres.sql(
                f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{each}'"
            )
        mortal_postgres.sql(
            f"alter database {database} rename to {kept}",
            f"alter database {name} rename to {database}",
        )

    def all_refuse(code: int, said: str) -> None:
        for ran in (
            b.append(*REVIEWING),
            b.acp_here("sync", "--once"),
            b.acp("next", "--folder", str(b.folder), "--participant", "reader"),
        ):
            assert ran.returncode == code and said in ran.stderr, ran
        assert b.files() == before

    becomes("earlier", "later")
    all_refuse(
        9, "the store holds seq 1, less than the 2 that this folder has seen: it was put back"
    )
    becomes("later", "earlier")
    b.sync()
    other = Host("other", tmp_path)
    started(other)
    mortal_postgres.sql("create database empty")
    prepared(mortal_postgres.url("empty"))
    becomes("empty", "whole")
    all_refuse(9, "the store no longer holds this collaboration: ask the others")
    other.done_here("share", url, "--id", ID, "--yes")
    other.write("proposal.md", "# Another\n")
    other.appended("writer", "proposal_submitted", "--reply-to", "1")
    all_refuse(9, "the shared history was rewritten: what came up to seq 2 here is not what")
    becomes("whole", "another")
    b.sync()

    mortal_postgres.kill()
    ran = b.append(*REVIEWING)
    assert ran.returncode == 6, ran
    assert (
        "not appended: the store postgresql://" in ran.stderr
        and " cannot be reached (" in ran.stderr
    )
    assert "Your documents are untouched; run the same command again" in ran.stderr
    for words in (("hosts",), ("ask", "a", "stop", "writer"), ("sync", "--once")):
        ran = b.acp(words[0], str(b.folder), *words[1:])
        assert ran.returncode == 6 and " cannot be reached (" in ran.stderr, ran
    ran = b.acp("next", "--folder", str(b.folder), "--participant", "reader")
    assert ran.returncode == 0 and "; not reached since: " in ran.stderr
    mortal_postgres.start()
    assert b.appended(*REVIEWING) == 3


@pytest.mark.slow
def test_when_a_host_was_heard_of(postgres: Server, database: str, tmp_path: Path) -> None:
    """By the server's clock; taking over is advised after 45 seconds."""
    a, b = over(tmp_path, database, "a", "b")
    proposed(a)
    b.sync()
    with open_engine(parse(f"{database}#{ID}")) as engine:
        engine.tell(HostState("a", "anna", "boot", "1", {"writer": {"pid": 7}}))

    def silent_for(seconds: int) -> str:
        told = f"update acp.host set beat = clock_timestamp() - interval '{seconds} seconds'"
        postgres.sql(told, url=database)
        return b.done_here("hosts")

    said = silent_for(20)
    assert re.search(r"a \(anna\), acp 1, heard of [2-4]\d s ago: loops of writer", said), said
    assert "taking over is advised" not in said
    assert "taking over" not in b.append("writer", "blocked", "--reply-to", "2").stderr
    said = silent_for(80)
    assert re.search(r"heard of [89]\d s ago", said), said
    advised = (
        r"a was not heard of for [89]\d s: taking over is advised \(`acp sync --take writer`\)"
    )
    assert re.search(advised, said), said
    ran = b.append("writer", "blocked", "--reply-to", "2")
    assert ran.returncode == 7 and "taking over is advised" in ran.stderr
    assert 3 * stores_hosts.BEAT == 45


def test_when_a_host_said_something_over_git(tmp_path: Path) -> None:
    """A repository keeps no time: the host's own is shown, as its word, and never as a sign of life."""
    store, (_, b) = shared(tmp_path, "a", "b")
    assert b.done_here("hosts") == "no host has said anything yet\n"
    with open_engine(parse(f"{store}#{ID}")) as engine:
        engine.tell(HostState("a", "anna", "boot", "1", {}, "2026-01-01T00:00:00Z"))
    assert b.done_here("hosts") == "a (anna), acp 1, said at 2026-01-01T00:00:00Z\n"


@pytest.mark.slow
def test_who_waits_goes_on_waiting_while_the_store_is_away(tmp_path: Path) -> None:
    store, (a, b) = shared(tmp_path, "a", "b")
    b.sync()
    store.rename(tmp_path / "away.git")
    words = ("wait", "--folder", str(b.folder), "--participant", "reader", "--interval", "0.1")
    said = tmp_path / "said"
    with said.open("w") as errors:
        waiting = subprocess.Popen(
            [sys.executable, "-m", "acp_tui", *words], cwd=ROOT, env=b.env, text=True,
            stdout=subprocess.PIPE, stderr=errors,
        )  # fmt: skip
    try:
        until(lambda: "not reached since: the store file://" in said.read_text(), "the reason")
        assert datetime.now(UTC).strftime("as of %Y-%m-%d ") in said.read_text()
        ran = b.append("reader", "blocked", "--reply-to", "1")
        assert ran.returncode == 6 and "not appended: the store" in ran.stderr, "nor is a blocker"
        (tmp_path / "away.git").rename(store)
        proposed(a)
        out, _ = waiting.communicate(timeout=60)
    finally:
        waiting.kill()
        waiting.communicate()
    assert waiting.returncode == 0 and "ready: reader is listed in waitingFor" in out
    assert said.read_text().count("not reached since") == 1, "said once"


def test_a_repository_that_takes_no_more(tmp_path: Path) -> None:
    """A limit of its owner: what git says of it is shown."""
    store, (a,) = shared(tmp_path, "a")
    git("-C", str(store), "config", "receive.maxInputSize", "1000")
    a.write("proposal.md", "".join(f"{number * 7919 % 104729}\n" for number in range(5000)))
    ran = a.append(*PROPOSING)
    assert ran.returncode == 8 and "the store refused it: " in ran.stderr, ran
    assert "exceeds maximum allowed size" in ran.stderr or "unpack" in ran.stderr, ran
    assert len(a.log()) == 1


def test_more_files_than_are_shared(tmp_path: Path) -> None:
    store, (a,) = shared(tmp_path, "a")
    blob = git("-C", str(store), "hash-object", "-w", "--stdin", given=b"x")
    listed = [*git("-C", str(store), "ls-tree", REF).splitlines()]
    listed += [f"100644 blob {blob}\tn{number}.md" for number in range(2_001)]
    given = "".join(f"{each}\n" for each in listed).encode()
    tree = git("-C", str(store), "mktree", given=given)
    made = git("-C", str(store), "commit-tree", tree, "-p", REF, "-m", "planted")
    git("-C", str(store), "update-ref", REF, made)
    victim = Host("v", tmp_path)
    before = a.files()
    for ran in (
        a.acp_here("sync", "--once"),
        victim.acp("join", f"{store}#{ID}", str(victim.folder)),
    ):
        assert ran.returncode == 8, ran
        assert "the store holds more than 2000 files or 256 MiB: refused" in ran.stderr
    assert a.files() == before and not victim.folder.exists()


def test_what_is_written_into_protocol_json_here_gives_way(tmp_path: Path) -> None:
    _, (a, b) = shared(tmp_path, "a", "b")
    b.write("protocol.json", b.read("protocol.json").decode().replace("Choose", "Something else"))
    proposed(a)
    said = b.sync()
    assert "protocol.json is the store's: what was written into it here is in .acp/kept/" in said
    assert b.read("protocol.json") == a.read("protocol.json")
    (kept,) = (b.folder / ".acp" / "kept").iterdir()
    assert b"Something else" in kept.read_bytes() and kept.name.startswith("protocol.json.")
    ran = b.acp_here("sync", "--mine", "protocol.json")
    assert ran.returncode == 2 and "protocol.json is always the store's" in ran.stderr


def test_a_request_that_no_host_would_follow(tmp_path: Path) -> None:
    _, (a,) = shared(tmp_path, "a")
    for words, said in (
        (("nudge", "reader", "x" * 2_001), "the text is longer than 2000 characters"),
        (("stop", "reader", "--expires", "25h"), "a request is of use for one day at most"),
    ):
        ran = a.acp_here("ask", "b", *words)
        assert ran.returncode == 2 and said in ran.stderr, ran


@pytest.mark.parametrize("command", ["share", "join", "status", "doctor"])
def test_postgresql_without_its_extra(command: str, tmp_path: Path) -> None:
    host = Host("a", tmp_path)
    started(host)
    without = tmp_path / "without"
    without.mkdir()
    (without / "psycopg.py").write_text("raise ImportError('not installed')\n")
    url = "postgresql://anna@127.0.0.1:1/team"
    words = {
        "share": ("share", str(host.folder), url, "--yes"),
        "join": ("join", f"{url}#{ID}", str(host.home / "new")),
        "status": ("status", url),
        "doctor": ("doctor", url),
    }[command]
    ran = subprocess.run(
        [sys.executable, "-m", "acp_tui", *words], cwd=ROOT, capture_output=True, text=True, check=False,
        env=host.env | {"PYTHONPATH": f"{without}:{ROOT}"},
    )  # fmt: skip
    said = " ".join((ran.stdout + ran.stderr).split())
    assert "PostgreSQL needs the extra: pip install 'acp-tui[postgres]'" in said, ran
    assert ran.returncode == (0 if command == "doctor" else 8), ran
    assert not (host.folder / ".acp" / "share.json").exists()
    assert not (host.home / "new").exists()


def test_git_is_needed_for_a_repository(tmp_path: Path) -> None:
    _, (a,) = shared(tmp_path, "a")
    a.env["PATH"] = str(tmp_path / "nothing")
    ran = a.append(*PROPOSING)
    assert ran.returncode == 8 and "git is not installed on this machine" in ran.stderr, ran
    assert len(a.log()) == 1
