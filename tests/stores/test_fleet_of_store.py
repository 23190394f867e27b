"""The fleet of a store: every collaboration of it, also those that no folder here holds."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from acp_core.model.clock import utc_now
from acp_core.protocols.folder import mirror
from acp_core.stores.address import parse
from acp_core.stores.engine import Listed
from acp_core.stores.postgres import link
from acp_core.stores.postgres.hosts import Overview
from tests.stores.databases import prepared
from tests.stores.hosts import Host, git, repository, shared, started
from tests.support.postgres import Server


@pytest.fixture
def people(tmp_path: Path) -> tuple[Host, Host]:
    """Somebody who takes part, and somebody who only looks on; `reader` is a person there."""
    anna, ben = Host("anna", tmp_path), Host("ben", tmp_path)
    config = ben.home / "config" / "config.toml"
    config.write_text(f'humans = ["reader"]\n{config.read_text()}')
    return anna, ben


def begun(host: Host, store: str, id: str) -> None:
    """A new collaboration in a store, of which the host's folder is named like it."""
    host.folder = host.home / id
    started(host)
    host.done_here("share", store, "--id", id, "--yes")


def listed(host: Host, *words: str) -> dict[str, dict[str, Any]]:
    """What `acp status` tells, by the names of the collaborations."""
    told = json.loads(host.done("status", *words, "--json"))
    return {each["name"]: each for each in told["collaborations"]}


def test_a_store_is_listed_where_no_folder_is(store: str, people: tuple[Host, Host]) -> None:
    anna, ben = people
    assert "No collaborations here" in ben.done("status", store)
    begun(anna, store, "cache-key")
    begun(anna, store, "checkout")
    anna.write("proposal.md", "# P\n\n## Objective\nChoose\n")
    anna.appended("writer", "proposal_submitted", "--reply-to", "1")
    found = listed(ben, store)
    link = parse(store).link
    assert found.keys() == {"cache-key", "checkout"}
    assert found["checkout"]["key"] == f"{link}#checkout"
    assert (found["cache-key"]["phase"], found["checkout"]["phase"]) == ("drafting", "reviewing")
    assert found["cache-key"]["needs"] == []
    assert [each["text"] for each in found["checkout"]["needs"]] == [
        "reader must review the proposal"
    ]
    assert found["checkout"]["hosts"] == ["anna"]
    assert not (ben.home / "cache" / "joined").exists()
    lines = ben.done("status", store).splitlines()
    assert "host" in lines[0] and "checkout" in lines[1] and "anna" in lines[1]


def test_the_list_says_what_the_folder_says(store: str, people: tuple[Host, Host]) -> None:
    anna, ben = people
    begun(anna, store, "checkout")
    anna.write("proposal.md", "# P\n\n## Objective\nChoose\n")
    anna.appended("writer", "proposal_submitted", "--reply-to", "1")
    for words in ((), ("blocked", "--summary", "No key\x1b[31m is agreed")):
        if words:
            anna.appended("reader", *words, "--reply-to", "2")
        row = listed(ben, store)["checkout"]
        ben.done("show", f"{store}#checkout")
        whole = listed(ben, f"{store}#checkout")["checkout"]
        same = ("key", "name", "protocol", "dialect", "objective", "status", "phase", "round", "progress",
                "waiting", "since", "started", "changed", "hosts")  # fmt: skip
        assert {name: row[name] for name in same} == {name: whole[name] for name in same}
        assert whole["headline"].startswith(row["headline"].rstrip("."))
        keys = [[each["key"] for each in found["needs"]] for found in (row, whole)]
        assert keys[0] == keys[1] != []


def test_who_looks_acts_in_it(store: str, people: tuple[Host, Host]) -> None:
    anna, ben = people
    begun(anna, store, "checkout")
    shown = ben.done("show", f"{store}#checkout")
    assert "drafting" in shown and "proposal.md" in shown
    ben.done(
        "act",
        f"{store}#checkout",
        "block",
        "--participant",
        "reader",
        "--reason",
        "Wait for me",
        "--yes",
    )
    anna.sync()
    last = anna.log()[-1]
    assert (last["event"], last["from"], last["summary"]) == ("blocked", "reader", "Wait for me")
    refused = ben.acp("act", f"{store}#checkout", "continue", "--yes")
    assert refused.returncode == 2 and "`acp join " in refused.stderr


def test_a_folder_here_stands_for_its_row(store: str, people: tuple[Host, Host]) -> None:
    anna, ben = people
    begun(anna, store, "checkout")
    ben.done("join", f"{store}#checkout", str(ben.folder))
    assert listed(ben, store)["c"]["key"] == str(ben.folder)
    ben.done_here("unshare", "--yes")
    assert listed(ben, store)["checkout"]["key"] == f"{parse(store).link}#checkout"


