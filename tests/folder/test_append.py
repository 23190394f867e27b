"""Appending events: what is written, what is refused, and what is never damaged."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core.files import locked
from acp_core.protocols.folder import rules
from acp_core.protocols.folder.act import append as appending
from acp_core.protocols.folder.act.append import Request
from tests.folder.running import ROOT, Ran, acp, append, spawn
from tests.folder.support import (
    change_protocol,
    edit,
    line_of,
    make_v1,
    make_v2,
    read_protocol,
    write_protocol,
)


def log(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]


def block(folder: Path, summary: str = "No budget.", who: str = "reader", **more: object) -> Ran:
    return append(folder, who, "blocked", 1, summary, **more)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_an_event_is_one_compact_line_and_the_state_follows(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "drafting")
    ran = append(
        folder, "server", "proposal_submitted", 1, "Größe: 3 µs", doc="proposal.md", key="k1"
    )
    assert ran == Ran(0, "appended seq 2: proposal_submitted\n", "")
    line = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    at = log(folder)[-1]["at"]
    assert line == (
        f'{{"seq":2,"from":"server","event":"proposal_submitted","at":"{at}",'
        '"summary":"Größe: 3 µs","doc":"proposal.md","reply_to":1,"key":"k1"}'
    )
    protocol = read_protocol(folder)
    assert (protocol["currentPhase"], protocol["waitingFor"]) == (
        "reviewing",
        ["reader", "reviewer"],
    )
    assert protocol["updatedAt"] == at
    text = (folder / "protocol.json").read_text(encoding="utf-8")
    assert text == json.dumps(protocol, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def test_keys_that_nobody_knows_are_kept(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "drafting")
    change_protocol(folder, x_owner={"team": "é"}, continues="../before")
    block(folder)
    protocol = read_protocol(folder)
    assert protocol["x_owner"] == {"team": "é"} and protocol["continues"] == "../before"


def test_characters_that_break_other_readers_are_escaped(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "drafting")
    summary = "one\u2028two\u2029three\u0085four\nfive\x1b[31m"
    assert block(folder, summary).code == 0
    text = (folder / "events.jsonl").read_text(encoding="utf-8")
    assert len(text.splitlines()) == 2  # str.splitlines is what the existing reader uses
    assert log(folder)[-1]["summary"].startswith(summary)  # type: ignore[attr-defined]
    assert rules.validate(folder).verdict == 0


def test_time_never_goes_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_v1(tmp_path / "run", "drafting")
    future = datetime.now(UTC) + timedelta(hours=3)
    with (folder / "events.jsonl").open("ab") as file:
        file.write(
            line_of(
                {
                    "seq": 2,
                    "from": "reader",
                    "event": "blocked",
                    "at": future.isoformat(timespec="milliseconds"),
                    "summary": "Later.",
                    "reply_to": 1,
                }
            )
        )
    ran = block(folder, "And now.")
    assert ran.code == 0 and "ahead of this machine's clock" in ran.err
    first, second = (datetime.fromisoformat(str(event["at"])) for event in log(folder)[-2:])
    assert second >= first and second - first <= timedelta(seconds=1)
    assert str(log(folder)[-1]["at"]).endswith("Z")
    assert rules.validate(folder).verdict == 0


def test_asking_again_with_the_same_key_appends_once(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "drafting")
    assert block(folder, key="a1").out == "appended seq 2: blocked\n"
    assert block(folder, "Something else now.", key="a2").out == "appended seq 3: blocked\n"
    again = block(folder, key="a1")
    assert again.code == 0 and again.out == "already appended seq 2: blocked\n"
    other = block(folder, who="server", key="a1")  # another participant's key is another key
    assert other.out == "appended seq 4: blocked\n"
    reused = block(folder, "A different story.", key="a1")
    assert (
        reused.out == "already appended seq 2: blocked\n" and "was used for another" in reused.err
    )
    assert len(log(folder)) == 4


def test_the_same_event_twice_in_a_row_is_reported_not_repeated(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "drafting")
    block(folder)
    assert block(folder) == Ran(0, "already appended seq 2: blocked\n", "")
    assert len(log(folder)) == 2


def test_expect_seq_appends_only_to_the_log_that_was_seen(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "drafting")
    before = files(folder)
    moved = block(folder, expect_seq=5)
    assert moved.code == 3 and "moved on to seq 1" in moved.err
    assert files(folder) == before
    assert block(folder, expect_seq=1).code == 0
    assert block(folder, expect_seq=1).out == "already appended seq 2: blocked\n"


@pytest.mark.parametrize(
    ("who", "event", "reply_to", "more", "said"),
    [
        ("ghost", "blocked", 1, {}, "participant 'ghost' is not listed in protocol.json"),
        ("reader", "blocked", 9, {}, "reply_to must point to an existing event"),
        ("reader", "blocked", 0, {}, "reply_to must point to an existing event"),
        ("reader", "proposal_submitted", 1, {},
         "seq 2: proposal submission is reserved for server; got reader"),
        ("reader", "review_submitted", 1, {},
         "seq 2: review_submitted is not allowed from phase drafting"),
        ("server", "completed", 1, {}, "seq 2: completed is not allowed from phase drafting"),
        ("server", "initialized", 1, {}, "initialized must be seq 1"),
        ("server", "deliverable_drafted", 1, {}, "unknown event 'deliverable_drafted'"),
        ("reader", "blocked", 1, {"role": "primary"}, "--role and --sha256 are for deliverable"),
        ("reader", "blocked", 1, {"review_file": "x"}, "--review-file goes with --event"),
        ("reader", "nonsense", 1, {}, "invalid choice: 'nonsense' (choose from 'initialized'"),
        ("reader", "blocked", "x", {}, "--reply-to: invalid int value"),
    ],
)  # fmt: skip
def test_what_is_not_allowed_is_refused_and_nothing_changes(
    tmp_path: Path, who: str, event: str, reply_to: int, more: dict[str, object], said: str
) -> None:
    folder = make_v1(tmp_path / "run", "drafting")
    before = files(folder)
    ran = append(folder, who, event, reply_to, **more)
    assert ran.code == 2 and ran.out == "" and said in ran.err, ran
    assert ran.err.startswith("error: ") and ran.err.count("\n") == 1
    assert files(folder) == before


def test_a_reply_is_asked_for_and_a_summary(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "drafting")
    flags = ("append", "--folder", folder, "--participant", "reader", "--event", "blocked")
    ran = acp(*flags, "--summary", "Why.")
    assert ran.code == 2 and "reply_to is required after initialized" in ran.err
    assert "--summary must not be blank" in acp(*flags, "--summary", " ", "--reply-to", "1").err
    assert "one sentence" in acp(*flags, "--summary", "x" * 2001, "--reply-to", "1").err
    assert "not UTF-8" in acp(*flags, "--summary", "\udc80", "--reply-to", "1").err


def test_nothing_follows_completed(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "completed")
    ran = block(folder)
    assert ran.code == 2 and "blocked is not allowed from phase completed" in ran.err


def test_blocked_can_always_be_said(tmp_path: Path) -> None:
    """Also with an open blocker after an acceptance, and with documents that nobody can read."""
    folder = make_v1(tmp_path / "run", "readiness_check")
    edit(folder, "readiness.md", "- [resolved]", "- [blocking]")
    (folder / "conclusion.md").write_bytes(b"\xff\xfe")
    (folder / "review.md").unlink()
    assert block(folder).code == 0
    folder = make_v1(tmp_path / "other", "reviewing")
    with (folder / "events.jsonl").open("ab") as file:  # a log that can never be valid again
        file.write(
            line_of({"seq": 2, "from": "reader", "event": "blocked", "at": "x", "summary": ""})
        )
    assert "expected seq 3, found 2" in append(folder, "reader", "review_submitted", 2).err
    assert block(folder).out == "appended seq 3: blocked\n"


@pytest.mark.parametrize(
    ("upto", "event", "old", "new", "said"),
    [
        ("classified", "decision_accepted", "- [resolved] Who", "- [blocking] Who",
         "blocking readiness items must be cleared first"),
        ("classified", "decision_accepted", "- [resolved] Who", "- [unresolved] Who",
         "unresolved readiness questions must be classified first"),
        ("classified", "decision_accepted", "Who starts?", "TBD",
         "unresolved readiness questions must be classified first"),
        ("classified", "decision_accepted", "Reason: not needed yet.", "",
         "deferred_nonblocking readiness items require a reason"),
        ("readiness_check", "readiness_passed", "", "",
         "readiness.md must check 'Ready to implement' first"),
        ("passed", "completed", "- [x] The rollout order is agreed", "- [ ] The rollout order",
         "completion gates must be checked first: The rollout order is agreed"),
    ],
)  # fmt: skip
def test_readiness_is_asked_for_before_an_event(
    tmp_path: Path, upto: str, event: str, old: str, new: str, said: str
) -> None:
    folder = make_v1(tmp_path / "run", upto)
    if old:
        edit(folder, "readiness.md", old, new)
    ran = append(
        folder, "server", event, 5, doc="conclusion.md" if event == "completed" else "x.md"
    )
    assert ran.code == 2 and said in ran.err, ran


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("- [proceed] Build it.", "- [blocked] Not yet."),
         "conclusion.md outcome cannot be completed while blocked"),
        (("- [proceed] Build it.", "Build it."),
         "conclusion.md must declare exactly one final outcome"),
        (("## Rationale\n\nAs agreed.", "## Rationale\n\nTODO"),
         "conclusion.md must not contain unresolved placeholders before completed"),
        (("## Rationale", "### Rationale"),
         "conclusion.md is missing required sections: Rationale"),
    ],
)  # fmt: skip
def test_a_conclusion_is_asked_for_before_completed(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    folder = make_v1(tmp_path / "run", "completed")
    finished = (folder / "conclusion.md").read_text()
    folder = make_v1(tmp_path / "again", "passed")
    (folder / "conclusion.md").write_text(finished)
    assert "must reference conclusion.md" in append(folder, "server", "completed", 10).err
    edit(folder, "conclusion.md", *change)
    ran = append(folder, "server", "completed", 10, doc="conclusion.md")
    assert ran.code == 2 and said in ran.err, ran
    edit(folder, "conclusion.md", change[1], change[0])
    assert append(folder, "server", "completed", 10, doc="conclusion.md").code == 0


def test_readiness_cannot_pass_while_the_collaboration_is_invalid(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "readiness_check")
    edit(folder, "readiness.md", "- [ ] Ready", "- [x] Ready")
    edit(folder, "review.md", "- reader - seq 3", "- reader - sequel 3")
    ran = append(folder, "server", "readiness_passed", 9)
    assert ran.code == 2 and "requires matching review.md heading" in ran.err
    assert "validate must pass first" in ran.err
    edit(folder, "review.md", "- reader - sequel 3", "- reader - seq 3")
    assert append(folder, "server", "readiness_passed", 9).code == 0


def test_a_protocol_json_that_lags_is_no_obstacle_and_is_mended(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "readiness_check")
    edit(folder, "readiness.md", "- [ ] Ready", "- [x] Ready")
    change_protocol(folder, currentPhase="decision_review", waitingFor=["reviewer"])
    assert rules.validate(folder).verdict == 2
    assert append(folder, "server", "readiness_passed", 9).code == 0
    assert rules.validate(folder).verdict == 0


def test_documents_of_today_do_not_make_history_wrong(tmp_path: Path) -> None:
    """An open question after the acceptances stops readiness, not a new proposal of a decision."""
    folder = make_v1(tmp_path / "run", "classified")
    assert append(folder, "reader", "decision_accepted", 6).code == 0
    edit(folder, "readiness.md", "- [resolved]", "- [blocking]")
    assert append(folder, "server", "decision_proposed", 7, "A better one.").code == 0


def test_a_review_without_its_heading_is_appended_with_a_warning(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "reviewing")
    ran = append(folder, "reader", "review_submitted", 2, doc="review.md")
    assert ran.code == 0 and "reader - seq 3` yet" in ran.err


def test_a_broken_protocol_json_points_to_repair(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "reviewing")
    log_before = (folder / "events.jsonl").read_bytes()
    for broken in (b"", b"{", b"[]", b"\xff", b'{"a":' + b"[" * 5000):
        (folder / "protocol.json").write_bytes(broken)
        ran = block(folder)
        assert ran.code == 2 and "invalid protocol.json" in ran.err and "acp repair" in ran.err
    assert (folder / "events.jsonl").read_bytes() == log_before


def test_an_unknown_dialect_is_only_read(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "reviewing")
    change_protocol(folder, schemaVersion=3)
    ran = block(folder)
    assert ran.code == 2 and "unknown dialect: schemaVersion 3" in ran.err


@pytest.mark.parametrize("tail", [b'{"seq":3,"from":"rea', b'{"a":1}', b"\x00\x00"])
def test_a_torn_last_line_is_not_appended_to(tmp_path: Path, tail: bytes) -> None:
    folder = make_v1(tmp_path / "run", "reviewing")
    with (folder / "events.jsonl").open("ab") as file:
        file.write(tail)
    before = files(folder)
    ran = block(folder)
    assert ran.code == 2 and "torn line" in ran.err and "acp repair" in ran.err
    assert files(folder) == before


def test_a_line_that_is_still_being_written_is_waited_for(tmp_path: Path) -> None:
    """A tool that takes no lock writes half a line, and the other half a little later."""
    folder = make_v1(tmp_path / "run", "drafting")
    whole = line_of(
        {"seq": 2, "from": "reader", "event": "blocked", "at": "2026-01-02T03:14:05Z",
         "summary": "First.", "reply_to": 1}
    )  # fmt: skip
    with (folder / "events.jsonl").open("ab", buffering=0) as file:
        file.write(whole[:20])
        ours = spawn(
            "append", "--folder", folder, "--participant", "reader", "--event", "blocked",
            "--summary", "Second.", "--reply-to", "1",
        )  # fmt: skip
        time.sleep(0.1)
        file.write(whole[20:])
    out, err = ours.communicate()
    assert (ours.returncode, out) in ((0, "appended seq 3: blocked\n"), (2, "")), err
    assert all(event["seq"] == number for number, event in enumerate(log(folder), 1))


def test_only_a_regular_file_is_written(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "reviewing")
    target = folder / "events.jsonl"
    content = target.read_bytes()
    elsewhere = tmp_path / "elsewhere.jsonl"
    elsewhere.write_bytes(content)
    target.unlink()
    assert "missing events.jsonl" in block(folder).err
    os.mkfifo(target)
    assert "not a regular file" in block(folder).err
    target.unlink()
    target.symlink_to(elsewhere)
    assert "is a symbolic link" in block(folder).err
    target.unlink()
    target.mkdir()
    assert block(folder).code == 2
    assert elsewhere.read_bytes() == content
    assert "is no folder" in block(tmp_path / "nowhere").err
    assert "missing protocol.json" in block(tmp_path).err


def test_permissions_of_protocol_json_are_kept(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "drafting")
    (folder / "protocol.json").chmod(0o664)
    block(folder)
    assert stat.S_IMODE((folder / "protocol.json").stat().st_mode) == 0o664


def test_what_a_crash_left_is_removed(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "drafting")
    (folder / ".protocol.json.0123456789abcdef.acp-tmp").write_text("{")
    (folder / ".notes.swp").write_text("somebody's")
    block(folder)
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == [".notes.swp"]


def test_a_folder_that_cannot_be_written_is_refused_in_one_line(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    folder = make_v1(tmp_path / "run", "drafting")
    (folder / "events.jsonl").chmod(0o444)
    ran = block(folder)
    assert ran.code == 2 and ran.err.count("\n") == 1


def test_a_writer_without_a_lock_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It wrote between our look at the size and our write: our event is in, its seq is taken."""
    folder = make_v1(tmp_path / "run", "drafting")
    intruder = line_of(
        {"seq": 2, "from": "server", "event": "blocked", "at": "2026-01-02T03:14:05Z",
         "summary": "Me too.", "reply_to": 1}
    )  # fmt: skip
    real = os.write
    done = []

    def write(fd: int, data: bytes) -> int:
        if not done and b'"blocked"' in bytes(data):
            done.append(1)
            with (folder / "events.jsonl").open("ab") as file:
                file.write(intruder)
        return real(fd, data)

    monkeypatch.setattr(os, "write", write)
    ran = block(folder)
    assert ran.code == 4 and "do not repeat" in ran.err
    assert [event["seq"] for event in log(folder)] == [1, 2, 2]


