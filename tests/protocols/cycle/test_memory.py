"""What goes back, shrinks or vanishes while somebody looks on is said, and stays said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from acp_core.model import Snapshot
from acp_core.protocols.cycle.collaboration import Cycles, open_cycles
from tests.protocols.cycle.making import (
    NOW,
    PROGRESS,
    STATE,
    blocker,
    coordination,
    cycle,
    decision,
    state,
)
from tests.protocols.cycle.making import write as made

LOG = f"{PROGRESS}/cd/code-changes.log"


def opened(root: Path, **changed: Any) -> Cycles:
    found = open_cycles(str(cycle(root, **changed)))
    found.refresh(NOW)
    return found


def told(snapshot: Snapshot) -> list[tuple[str, str]]:
    watched = [each for each in snapshot.findings if each.code in ("A48", "A49", "A49b")]
    return [(f"{each.code} {each.severity.value}", each.message) for each in watched]


def test_a_version_that_goes_back_is_an_error(tmp_path: Path) -> None:
    watching = opened(tmp_path, requirements={"version": "1.1.0"})
    made(tmp_path, STATE, state(requirements={"version": "1.0.0"}), ago=50)
    assert told(watching.refresh(NOW)) == [
        ("A48 error", "requirements went down from 1.1.0 to 1.0.0")
    ]
    made(tmp_path, STATE, state(requirements={"version": "1.2.0"}), ago=40)
    assert len(told(watching.refresh(NOW))) == 1


def test_a_version_that_rises_is_none(tmp_path: Path) -> None:
    watching = opened(tmp_path, requirements={"version": "1.1.0"})
    made(tmp_path, STATE, state(requirements={"version": "2.0.0"}), ago=50)
    assert told(watching.refresh(NOW)) == []


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ('{"a": 1}\n', "The log cd/code-changes.log has shrunk; logs are only appended to"),
        (
            '{"a": 1}\n{"a": 3}\n{"a": 4}\n',
            "Earlier lines of the log cd/code-changes.log were changed; logs are only appended to",
        ),
        (None, "The log cd/code-changes.log is missing"),
    ],
)
def test_a_log_that_loses_something_is_an_error(
    tmp_path: Path, after: str | None, message: str
) -> None:
    made(cycle(tmp_path), LOG, '{"a": 1}\n{"a": 2}\n')
    watching = open_cycles(str(tmp_path))
    assert told(watching.refresh(NOW)) == []
    if after is None:
        (tmp_path / LOG).unlink()
    else:
        made(tmp_path, LOG, after, ago=50)
    assert told(watching.refresh(NOW)) == [("A49 error", message)]
    made(tmp_path, LOG, f'{after or ""}{{"a": 5}}\n', ago=40)
    assert ("A49 error", message) in told(watching.refresh(NOW))


def test_a_log_that_grows_and_a_document_that_is_rewritten_are_none(tmp_path: Path) -> None:
    made(cycle(tmp_path), LOG, '{"a": 1}\n')
    made(tmp_path, f"{PROGRESS}/ra/requirements.md", "# R - v1.0.0\nlong\n")
    watching = open_cycles(str(tmp_path))
    watching.refresh(NOW)
    made(tmp_path, LOG, '{"a": 1}\n{"a": 2}\n', ago=50)
    made(tmp_path, f"{PROGRESS}/ra/requirements.md", "# R - v1.0.0\n", ago=50)
    assert told(watching.refresh(NOW)) == []


def test_an_entry_that_vanishes_is_a_warning_and_a_decision_stays_shown(tmp_path: Path) -> None:
    both = coordination(pending_decisions=[decision()], blockers=[blocker()])
    watching = opened(tmp_path, coordination=both)
    made(tmp_path, STATE, state(coordination=coordination()), ago=50)
    snapshot = watching.refresh(NOW)
    assert told(snapshot) == [
        ("A49b warning", "Removed from pending_decisions: DEC-001; the state only grows"),
        ("A49b warning", "Removed from blockers: BLK-001; the state only grows"),
    ]
    shown = next(each for each in snapshot.panels if each.id == "decisions")
    assert [row.cells for row in shown.rows] == [
        ("DEC-001", "Large exports", "removed from the state", "")
    ]


def test_an_entry_that_is_answered_is_none(tmp_path: Path) -> None:
    watching = opened(tmp_path, coordination=coordination(pending_decisions=[decision()]))
    answer = decision(status="made", chosen_option="Stream", made_by="user")
    changed = coordination(pending_decisions=[answer, decision(id="DEC-002")])
    made(tmp_path, STATE, state(coordination=changed), ago=50)
    assert told(watching.refresh(NOW)) == []


def test_a_state_that_cannot_be_read_takes_nothing_away(tmp_path: Path) -> None:
    watching = opened(tmp_path, coordination=coordination(pending_decisions=[decision()]))
    made(tmp_path, STATE, "{", ago=50)
    assert told(watching.refresh(NOW)) == []
    changed = coordination(pending_decisions=[decision()])
    made(tmp_path, STATE, state(coordination=changed), ago=40)
    assert told(watching.refresh(NOW)) == []
