"""Repairing: what is shown, what is mended, what is kept, and what is left alone."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from acp_core.files import locked
from acp_core.protocols.folder.rules import checks
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.write import edits
from tests.protocols.folder.acting import ROOT, Ran, acp, append
from tests.protocols.folder.support import (
    change_protocol,
    extend,
    line_of,
    make_v1,
    make_v2,
    read_protocol,
)
from tests.support.private import open_to_others

VALID = "ACP validation passed"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


def started(folder: Path, *more: str) -> Path:
    """A collaboration as `acp init` starts it, with one event more."""
    ran = acp(
        "init", "--folder", folder, "--participant", "server", "--participant", "reader",
        "--objective", "Choose a cache\n\nand say why", "--completion", "It is agreed",
        "--completion", "It is tested", *more,
    )  # fmt: skip
    assert ran.code == 0, ran
    return folder


def fix(folder: Path) -> Ran:
    return acp("repair", "--folder", folder, "--yes")


def verdict(folder: Path) -> str:
    return checks.validate(folder).lines()[0]


def copies(state: Path) -> list[tuple[str, bytes]]:
    """The copies that were kept: the file's name and its content."""
    kept = [path for path in state.rglob("*") if path.is_file() and path.name != "charter.json"]
    return [(path.name.split("-", 2)[2], path.read_bytes()) for path in sorted(kept)]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_nothing_is_done_where_nothing_is_broken(folder: Path, state: Path) -> None:
    before = files(folder)
    assert fix(folder) == Ran(0, f"nothing to repair\n{VALID}\n", "")
    assert files(folder) == before and not copies(state)


def test_a_protocol_json_that_lags_is_brought_up_to_the_log(tmp_path: Path, state: Path) -> None:
    folder = make_v1(tmp_path / "run", "revising")
    change_protocol(folder, currentPhase="reviewing", waitingFor=["reviewer"], x="kept")
    old = (folder / "protocol.json").read_bytes()
    ran = fix(folder)
    assert ran.code == 0
    assert "is out of date with the log: it says 'reviewing', the log 'revising'" in ran.out
    assert '-  "currentPhase": "reviewing",' in ran.out
    assert '+  "currentPhase": "revising",' in ran.out
    assert f"fixed: {VALID}" in ran.out and "kept a copy: " in ran.out
    assert copies(state) == [("protocol.json", old)]
    protocol = read_protocol(folder)
    assert (protocol["waitingFor"], protocol["x"]) == (["server"], "kept")
    assert verdict(folder) == VALID
    assert open_to_others() == []


@pytest.mark.parametrize("broken", [b"", b"{", b"\xff\xfe", b"[" * 10_000, None])
def test_a_lost_protocol_json_comes_from_the_copy_that_was_kept(
    tmp_path: Path, state: Path, broken: bytes | None
) -> None:
    folder = started(tmp_path / "run")
    append(folder, "server", "proposal_submitted", 1)
    good = read_protocol(folder)
    (folder / "protocol.json").unlink()
    if broken is not None:
        (folder / "protocol.json").write_bytes(broken)
    ran = fix(folder)
    assert ran.code == 0 and "acp's copy of its last version" in ran.out, ran
    made = read_protocol(folder)
    assert made.pop("rebuilt")["by"] == "acp repair"
    assert made == good
    assert verdict(folder) == VALID


CUSTOM = ["--primary-deliverable-type", "custom", "--primary-deliverable-file", "plan.md",
          "--primary-deliverable-check", "Steps", "--primary-deliverable-check", "Risks"]  # fmt: skip


@pytest.mark.parametrize(
    "more", [[], ["--primary-deliverable-type", "decision-memo"], CUSTOM], ids=len
)
def test_without_a_copy_it_comes_from_readme_and_the_log(
    tmp_path: Path, state: Path, more: list[str]
) -> None:
    folder = started(tmp_path / "run", *more)
    append(folder, "reader", "blocked", 1)
    good = read_protocol(folder)
    (folder / "protocol.json").write_bytes(b"")
    for path in state.rglob("charter.json"):
        path.unlink()
    ran = fix(folder)
    assert ran.code == 0 and "README.md and readiness.md, the log" in ran.out, ran
    made = read_protocol(folder)
    assert made.pop("rebuilt")["from"] == ["README.md and readiness.md", "the log"]
    assert made == good
    assert verdict(folder) == VALID


