"""A collaboration on several hosts over a git repository: what people and agents there do and see."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stores.hosts import ID, ROOT, Host, git, repository, shared, started

REF = f"refs/heads/acp/{ID}/log"


def proposed(host: Host, text: str = "# The proposal\n") -> None:
    """The writer proposes."""
    host.write("proposal.md", text)
    host.appended("writer", "proposal_submitted", "--reply-to", "1", "--doc", "proposal.md")


def reviewed(host: Host, who: str, text: str = "Fine.") -> int:
    return host.appended(who, "review_submitted", "--reply-to", "2", "--review", text)


def together(*hosts: Host) -> None:
    """After a look at the store, all hosts hold the same bytes, and a valid collaboration."""
    for each in hosts:
        each.sync()
    first = hosts[0].files()
    for each in hosts:
        assert each.files() == first, each.name
        assert each.acp_here("validate").returncode == 0


def test_three_hosts_hold_the_same_bytes(tmp_path: Path) -> None:
    store, (a, b, c) = shared(tmp_path, "a", "b", "c", readers=("reader", "critic"))
    assert b.files() == a.files() == c.files()
    proposed(a)
    assert "next action" in b.done("next", "--folder", str(b.folder), "--participant", "reader")
    assert b.read("proposal.md") == b"# The proposal\n"
    assert reviewed(b, "reader") == 3
    assert reviewed(c, "critic") == 4
    together(a, b, c)
    assert [each["from"] for each in a.log()] == ["writer", "writer", "reader", "critic"]
    said = git("-C", str(store), "log", "--format=%ae %s", REF).splitlines()
    assert said[0] == "c@acp seq 4 review_submitted"
    names = git("-C", str(store), "ls-tree", "-r", "--name-only", REF).splitlines()
    assert {each for each in names if each.startswith(".acp/")} == {
        f".acp/leases/{who}.json" for who in ("writer", "reader", "critic")
    }


def test_waiting_ends_on_another_host(tmp_path: Path) -> None:
    _, (a, b) = shared(tmp_path, "a", "b")
    proposed(a)
    said = b.done("wait", "--folder", str(b.folder), "--participant", "reader", "--interval", "0.1")
    assert "ready: reader is listed in waitingFor" in said


@pytest.mark.slow
def test_eight_reviewers_on_eight_hosts_at_once_are_all_in(tmp_path: Path) -> None:
    people = tuple(f"r{number}" for number in range(8))
    _, hosts = shared(tmp_path, *people, readers=people)
    proposed(hosts[0])
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "acp_tui", *host.event(who, "review_submitted", "--reply-to", "2", "--review", who)],
            env=host.env, cwd=ROOT, stderr=subprocess.PIPE,
        )
        for host, who in zip(hosts, people, strict=True)
    ]  # fmt: skip
    for each in running:
        _, said = each.communicate(timeout=120)
        assert each.returncode == 0, said
    together(*hosts)
    assert [each["seq"] for each in hosts[0].log()] == list(range(1, 11))
    assert {each["from"] for each in hosts[0].log()[2:]} == set(people)


def test_what_leaves_is_a_list_that_is_shown_first(tmp_path: Path) -> None:
    store, host = repository(tmp_path), Host("a", tmp_path)
    started(host)
    planted = (
        "CLAUDE.md",
        ".mcp.json",
        ".claude/settings.json",
        ".env",
        "secret.env",
        "notes.md",
        "sub/AGENTS.md",
        "run.sh",
    )
    for name in planted:
        host.write(name, "private\n")
    (host.folder / "link.md").symlink_to("/etc/hostname")
    words = ("share", str(host.folder), str(store), "--id", ID)
    shown = host.done(*words, "--dry-run")
    assert "leaves this machine: README.md, conclusion.md, decisions.md" in shown
    assert all(name in shown.partition("stays here: ")[2] for name in planted[:2])
    assert git("-C", str(store), "for-each-ref") == ""
    assert host.acp(*words).stderr == "error: no terminal to ask for confirmation: use --yes\n"
    host.done(*words, "--yes")
    names = git("-C", str(store), "ls-tree", "-r", "--name-only", REF).split()
    assert not {*planted, "link.md"} & set(names)
    assert "private" not in git("-C", str(store), "grep", "-h", "", REF)
    assert (host.folder / ".acp" / ".gitignore").read_text() == "*\n"
    said = host.acp(*words, "--yes")
    assert said.returncode == 2 and "is shared already" in said.stderr


def test_an_event_names_a_note_and_the_note_comes_along(tmp_path: Path) -> None:
    _, (a, b) = shared(tmp_path, "a", "b")
    a.write("notes/why.md", "Because.\n")
    a.write("notes/other.md", "Private.\n")
    a.write("proposal.md", "# P\n")
    a.appended("writer", "proposal_submitted", "--reply-to", "1", "--doc", "notes/why.md")
    b.sync()
    assert b.read("notes/why.md") == b"Because.\n"
    assert not (b.folder / "notes" / "other.md").exists()


def test_an_id_that_exists_is_joined_not_shared(tmp_path: Path) -> None:
    store, _ = shared(tmp_path, "a")
    other = Host("b", tmp_path)
    started(other, "somebody")
    ran = other.acp_here("share", str(store), "--id", ID, "--yes")
    assert ran.returncode == 2 and "use `acp join`" in ran.stderr
    assert not (other.folder / ".acp" / "share.json").exists()
    ran = other.acp("join", f"{store}#{ID}", str(other.folder))
    assert ran.returncode == 2 and "other content" in ran.stderr
    ran = other.acp("join", f"{store}#nothing", str(other.home / "new"))
    assert ran.returncode == 2 and "is not in the store" in ran.stderr
    ran = other.acp("join", str(store), str(other.home / "new"))
    assert ran.returncode == 2 and "add #ID" in ran.stderr
    assert not (other.home / "new").exists()


def test_a_participant_acts_on_one_host(tmp_path: Path) -> None:
    _, (a, b) = shared(tmp_path, "a", "b")
    proposed(a)
    b.sync()
    b.write("proposal.md", "# Mine\n")
    ran = b.append("writer", "blocked", "--reply-to", "2")
    assert ran.returncode == 7
    assert "writer acts on host a (" in ran.stderr and "`--take` moves it here" in ran.stderr
    assert len(b.log()) == 2
    assert b.appended("writer", "blocked", "--reply-to", "2", "--take") == 3
    ran = a.append("writer", "blocked", "--reply-to", "3")
    assert ran.returncode in (2, 7) and "b" in ran.stderr
    b.sync("--release", "writer")
    lease = git("-C", str(tmp_path / "store.git"), "ls-tree", "-r", "--name-only", REF)
    assert "leases/writer" not in lease


def test_offline_nothing_is_appended_and_the_same_command_works_later(tmp_path: Path) -> None:
    store, (a, b) = shared(tmp_path, "a", "b")
    store.rename(tmp_path / "away.git")
    a.write("proposal.md", "# Offline\n")
    words = ("writer", "proposal_submitted", "--reply-to", "1", "--doc", "proposal.md")
    ran = a.append(*words)
    assert ran.returncode == 6
    assert "not appended: the store" in ran.stderr and "run the same command again" in ran.stderr
    assert a.read("proposal.md") == b"# Offline\n" and len(a.log()) == 1
    ran = a.acp("next", "--folder", str(a.folder), "--participant", "writer")
    assert ran.returncode == 0 and "as of " in ran.stderr and "not reached since" in ran.stderr
    assert a.acp_here("validate").returncode == 0
    assert a.acp_here("sync", "--once").returncode == 6
    (tmp_path / "away.git").rename(store)
    assert a.appended(*words) == 2
    together(a, b)


def test_a_store_that_refuses_is_told_with_its_words(tmp_path: Path) -> None:
    store, (a,) = shared(tmp_path, "a")
    hook = store / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho closed on Sundays >&2\nexit 1\n", encoding="utf-8")
    hook.chmod(0o755)
    ran = a.append("writer", "proposal_submitted", "--reply-to", "1")
    assert ran.returncode == 8 and "closed on Sundays" in ran.stderr
    assert len(a.log()) == 1


def test_a_store_that_was_put_back_stops_everybody(tmp_path: Path) -> None:
    store, (a, b) = shared(tmp_path, "a", "b")
    first = git("-C", str(store), "rev-parse", REF)
    proposed(a)
    b.sync()
    git("-C", str(store), "update-ref", REF, first)
    before = b.files()
    for ran in (
        b.append("reader", "review_submitted", "--reply-to", "2", "--review", "Fine"),
        b.acp_here("sync", "--once"),
        b.acp("next", "--folder", str(b.folder), "--participant", "reader"),
    ):
        assert ran.returncode == 9, ran
        assert "the store holds seq 1, less than the 2 that this folder has seen" in ran.stderr
    assert b.files() == before


def test_the_same_command_twice_is_one_event(tmp_path: Path) -> None:
    _, (a, b) = shared(tmp_path, "a", "b")
    a.write("proposal.md", "# P\n")
    words = ("writer", "proposal_submitted", "--reply-to", "1", "--key", "k-1")
    assert a.appended(*words) == 2
    ran = b.append(*words, "--take")
    assert ran.returncode == 0 and "already appended seq 2" in ran.stdout


STEPS = ("before pending", "before publish", "after publish", "before log", "before protocol",
         "before base", "after base")  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_a_kill_at_any_step_loses_nothing_and_doubles_nothing(step: str, tmp_path: Path) -> None:
    _, (a, b) = shared(tmp_path, "a", "b")
    proposed(a)
    words = b.event("reader", "review_submitted", "--reply-to", "2", "--review", "Fine.")
    killed = b.at(step, *words)
    assert killed.returncode == -9, killed
    said = b.done(*words)
    assert "seq 3" in said
    together(a, b)
    assert [each["event"] for each in a.log()].count("review_submitted") == 1
    assert a.read("review.md").count(b"- reader - seq 3") == 1


def test_a_full_disk_after_the_push_is_a_warning(tmp_path: Path) -> None:
    _, (a, b) = shared(tmp_path, "a", "b")
    proposed(a)
    ran = b.at(
        "before log:2=full",
        *b.event("reader", "review_submitted", "--reply-to", "2", "--review", "Fine."),
    )
    assert ran.returncode == 0, ran
    together(a, b)
    assert len(a.log()) == 3


def test_a_document_that_both_changed_stays_as_the_store_has_it_and_mine_is_kept(
    tmp_path: Path,
) -> None:
    _, (a, b) = shared(tmp_path, "a", "b")
    b.write("proposal.md", "# B's words\n")
    proposed(a, "# A's words\n")
    ran = b.acp_here("sync", "--once")
    assert ran.returncode == 0 and "yours is kept in .acp/kept/proposal.md." in ran.stdout
    assert b.read("proposal.md") == b"# A's words\n"
    (kept,) = (b.folder / ".acp" / "kept").iterdir()
    assert kept.read_bytes() == b"# B's words\n" and kept.name.endswith(".b")
    b.sync("--mine", "proposal.md")
    assert b.read("proposal.md") == b"# B's words\n"
    assert "kept no copy" in b.acp_here("sync", "--theirs", "proposal.md").stderr


def test_an_event_about_a_document_in_conflict_waits(tmp_path: Path) -> None:
    _, (a, b) = shared(tmp_path, "a", "b")
    b.write("review.md", "something else entirely\n")
    proposed(a)
    a.write("review.md", a.read("review.md").decode() + "\nA note of the owner.\n")
    a.appended("writer", "blocked", "--reply-to", "2", "--doc", "review.md")
    ran = b.append("reader", "blocked", "--reply-to", "3", "--doc", "review.md")
    assert ran.returncode == 2 and "changed here and in the store" in ran.stderr


def test_reviews_that_two_hosts_write_by_hand_are_joined_and_numbered(tmp_path: Path) -> None:
    _, (a, b, c) = shared(tmp_path, "a", "b", "c", readers=("reader", "critic"))
    proposed(a)
    for host, who in ((b, "reader"), (c, "critic")):
        host.sync()
        text = host.read("review.md").decode()
        host.write("review.md", f"{text}\n## 2026-01-01T00:00:00Z - {who} - seq 3\n\nBy {who}.\n")
    for host, who in ((b, "reader"), (c, "critic")):
        host.appended(who, "review_submitted", "--reply-to", "2", "--doc", "review.md")
    together(a, b, c)
    text = a.read("review.md").decode()
    assert "- reader - seq 3\n\nBy reader." in text and "- critic - seq 4\n\nBy critic." in text
    assert not (c.folder / ".acp" / "kept").exists()


def test_a_document_leaves_only_when_its_participant_may_change_it(tmp_path: Path) -> None:
    _, (a, b) = shared(tmp_path, "a", "b")
    proposed(a)
    a.write("proposal.md", "# Changed during the review\n")
    assert "proposal.md changed during reviewing: not shared" in a.sync()
    reviewed(b, "reader")
    assert "published: proposal.md" in a.sync()
    together(a, b)
    assert b.read("proposal.md") == b"# Changed during the review\n"


def test_a_note_is_deleted_everywhere_and_a_required_file_never(tmp_path: Path) -> None:
    _, (a, b) = shared(tmp_path, "a", "b")
    a.write("why.md", "Because.\n")
    a.appended("writer", "proposal_submitted", "--reply-to", "1", "--doc", "why.md")
    b.sync()
    (b.folder / "why.md").unlink()
    b.sync()
    ran = a.acp_here("sync", "--delete", "proposal.md")
    assert ran.returncode == 2 and "required" in ran.stderr
    a.sync("--delete", "why.md")
    b.sync()
    assert not (b.folder / "why.md").exists() and not (a.folder / "why.md").exists()


def script(host: Host, **fields: object) -> None:
    """Append as a program does that knows no acp."""
    event = {"seq": len(host.log()) + 1, "from": "reader", "event": "review_submitted",
             "at": "2030-01-01T00:00:00Z", "summary": "By a script", "doc": "review.md", "reply_to": 2}  # fmt: skip
    with (host.folder / "events.jsonl").open("a", encoding="utf-8") as log:
        log.write(json.dumps(event | fields) + "\n")


def test_what_a_script_appended_is_published_as_it_is(tmp_path: Path) -> None:
    _, (a, b) = shared(tmp_path, "a", "b")
    proposed(a)
    b.sync()
    text = b.read("review.md").decode()
    b.write("review.md", f"{text}\n## 2030-01-01T00:00:00Z - reader - seq 3\n\nBy a script.\n")
    script(b)
    assert "appended here without acp" in b.sync()
    together(a, b)
    assert a.log()[-1]["summary"] == "By a script"


def test_what_a_script_appended_too_late_is_kept(tmp_path: Path) -> None:
    _, (a, b) = shared(tmp_path, "a", "b")
    proposed(a)
    b.sync()
    a.appended("writer", "blocked", "--reply-to", "2")
    script(b)
    said = b.sync()
    assert "cannot keep their seq: they were moved to .acp/kept/events.jsonl" in said
    (kept,) = (b.folder / ".acp" / "kept").iterdir()
    assert b"By a script" in kept.read_bytes()
    together(a, b)


def test_an_illegal_line_of_a_script_is_refused_and_put_back(tmp_path: Path) -> None:
    _, (a, b) = shared(tmp_path, "a", "b")
    proposed(a)
    b.sync()
    script(b, event="completed")
    ran = b.acp_here("sync", "--once")
    assert ran.returncode == 2 and "cannot take" in ran.stderr
    assert len(b.log()) == 3
    with (b.folder / "events.jsonl").open("ab") as log:
        log.write(b'{"seq": 4, "fr')
    b.done_here("repair", "--yes")
    together(a, b)
    assert len(b.log()) == 2


def test_an_address_that_an_agent_wrote_is_not_asked(tmp_path: Path) -> None:
    _, (a, _) = shared(tmp_path, "a", "b")
    trap = tmp_path / "trapped"
    place = a.folder / ".acp" / "share.json"
    for url in (
        f"{tmp_path}/other.git#{ID}",
        f"ext::sh -c touch% {trap}#{ID}",
        "ssh://-oProxyCommand=x/y#z",
    ):
        value = json.loads(place.read_text()) | {"url": url}
        place.write_text(json.dumps(value))
        ran = a.append("writer", "proposal_submitted", "--reply-to", "1")
        assert ran.returncode == 2, ran
        assert "another program changed it" in ran.stderr or "cannot be read" in ran.stderr
    place.write_text("{")
    assert a.append("writer", "proposal_submitted", "--reply-to", "1").returncode == 2
    assert not trap.exists() and len(a.log()) == 1


def test_a_folder_that_says_it_is_shared_binds_nobody(tmp_path: Path) -> None:
    """A folder that came from somewhere, with a share.json: this account never agreed to it."""
    _, (a,) = shared(tmp_path, "a")
    stranger = Host("s", tmp_path)
    shutil.copytree(a.folder, stranger.folder)
    ran = stranger.append("writer", "proposal_submitted", "--reply-to", "1")
    assert ran.returncode == 2 and "this account has not joined it: `acp join" in ran.stderr
    assert not (stranger.home / "cache").exists()
    stranger.done("join", f"{tmp_path / 'store.git'}#{ID}", str(stranger.folder))
    stranger.write("proposal.md", "# P\n")
    stranger.appended("writer", "proposal_submitted", "--reply-to", "1")


def test_a_store_inside_of_what_agents_write_is_refused(tmp_path: Path) -> None:
    host = Host("a", tmp_path)
    started(host)
    inside = host.folder / "store.git"
    git("init", "-q", "--bare", str(inside))
    ran = host.acp_here("share", str(inside), "--yes")
    assert ran.returncode == 2 and "its hooks would run as you" in ran.stderr
    git("init", "-q", str(host.home))
    beside = repository(host.home)
    ran = host.acp_here("share", str(beside), "--yes")
    assert ran.returncode == 2 and "its hooks would run as you" in ran.stderr


HOSTILE = ("../up.md", ".git/config", "sub/claude.MD", "Proposal.md")
"""One of each kind; `test_names` has them all."""


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_a_store_may_not_give_is_refused_or_left_out(name: str, tmp_path: Path) -> None:
    """Whoever can push plants a file; nothing of that name is written on any host."""
    store, (a,) = shared(tmp_path, "a")
    blob = git("-C", str(store), "hash-object", "-w", "--stdin", given=b"planted\n")
    listed = git("-C", str(store), "ls-tree", "-r", REF).splitlines()
    protocol = json.loads(git("-C", str(store), "cat-file", "-p", f"{REF}:protocol.json"))
    protocol |= {"schemaVersion": 2, "deliverables": {"dir": ".", "supporting": [{"type": "adr", "file": name}],
                                                     "attachments": [{"file": name}]}}  # fmt: skip
    fresh = git(
        "-C", str(store), "hash-object", "-w", "--stdin", given=json.dumps(protocol).encode()
    )
    listed = [
        each if not each.endswith("\tprotocol.json") else f"100644 blob {fresh}\tprotocol.json"
        for each in listed
    ]
    flat = [each for each in listed if "/" not in each]
    tree = nested(store, name, blob, flat)
    git("-C", str(store), "update-ref", REF, git("-C", str(store), "commit-tree", tree, "-m", "x"))
    victim = Host("v", tmp_path)
    before = sorted(path.name for path in victim.home.iterdir())
    ran = victim.acp("join", f"{store}#{ID}", str(victim.folder))
    planted = [p for p in victim.home.rglob("*") if p.is_file() and p.read_bytes() == b"planted\n"]
    assert planted == [], (ran.stdout, ran.stderr)
    assert "Traceback" not in ran.stderr
    if ran.returncode:
        left = sorted(path.name for path in victim.home.iterdir())
        assert set(left) - set(before) <= {"cache", "state"}
    ran = a.acp_here("sync", "--once")
    assert "Traceback" not in ran.stderr
    assert not [p for p in a.folder.rglob("*") if p.is_file() and p.read_bytes() == b"planted\n"]


def nested(store: Path, name: str, blob: str, beside: list[str]) -> str:
    """The tree with a blob at a path, whatever it is called."""
    *folders, last = name.split("/")
    entry = f"100644 blob {blob}\t{last}\0"
    for folder in reversed(folders):
        sub = git("-C", str(store), "mktree", "-z", given=entry.encode())
        entry = f"040000 tree {sub}\t{folder}\0"
    return git(
        "-C",
        str(store),
        "mktree",
        "-z",
        given=("".join(f"{each}\0" for each in beside) + entry).encode(),
    )


def test_a_link_in_the_folder_leads_nowhere(tmp_path: Path) -> None:
    """An agent puts links where files come, and where a private file would leave."""
    store, (a, b) = shared(tmp_path, "a", "b")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "private.md").write_text("private\n", encoding="utf-8")
    (b.folder / "proposal.md").unlink()
    (b.folder / "proposal.md").symlink_to(outside / "private.md")
    (b.folder / "notes").symlink_to(outside)
    a.write("notes/why.md", "Because.\n")
    a.write("proposal.md", "# P\n")
    a.appended("writer", "proposal_submitted", "--reply-to", "1", "--doc", "notes/why.md")
    ran = b.acp_here("sync", "--once")
    assert "Traceback" not in ran.stderr
    assert sorted(os.listdir(outside)) == ["private.md"]
    assert (outside / "private.md").read_text() == "private\n"
    (b.folder / "notes").unlink()
    b.sync()
    assert (b.folder / "notes" / "why.md").read_text() == "Because.\n"
    (b.folder / "review.md").unlink()
    (b.folder / "review.md").symlink_to(outside / "private.md")
    b.append("reader", "blocked", "--reply-to", "2", "--doc", "review.md")
    assert "private" not in git("-C", str(store), "grep", "-h", "", REF)


def test_the_process_of_sync_publishes_for_the_sandbox(tmp_path: Path) -> None:
    from tests.support import forked

    _, (a, b) = shared(tmp_path, "a", "b")
    proposed(a)
    b.sync()
    process = forked.start(("sync", str(b.folder)), b.home, b.env)
    try:
        assert "synchronizing" in process.line()
        sandbox = Host("sandbox", tmp_path)  # it has neither keys nor the account's configuration
        words = ("append", "--folder", str(b.folder), "--participant", "reader", "--event", "review_submitted",
                 "--summary", "Fine", "--reply-to", "2", "--review", "Fine.")  # fmt: skip
        scripts = sandbox.home / "skill"
        sandbox.done("skill", "install", str(scripts))
        ran = run_script(sandbox, scripts, "append_event.py", *words[1:])
        assert ran.returncode == 0, ran
        assert "appended seq 3" in ran.stdout
        refused = run_script(
            sandbox, scripts, "append_event.py", *words[1:8], "Again", "--reply-to", "3"
        )
        assert refused.returncode == 2 and "not allowed" in refused.stderr
        second = b.acp_here("sync")
        assert second.returncode == 2 and "another process synchronizes" in second.stderr
    finally:
        process.end(2)
    together(a, b)
    ran = run_script(sandbox, scripts, "append_event.py", *words[1:8], "Late", "--reply-to", "3")
    assert ran.returncode == 6 and "nothing here can reach its store" in ran.stderr
    assert len(b.log()) == 3


def run_script(host: Host, scripts: Path, name: str, *words: str):  # type: ignore[no-untyped-def]
    (path,) = scripts.rglob(name)
    return subprocess.run(
        [sys.executable, "-I", str(path), *words], env=host.env, cwd=host.home, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_continuing_a_shared_collaboration_tells_the_others(tmp_path: Path) -> None:
    store, (a, b) = shared(tmp_path, "a", "b")
    proposed(a)
    a.appended("writer", "blocked", "--reply-to", "2")
    a.done_here("continue", "--to", str(a.home / "c-2"), "--answer", "Go on")
    refs = git("-C", str(store), "for-each-ref", "--format=%(refname)").split()
    assert "refs/heads/acp/c-2/log" in refs and f"refs/heads/acp/{ID}/host/a" in refs
    together(a, b)
    assert b"continued_by" in b.read("protocol.json")
    assert f"; continues at git+file://{store}#c-2" in b.done_here("hosts")
    b.done("join", f"{store}#c-2", str(b.home / "c-2"))
    assert (b.home / "c-2" / "proposal.md").read_bytes() == (
        a.home / "c-2" / "proposal.md"
    ).read_bytes()
    leases = git("-C", str(store), "ls-tree", "-r", "--name-only", "refs/heads/acp/c-2/log")
    assert ".acp/leases/writer.json" in leases


def test_a_collaboration_that_was_deleted_in_the_store(tmp_path: Path) -> None:
    store, (a,) = shared(tmp_path, "a")
    git("-C", str(store), "update-ref", "-d", REF)
    ran = a.append("writer", "proposal_submitted", "--reply-to", "1")
    assert ran.returncode == 9 and "no longer holds this collaboration" in ran.stderr
    assert len(a.log()) == 1


def test_a_folder_that_is_no_longer_shared_is_a_plain_one(tmp_path: Path) -> None:
    store, (a, b) = shared(tmp_path, "a", "b")
    proposed(a)
    a.done_here("unshare", "--yes")
    assert "leases/writer" not in git("-C", str(store), "ls-tree", "-r", "--name-only", REF)
    a.appended("writer", "blocked", "--reply-to", "2")
    b.sync()
    assert len(a.log()) == 3 and len(b.log()) == 2
    ran = a.acp_here("unshare", "--yes")
    assert ran.returncode == 2 and "is not shared" in ran.stderr
    ran = a.acp_here("sync", "--once")
    assert ran.returncode == 2 and "is not shared" in ran.stderr


def test_sharing_and_joining_speak_json(tmp_path: Path) -> None:
    store, a, b = repository(tmp_path), Host("a", tmp_path), Host("b", tmp_path)
    started(a)
    said = json.loads(a.done_here("share", str(store), "--id", ID, "--yes", "--json"))
    assert said["schema"] == "acp.share/1" and said["address"] == f"git+file://{store}#{ID}"
    said = json.loads(b.done("join", said["address"], str(b.folder), "--json"))
    assert (said["seq"], said["notes"]) == (1, [])
    said = json.loads(b.done_here("sync", "--once", "--json"))
    assert said["notes"] == ["up to date with the store: seq 1"]
    ran = b.acp("sync", str(b.home), "--once", "--json")
    assert json.loads(ran.stdout)["exit_code"] == 2
