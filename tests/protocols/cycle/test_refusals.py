"""What cannot be done to a cycle is refused in one line that says why, and changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.protocols.cycle.conducting import ID, WHAT, done, path, refused, state

DECISION = {"id": "DEC-001", "description": "Large exports?", "options": ["Stream", "Refuse"],
            "status": "pending"}  # fmt: skip
BLOCKER = {"id": "BLK-001", "description": "No limit", "reported_by": "cd", "status": "open"}
ASKED: dict[str, Any] = {"coordination": {"pending_decisions": [DECISION], "blockers": [BLOCKER]}}
MADE = {**DECISION, "status": "made", "made_by": "user", "chosen_option": "Stream"}
TAKEN = {"id": "DEC-001", "kind": "accept", "iteration": 1, "status": "implemented"}
FIRST = {"current_iteration": 1, "iterations": [{"number": 1, "agent_results": {}}]}
AT_WORK = {**FIRST, "agents": {"vas": {"status": "running"}}}
OVER = {**FIRST, "status": "completed"}
PAUSED = {"status": "paused"}

CASES: list[tuple[dict[str, Any], list[str], str]] = [
    ({}, ["feedback", "cd", "  "], "give the feedback text"),
    (OVER, ["feedback", "cd", "Quote"], "the cycle is completed, not created or running or paused"),
    (ASKED, ["decide", "DEC-009", "1"], "no decision 'DEC-009' (pending: DEC-001)"),
    ({}, ["decide", "DEC-009", "1"], "no decision 'DEC-009' (pending: none)"),
    ({"coordination": {"pending_decisions": [MADE]}}, ["decide", "DEC-001", "2"],
     "DEC-001 is already decided: Stream"),
    (ASKED, ["decide", "DEC-001", " "], "choose an option by its number, or give the decision in words"),
    (ASKED, ["decide", "DEC-001", "0"], "DEC-001 has the options 1 to 2"),
    (ASKED, ["decide", "DEC-001", "3"], "DEC-001 has the options 1 to 2"),
    ({"coordination": {"pending_decisions": [{**DECISION, "kind": "limit"}]}},
     ["decide", "DEC-001", "go on"], "DEC-001 needs one of its options, by number: 1 to 2"),
    (ASKED, ["resolve", "BLK-009", "Gone"], "no open blocker 'BLK-009' (open: BLK-001)"),
    ({"coordination": {"blockers": [{**BLOCKER, "status": "resolved"}]}},
     ["resolve", "BLK-001", "Gone"], "no open blocker 'BLK-001' (open: none)"),
    (ASKED, ["resolve", "BLK-001", " "], "give the resolution"),
    (FIRST, ["extend", "  "], "give the task to add"),
    (FIRST | ASKED, ["extend", "More"], "a decision is pending: decide it first"),
    (FIRST, ["extend", "More", "--limit", "1"], "iteration 2 is above the limit of 1"),
    (AT_WORK, ["extend", "More"], "an agent is working: pause first, or send feedback"),
    ({"status": "created"}, ["extend", "More"], "the cycle is created, not completed or running"),
    (PAUSED, ["pause"], "the cycle is paused, not running"),
    ({}, ["resume"], "the cycle is running, not paused or created or failed"),
    (PAUSED | ASKED, ["resume"], "DEC-001 is pending: decide it to resume the cycle"),
    ({"status": "failed"}, ["accept"], "the cycle is failed, not running or paused or completed"),
    (FIRST | ASKED, ["accept"], "DEC-001 is pending: decide it first"),
    (AT_WORK, ["accept"], "an agent is working: pause first"),
    ({}, ["accept"], "no finished work to accept yet"),
    ({**OVER, "coordination": {"pending_decisions": [TAKEN]}}, ["accept"],
     "iteration 1 is already accepted"),
    (OVER, ["stop"], "the cycle is completed, not created or running or paused"),
    (OVER, ["rerun", "cd"], "the cycle is completed, not running or paused"),
    (AT_WORK, ["rerun", "vas"], "vas is working"),
    (AT_WORK, ["rerun", "ep"], "vas is working and depends on ep"),
    ({"current_iteration": 3}, ["limit", "2"], "the limit must be a number from 3 to 1000"),
]  # fmt: skip


@pytest.mark.parametrize(("altered", "words", "why"), CASES, ids=lambda each: str(each)[:40])
def test_what_cannot_be_done_is_refused_and_changes_nothing(
    tmp_path: Path, altered: dict[str, Any], words: list[str], why: str
) -> None:
    done(tmp_path, "start", WHAT, "--cycle", ID, "--no-run")
    held = state(tmp_path)
    for key, value in altered.items():
        held[key] = {**held[key], **value} if isinstance(value, dict) else value
    path(tmp_path).write_text(json.dumps(held))
    before = path(tmp_path).read_bytes()
    assert why in refused(tmp_path, *words)
    assert path(tmp_path).read_bytes() == before