def test_a_log_that_grew_while_it_was_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_v1(tmp_path / "run", "drafting")
    intruder = line_of(
        {"seq": 2, "from": "server", "event": "blocked", "at": "2026-01-02T03:14:05Z",
         "summary": "Me too.", "reply_to": 1}
    )  # fmt: skip
    real = appending.prepare
    done = []

    def prepare(*args: object) -> object:
        prepared = real(*args)  # type: ignore[arg-type]
        if not done:
            done.append(1)
            with (folder / "events.jsonl").open("ab") as file:
                file.write(intruder)
        return prepared

    monkeypatch.setattr(appending, "prepare", prepare)
    assert block(folder).out == "appended seq 3: blocked\n"
    assert [event["seq"] for event in log(folder)] == [1, 2, 3]
    assert rules.validate(folder).verdict == 0


def test_a_lock_that_is_not_given_up_ends_the_wait(tmp_path: Path) -> None:
    path = str(make_v1(tmp_path / "run", "drafting") / "events.jsonl")
    with (
        locked.locked(path),
        pytest.raises(locked.LogError, match="locked by another process"),
        locked.locked(path, timeout=0.05),
    ):
        pass


def test_known_bad_file_systems_are_refused_unless_forced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from acp_core.files import mounts

    folder = make_v1(tmp_path / "run", "drafting")
    monkeypatch.setattr(mounts, "here", lambda: (mounts.Mount("/", "cifs"),))
    ran = block(folder)
    assert ran.code == 2 and "is on cifs" in ran.err and "--force" in ran.err
    forced = acp(
        "append", "--folder", folder, "--participant", "reader", "--event", "blocked",
        "--summary", "Now.", "--reply-to", "1", "--force",
    )  # fmt: skip
    assert forced.code == 0 and "locks protect nothing" in forced.err
    monkeypatch.setattr(mounts, "here", lambda: (mounts.Mount("/", "nfs4"),))
    warned = block(folder, "And again.")
    assert warned.code == 0 and "is on nfs4" in warned.err


