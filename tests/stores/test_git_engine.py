"""A git remote as a store: what is published stays, and a remote gets nothing of us but that."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from acp_core.stores import git_objects
from acp_core.stores.address import parse
from acp_core.stores.engine import (
    Asked,
    Change,
    HistoryRewritten,
    HostState,
    InDoubt,
    Lease,
    NotInStore,
    SharingError,
    StoreRefused,
    StoreUnreachable,
    Tip,
    TipMoved,
)
from acp_core.stores.git import GitEngine
from acp_core.stores.git_objects import ObjectStore
from tests.stores.hosts import git, repository

REF = "refs/heads/acp/one/log"
LEASE = Lease("wri ter", "here", "boot", "anna", 1, "2026-01-01T00:00:00Z", "append")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return repository(tmp_path)


@pytest.fixture
def engine(store: Path) -> GitEngine:
    return GitEngine(parse(f"{store}#one"))


def line(seq: int) -> bytes:
    return json.dumps({"seq": seq}).encode() + b"\n"


def change(*seqs: int, **more: object) -> Change:
    """A change after which the log has these events."""
    log = b"".join(map(line, seqs))
    made = Change(log, line(seqs[-1]), seqs[-1], b"{}", words=f"seq {seqs[-1]}")
    return made._replace(**more)  # type: ignore[arg-type]


def test_what_is_published_is_read_as_it_was(engine: GitEngine) -> None:
    odd = {'a b/"q\\.md': b"x\r\n\0\xff", "plain.md": b"", ".gitattributes": b"* eol=crlf ident\n"}
    tip = engine.publish(None, change(1, documents=odd, leases={"wri ter": LEASE}))
    read = engine.read(None)
    assert (read.tip, read.added, read.protocol, read.whole) == (tip, line(1), b"{}", True)
    assert read.documents == odd
    assert read.leases == {"wri ter": LEASE}
    later = engine.publish(
        tip, change(1, 2, documents={"plain.md": None, "new.md": b"n"}, leases={"wri ter": None})
    )
    read = engine.read(tip)
    assert (read.tip, read.added, read.whole) == (later, line(2), False)
    assert read.documents == {"plain.md": None, "new.md": b"n"}
    assert read.leases == {}
    same = engine.read(later)
    assert (same.added, same.protocol, same.documents) == (b"", b"{}", {})


@pytest.mark.parametrize("setting", ["core.autocrlf=true", "core.autocrlf=input"])
def test_no_configuration_of_the_person_changes_a_byte(
    setting: str, engine: GitEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    name, _, value = setting.partition("=")
    git("config", "--file", str(home / ".gitconfig"), name, value)
    git(
        "config",
        "--file",
        str(home / ".gitconfig"),
        "core.attributesFile",
        str(home / "attributes"),
    )
    (home / "attributes").write_text("* text eol=crlf\n", encoding="utf-8")
    documents = {"unix.md": b"a\nb\n", "windows.md": b"a\r\nb\r\n"}
    engine.publish(None, change(1, documents=documents))
    assert engine.read(None).documents == documents


def test_only_who_knows_the_tip_publishes(engine: GitEngine, store: Path) -> None:
    tip = engine.publish(None, change(1))
    with pytest.raises(TipMoved):
        engine.publish(None, change(1))
    engine.publish(tip, change(1, 2))
    with pytest.raises(TipMoved):
        engine.publish(tip, change(1, 2))
    assert git("-C", str(store), "rev-list", "--count", REF) == "2"


def test_a_remote_that_was_put_back_is_noticed_and_not_written(
    engine: GitEngine, store: Path
) -> None:
    first = engine.publish(None, change(1))
    second = engine.publish(first, change(1, 2))
    git("-C", str(store), "update-ref", REF, first.id)
    with pytest.raises(TipMoved):  # a plain push would silently go on upon the damage
        engine.publish(second, change(1, 2, 3))
    with pytest.raises(HistoryRewritten, match="holds seq 1, less than the 2") as caught:
        engine.read(second)
    assert caught.value.code == 9


def test_a_rewritten_log_is_refused(engine: GitEngine, store: Path) -> None:
    first = engine.publish(None, change(1))
    second = engine.publish(first, change(1, 2))
    git("-C", str(store), "update-ref", "-d", REF)
    engine.publish(None, change(7, 8, 9))
    with pytest.raises(HistoryRewritten, match="rewritten"):
        engine.read(second)


def test_a_history_that_somebody_squashed_goes_on(engine: GitEngine, store: Path) -> None:
    second = engine.publish(engine.publish(None, change(1)), change(1, 2))
    tree = git("-C", str(store), "rev-parse", f"{REF}^{{tree}}")
    git(
        "-C", str(store), "update-ref", REF, git("-C", str(store), "commit-tree", tree, "-m", "all")
    )
    read = engine.read(second)
    assert read.added == b"" and read.tip.seq == 2
    assert engine.publish(read.tip, change(1, 2, 3)).seq == 3


def test_nothing_there_is_said_so(engine: GitEngine, tmp_path: Path) -> None:
    with pytest.raises(NotInStore):
        engine.read(None)
    with pytest.raises(StoreUnreachable, match="there is no such repository") as caught:
        GitEngine(parse(f"{tmp_path}/nowhere.git#one")).read(None)
    assert caught.value.code == 6


def test_a_store_that_refuses_is_told_with_its_words(engine: GitEngine, store: Path) -> None:
    hook = store / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'only \033[31mon Fridays' >&2\nexit 1\n", encoding="utf-8")
    hook.chmod(0o755)
    with pytest.raises(StoreRefused, match=r"pre-receive hook declined: only .* Fridays") as caught:
        engine.publish(None, change(1))
    assert caught.value.code == 8
    assert "\033" not in str(caught.value)
    assert "acp writes to refs/heads/acp/" in str(caught.value)


def test_a_lock_that_was_left_in_the_store_is_named(engine: GitEngine, store: Path) -> None:
    tip = engine.publish(None, change(1))
    (store / f"{REF}.lock").touch()
    with pytest.raises(
        TipMoved, match=r"a lock was left in the store \(.*log\.lock\): its owner must remove it"
    ):
        engine.publish(tip, change(1, 2))


def test_what_a_killed_git_left_in_our_cache_is_swept(engine: GitEngine) -> None:
    tip = engine.publish(None, change(1))
    engine.read(None)
    cache = ObjectStore(engine.address.url).folder
    for name in (
        "refs/acp/one/log.lock",
        "refs/acp/one/next.lock",
        "packed-refs.lock",
        "config.lock",
    ):
        (cache / name).touch()
    assert engine.publish(tip, change(1, 2)).seq == 2
    assert engine.read(tip).added == line(2)


def test_a_cache_that_is_gone_or_has_grown_is_made_anew(engine: GitEngine) -> None:
    tip = engine.publish(None, change(1))
    objects = ObjectStore(engine.address.url)
    objects.throw_away()
    tip = engine.publish(tip, change(1, 2))
    for number in range(20):
        place = objects.folder / "objects" / "17"
        place.mkdir(exist_ok=True)
        (place / f"{number:038x}").touch()
    later = engine.publish(tip, change(1, 2, 3))
    assert not (objects.folder / "objects" / "17" / f"{3:038x}").exists()
    objects.throw_away()
    assert engine.read(tip).added == line(3)
    assert engine.read(later).added == b""


def planted(store: Path, entries: str) -> None:
    """Put a tree into the store that no acp would make."""
    blob = git("-C", str(store), "hash-object", "-w", "--stdin", given=b"x\n")
    sub = git("-C", str(store), "mktree", given=f"100644 blob {blob}\tx\n".encode())
    listed = entries.format(blob=blob, sub=sub, commit="1" * 40)
    tree = git("-C", str(store), "mktree", "--missing", given=listed.encode())
    git(
        "-C",
        str(store),
        "update-ref",
        REF,
        git("-C", str(store), "commit-tree", tree, "-m", "planted"),
    )


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ("120000 blob {blob}\tproposal.md\n", "a symbolic link"),
        ("160000 commit {commit}\tsub\n", "another repository"),
    ],
)
def test_trees_that_no_folder_is_made_of(
    entries: str, why: str, engine: GitEngine, store: Path
) -> None:
    planted(store, entries)
    with pytest.raises(SharingError, match=why):
        engine.read(None)


def test_git_itself_refuses_names_that_lead_into_a_repository(
    engine: GitEngine, store: Path
) -> None:
    planted(store, "040000 tree {sub}\t.git\n")
    with pytest.raises(SharingError):
        engine.read(None)


def test_a_file_that_is_too_large_is_not_even_read(
    engine: GitEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.publish(None, change(1, documents={"large.md": b"x" * 2000}))
    monkeypatch.setattr("acp_core.stores.git.MAX_FILE", 1000)
    with pytest.raises(StoreRefused, match=r"large\.md, larger than"):
        engine.read(None)


@pytest.mark.parametrize("id", ["--output=/tmp/x", "x\ncommit refs/heads/y", "", "HEAD"])
def test_a_manifest_that_an_agent_wrote_gives_git_no_orders(id: str, engine: GitEngine) -> None:
    tip = engine.publish(None, change(1))
    forged = tip._replace(id=id)
    with pytest.raises(TipMoved):
        engine.publish(forged, change(1, 2))
    assert engine.read(forged).whole


def test_hooks_and_helpers_of_this_side_do_not_run(
    engine: GitEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    hooks = home / "hooks"
    hooks.mkdir(parents=True)
    trap = tmp_path / "trapped"
    for name in ("pre-push", "post-checkout", "pre-auto-gc", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {trap}\n", encoding="utf-8")
        (hooks / name).chmod(0o755)
    (home / ".gitconfig").write_text(
        f"[core]\nhooksPath = {hooks}\nfsmonitor = touch {trap}\npager = touch {trap}\n"
        f"[push]\ngpgSign = true\n[commit]\ngpgSign = true\n[gpg]\nprogram = {hooks}/pre-push\n"
        "[protocol]\nallow = always\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", f"touch {trap}")
    tip = engine.publish(None, change(1))
    engine.read(None)
    engine.publish(tip, change(1, 2))
    assert not trap.exists()


def test_a_transport_that_the_person_allows_is_still_not_used(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address may be rewritten by the person's own configuration; into a command it is not."""
    home = tmp_path / "home"
    home.mkdir()
    trap = tmp_path / "trapped"
    (home / ".gitconfig").write_text(
        f'[protocol]\nallow = always\n[url "ext::sh -c touch% {trap}% "]\ninsteadOf = file://{store}\n',
        encoding="utf-8",
    )
    monkeypatch.setenv("HOME", str(home))
    with pytest.raises(SharingError):
        GitEngine(parse(f"{store}#one")).read(None)
    assert not trap.exists()


