"""Folders as they are found: each opens with the state that its files show, and is not drowned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from acp_core.model import Severity, Status
from tests.protocols.cycle import folders
from tests.protocols.cycle.making import codes, panel, read

FOUND: list[tuple[Callable[[Path], Path], str, Status, str, set[str]]] = [
    (folders.just_created, "running;", Status.ACTIVE, "ra", {"A10z advice"}),
    (
        folders.feedback_sent,
        "running;",
        Status.ACTIVE,
        "cd",
        {"A40 advice", "A62 advice"},
    ),
    (folders.completed, "marked completed, but not proven;", Status.COMPLETED, "vas", {"A33 warning"}),
    (folders.escalated, "paused, a decision is open;", Status.ACTIVE, "cd", {"A30 advice"}),
    (
        folders.limit_reached,
        "marked completed, but with failures;",
        Status.COMPLETED,
        "vas",
        {"A10z advice", "A16 warning", "A34 error", "A43 advice", "A44 advice", "A47 warning",
         "A62 advice"},
    ),
    (
        folders.prepared,
        "running;",
        Status.ACTIVE,
        "ra",
        {"A10z advice", "A39 advice", "A43 advice", "A80 advice", "A91 warning"},
    ),
    (
        folders.planned_only,
        "marked completed, but a decision is open;",
        Status.COMPLETED,
        "vas",
        {"A17 warning", "A30 warning", "A32 warning", "A33 warning"},
    ),
    (
        folders.written_by_people,
        "marked completed, but not proven;",
        Status.COMPLETED,
        "vas",
        {"A13 advice", "A14 warning", "A15 advice", "A16 warning", "A17 warning", "A32 warning",
         "A33 warning", "A40 warning", "A41 advice", "A42 warning", "A43 warning"},
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "headline", "status", "phase", "findings"),
    FOUND,
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_a_folder_opens_with_the_state_that_its_files_show(
    tmp_path: Path,
    make: Callable[[Path], Path],
    headline: str,
    status: Status,
    phase: str,
    findings: set[str],
) -> None:
    snapshot = read(make(tmp_path))
    assert snapshot.headline.startswith(headline)
    assert (snapshot.status, snapshot.phase) == (status, phase)
    assert codes(tmp_path) == findings


def test_broken_states_are_shown_beside_one_another(tmp_path: Path) -> None:
    folders.broken(tmp_path)
    assert {row[4].rpartition("-")[2]: row[1:3] for row in panel(tmp_path, "cycles")} == {
        "badenum1": ("in-progress", "under way"),
        "idwrong0": ("running", "under way"),
        "truncate": ("unreadable", "unreadable"),
    }
    assert {"A01 error", "A03 error", "A05 error", "A07 warning", "A08 error", "A09 warning",
            "A10 warning", "A21 error", "A21 warning", "A43 warning", "A50 error", "A51 warning",
            "A52 error"} <= codes(tmp_path)  # fmt: skip


@pytest.mark.parametrize("make", [each[0] for each in FOUND], ids=lambda v: v.__name__)
def test_a_cycle_that_ran_is_not_drowned_in_findings(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    count = Counter(finding.severity for finding in read(make(tmp_path)).findings)
    assert count[Severity.ERROR] <= 1
    assert count[Severity.WARNING] <= 8


def test_what_waits_for_a_person_is_on_top(tmp_path: Path) -> None:
    needs = read(folders.escalated(tmp_path)).needs
    assert [need.code for need in needs] == ["decision", "blocker"]
    assert needs[0].sentence == "Decide DEC-001: Old browsers (1. Password too; 2. Refuse)"


def test_an_end_at_the_limit_with_failing_tests_wants_a_person(tmp_path: Path) -> None:
    needs = read(folders.limit_reached(tmp_path)).needs
    assert [(need.code, need.sentence) for need in needs] == [
        ("failures", "Completed, but tests fail, at the limit of 2 iterations")
    ]