def test_the_end_of_another_write_is_dropped(folder: Path) -> None:
    """Two writers that take no lock leave one's beginning and the other's end."""
    good = read_protocol(folder)
    extend(folder, b'r"\n  ]\n}\n', "protocol.json")
    ran = fix(folder)
    assert ran.code == 0 and "the readable beginning of protocol.json" in ran.out
    made = read_protocol(folder)
    assert made.pop("rebuilt") and made == good


def test_what_nobody_remembers_is_not_made_up(folder: Path) -> None:
    (folder / "protocol.json").write_bytes(b"")
    for name in ("README.md", "readiness.md", "proposal.md"):
        (folder / name).write_text("Nothing.\n")
    before = files(folder)
    ran = fix(folder)
    assert ran.code == 2 and "cannot be repaired: protocol.json cannot be read" in ran.out
    assert files(folder) == before


def test_deliverables_that_nothing_declares_any_more_are_not_made_up(tmp_path: Path) -> None:
    """The log speaks of one; a protocol.json without it would make the log invalid."""
    folder = make_v2(tmp_path / "run", "revising")
    (folder / "protocol.json").write_bytes(b"")
    before = files(folder)
    ran = fix(folder)
    assert ran.code == 2 and "cannot be repaired: protocol.json cannot be read" in ran.out, ran
    assert files(folder) == before


@pytest.mark.slow
def test_a_torn_last_line_goes_to_the_backup(folder: Path, state: Path) -> None:
    good = (folder / "events.jsonl").read_bytes()
    for cut in range(1, 30, 4):
        torn = b'{"seq":3,"from":"reader","event"'[:cut]
        (folder / "events.jsonl").write_bytes(good + torn)
        ran = fix(folder)
        assert ran.code == 0 and "the last line of events.jsonl is incomplete" in ran.out, ran
        assert (folder / "events.jsonl").read_bytes() == good
        assert ("torn-events.jsonl", torn) in copies(state)
        assert verdict(folder) == VALID


def test_a_last_event_without_its_newline_gets_it(folder: Path) -> None:
    append(folder, "reader", "blocked", 2)
    good = (folder / "events.jsonl").read_bytes()
    (folder / "events.jsonl").write_bytes(good[:-1])
    ran = fix(folder)
    assert (
        ran.code == 0 and "the last event (seq 3) has no newline at its end; acp adds it" in ran.out
    )
    assert (folder / "events.jsonl").read_bytes() == good


@pytest.mark.parametrize(
    "event",
    [
        {"seq": 7, "from": "reader", "event": "blocked"},
        {"seq": 3, "from": "ghost", "event": "review_submitted"},
        {"seq": 3, "from": "server", "event": "completed"},
    ],
)
def test_a_last_line_that_is_no_legal_event_is_not_made_one(
    folder: Path, event: dict[str, object]
) -> None:
    good = (folder / "events.jsonl").read_bytes()
    line = line_of(event | {"at": "2026-01-03T00:00:00Z", "summary": "?", "reply_to": 2})
    (folder / "events.jsonl").write_bytes(good + line[:-1])
    assert fix(folder).code == 0
    assert (folder / "events.jsonl").read_bytes() == good


def test_missing_files_are_made_as_init_makes_them(tmp_path: Path) -> None:
    folder = started(tmp_path / "run", "--primary-deliverable-type", "adr")
    fresh = files(folder)
    for name in ("proposal.md", "review.md", "conclusion.md", "README.md"):
        (folder / name).unlink()
    (folder / "events.jsonl").write_bytes(b"")  # as a crash leaves it
    ran = fix(folder)
    assert ran.code == 0 and "proposal.md is missing" in ran.out, ran
    assert files(folder) == fresh


def test_a_missing_review_heading_is_put_in_where_it_belongs(tmp_path: Path, state: Path) -> None:
    folder = make_v1(tmp_path / "run", "revising")
    text = (folder / "review.md").read_text()
    before, _, later = text.partition("## ")
    first, _, second = later.partition("\n## ")
    (folder / "review.md").write_text(f"{before}## {second}")  # the first review's part is lost
    ran = fix(folder)
    assert ran.code == 0 and "review.md has no heading for seq 3" in ran.out, ran
    mended = (folder / "review.md").read_text()
    head = first.split("\n")[0]
    assert mended.index(f"## {head}\n\n(`acp repair` added this heading on ") < mended.index(
        f"## {second}"
    )
    assert verdict(folder) == VALID and [name for name, _ in copies(state)] == ["review.md"]