@pytest.mark.parametrize(
    ("own", "kept"),
    [
        ("ssh", "ssh -o BatchMode=yes"),
        ("ssh -i ~/.ssh/team", "ssh -i ~/.ssh/team -o BatchMode=yes"),
        ("/opt/wrapper --x", "/opt/wrapper --x"),
    ],
)
def test_a_persons_own_ssh_command_is_kept_and_asks_nothing(
    own: str, kept: str, tmp_path: Path
) -> None:
    assert git_objects.ssh_command(own, None).startswith(kept)
    assert ("ControlMaster" in git_objects.ssh_command(own, Path("/tmp/s"))) == own.startswith(
        "ssh"
    )
    assert "ControlMaster" not in git_objects.ssh_command("ssh -o ControlPath=/x", Path("/tmp/s"))
    assert "StrictHostKeyChecking" not in git_objects.ssh_command(own, tmp_path)


@pytest.mark.parametrize(
    ("said", "pushing", "kind", "words"),
    [
        ("Host key verification failed.\nfatal: Could not read from remote repository.", True, StoreUnreachable, "key is not known"),
        ("git@h: Permission denied (publickey).\nfatal: Could not read", True, StoreUnreachable, "does not accept"),
        ("ssh: Could not resolve hostname h: Name or service not known", True, StoreUnreachable, "Could not resolve"),
        ("ssh: connect to host h port 22: Connection timed out", True, StoreUnreachable, "timed out"),
        ("fatal: unable to access 'https://u:secret@h/': Failed to connect to h", True, StoreUnreachable, "Failed to connect"),
        ("fatal: the remote end hung up unexpectedly", True, InDoubt, "not known whether"),
        ("fatal: the remote end hung up unexpectedly", False, StoreUnreachable, "hung up"),
        ("fatal: couldn't find remote ref refs/heads/acp/x/ask/a\nfatal: the remote end hung up unexpectedly", False, StoreUnreachable, "couldn't find remote ref"),
        ("Connection to h closed by remote host.", True, InDoubt, "not known whether"),
        ("fatal: detected dubious ownership in repository at '/srv/r'", True, StoreRefused, "hooks would run as you"),
        ("", True, InDoubt, "git gives no reason"),
    ],
)  # fmt: skip
def test_what_git_says_is_understood(
    said: str, pushing: bool, kind: type[Exception], words: str
) -> None:
    found = git_objects.refusal("ssh://git@h/r", "", said, pushing=pushing)
    assert type(found) is kind
    assert words in str(found)
    assert "secret" not in str(found)


