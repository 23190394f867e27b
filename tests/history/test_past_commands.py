"""The past by command: what happened, how it stood at a moment, what became of a document."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.cli.support import Acp
from tests.loops.support import append, make

HOSTILE = "\x1b]0;owned\x07[red]"


@pytest.fixture
def acp(tmp_path: Path) -> Acp:
    return Acp(tmp_path)


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
    assert then["collaboration"]["phase"] == "drafting"
    assert then["sources"]["proposal.md"] == "recorded"
    for wrong in ("99", "yesterday", "1999-01-01T00:00:00Z"):
        refused = acp("replay", str(folder), "--at", wrong)
        assert refused.returncode == 2
        assert refused.stderr.count("\n") == 1 and "Traceback" not in refused.stderr


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