def test_headings_that_are_added_at_the_end_are_headings(tmp_path: Path) -> None:
    """A blank line stands before each, whatever the text ended with."""
    for number, end in enumerate(("", "\n", "\n\n")):
        folder = make_v1(tmp_path / str(number), "revising")
        (folder / "review.md").write_text(f"# Reviews\n\nNone yet.{end}")
        assert fix(folder).code == 0
        text = (folder / "review.md").read_text()
        assert text.startswith("# Reviews\n\nNone yet.\n\n## 2026-01-02T")
        assert text.count("\n\n## ") == 2 and "\n\n\n" not in text
        assert verdict(folder) == VALID


def test_the_heading_of_a_name_in_any_script_is_known(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "revising", participants=("server", "Zoë", "reviewer"))
    assert fix(folder) == Ran(0, f"nothing to repair\n{VALID}\n", "")


def test_numbers_that_stand_twice_stay_and_the_way_out_is_named(folder: Path) -> None:
    extend(folder, line_of({"seq": 2, "from": "reader", "event": "blocked",
                            "at": "2026-01-03T00:00:00Z", "summary": "?", "reply_to": 1}))  # fmt: skip
    log = (folder / "events.jsonl").read_bytes()
    ran = fix(folder)
    assert ran.code == 2 and "cannot be repaired: events.jsonl: expected seq 3, found 2" in ran.out
    assert "acp continue" in ran.out and "not repaired: " in ran.out
    assert (folder / "events.jsonl").read_bytes() == log


def test_bytes_in_the_middle_of_the_log_are_never_touched(folder: Path) -> None:
    lines = (folder / "events.jsonl").read_bytes().split(b"\n")
    (folder / "events.jsonl").write_bytes(b"\n".join([lines[0], b"{broken", *lines[1:]]))
    log = (folder / "events.jsonl").read_bytes()
    ran = fix(folder)
    assert ran.code == 2 and "events.jsonl line 2: invalid JSON" in ran.out
    assert (folder / "events.jsonl").read_bytes() == log


def test_a_lost_log_is_said_to_be_lost(folder: Path) -> None:
    (folder / "events.jsonl").unlink()
    ran = fix(folder)
    assert ran.code == 2 and "the log of" in ran.out and "is lost" in ran.out
    assert not (folder / "events.jsonl").exists()


def test_it_asks_before_it_does_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_v1(tmp_path / "run", "revising")
    change_protocol(folder, currentPhase="reviewing")
    before = files(folder)
    nobody = acp("repair", folder)
    assert nobody.code == 2 and "use --yes" in nobody.err

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    ran = acp("repair", folder)
    assert ran.code == 1 and "Repair it? [y/N] not repaired: nothing was changed" in ran.out
    monkeypatch.setattr("sys.stdin", Terminal(""))
    assert acp("repair", folder).code == 1
    assert acp("repair", folder, "--dry-run").code == 2
    assert files(folder) == before
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert acp("repair", folder).code == 0
    assert verdict(folder) == VALID


def test_it_does_only_what_it_showed(tmp_path: Path) -> None:
    from datetime import UTC, datetime

    from acp_core.model.errors import Refused
    from acp_core.protocols.folder.write import repair

    folder = make_v1(tmp_path / "run", "revising")
    change_protocol(folder, currentPhase="reviewing")
    plan = repair.diagnose(str(folder), datetime.now(UTC))
    append(folder, "reader", "blocked", 2)  # the writer mends it on the way
    before = files(folder)
    with pytest.raises(Refused, match="nothing was done"):
        repair.repair(plan)
    assert files(folder) == before


def test_without_a_place_for_copies_nothing_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_v1(tmp_path / "run", "revising")
    change_protocol(folder, currentPhase="reviewing")
    before = files(folder)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "file" / "state"))
    ran = fix(folder)
    assert ran.code == 2 and ran.err.count("\n") == 1 and "Not a directory" in ran.err
    assert files(folder) == before


def test_what_is_no_collaboration_is_refused(tmp_path: Path) -> None:
    assert "is not a folder" in fix(tmp_path / "nowhere").err
    assert "holds neither protocol.json nor events.jsonl" in fix(tmp_path).err
    folder = make_v1(tmp_path / "run", "revising")
    change_protocol(folder, schemaVersion="x")
    assert "unknown schemaVersion" in fix(folder).err
    (folder / "events.jsonl").unlink()
    os.mkfifo(folder / "events.jsonl")
    assert fix(folder).code == 2