@pytest.mark.parametrize(
    "why",
    ["[rejected] (stale info)", "[rejected] (fetch first)", "[remote rejected] (failed to update ref)",
     "[remote rejected] (cannot lock ref 'x')"],
)  # fmt: skip
def test_a_race_is_told_from_a_refusal(why: str) -> None:
    printed = f"To ssh://h/r\n!\t{'1' * 40}:{REF}\t{why}\nDone\n"
    assert type(git_objects.refusal("ssh://h/r", printed, "", pushing=True)) is TipMoved


def test_hosts_say_what_they_do_and_ask_each_other(engine: GitEngine) -> None:
    engine.publish(None, change(1))
    assert engine.hosts() == [] and engine.requests("b") == []
    state = HostState(
        "a", "anna", "boot", "1.0", {"writer": {"phase": "idle"}}, "2026-01-01T00:00:00Z"
    )
    engine.tell(state)
    engine.tell(state._replace(version="1.1"))
    engine.tell(state._replace(host="b"))
    assert [(each.state.host, each.state.version, each.age) for each in engine.hosts()] == [
        ("a", "1.1", None), ("b", "1.0", None),
    ]  # fmt: skip
    request = Asked("a" * 24, "b", "stop", "writer", "please", "anna")
    engine.ask(request)
    engine.ask(request)
    assert engine.requests("b") == [request]
    engine.answer(request, "done", "it ended")
    assert engine.requests("b") == [request._replace(state="done", sentence="it ended")]


