"""What people ask of other hosts: followed as far as the host's owner allows, once, and answered."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from acp_core.protocols.folder.conduct.syncing import Process
from acp_core.stores import asking
from acp_core.stores.address import parse
from acp_core.stores.asking import Ledger
from acp_core.stores.engine import Asked, Engine
from acp_core.stores.hosts import open_engine
from tests.loops.support import stand_in
from tests.stores.hosts import ID, Host, repository, started
from tests.support import forked
from tests.support.waiting import until

Share = Callable[[], tuple[str, Host, Host]]


@pytest.fixture(params=["git", pytest.param("postgres", marks=pytest.mark.slow)])
def share(request: pytest.FixtureRequest, tmp_path: Path) -> Share:
    """Makes two hosts that share a collaboration of a writer and a reader, and names its address."""
    if request.param == "git":
        return lambda: over_git(tmp_path)
    url = request.getfixturevalue("database")
    return lambda: over(tmp_path, url, f"{url}#{ID}")


def over_git(place: Path) -> tuple[str, Host, Host]:
    store = repository(place)
    return over(place, str(store), f"git+file://{store}#{ID}")


def over(place: Path, url: str, address: str) -> tuple[str, Host, Host]:
    a, b = Host("a", place), Host("b", place)
    started(a)
    a.done_here("share", url, "--id", ID, "--yes")
    b.done("join", address, str(b.folder))
    return address, a, b


def accepts(host: Host, *verbs: str) -> None:
    """The owner of a host lets others ask for this."""
    listed = ", ".join(f'"{each}"' for each in verbs)
    text = f'[share]\nhost = "{host.name}"\naccept = [{listed}]\n'
    (host.home / "config" / "config.toml").write_text(text, encoding="utf-8")


@contextlib.contextmanager
def syncing(host: Host) -> Iterator[None]:
    """A process of ``acp sync`` on a host."""
    process = forked.start(("sync", str(host.folder)), host.home, host.env)
    try:
        assert "synchronizing" in process.line()
        yield
    finally:
        process.end(2)


def ask(host: Host, *words: str, at: str = "b", wait: str = "60s") -> tuple[int, str]:
    """Ask another host; the exit code, and what is said."""
    verb, *more = words
    ran = host.acp_here("ask", at, verb, *more, "--wait", wait)
    return ran.returncode, (ran.stdout + ran.stderr).strip()


def told(host: Host) -> list[dict[str, Any]]:
    """What hosts were asked for, as a host sees it."""
    found: list[dict[str, Any]] = json.loads(host.done_here("hosts", "--json"))["requests"]
    return found


@contextlib.contextmanager
def opened(address: str, host: Host, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """The store, as a stranger reaches it without acp's commands."""
    for name in ("ACP_CACHE", "ACP_STATE", "ACP_CONFIG"):
        monkeypatch.setenv(name, str(host.home / "stranger" / name))
    with open_engine(parse(address)) as engine:
        yield engine


def heard_of(host: Host, name: str) -> None:
    """A host is in the list of hosts."""
    until(lambda: f"{name} (" in host.done_here("hosts"), f"{name} to be heard of")


def test_a_host_refuses_what_its_owner_did_not_allow(share: Share) -> None:
    address, a, b = share()
    assert "b refuses requests from other hosts" in b.done("join", address, str(b.home / "again"))
    code, said = ask(a, "stop", "reader")
    assert code == 2 and "no host named b was heard of (hosts: none)" in said
    other = Host("b2", b.home)
    other.folder, other.env = b.home / "again", b.env
    with syncing(b), syncing(other):
        heard_of(a, "b")
        assert ask(a, "stop", "reader") == (
            2, "error: b: refused: the owner of b does not accept stop requests",
        )  # fmt: skip
        code, said = ask(a, "stop", "nobody")
        assert code == 2 and "participant 'nobody' is not listed" in said
        code, said = ask(a, "nudge", "reader")
        assert code == 2 and "nudge needs a text" in said
        code, said = ask(a, "stop", "reader", "why")
        assert code == 2 and "stop takes no text" in said
        code, said = ask(a, "stop", "reader", at="a")
        assert code == 2 and "a is this host" in said
    (request,) = told(a)
    assert (request["verb"], request["state"]) == ("stop", "refused")
    lines = a.done_here("hosts")
    assert " asked b to stop reader's loop: refused: the owner of b does not accept stop" in lines