def test_stores_are_followed_by_the_settings(store: str, people: tuple[Host, Host]) -> None:
    anna, ben = people
    begun(anna, store, "checkout")
    config = ben.home / "config" / "config.toml"
    config.write_text(config.read_text() + f'follow = ["{store}"]\n')
    assert list(listed(ben)) == ["checkout"]
    config.write_text('[share]\nfollow = ["ext::sh -c touch% x"]\n')
    ran = ben.acp("status")
    assert ran.returncode == 2 and ran.stderr.startswith("error: config.toml: share.follow: ext::")
    config.write_text("[share]\nfollow = 3\n")
    assert "share.follow: expected a list of texts" in ben.acp("status").stderr


@pytest.mark.parametrize(
    "address",
    [
        "git+ssh://-oProxyCommand=x/y",
        "git+file:///a/../b",
        "postgresql://anna:secret@h/d",
        "ssh://h/x?y",
        "postgresql:///d?password=secret",
    ],
)
def test_addresses_are_judged_before_anything_runs(address: str, tmp_path: Path) -> None:
    host = Host("a", tmp_path)
    ran = host.acp("status", address)
    assert ran.returncode == 2 and " is refused: " in ran.stderr and "secret" not in ran.stderr
    assert not (host.home / "cache").exists()


def test_a_store_that_does_not_answer_is_said(tmp_path: Path) -> None:
    host = Host("a", tmp_path)
    ran = host.acp("status", f"git+file://{tmp_path}/none.git")
    assert ran.returncode == 6 and "cannot be reached (there is no such repository)" in ran.stderr
    database = host.acp("status", f"postgresql://a@/d?host={tmp_path}")
    assert database.returncode == 6 and "cannot be reached" in database.stderr


