"""States of folder collaborations."""

from __future__ import annotations

import json
from pathlib import Path

from tests.golden.state import State


def _minimal(place: Path) -> Path:
    folder = place / "choice"
    folder.mkdir()
    (folder / "events.jsonl").write_text(
        '{"seq":1,"from":"server","event":"initialized","at":"2026-01-02T03:04:05Z","summary":"Began"}\n'
    )
    (folder / "protocol.json").write_text(
        json.dumps(
            {
                "participants": ["server", "reader"],
                "objective": "Choose",
                "completionGates": ["Agreed"],
                "proposalOwner": "server",
                "currentPhase": "drafting",
                "waitingFor": ["server"],
                "updatedAt": "2026-01-02T03:04:05Z",
            }
        )
    )
    return folder


STATES: tuple[State, ...] = (State("minimal", _minimal),)
