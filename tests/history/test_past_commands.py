"""The past by command: what happened, how it stood at a moment, what became of a document."""

from __future__ import annotations

import json
import os
import time
from itertools import pairwise
from pathlib import Path

import pytest

from tests.cli.support import Acp
from tests.loops.support import append, make

HOSTILE = "\x1b]0;owned\x07[red]"


@pytest.fixture
def folder(tmp_path: Path, acp: Acp) -> Path:
    """Two recorded versions of a proposal, and a third that came later."""
    folder = make(tmp_path / "cache")
    proposal = folder / "proposal.md"
    proposal.write_text("# Proposal\n\nKeep it for seven days.\n")
    assert acp("record", "--once", str(folder)).returncode == 0
    append(folder, "server", "proposal_submitted", 1)
    time.sleep(0.02)
    proposal.write_text(f"# Proposal\n\nKeep it for thirty days. {HOSTILE}\n")
    assert acp("record", "--once", str(folder)).returncode == 0
    append(folder, "reader", "review_submitted", 2)
    return folder


def test_the_story_names_events_documents_and_what_was_not_recorded(acp: Acp, folder: Path) -> None:
    told = acp("replay", str(folder), "--utc")
    assert told.returncode == 0, told.stderr
    assert "● server: proposal_submitted" in told.stdout
    assert "≡ proposal.md changed" in told.stdout
    as_json = json.loads(acp("replay", str(folder), "--json").stdout)
    assert as_json["recorded"] is True
    events = [each["name"] for each in as_json["moments"] if each["kind"] == "event"]
    assert events == ["1", "2", "3"]
    assert json.loads(acp("recordings", "--json").stdout)["recordings"]


def test_how_it_stood_at_an_event(acp: Acp, folder: Path) -> None:
    told = acp("replay", str(folder), "--at", "2")
    assert told.returncode == 0, told.stderr
    assert "reviewing. Waiting for reader and reviewer" in told.stdout
    then = json.loads(acp("replay", str(folder), "--at", "1", "--json").stdout)
    assert then["snapshot"]["phase"] == "drafting"
    assert then["sources"]["proposal.md"] == "recorded"
    for wrong in ("99", "yesterday", "1999-01-01T00:00:00Z"):
        refused = acp("replay", str(folder), "--at", wrong)
        assert refused.returncode == 2
        assert refused.stderr.count("\n") == 1 and "Traceback" not in refused.stderr


def test_what_needed_somebody_then_is_told_as_recorded(acp: Acp, folder: Path) -> None:
    append(folder, "reader", "blocked", 3)
    assert acp("record", "--once", str(folder)).returncode == 0
    told = acp("replay", str(folder), "--at", "4")
    assert (
        "Needs you\n" in told.stdout
        and "Blocked in reviewing by reader: Stepping in" in told.stdout
    )
    assert "acp act" not in told.stdout, "nothing can be done in the past"
    then = json.loads(acp("replay", str(folder), "--at", "4", "--json").stdout)["snapshot"]
    assert [each["text"] for each in then["needs"]] == [
        "blocked in reviewing by reader: Stepping in"
    ]
    assert (
        json.loads(acp("replay", str(folder), "--at", "1", "--json").stdout)["snapshot"]["needs"]
        == []
    )


def test_what_became_of_a_document_word_by_word(acp: Acp, folder: Path) -> None:
    told = acp("diff", str(folder), "proposal.md")
    assert told.returncode == 1, told.stderr
    assert "-Keep it for [-seven-] days." in told.stdout
    assert "+Keep it for {+thirty+} days." in told.stdout
    assert "\x1b" not in told.stdout and "\x07" not in told.stdout
    assert "changed below: Proposal" in told.stdout
    same = acp("diff", str(folder), "proposal.md", "--from", "3", "--to", "3")
    assert same.returncode == 0
    found = json.loads(acp("diff", str(folder), "proposal.md", "--json").stdout)
    assert found["from"]["source"] == found["to"]["source"] == "recorded"
    assert [line["sign"] for line in found["lines"]] == ["-", "+"]
    listed = acp("diff", str(folder), "proposal.md", "--versions").stdout
    assert listed.count("(recorded)") >= 2
    assert acp("diff", str(folder), "nothing.md").returncode == 2


@pytest.mark.slow
def test_every_moment_that_is_printed_can_be_named(acp: Acp, folder: Path) -> None:
    told = json.loads(acp("replay", str(folder), "--json").stdout)["moments"]
    assert len({each["id"] for each in told}) == len(told) > 5
    for each in told:
        for name in (each["id"], each["at"]):
            then = json.loads(acp("replay", str(folder), "--at", name, "--json").stdout)
            if name == each["id"] or [other["at"] for other in told].count(name) == 1:
                assert then["moment"] == each