def test_a_repository_within_a_project_is_refused(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    git("init", "-q", str(project))
    store = repository(project)
    host = Host("a", tmp_path)
    for command, address in (("status", ""), ("show", "#checkout")):
        ran = host.acp(command, f"git+file://{store}{address}")
        assert ran.returncode == 2
        assert "where agents may write, and its hooks would run as you" in ran.stderr
    assert not list((host.home / "cache").rglob("*.git"))


def test_an_empty_folder_named_git_makes_no_project(tmp_path: Path) -> None:
    """Sandboxes of agent programs make one for a moment wherever the program may write."""
    store = repository(tmp_path / "place")
    (tmp_path / "place/.git").mkdir()
    ran = Host("a", tmp_path).acp("status", f"git+file://{store}")
    assert ran.returncode == 0, ran.stderr


def test_branches_of_hostile_names_are_left_out(tmp_path: Path) -> None:
    store, (a,) = shared(tmp_path, "a")
    commit = git("-C", str(store), "rev-parse", "refs/heads/acp/checkout/log")
    for name in ("Up", "x_y", "checkout/host/log", "a\u202eb", "very" * 20):
        git("-C", str(store), "update-ref", f"refs/heads/acp/{name}/log", commit)
    ran = a.acp("status", f"git+file://{store}")
    assert "5 branches below refs/heads/acp/ have names that acp does not use" in ran.stderr
    b = Host("b", tmp_path)
    assert list(listed(b, f"git+file://{store}")) == ["checkout"]


def test_hostile_contents_are_shown_as_text(tmp_path: Path) -> None:
    store, _ = shared(tmp_path, "a")
    lines = [
        {
            "seq": 1,
            "at": "2026-01-01T00:00:00Z",
            "from": "w\x1b[31m",
            "event": "initialized",
            "summary": "s",
        },
        {
            "seq": 2,
            "at": "x",
            "from": "w\x1b[31m",
            "event": "blocked",
            "summary": "\x1b]0;t\x07\u202e",
        },
    ]
    log = "".join(f"{json.dumps(each)}\n" for each in lines)
    protocol = json.dumps(
        {"participants": ["w\x1b[31m", {"id": "[red]x", "kind": []}], "objective": "\x9b31m"}
    )
    tree_of = {
        "log": log,
        "nothing": "",
        "noise": "\0\xff\n" * 9,
        "protocol": protocol,
        "list": "[]",
    }
    blobs = {
        name: git("-C", str(store), "hash-object", "-w", "--stdin", given=text.encode())
        for name, text in tree_of.items()
    }
    for id, log_of, protocol_of in (
        ("one", "log", "protocol"),
        ("two", "noise", "noise"),
        ("three", "nothing", "list"),
    ):
        rows = f"100644 blob {blobs[log_of]}\tevents.jsonl\n100644 blob {blobs[protocol_of]}\tprotocol.json\n"
        tree = git("-C", str(store), "mktree", given=rows.encode())
        commit = git("-C", str(store), "commit-tree", tree, "-m", "x")
        git("-C", str(store), "update-ref", f"refs/heads/acp/{id}/log", commit)
    b = Host("b", tmp_path)
    found = listed(b, f"git+file://{store}")
    assert found.keys() == {"checkout", "one", "two", "three"}
    said = json.dumps(found, ensure_ascii=False) + b.done("status", f"git+file://{store}")
    assert not set(said) & {"\x1b", "\x07", "\u202e", "\x9b"}
    assert found["one"]["status"] == "blocked" and found["two"]["status"] == "unknown"


@pytest.mark.slow
def test_what_an_earlier_acp_wrote_is_read_from_its_log(
    postgres: Server, people: tuple[Host, Host]
) -> None:
    """Its rows say nothing of who is a person; `acp store init` brings the tables up to date."""
    anna, ben = people
    url = postgres.database()
    connection = link.connect(url)
    connection.execute(link.steps()[0].encode())
    connection.execute(b"insert into acp.version (version) values (1)")
    connection.close()
    ran = anna.acp("store", "list", url)
    assert ran.returncode == 8 and "tables of an earlier acp (version 1" in ran.stderr
    assert "created tables of version 2\n" in anna.done("store", "init", url)
    begun(anna, url, "checkout")
    anna.write("proposal.md", "# P\n\n## Objective\nChoose\n")
    anna.appended("writer", "proposal_submitted", "--reply-to", "1")
    new = listed(ben, url)["checkout"]
    postgres.sql(
        "alter table acp.collab disable trigger forward",
        "update acp.collab set standing = null",
        url=url,
    )
    old = listed(ben, url)["checkout"]
    assert old["needs"] == new["needs"] != []
    for told in (
        "3",
        '"x"',
        '{"people": 3, "blocked": [1], "progress": "x", "phase": "reviewing"}',
        "[]",
    ):
        postgres.sql(f"update acp.collab set standing = '{told}'", url=url)
        assert listed(ben, url)["checkout"]["phase"] == "reviewing"


def test_a_change_of_leases_leaves_the_row_as_it_is(
    postgres: Server, people: tuple[Host, Host]
) -> None:
    anna, _ = people
    url = prepared(postgres.database())
    begun(anna, url, "checkout")
    anna.write("proposal.md", "# P\n\n## Objective\nChoose\n")
    anna.appended("writer", "proposal_submitted", "--reply-to", "1")
    overview = Overview(url)
    overview.refresh()
    before = overview.listed["checkout"]
    anna.sync("--release", "writer")
    overview.wait(30)
    overview.refresh()
    after = overview.listed["checkout"]
    overview.close()
    assert before.acting and not after.acting
    assert (after.phase, after.waiting, after.standing) == (
        before.phase,
        before.waiting,
        before.standing,
    )
    assert after.phase == "reviewing" and int(after.revision) > int(before.revision)


def test_nothing_is_kept_where_others_can_read(store: str, people: tuple[Host, Host]) -> None:
    anna, ben = people
    begun(anna, store, "checkout")
    ben.done("show", f"{store}#checkout")
    joined = ben.home / "cache" / "joined"
    assert os.stat(joined).st_mode & 0o077 == 0
    assert [each.name for each in joined.glob("*/*")] == ["checkout"]


def test_the_settings_are_looked_at_once_for_all_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not once for each of ten thousand, in the order of which people come first."""
    people = {"people": [["reader", "human", 1, "2026-01-01T00:00:00Z"]], "phase": "reviewing"}
    rows = {f"c{n}": Listed(f"c{n}", 1, 1, "reviewing", standing=people) for n in range(50)}
    rows["c7"] = rows["c7"]._replace(standing={})

    class Listing:
        listed, note = rows, ""

        def refresh(self) -> frozenset[str]:
            return frozenset(rows)

    asked: list[int] = []

    def of_settings() -> frozenset[str]:
        asked.append(1)
        return frozenset()

    monkeypatch.setattr(mirror, "open_listing", lambda *given: Listing())
    monkeypatch.setattr(mirror, "people_of_settings", of_settings)
    listing = mirror.StoreListing(parse(f"git+file://{tmp_path}/store.git"))
    shown = listing.refresh(utc_now()).snapshots
    assert [each.name for each in shown][-1] == "c7" and len(shown) == len(rows)
    assert len(asked) <= 2