def test_old_answers_leave_the_branch_of_requests(engine: GitEngine, store: Path) -> None:
    """Requests that wait stay, and so do the latest answers."""
    branch = "refs/heads/acp/one/ask/b"
    parts = [b"commit %s\nmark :1\ncommitter a <a@b> 1 +0000\ndata 1\nx\n" % branch.encode()]
    for number in range(60):
        id = f"{number:024x}"
        request = Asked(id, "b", "stop", "reader")
        files: dict[str, object] = {f"{id}.json": request._asdict()}
        if number % 2:
            files[f"{id}.answer"] = {"state": "done", "sentence": "It is."}
        for name, value in files.items():
            data = json.dumps(value).encode()
            parts.append(b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(data), data))
    git("-C", str(store), "fast-import", "--quiet", given=b"".join(parts))
    engine.publish(None, change(1))
    last = Asked(f"{99:024x}", "b", "stop", "reader")
    engine.ask(last)
    found = engine.requests("b")
    assert sum(not each.state for each in found) == 31 and found[-1].id == last.id
    assert [int(each.id, 16) for each in found if each.state] == list(range(21, 60, 2))
    engine.answer(found[0], "refused", "No.")
    assert engine.requests("b")[0].state == "refused"  # who asked can still see it
    engine.ask(last._replace(id=f"{100:024x}"))
    assert engine.requests("b")[0].id == f"{2:024x}"
    names = git("-C", str(store), "ls-tree", "--name-only", branch).split()
    assert len(names) == 31 + 2 * 20


