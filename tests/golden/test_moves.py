"""In every state that is not over, somebody has a move, whatever the protocol; nobody waits for nobody."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.golden.test_needs import DATA, snapshots

OVER = ("completed", "blocked")


def has_a_move(snapshot: dict[str, Any]) -> bool:
    """Whether a participant is waited for, a person wanted, or it is said what is waited for."""
    waited = snapshot.get("waiting") or any(each["waited"] for each in snapshot["next_actions"])
    named = [*snapshot["needs"], *snapshot.get("causes", ())]
    return bool(waited or named or snapshot["status"] in OVER)


@pytest.mark.parametrize("protocol", ("cycle", "folder", "governed", "workspaces"))
def test_somebody_has_a_move(protocol: str) -> None:
    seen = 0
    for path in sorted((DATA / protocol).glob("*.json")):
        for snapshot in snapshots(json.loads(path.read_text(encoding="utf-8"))):
            if "causes" in snapshot:
                assert has_a_move(snapshot), path.name
                seen += 1
    assert seen