def test_moments_of_one_time_have_names_of_their_own(acp: Acp, tmp_path: Path) -> None:
    folder = make(tmp_path / "unpacked")
    for name in ("review.md", "decisions.md"):
        os.utime(folder / name, ns=(1_700_000_000_250_000_000,) * 2)
    told = json.loads(acp("replay", str(folder), "--json").stdout)["moments"]
    same = [each for each in told if each["at"] == "2023-11-14T22:13:20.250000Z"]
    assert len(same) > 1 and same[0]["id"] == "2023-11-14T22:13:20.250000Z#1"
    for each in same:
        then = json.loads(acp("replay", str(folder), "--at", each["id"], "--json").stdout)
        assert then["moment"] == each


def test_a_version_is_compared_by_the_time_that_was_printed(acp: Acp, folder: Path) -> None:
    versions = json.loads(acp("diff", str(folder), "proposal.md", "--versions", "--json").stdout)
    printed = acp("diff", str(folder), "proposal.md", "--versions", "--utc").stdout.splitlines()
    shown = [line.partition(" (")[0] for line in printed]
    for times in ([each["since"] for each in versions["versions"]], shown):
        for earlier, later in pairwise(times):
            words = ["diff", str(folder), "proposal.md", "--from", earlier, "--to", later, "--json"]
            found = json.loads(acp(*words).stdout)
            ends = (found["from"]["since"], found["to"]["since"])
            since = [each["since"] for each in versions["versions"]]
            assert ends == (since[times.index(earlier)], since[times.index(later)])


def test_an_event_s_second_is_printed_as_it_was_written(acp: Acp, folder: Path) -> None:
    told = acp("replay", str(folder), "--json").stdout
    assert "999999" not in told
    then = acp("replay", str(folder), "--at", "1", "--json").stdout
    assert "999999" not in then


def test_between_two_moments_time_goes_by(acp: Acp, tmp_path: Path) -> None:
    """Who is asked to act at ten has waited for an hour at eleven."""
    folder = make(tmp_path / "slow")
    log = folder / "events.jsonl"
    events = [json.loads(line) for line in log.read_text().splitlines()]
    events[-1]["at"] = "2026-05-03T10:00:00Z"
    log.write_text("".join(json.dumps(each) + "\n" for each in events))
    os.utime(log, (1_777_802_400, 1_777_802_400))
    words = ("replay", str(folder), "--utc", "--at")
    then = json.loads(acp(*words, "2026-05-03T11:00:00Z", "--json").stdout)["snapshot"]
    assert then["as_of"] == "2026-05-03T11:00:00Z"
    assert "server  1h" in acp(*words, "2026-05-03T11:00:00Z").stdout
    assert "server  1h" not in acp(*words, "2026-05-03T10:00:00Z").stdout


def test_other_line_ends_are_a_difference(acp: Acp, folder: Path) -> None:
    proposal = folder / "proposal.md"
    time.sleep(0.02)
    proposal.write_bytes(proposal.read_bytes().replace(b"\n", b"\r\n").rstrip())
    found = acp("diff", str(folder), "proposal.md")
    assert found.returncode == 1
    assert "line ends: LF → CR LF" in found.stdout
    assert "the last line no longer ends with a newline" in found.stdout
    as_json = json.loads(acp("diff", str(folder), "proposal.md", "--json").stdout)
    assert as_json["same"] is False and len(as_json["unseen"]) == 2 and as_json["lines"] == []


def test_a_tab_that_came_can_be_seen(acp: Acp, folder: Path) -> None:
    proposal = folder / "proposal.md"
    time.sleep(0.02)
    proposal.write_text(proposal.read_text().replace("Keep it", "Keep\tit"))
    found = acp("diff", str(folder), "proposal.md")
    assert "Keep{+→   +}it" in found.stdout and found.returncode == 1


def test_events_of_the_last_second_that_there_is_can_be_read(acp: Acp, tmp_path: Path) -> None:
    folder = make(tmp_path / "late")
    log = folder / "events.jsonl"
    events = [json.loads(line) for line in log.read_text().splitlines()]
    last = {**events[-1], "seq": len(events) + 1, "event": "proposal_submitted", "reply_to": 1}
    lines = [{**each, "at": "9999-12-31T23:59:59Z"} for each in (*events, last)]
    log.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    for words in (
        ("status", tmp_path), ("show", folder), ("why", folder), ("act", folder), ("stats", folder), ("chart", folder),
        ("replay", folder), ("report", folder, "--format", "json"), ("diff", folder, "proposal.md"),
        ("validate", folder), ("find", "late", tmp_path),
    ):  # fmt: skip
        ran = acp(*map(str, words))
        assert "year" not in ran.stderr and "fault" not in ran.stderr, (words, ran.stderr)
        assert "range" not in ran.stdout and "Traceback" not in ran.stderr, (words, ran.stderr)