def test_json_tells_how_it_stands_afterwards(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "drafting")
    flags = (
        "append", "--folder", folder, "--participant", "server", "--event", "proposal_submitted",
        "--summary", "Here it is.", "--reply-to", "1", "--json",
    )  # fmt: skip
    told = json.loads(acp(*flags).out)
    assert (told["schema"], told["seq"], told["existing"]) == ("acp.append/1", 2, False)
    assert (told["phase"], told["waitingFor"]) == ("reviewing", ["reader", "reviewer"])
    assert json.loads(acp(*flags).out)["existing"] is True


def test_printed_text_is_harmless(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "drafting")
    for ran in (
        append(folder, "\x1b]0;owned\x07", "blocked", 1),
        append(folder, "reader", "\x1b[2J", 1),
        block(tmp_path / "\x1b[31m"),
    ):
        assert ran.code == 2 and "\x1b" not in ran.err and "\x07" not in ran.err


def test_an_event_that_is_in_is_acknowledged_though_nobody_reads(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "drafting")
    argv = [
        sys.executable, "-m", "acp_tui", "append", "--folder", str(folder), "--participant",
        "reader", "--event", "blocked", "--summary", "No budget.", "--reply-to", "1",
    ]  # fmt: skip
    with open("/dev/full", "w") as full:
        assert subprocess.run(argv, stdout=full, stderr=full, cwd=ROOT).returncode == 0
    assert len(log(folder)) == 2


