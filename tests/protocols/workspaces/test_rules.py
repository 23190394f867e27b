"""Each rule fires where it should; none fires on a run in which all is well."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from acp_core.protocols.workspaces import rules
from acp_core.protocols.workspaces.rules import ACTIONS, CODES, UNSEEN
from tests.protocols.workspaces.making import (
    MOVED,
    ORIGIN,
    agent,
    codes,
    integrate,
    prompt,
    returned,
    run,
    status,
    write,
)

OWN = "agent-workspaces/ann"
COORD = "agent-workspaces/.coord"
Break = Callable[[Path], object]


def test_nothing_is_found_where_all_is_well(tmp_path: Path) -> None:
    assert codes(run(tmp_path)) == {MOVED}
    integrate(tmp_path, "Conflict between ann and ben on cost. Resolved by factual rule: ann.\n")
    assert codes(tmp_path) == {MOVED}


def said(**changed: Any) -> Break:
    return lambda root: write(root, f"{OWN}/status.json", status("ann", **changed), 3599)


def back(**changed: Any) -> Break:
    return lambda root: write(root, "returns/ann-part.json", returned("ann", **changed))


def output(file: str, **changed: Any) -> Break:
    item = {"file": file, "size_estimate": "small", "description": "It"} | changed
    return said(outputs=[item])


def told(old: str, new: str) -> Break:
    return lambda root: write(root, "prompts/ann-part.md", prompt("ann").replace(old, new))


def file(name: str, content: object = "x", ago: float = 3600) -> Break:
    return lambda root: write(root, name, content, ago)


def manifest(*agents: dict[str, str]) -> Break:
    return file(f"{COORD}/manifest.json", {"agents": list(agents)})


def final(text: str = "# All\n", **changed: Any) -> Break:
    return lambda root: integrate(root, text, **changed)


def conflict(**changed: Any) -> Break:
    made = {"agents": ["ann", "ben"], "topic": "cost", "category": "factual"} | changed
    return final(conflicts=[made])


def both(*breaks: Break) -> Break:
    return lambda root: [each(root) for each in breaks]


def linked(root: Path) -> None:
    (root / "outside.md").write_text("x")
    (root / OWN / "output.md").unlink()
    os.symlink(root / "outside.md", root / OWN / "output.md")


ELSE = f"{ORIGIN}/agent-workspaces/ben/output.md"
MINE = f"{ORIGIN}/{OWN}/output.md"
ANN_IS_LEFT_OUT = {"task_id": "ann-part", "decision": "skip"}


FIRES: list[tuple[str, Break]] = [
    ("B01 error", file(f"{OWN}/status.json", '{"agent": "an')),
    ("B01 error", file(f"{OWN}/status.json", "[" * 5000)),
    ("B02 error", said(agent=None)),
    ("B02 warning", said(task_id=None)),
    ("B03 error", said(word="splendid")),
    ("B03 warning", said(word="DONE")),
    ("B04 error", said(agent="ben")),
    ("B05 warning", said(completed_at="1/3/2026")),
    ("B05 warning", said(completed_at="2026-03-01T10:00:00")),
    ("B05 warning", said(completed_at="2027-03-01T10:00:00Z")),
    ("B06 error", said(file="other.md")),
    ("B06 warning", said(word="partial", file="other.md")),
    ("B06 advice", said(word="failure", file="other.md")),
    ("B07 warning", output("output.md")),
    ("B08 error", output(ELSE)),
    ("B08 error", output("/etc/passwd")),
    ("B08 error", output(f"{ORIGIN}/{OWN}/../../../../x")),
    ("B08 error", linked),
    ("B09 warning", output(MINE, size_estimate="tiny")),
    ("B10 error", said(outputs=[])),
    ("B11 warning", file(f"{OWN}/output.md", "later", 60)),
    ("B12 error", file(f"{OWN}/ann-status.json", status("ann", "failure"))),
    ("B12 advice", file(f"{OWN}/ann-status.json", status("ann"))),
    ("B13 warning", file(f"{OWN}/output.md", "")),
    ("B14 warning", output(MINE, description="")),
    ("B15 advice", both(file(f"{OWN}/scratch/x"), output(f"{ORIGIN}/{OWN}/scratch/x"))),
    ("B16 advice", said(mood="fine")),
    ("B17 advice", file("notes.md")),
    ("B20 error", file("returns/ann-part.json", "All is fine.")),
    ("B21 error", back(summary=None)),
    ("B22 error", back(word="splendid")),
    ("B23 warning", back(word="partial", errors=[])),
    ("B24 warning", back(errors=["no"])),
    ("B25 warning", back(summary="One. Two. Three. Four.")),
    ("B25 warning", back(summary="")),
    ("B26 error", back(word="partial")),
    ("B27 error", back(task_id="ann-other")),
    ("B28 warning", back(files_written=[])),
    ("B29 error", back(files_written=[f"{ORIGIN}/{OWN}/none.md"])),
    ("B30 warning", back(files_written=["output.md"])),
    ("B31 warning", back(task_id="part")),
    ("B32 warning", file("returns/ann-part.json", 'Here: {"status": "success"}')),
    ("B36 error", manifest({"agent": "ann"}, {"agent": "ann"})),
    ("B36 error", file(f"{COORD}/manifest.json", {"agents": "ann"})),
    ("B37 error", file(f"{COORD}/prompts/ann-part.md", "x")),
    ("B38 warning", file(f"{COORD}/acp-journal.json", {"what": "dispatch ann", "writes": []})),
    ("B38 error", file(f"{COORD}/acp-journal.json", "{")),
    ("B39 error", file(f"{COORD}/triage.json", {"decisions": "none"})),
    ("B39 error", file(f"{COORD}/manifest.json", '{"agents": [{"agent": "an')),
    ("B39 error", file("integration/status.json", "[]")),
    ("B40 error", output(ELSE)),
    ("B41 error", manifest({"agent": "ann"}, {"agent": "ann"}, {"agent": "ben"})),
    ("B42 error", said(task_id="ben-part")),
    ("B43 warning", manifest({"agent": "cat", "dispatched_at": "2026-03-01T10:00:00Z"})),
    ("B44 warning", file("agent-workspaces/cat/notes.md")),
    ("B45 warning", file("output.md")),
    ("B46 advice", manifest({"agent": "ann"})),
    ("B46 error", both(manifest({"agent": "cat"}), final())),
    ("B47 warning", said(word="partial")),
    (
        "B48 warning",
        both(
            told("INPUTS:", f"INPUTS:\n- {ELSE} (required)"),
            manifest({"agent": "ann", "dispatched_at": "2026-03-01T09:00:00Z"}),
        ),
    ),
    ("B49 warning", told("task-spec.json", "none.json")),
    ("B50 error", told("the ann", "[AGENT-ROLE]")),
    ("B50 error", told("may not launch", "[may/may not] launch")),
    ("B51 error", told(f"output to: {ORIGIN}/", "output to: ")),
    ("B52 error", told("SCOPE BOUNDARIES", "SCOPE")),
    ("B53 warning", told("Compare them.", "Compare them.\n\nAnd more.")),
    ("B54 warning", told(f"within: {ORIGIN}/{OWN}", f"within: {ORIGIN}")),
    ("B55 advice", told("may not launch", "may launch")),
    ("B60 error", both(said(word="failure"), final())),
    ("B60 error", both(file("agent-workspaces/cat/x"), final())),
    ("B61 warning", both(final(), file(f"{OWN}/output.md", "later", 5))),
    ("B62 warning", file("integration/final-output.md")),
    ("B63 warning", final(integrated=["ann"])),
    (
        "B63 warning",
        both(final(), file(f"{COORD}/triage.json", {"decisions": [ANN_IS_LEFT_OUT]})),
    ),
    ("B64 warning", final(integrated=["ann"], skipped=["ben"])),
    ("B65 warning", final("Conflict between ann and ben on cost.\n")),
    ("B65 warning", conflict()),
    (
        "B66 warning",
        conflict(sentence="Conflict between ann and ben on cost. Resolved by tossing a coin."),
    ),
    ("B67 warning", both(final(), file("integration/final-output.txt", "x", 60))),
    ("B68 error", output(f"{ORIGIN}/integration/final-output.md")),
]


@pytest.mark.parametrize(("code", "breaks"), FIRES)
def test_rule_fires(tmp_path: Path, code: str, breaks: Break) -> None:
    breaks(run(tmp_path))
    assert code in codes(tmp_path)


def test_gaps_that_are_named_and_decided_partials_are_fine(tmp_path: Path) -> None:
    run(tmp_path)
    agent(tmp_path, "ann", "partial")
    triage = {"decisions": [{"task_id": "ann-part", "decision": "accept"}]}
    write(tmp_path, f"{COORD}/triage.json", triage)
    integrate(tmp_path, integrated=["ann"], skipped=["ben"], gaps=["what ben would have done"])
    assert codes(tmp_path) == {MOVED, "B47 warning"}


def test_one_of_five_may_fail(tmp_path: Path) -> None:
    run(tmp_path)
    for name in ("cat", "dan", "eve"):
        agent(tmp_path, name)
    said(word="partial")(tmp_path)
    back(word="partial")(tmp_path)
    assert codes(tmp_path) == {MOVED}


@pytest.mark.parametrize(("others", "severity"), [([], "error"), (["ben"], "warning")])
def test_what_changed_outside_is_sure_only_where_nobody_else_worked(
    tmp_path: Path, others: list[str], severity: str
) -> None:
    seen = {"outside": ["README.md"], "outside_while": others}
    entries = [{"agent": "ann", **seen}, {"agent": "ben"}]
    write(run(tmp_path), f"{COORD}/manifest.json", {"agents": entries})
    assert codes(tmp_path) == {MOVED, f"B08 {severity}"}


def test_each_rule_has_its_reason_and_its_remedy() -> None:
    assert {rule.__name__.upper() for rule in rules.RULES} == set(CODES) - {UNSEEN}
    assert set(ACTIONS) <= set(CODES)
    assert all(why.endswith(".") and what.endswith(".") for why, what in CODES.values())
