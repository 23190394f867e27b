"""What two hosts changed at the same time, how a person resolves it, and who may write in a folder."""

from __future__ import annotations

import grp
import json
import os
import stat
import sys
from pathlib import Path

import pytest

from tests.stores.hosts import ID, Host, repository, shared, started
from tests.stores.test_shared_folder import proposed, reviewed, script, together

BASE = "# The question\n\nWhat holds.\n\n# The answer\n\nNothing yet.\n"


def conflicting(place: Path, mine: str, theirs: str) -> tuple[Host, Host]:
    """Two hosts that changed one document: the first one's text is in the store."""
    _, (a, b) = shared(place, "a", "b")
    proposed(a, BASE)
    b.sync()
    reviewed(b, "reader")
    a.sync()
    b.write("proposal.md", mine)
    a.write("proposal.md", theirs)
    a.appended("writer", "proposal_revised", "--reply-to", "3", "--doc", "proposal.md")
    assert "proposal.md was changed here and in the store" in b.sync()
    return a, b


def why(host: Host) -> str:
    return host.acp_here("why").stdout


def findings(host: Host) -> str:
    return host.acp_here("validate").stdout


ELSEWHERE = "was changed here and on another host: the text of this host is in .acp/kept/"
AWAY = "events that were appended here without acp are in .acp/kept/events.jsonl."


def test_a_document_that_two_hosts_changed_is_a_finding_and_a_cause_with_its_cures(
    tmp_path: Path,
) -> None:
    a, b = conflicting(tmp_path, "# Mine\n", "# Theirs\n")
    assert f"ADVICE: proposal.md {ELSEWHERE}proposal.md." in findings(b)
    assert ELSEWHERE not in findings(a)
    told = why(b)
    assert "proposal.md was changed here and on another host" in told
    assert "`acp sync --mine proposal.md`" in told and "`acp sync --theirs proposal.md`" in told
    assert "proposal.md stays as the store has it" in b.sync("--theirs", "proposal.md")
    assert ELSEWHERE not in findings(b)
    assert "changed here and on another host" not in why(b)
    together(a, b)


def editor(host: Host, code: str) -> None:
    """The person's editor: a program that has the files' paths in ``paths``."""
    path = host.home / "editor"
    path.write_text(
        f"#!{sys.executable}\nimport sys\npaths = sys.argv[1:]\n{code}", encoding="utf-8"
    )
    path.chmod(0o755)
    host.env["EDITOR"] = str(path)


def test_a_person_merges_what_two_hosts_changed(tmp_path: Path) -> None:
    mine, theirs = BASE.replace("What holds", "What holds longest"), BASE.replace("Nothing", "All")
    _, b = conflicting(tmp_path, mine, theirs)
    editor(b, "sys.exit(3)\n")
    ran = b.acp_here("sync", "--merge", "proposal.md")
    assert ran.returncode == 2 and "ended with 3: nothing was changed" in ran.stderr
    assert b.read("proposal.md").decode() == theirs
    editor(b, "open(paths[0], 'w').write('<<<<<<< yours\\n')\n")
    ran = b.acp_here("sync", "--merge", "proposal.md")
    assert ran.returncode == 2 and "still has conflict marks: nothing was changed" in ran.stderr
    seen = b.home / "seen"
    editor(
        b, f"import json\njson.dump([open(p).read() for p in paths], open({str(seen)!r}, 'w'))\n"
    )
    said = b.sync("--merge", "proposal.md")
    assert "proposal.md is merged; it is published with the next event" in said
    both = theirs.replace("What holds", "What holds longest")
    assert json.loads(seen.read_text()) == [both, mine, BASE, theirs]
    assert b.read("proposal.md").decode() == both
    assert b.acp_here("sync", "--merge", "proposal.md").returncode == 2
    del b.env["EDITOR"]
    assert ELSEWHERE not in findings(b)