def test_an_interruption_after_the_write_does_not_hide_that_the_event_is_in(tmp_path: Path) -> None:
    """Ctrl-C between the write and the answer: the exit code still says that it is there."""
    folder = make_v1(tmp_path / "run", "drafting")
    program = (
        "import os, signal, sys\n"
        "from acp_core.protocols.folder import commands\n"
        "real = os.write\n"
        "def write(fd, data):\n"
        "    done = real(fd, data)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    return done\n"
        "os.write = write\n"
        "sys.exit(commands.append(sys.argv[1:]))\n"
    )
    argv = ["--folder", str(folder), "--participant", "reader", "--event", "blocked",
            "--summary", "No budget.", "--reply-to", "1"]  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "-c", program, *argv], capture_output=True, text=True, cwd=ROOT
    )
    assert (ran.returncode, ran.stdout) == (0, "appended seq 2: blocked\n"), ran.stderr
    assert len(log(folder)) == 2 and rules.validate(folder).verdict == 0


# dialect v2


def draft(folder: Path, **more: object) -> Ran:
    fields: dict[str, object] = {"doc": "deliverables/decision.md", "role": "primary"}
    return append(folder, "server", "deliverable_drafted", 1, **(fields | more))


def test_deliverable_events_say_which_and_in_which_role(tmp_path: Path) -> None:
    folder = make_v2(tmp_path / "run", "revising")
    bare = append(folder, "server", "deliverable_drafted", 1)
    assert "deliverable events require role" in bare.err
    ran = append(folder, "server", "deliverable_drafted", 1, role="primary")
    assert "deliverable events require doc" in ran.err
    assert "doc must reference the primary deliverable" in draft(folder, doc="proposal.md").err
    supporting = draft(folder, role="supporting")
    assert "doc must reference a declared supporting deliverable" in supporting.err
    assert draft(folder).code == 0