def test_a_host_looks_at_what_is_asked_before_it_is_heard_of(
    share: Share, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is asked of a host as soon as it is heard of was never missed by it."""
    address, _, b = share()
    for name, value in b.env.items():
        monkeypatch.setenv(name, value)
    order: list[str] = []
    with open_engine(parse(address)) as engine:
        for name in ("requests", "tell"):
            does = getattr(engine, name)
            noted = lambda *given, name=name, does=does: (order.append(name), does(*given))[1]  # noqa: E731
            monkeypatch.setattr(engine, name, noted)
        process = Process(str(b.folder), parse(address), engine, as_json=False, quiet=True)
        process.tell()
        process.step()
        process.close()
    assert order == ["requests", "tell"]


@pytest.mark.slow
def test_a_participant_is_moved_by_asking_the_host_that_is_to_take_it(share: Share) -> None:
    _, a, b = share()
    accepts(b, "take", "start")
    a.write("proposal.md", "# P\n")
    a.appended("writer", "proposal_submitted", "--reply-to", "1")
    with syncing(b):
        heard_of(a, "b")
        assert ask(a, "take", "writer") == (0, "b: done: writer acts on b now")
        code, said = ask(a, "start", "reader")
        assert code == 2 and "reader was never launched on this host" in said
        ran = a.append("writer", "blocked", "--reply-to", "2")
        assert ran.returncode == 7 and "writer acts on host b" in ran.stderr
    b.appended("writer", "blocked", "--reply-to", "2")
    assert "ask" in {each["name"] for each in json.loads(a.done_here("act", "--json"))["actions"]}
    assert "writer acts on a (" not in a.done_here("hosts")


def test_who_asks_is_named_as_far_as_it_is_proven(
    share: Share, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody who can write into the store asks in another's name, for what no host does."""
    address, a, b = share()
    accepts(b, "stop", "start", "nudge", "take")
    forged = [
        Asked(asking.made("b", verb, "reader", "", "x", 60).id, "b", act, who, text, "anna on a")
        for verb, act, who, text in (
            ("stop", "stop", "--help", ""),
            ("stop", "run", "reader", "rm -rf /"),
            ("stop", "take", "../../etc", "\x1b[2J"),
        )
    ]
    with syncing(b), opened(address, b, monkeypatch) as engine:
        until(lambda: engine.hosts(), "b to be heard of")
        for each in forged:
            engine.ask(each)
        until(lambda: all(each.state for each in engine.requests("b")), "the answers")
        found = engine.requests("b")
    assert [each.state for each in found] == ["refused"] * 3
    assert {each.id for each in found} == {each.id for each in forged}
    lines = a.done_here("hosts")
    by = "an account that says that it is anna on a" if "git+" in address else "admin"
    assert f"{by} asked b to run reader" in lines
    assert "\x1b" not in lines and "\x1b" not in json.dumps(told(a), ensure_ascii=False)


def test_a_request_names_no_program_folder_or_budget(
    share: Share, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner accepts all words; whoever can write into the store adds inputs to them."""
    address, _, b = share()
    accepts(b, "stop", "start", "nudge", "take")
    mark = b.home / "PWNED"
    texts = {
        json.dumps({"command": f"touch {mark}", "workdir": "/etc"}): "command, workdir",
        json.dumps({"budget": ["day=500usd"]}): "budget",
        json.dumps({"--model": ""}): "--model",
        f"command=touch {mark}": "command=touch",
        json.dumps([{"command": "x"}]): "command",
    }
    wanted = [
        (verb, text, named) for verb in ("start", "stop", "take") for text, named in texts.items()
    ]
    with syncing(b), opened(address, b, monkeypatch) as engine:
        until(lambda: engine.hosts(), "b to be heard of")
        named_by = {}
        for verb, text, named in wanted:
            asked = asking.made("b", verb, "reader", "", "anna", 60)._replace(text=text)
            engine.ask(asked)
            named_by[asked.id] = named
        until(lambda: all(each.state for each in engine.requests("b")), "the answers")
        found = engine.requests("b")
    assert len(found) == len(wanted)
    for each in found:
        assert each.state == "refused" and named_by[each.id] in each.sentence, each
    assert not mark.exists()
    assert "reader acts on b" not in b.done_here("hosts")


def test_what_a_host_finds_when_it_is_back(share: Share, monkeypatch: pytest.MonkeyPatch) -> None:
    """One request is too old by then; one was taken up by a process that was killed over it."""
    address, a, b = share()
    accepts(b, "take")
    with syncing(b):
        heard_of(a, "b")
    words = ("ask", str(a.folder), "b", "take")
    ran = a.acp(*words, "reader", "--expires", "0.001s", "--wait", "0.1s")
    assert ran.returncode == 0
    assert ran.stdout == f"b has not answered yet; `acp hosts {a.folder}` shows its answer\n"
    assert "asked b to let reader act there: open" in a.done_here("hosts")
    said = json.loads(a.done(*words, "writer", "--wait", "0.1s", "--json"))
    assert said["state"] == "open"
    monkeypatch.setenv("ACP_STATE", b.env["ACP_STATE"])
    ledger = Ledger(parse(address), "b")
    assert ledger.take(said["id"]) and not ledger.take(said["id"])
    with syncing(b):
        until(lambda: all(each["state"] for each in told(a)), "the answers")
    assert {each["participant"]: each["state"] for each in told(a)} == {
        "reader": "expired", "writer": "unknown",
    }  # fmt: skip
    lines = a.done_here("hosts")
    assert "acp was interrupted while it did this" in lines and "acts on b" not in lines


def test_a_request_that_is_put_back_long_afterwards_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever can write to a store can write an old request into it once more, signature and all."""
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    ledger = Ledger(parse(f"/srv/store.git#{ID}"), "b")
    ids = [f"{number:024x}" for number in range(250)]
    assert all(ledger.take(each) for each in ids)
    assert not any(ledger.take(each) for each in ids)
    ahead = ["f" * 23 + digit for digit in "0123456789abcdef"]  # of a clock that is years ahead
    assert all(ledger.take(each) for each in ahead)
    assert ledger.take(f"{250:024x}") and not ledger.take(f"{250:024x}")


def test_requests_dated_ahead_push_no_others_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever can write to a store chooses the dates: also years ahead, in any number."""
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    ledger = Ledger(parse(f"/srv/store.git#{ID}"), "b")
    now = 1_800_000_000.0

    def dated(seconds: float, number: int = 0) -> str:
        return f"{int(seconds * 1_000):012x}{number:012x}"

    honest = [dated(now + number) for number in range(3)]
    assert ledger.take(honest[0], now)
    taken = [ledger.take(dated(now + 1e9, number), now) for number in range(500)]
    assert any(taken) and not all(taken), "some are followed, as clocks may be wrong"
    assert ledger.take(honest[1], now + 1) and not ledger.take(honest[0], now + 1)
    early = dated(now + 5)  # of a clock that is some seconds ahead
    assert not ledger.take(early, now + 2), "it waits until its time has come"
    assert ledger.take(honest[2], now + 2) and ledger.take(early, now + 5)
    again = [ledger.take(each, now + 6) for each in (*honest, early, dated(now + 1e9, 1))]
    assert again == [False] * 5
    later = [dated(now + 10, number) for number in range(300)]
    assert all(ledger.take(each, now + 10) for each in later)
    assert not any(ledger.take(each, now + 11) for each in (*honest, early, *later))


def test_of_two_folders_on_a_host_one_does_what_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one process is doing is not taken by another for something that was interrupted."""
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    address = parse(f"/srv/store.git#{ID}")
    first, second, other = Ledger(address, "b"), Ledger(address, "b"), Ledger(address, "c")
    assert first.hold() and first.hold() and not second.hold() and other.hold()
    first.close()
    assert second.hold()
    for each in (second, other):
        each.close()


def test_nobody_accepts_what_is_no_request(tmp_path: Path) -> None:
    host = Host("a", tmp_path)
    accepts(host, "stop", "run")
    started_with = host.acp_here("hosts")
    assert started_with.returncode == 2
    started(host)
    ran = host.acp_here("share", str(repository(tmp_path)), "--yes")
    assert ran.returncode == 2
    assert "share.accept[1]: expected one of start, stop, nudge, take" in ran.stderr


@pytest.mark.slow
def test_a_loop_on_another_host_is_stopped_messaged_and_started_again(tmp_path: Path) -> None:
    """Its owner launched it there; others only ask for that."""
    _, a, b = over_git(tmp_path)
    accepts(b, "start", "stop", "nudge")
    text = tmp_path / "behaviour"
    text.write_text("hang", encoding="utf-8")
    a.write("proposal.md", "# P\n")
    a.appended("writer", "proposal_submitted", "--reply-to", "1")
    with syncing(b):
        heard_of(a, "b")
        b.done_here("launch", "--participant", "reader", "--",
               stand_in(b.home, "agent"), f"--behaviour={text}")  # fmt: skip
        try:
            until(lambda: "reader acts on b" in a.done_here("hosts"), "the lease")
            code, said = ask(a, "nudge", "reader", "Look at question 3")
            assert code == 0, said
            assert ask(a, "stop", "reader") == (0, "b: done: reader: stopped")
            assert "reader acts on b" not in a.done_here("hosts"), "given back"
            code, said = ask(a, "stop", "reader")
            assert code == 2 and "reader has no running loop on this host" in said
            text.write_text("take", encoding="utf-8")
            code, said = ask(a, "start", "reader")
            assert (code, said) == (
                0, "b: done: reader: the loop was started, as it was launched last",
            )  # fmt: skip
            until(lambda: len(b.log()) == 3, "the review")
        finally:
            b.acp_here("stop")
    prompts = [path.read_text(encoding="utf-8") for path in (b.home / "state").rglob("*.prompt*")]
    (told_so,) = [each for each in prompts if "Look at question 3" in each]
    assert "on another machine:" in told_so
