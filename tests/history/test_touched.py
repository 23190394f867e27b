"""Which required changes a revision touched: inferred, with the reason."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core.history import versions
from acp_core.history.versions import Known, describe_versions, touched
from acp_core.model.past import Request
from tests.cli.support import Acp
from tests.loops.support import append, make

OLD = "# Proposal\n\n## Expiry\n\nEntries stay.\n\n## Storage\n\nIn one table.\n"
NEW = "# Proposal\n\n## Expiry\n\nEntries go after a day.\n\n## Storage\n\nIn one table.\n"


def of(*texts: str) -> list[tuple[str, str, tuple[str, ...]]]:
    requests = [Request(text, "3", "reader") for text in texts]
    found = touched(requests, versions.compare_lines(OLD, NEW))
    return [(each.request.text, each.section, each.words) for each in found]


def test_a_request_that_names_a_changed_section_was_touched() -> None:
    assert of("Say in Expiry how long.") == [("Say in Expiry how long.", "Expiry", ())]
    assert of("Say in Storage how many.", "Say nothing.") == []


def test_a_request_that_shares_its_words_was_touched() -> None:
    found = of("Let entries go after some time.")
    assert found and found[0][2] == ("entries", "after")
    assert of("Let entries be compressed, encrypted, signed and archived elsewhere.") == []


def test_nothing_changed_touches_nothing() -> None:
    request = Request("Say in Expiry how long.", "3", "reader")
    assert touched([request], versions.compare_lines(OLD, OLD)) == []


def test_the_review_itself_answers_nothing() -> None:
    asked = Request("Name the time to live.", "3", "reader")
    review = versions.compare_lines(
        "# Review\n", "# Review\n\nRequired Changes:\n- Name the time to live.\n"
    )
    assert touched([asked], review) == []


@pytest.mark.slow
def test_by_command_between_two_versions(tmp_path: Path) -> None:
    acp = Acp(tmp_path)
    folder = make(tmp_path / "cache")
    proposal, review = folder / "proposal.md", tmp_path / "review.txt"
    proposal.write_text(OLD)
    append(folder, "server", "proposal_submitted", 1)
    assert acp("record", "--once", str(folder)).returncode == 0
    review.write_text(
        "Position:\n- Nearly.\n\nConcerns:\n- None.\n\nRequired Changes:\n"
        "- Say in Expiry how long entries stay,\n  in hours.\n- Draw \x1b[31ma picture.\n\n"
        "Questions:\n- None.\n"
    )
    time.sleep(1.1)  # the event's time is of whole seconds
    said = acp(
        "append", "--folder", str(folder), "--participant", "reader", "--event", "review_submitted",
        "--summary", "Nearly", "--reply-to", "2", "--review-file", str(review),
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    time.sleep(1.1)
    proposal.write_text(NEW)
    assert acp("record", "--once", str(folder)).returncode == 0
    shown = acp("diff", str(folder), "proposal.md")
    assert shown.returncode == 1
    told = [line for line in shown.stdout.splitlines() if line.startswith("addressed")]
    assert len(told) == 1
    assert "reader, event 3: Say in Expiry how long entries stay, in hours." in told[0]
    assert "inferred" in told[0] and "names the section" in told[0]
    as_json = json.loads(acp("diff", str(folder), "proposal.md", "--json").stdout)["touched"]
    assert [(each["event"], each["section"], each["inferred"]) for each in as_json] == [
        ("3", "Expiry", True)
    ]


def test_what_holds_for_both_versions_stands_once() -> None:
    day = datetime(2026, 5, 3, 12, 0, tzinfo=UTC)
    old, new, next_day = (
        Known("a.md", (day + timedelta(minutes=minutes)).timestamp(), "recorded", 1, "k", bytes)
        for minutes in (0, 21, 1_500)
    )
    assert describe_versions(old, new, True) == "2026-05-03 12:00:00 → 12:21:00 UTC (recorded)"
    assert describe_versions(old, next_day, True) == (
        "2026-05-03 12:00:00 → 2026-05-04 13:00:00 UTC (recorded)"
    )
    assert describe_versions(None, new, True).startswith("no earlier version was kept → ")
    assert describe_versions(None, None, True) == "no earlier version was kept"