def test_events_that_gave_way_are_appended_again(tmp_path: Path) -> None:
    _, (a, b) = shared(tmp_path, "a", "b", readers=("reader", "critic"))
    proposed(a)
    b.sync()
    review = ("## 2030-01-01T00:00:00Z - reader - seq 3", "By a script.")
    b.write("review.md", b.read("review.md").decode() + "\n\n".join(("", *review)) + "\n")
    script(b)
    script(b, seq=4, event="completed", summary="Out of turn", reply_to=3)
    script(b, seq=5, event="blocked", summary="It replies to an event that gave way", reply_to=3)
    script(b, seq=6, event="blocked", summary="It replies to nothing", reply_to=4)
    reviewed(a, "critic")
    assert "`acp sync --again` appends those that are still allowed" in b.sync()
    assert AWAY in findings(b)
    assert "Events that were appended here without acp are not in the store" in why(b)
    ran = b.acp_here("sync", "--mine", "events.jsonl")
    assert ran.returncode == 2 and "events.jsonl is always the store's" in ran.stderr
    for _ in range(2):  # the second time repeats nothing
        ran = b.acp_here("sync", "--again")
        assert ran.returncode == 2
        assert "seq 3 review_submitted from reader: appended as seq 4" in ran.stdout
        assert "seq 4 completed from reader: " in ran.stdout
        assert "seq 5 blocked from reader: appended as seq 5" in ran.stdout
        assert "seq 6 blocked from reader: not appended: it replies to an event that" in ran.stdout
    together(a, b)
    assert [(each["event"], each["reply_to"]) for each in a.log()[3:]] == [
        ("review_submitted", 2), ("blocked", 4),
    ]  # fmt: skip
    b.sync("--theirs", "events.jsonl")
    assert AWAY not in findings(b)
    ran = b.acp_here("sync", "--again")
    assert ran.returncode == 2 and "no events were moved away here" in ran.stderr


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_acp_appends_where_the_owner_said_so(tmp_path: Path) -> None:
    store, host, other = repository(tmp_path), Host("a", tmp_path), Host("b", tmp_path)
    started(host)
    share = ("share", str(host.folder))
    ran = host.acp(*share, "--exclusive", "--yes")
    assert ran.returncode == 2 and "is not shared" in ran.stderr
    assert "fail before they write" in host.done(*share, str(store), "--exclusive", "--dry-run")
    said = host.done(*share, str(store), "--id", ID, "--exclusive", "--yes")
    assert "Only acp can append now." in said
    log, protocol = host.folder / "events.jsonl", host.folder / "protocol.json"
    assert (mode(log), mode(protocol)) == (0o440, 0o440)
    proposed(host)
    assert (mode(log), mode(protocol)) == (0o440, 0o440)
    if os.geteuid():
        with pytest.raises(PermissionError):
            log.open("a")
    other.done("join", f"{store}#{ID}", str(other.folder))
    assert mode(other.folder / "events.jsonl") & 0o200
    reviewed(other, "reader")
    host.sync()
    assert (len(host.log()), mode(log)) == (3, 0o440)
    place = host.folder / ".acp" / "share.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | {"exclusive": False}))
    host.sync()
    assert mode(log) == 0o440, "an agent cannot take that back"
    host.done_here("unshare", "--yes")
    assert mode(log) & 0o200 and mode(protocol) & 0o200


def test_a_group_of_accounts_may_write_in_a_folder(tmp_path: Path) -> None:
    host = Host("a", tmp_path)
    started(host)
    group = grp.getgrgid(os.getgid()).gr_name
    (host.folder / "notes").mkdir()
    (host.folder / "notes" / "why.md").write_text("Because.\n")
    (host.folder / "link.md").symlink_to("/etc/hostname")
    (host.folder / ".git").mkdir(mode=0o700)
    private = tmp_path / "private"
    private.touch(mode=0o600)
    (host.folder / "planted.md").hardlink_to(private)
    share = ("share", str(host.folder))
    ran = host.acp(*share, "--group", "no-such-group", "--yes")
    assert ran.returncode == 2 and "no group named no-such-group" in ran.stderr
    ran = host.acp(*share, "--group", group, "--exclusive", "--yes")
    assert ran.returncode == 2 and "--exclusive is for a folder of one account" in ran.stderr
    ran = host.acp(*share, "--yes")
    assert ran.returncode == 2 and "name the store" in ran.stderr
    assert f"The group {group} can write" in host.done(*share, "--group", group, "--yes")
    for path in (host.folder, host.folder / "notes", host.folder / ".acp" / "run"):
        assert mode(path) & 0o2070 == 0o2070, path
    for path in (host.folder / "events.jsonl", host.folder / "notes" / "why.md"):
        assert mode(path) & 0o060 == 0o060, path
    assert mode(host.folder / ".git") == 0o700 and mode(private) == 0o600
    ran = host.acp(*share, str(repository(tmp_path)), "--exclusive", "--yes")
    assert ran.returncode == 2 and "belongs to a group that writes there" in ran.stderr
    host.write("proposal.md", "# P\n")
    host.appended("writer", "proposal_submitted", "--reply-to", "1")
    assert mode(host.folder / "protocol.json") & 0o060 == 0o060