def test_everything_at_once(tmp_path: Path) -> None:
    folder = make_v2(tmp_path / "run", "revising")
    change_protocol(folder, currentPhase="drafting", waitingFor=[])
    (folder / "decisions.md").unlink()
    (folder / "review.md").unlink()
    extend(folder, b'{"seq":6')
    ran = acp("repair", "--folder", folder, "--yes", "--json")
    told = json.loads(ran.out)
    assert ran.code == 0 and told["mended"] and told["valid"] and not told["hopeless"], told
    names = [each["file"] for each in told["fixes"]]
    assert names == ["decisions.md", "events.jsonl", "review.md", "protocol.json"]
    assert verdict(folder) == VALID
    assert len(told["copies"]) == 2 and all(Path(path).is_file() for path in told["copies"])


def test_hostile_text_is_shown_harmless(folder: Path) -> None:
    extend(folder, b"\x1b]52;c;aGk=\x07 [@click=app.quit]")
    ran = acp("repair", folder, "--dry-run")
    assert "\x1b" not in ran.out and "\x07" not in ran.out and "52;c;aGk=" in ran.out


def test_a_rebuilt_protocol_json_can_be_told_from_an_original(tmp_path: Path, state: Path) -> None:
    folder = started(tmp_path / "run")
    (folder / "protocol.json").unlink()
    fix(folder)
    protocol = records.decode_protocol((folder / "protocol.json").read_bytes())
    assert set(protocol["rebuilt"]) == {"by", "at", "from"}
    assert append(folder, "reader", "blocked", 1).code == 0
    assert read_protocol(folder)["rebuilt"] == protocol["rebuilt"]


def test_whoever_reads_the_repair_may_go_away_before_its_end(folder: Path) -> None:
    change_protocol(folder, currentPhase="drafting", waitingFor=["server"])
    extend(folder, "Nothing yet.\n" * 20_000, "review.md")
    (folder / "proposal.md").unlink()
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run(
        [sys.executable, "-m", "acp_tui", "repair", str(folder), "--yes"],
        stdout=writer, stderr=subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip
    os.close(writer)
    assert b"Traceback" not in ran.stderr
    assert checks.validate(folder).lines() == ["ACP validation passed"]


def test_a_log_with_carriage_returns_is_not_cut(folder: Path) -> None:
    path = folder / "events.jsonl"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r"))
    before = {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}
    ran = acp("repair", folder, "--yes")
    assert "lines end in carriage returns" in ran.out
    assert {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()} == before
    refused = acp("append", "--folder", folder, "--participant", "reader", "--event", "blocked",
                  "--summary", "No budget.", "--reply-to", "2")  # fmt: skip
    assert refused.code == 2
    assert "end in carriage returns only: convert them to newlines" in refused.err
    assert "acp repair" not in refused.err
    told = acp("next", "--folder", folder, "--participant", "reader")
    assert "next action: wait: the lines of events.jsonl end in carriage returns only" in told.out


def test_a_repair_clears_up_after_a_killed_one_and_remembers_what_it_made(
    tmp_path: Path, state: Path
) -> None:
    folder = started(tmp_path / "run")
    left = folder / f".protocol.json.{'0' * 16}.acp-tmp"
    left.write_text("half of i")
    change_protocol(folder, team="blue", currentPhase="reviewing")
    ran = fix(folder)
    assert ran.code == 0, ran
    assert not left.exists()
    (folder / "protocol.json").unlink()
    assert fix(folder).code == 0
    assert read_protocol(folder)["team"] == "blue"


def test_nothing_is_repaired_where_locks_protect_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = started(tmp_path / "run")
    change_protocol(folder, currentPhase="reviewing")
    before = files(folder)
    monkeypatch.setattr(locked, "here", lambda: (locked.Mount("/", "cifs"),))
    ran = fix(folder)
    assert ran.code == 2 and "is on cifs" in ran.err, ran
    assert files(folder) == before


def test_copies_lie_below_a_name_that_tells_the_folder(tmp_path: Path) -> None:
    """Two folders of one name have a place each; no sign of a name means anything in a path."""
    first, second = (edits.place(str(tmp_path / each / "My run-1.x")) for each in "ab")
    assert os.path.basename(first).startswith("My_run-1.x-") and first != second
