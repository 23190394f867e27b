"""Runs that are nearly wrong: the rules on dispatch and on conflicts find nothing in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workspaces.making import codes, run
from tests.workspaces.test_rules import ELSE, MINE, Break, both, conflict, final, manifest, told

LATE, EARLY = "2026-03-01T10:30:00Z", "2026-03-01T09:00:00Z"
STAMPED = "/elsewhere/agent-workspaces/ann/output-20260301-1030.md"
SENTENCE = "Conflict between ann and ben on cost. Resolved by {}."


@pytest.mark.parametrize(
    ("code", "breaks"),
    [
        # Each agent once, each with an output of its own.
        ("B41", manifest({"agent": "ann", "output": MINE}, {"agent": "ben", "output": ELSE})),
        # A second run of the same agent, whose output bears a stamp.
        ("B41", manifest({"agent": "ann", "output": MINE}, {"agent": "ann", "output": STAMPED})),
        # Not dispatched yet, so that it needs no workspace.
        ("B43", manifest({"agent": "cat"})),
        ("B43", manifest({"agent": "ann", "dispatched_at": EARLY})),
        ("B46", manifest({"agent": "ann"}, {"agent": "ben"})),
        # Missing, but nothing has been integrated.
        ("B46 error", manifest({"agent": "ann"}, {"agent": "ben"}, {"agent": "cat"})),
        # Without a manifest there is nothing to compare.
        ("B46", final()),
        # Dispatched after the other one's status.
        (
            "B48",
            both(
                told("INPUTS:", f"INPUTS:\n- {ELSE} (required)"),
                manifest({"agent": "ann", "dispatched_at": LATE}),
            ),
        ),
        # Dispatched before, but it does not read the other one's output.
        ("B48", manifest({"agent": "ann", "dispatched_at": EARLY})),
        ("B66", conflict(sentence=SENTENCE.format("factual rule: ann is more recent"))),
        ("B66", conflict(category="taste", sentence=SENTENCE.format("tossing a coin"))),
        ("B66", conflict()),
    ],
)
def test_a_rule_is_silent(tmp_path: Path, code: str, breaks: Break) -> None:
    breaks(run(tmp_path))
    assert not [found for found in codes(tmp_path) if found.startswith(code)]
