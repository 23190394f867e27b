"""Appending events: what is written, once, and at which time."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core.protocols.folder.rules import checks
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.write import append as appending
from acp_core.protocols.folder.write.append import Request
from tests.protocols.folder.acting import Ran, acp, append, block, files, log
from tests.protocols.folder.support import change_protocol, extend, line_of, read_protocol


def test_an_event_is_one_compact_line_and_the_state_follows(fresh: Path) -> None:
    ran = append(
        fresh, "server", "proposal_submitted", 1, "Größe: 3 µs", doc="proposal.md", key="k1"
    )
    assert ran == Ran(0, "appended seq 2: proposal_submitted\n", "")
    line = (fresh / "events.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    at = log(fresh)[-1]["at"]
    assert line == (
        f'{{"seq":2,"from":"server","event":"proposal_submitted","at":"{at}",'
        '"summary":"Größe: 3 µs","doc":"proposal.md","reply_to":1,"key":"k1"}'
    )
    protocol = read_protocol(fresh)
    assert (protocol["currentPhase"], protocol["waitingFor"]) == (
        "reviewing",
        ["reader", "reviewer"],
    )
    assert protocol["updatedAt"] == at
    text = (fresh / "protocol.json").read_text(encoding="utf-8")
    assert text == json.dumps(protocol, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def test_keys_that_nobody_knows_are_kept(fresh: Path) -> None:
    change_protocol(fresh, x_owner={"team": "é"}, continues="../before")
    block(fresh)
    protocol = read_protocol(fresh)
    assert protocol["x_owner"] == {"team": "é"} and protocol["continues"] == "../before"


def test_characters_that_break_other_readers_are_escaped(fresh: Path) -> None:
    summary = "one\u2028two\u2029three\u0085four\nfive\x1b[31m"
    assert block(fresh, summary).code == 0
    text = (fresh / "events.jsonl").read_text(encoding="utf-8")
    assert len(text.splitlines()) == 2  # str.splitlines is what the existing reader uses
    assert log(fresh)[-1]["summary"].startswith(summary)  # type: ignore[attr-defined]
    assert checks.validate(fresh).verdict == 0


def test_time_never_goes_back(fresh: Path, capsys: pytest.CaptureFixture[str]) -> None:
    future = datetime.now(UTC) + timedelta(hours=3)
    extend(
        fresh,
        line_of(
            {
                "seq": 2,
                "from": "reader",
                "event": "blocked",
                "at": future.isoformat(timespec="milliseconds"),
                "summary": "Later.",
                "reply_to": 1,
            }
        ),
    )
    ran = block(fresh, "And now.")
    assert ran.code == 0 and "ahead of this machine's clock" in ran.err
    first, second = (datetime.fromisoformat(str(event["at"])) for event in log(fresh)[-2:])
    assert second >= first and second - first <= timedelta(seconds=1)
    assert str(log(fresh)[-1]["at"]).endswith("Z")
    assert checks.validate(fresh).verdict == 0


def test_asking_again_with_the_same_key_appends_once(fresh: Path) -> None:
    assert block(fresh, key="a1").out == "appended seq 2: blocked\n"
    assert block(fresh, "Something else now.", key="a2").out == "appended seq 3: blocked\n"
    again = block(fresh, key="a1")
    assert again.code == 0 and again.out == "already appended seq 2: blocked\n"
    other = block(fresh, who="server", key="a1")  # another participant's key is another key
    assert other.out == "appended seq 4: blocked\n"
    reused = block(fresh, "A different story.", key="a1")
    assert (
        reused.out == "already appended seq 2: blocked\n" and "was used for another" in reused.err
    )
    assert len(log(fresh)) == 4


def test_the_same_event_twice_in_a_row_is_reported_not_repeated(fresh: Path) -> None:
    block(fresh)
    assert block(fresh) == Ran(0, "already appended seq 2: blocked\n", "")
    assert len(log(fresh)) == 2


def test_expect_seq_appends_only_to_the_log_that_was_seen(fresh: Path) -> None:
    before = files(fresh)
    moved = block(fresh, expect_seq=5)
    assert moved.code == 3 and "moved on to seq 1" in moved.err
    assert files(fresh) == before
    assert block(fresh, expect_seq=1).code == 0
    assert block(fresh, expect_seq=1).out == "already appended seq 2: blocked\n"


def test_json_tells_how_it_stands_afterwards(fresh: Path) -> None:
    flags = (
        "append", "--folder", fresh, "--participant", "server", "--event", "proposal_submitted",
        "--summary", "Here it is.", "--reply-to", "1", "--json",
    )  # fmt: skip
    told = json.loads(acp(*flags).out)
    assert (told["schema"], told["seq"], told["existing"]) == ("acp.append/1", 2, False)
    assert (told["phase"], told["waitingFor"]) == ("reviewing", ["reader", "reviewer"])
    assert json.loads(acp(*flags).out)["existing"] is True


def test_a_summary_from_a_file_is_read_by_no_shell(tmp_path: Path, fresh: Path) -> None:
    told = tmp_path / "summary.txt"
    told.write_text('It costs $5, isn\'t\n  "that" `fine`?\n')
    flags = ("append", "--folder", fresh, "--participant", "server")
    flags += ("--event", "proposal_submitted", "--reply-to", "1")
    both = acp(*flags, "--summary", "x", "--summary-file", told)
    assert both == Ran(2, "", "error: give either --summary or --summary-file\n")
    missing = acp(*flags, "--summary-file", tmp_path / "none")
    assert missing.code == 2 and "--summary-file" in missing.err
    neither = acp(*flags)
    assert neither.code == 2 and "required: --summary" in neither.err
    assert len(log(fresh)) == 1
    assert acp(*flags, "--summary-file", told).code == 0
    assert log(fresh)[-1]["summary"] == 'It costs $5, isn\'t "that" `fine`?'


def test_a_clock_that_differs_by_less_than_is_noticed_is_not_told_of(fresh: Path) -> None:
    for number, seconds in ((2, records.CLOCKS_DIFFER - 1), (3, records.CLOCKS_DIFFER)):
        last = datetime.fromisoformat(str(log(fresh)[-1]["at"]))
        request = Request(str(fresh), "reader", "blocked", f"No {number}.", reply_to=1)
        done = appending.append(request, now=lambda: last - timedelta(seconds=seconds))  # noqa: B023
        assert (done.entry.seq, len(done.warnings)) == (number, number - 2)