def test_waiting_ends_when_something_is_new(engine: GitEngine) -> None:
    tip = engine.publish(None, change(1))
    assert not engine.wait(tip, 0)
    engine.publish(tip, change(1, 2))
    assert engine.wait(tip, 5)


def together(work: Callable[[int], object], count: int) -> list[int]:
    """Do something in processes of their own, at once; their exit codes."""
    children = []
    for number in range(count):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                work(number)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(each, 0)[1]) for each in children]


def test_many_writers_lose_nothing(engine: GitEngine, store: Path, tmp_path: Path) -> None:
    tip = engine.publish(None, change(1))

    def work(number: int) -> None:
        os.environ["ACP_CACHE"] = str(tmp_path / f"cache-{number}")
        mine = GitEngine(parse(f"{store}#one"))
        while True:
            read = mine.read(None)
            seqs = [json.loads(each)["seq"] for each in read.added.splitlines()]
            try:
                mine.publish(read.tip, change(*seqs, seqs[-1] + 1))
                return
            except TipMoved:
                continue

    assert together(work, 4) == [0] * 4
    assert [json.loads(each)["seq"] for each in engine.read(tip).added.splitlines()] == [2, 3, 4, 5]


def test_the_commands_of_agents_import_no_store_in_a_plain_folder(tmp_path: Path) -> None:
    from tests.hygiene.test_start import run

    who = ["--folder", str(tmp_path / "c"), "--participant", "writer"]
    init = [*who, "--participant", "reader", "--objective", "Choose", "--completion", "Chosen"]
    for words in (
        ["init", *init],
        ["next", *who],
        ["wait", *who],
        ["append", *who, "--event", "proposal_submitted", "--summary", "Done", "--reply-to", "1"],
        ["validate", *who[:2]],
    ):
        code, modules = run(*words)
        assert code == 0, words
        assert not {each for each in modules if each.startswith("acp_core.stores")}, words


def test_the_tip_survives_json() -> None:
    tip = Tip("a" * 40, 3, 10, "b" * 64)
    assert Tip(**json.loads(json.dumps(tip._asdict()))) == tip


def test_a_document_is_told_as_it_was_at_an_earlier_tip(engine: GitEngine) -> None:
    first = engine.publish(None, change(1)._replace(documents={"proposal.md": b"one\r\n"}))
    second = engine.publish(first, change(1, 2)._replace(documents={"proposal.md": b"two"}))
    third = engine.publish(second, change(1, 2, 3)._replace(documents={"proposal.md": None}))
    told = [engine.earlier(tip, "proposal.md") for tip in (first, second, third)]
    assert told == [b"one\r\n", b"two", None]
    assert engine.earlier(first._replace(id="--help"), "proposal.md") is None
    assert engine.earlier(first, "no-such.md") is None


def test_a_branch_that_is_missing_is_told_from_a_connection_that_is_lost() -> None:
    said = "fatal: couldn't find remote ref refs/heads/acp/run/ask/b\n"
    said += "fatal: the remote end hung up unexpectedly\n"
    refused = git_objects.refusal("ssh://a@b/c.git", "", said, pushing=False)
    assert isinstance(refused, StoreUnreachable) and "couldn't find remote ref" in str(refused)