def test_freezing_records_the_digest_of_what_stands_there(tmp_path: Path) -> None:
    folder = make_v2(tmp_path / "run", "readiness_check")
    frozen = {"doc": "deliverables/decision.md", "role": "primary"}
    ran = append(folder, "server", "deliverable_frozen", 10, **frozen)
    assert ran.code == 2 and "primary deliverable status must be Frozen" in ran.err
    edit(folder, "deliverables/decision.md", "Status: Draft", "Status: Frozen")
    wrong = append(folder, "server", "deliverable_frozen", 10, **frozen, sha256="0" * 64)
    assert "deliverable_frozen sha256 does not match current file" in wrong.err
    assert append(folder, "server", "deliverable_frozen", 10, **frozen).code == 0
    import hashlib

    data = (folder / "deliverables" / "decision.md").read_bytes()
    assert log(folder)[-1]["sha256"] == hashlib.sha256(data).hexdigest()
    again = append(folder, "server", "deliverable_frozen", 11, "Twice.", **frozen)
    assert "primary deliverable can be frozen only once" in again.err


def test_a_frozen_supporting_deliverable_is_marked_so(tmp_path: Path) -> None:
    folder = make_v2(tmp_path / "run", "revising")
    protocol = read_protocol(folder)
    protocol["deliverables"]["supporting"] = [
        {"type": "custom", "file": "other.md", "checklist": []},
        {"type": "custom", "file": "notes.md", "checklist": ["Notes"], "x": 1},
    ]
    write_protocol(folder, protocol)
    for name in ("other", "notes"):
        (folder / "deliverables" / f"{name}.md").write_text(
            "Status: Frozen\n\n## Notes\n\nSomething.\n"
        )
    fields = {"doc": "deliverables/notes.md", "role": "supporting"}
    ran = append(folder, "reader", "deliverable_frozen", 5, **fields)
    assert ran.code == 0, ran.err
    marked = read_protocol(folder)["deliverables"]["supporting"]
    assert [item.get("frozen") for item in marked] == [None, True] and marked[1]["x"] == 1
    assert rules.validate(folder).verdict == 0


def test_the_writer_can_be_called_without_a_command(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "drafting")
    request = Request(str(folder), "reader", "blocked", "No budget.", reply_to=1)
    late = datetime(2031, 5, 6, 7, 8, 9, 999_999, tzinfo=UTC)
    appended = appending.append(request, now=lambda: late)
    assert (appended.entry.seq, appended.entry.at) == (2, "2031-05-06T07:08:09Z")
    assert (appended.phase, appended.waiting, appended.existing) == ("blocked", (), False)
