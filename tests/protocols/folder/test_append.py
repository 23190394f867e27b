"""Appending events: what is written, once, and at which time."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core.protocols.folder import schema
from acp_core.protocols.folder.rules import checks
from acp_core.protocols.folder.write import append as appending
from acp_core.protocols.folder.write.append import Request
from tests.protocols.folder.running import Ran, acp, append, block, files, log
from tests.protocols.folder.support import change_protocol, line_of, make_v1, read_protocol


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
    assert checks.validate(folder).verdict == 0


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
    assert checks.validate(folder).verdict == 0


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


def test_a_summary_from_a_file_is_read_by_no_shell(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "drafting")
    told = tmp_path / "summary.txt"
    told.write_text('It costs $5, isn\'t\n  "that" `fine`?\n')
    flags = ("append", "--folder", folder, "--participant", "server")
    flags += ("--event", "proposal_submitted", "--reply-to", "1")
    both = acp(*flags, "--summary", "x", "--summary-file", told)
    assert both == Ran(2, "", "error: give either --summary or --summary-file\n")
    missing = acp(*flags, "--summary-file", tmp_path / "none")
    assert missing.code == 2 and "--summary-file" in missing.err
    neither = acp(*flags)
    assert neither.code == 2 and "required: --summary" in neither.err
    assert len(log(folder)) == 1
    assert acp(*flags, "--summary-file", told).code == 0
    assert log(folder)[-1]["summary"] == 'It costs $5, isn\'t "that" `fine`?'


def test_the_writer_can_be_called_without_a_command(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "drafting")
    request = Request(str(folder), "reader", "blocked", "No budget.", reply_to=1)
    late = datetime(2031, 5, 6, 7, 8, 9, 999_999, tzinfo=UTC)
    appended = appending.append(request, now=lambda: late)
    assert (appended.entry.seq, appended.entry.at) == (2, "2031-05-06T07:08:09Z")
    assert (appended.phase, appended.waiting, appended.existing) == ("blocked", (), False)


def test_a_clock_that_differs_by_less_than_is_noticed_is_not_told_of(tmp_path: Path) -> None:
    folder = make_v1(tmp_path / "run", "drafting")
    for number, seconds in ((2, schema.CLOCKS_DIFFER - 1), (3, schema.CLOCKS_DIFFER)):
        last = datetime.fromisoformat(str(log(folder)[-1]["at"]))
        request = Request(str(folder), "reader", "blocked", f"No {number}.", reply_to=1)
        done = appending.append(request, now=lambda: last - timedelta(seconds=seconds))  # noqa: B023
        assert (done.entry.seq, len(done.warnings)) == (number, number - 2)
