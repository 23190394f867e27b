"""Runs that are nearly wrong: the rule that would speak of the next thing finds nothing in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_core.protocols.workspaces.rules import CODES, UNSEEN
from tests.protocols.workspaces.making import ORIGIN, agent, codes, run, status, write
from tests.protocols.workspaces.test_rules import (
    COORD,
    ELSE,
    FIRES,
    MINE,
    OWN,
    Break,
    back,
    both,
    conflict,
    file,
    final,
    manifest,
    output,
    said,
    told,
)

LATE, EARLY = "2026-03-01T10:30:00Z", "2026-03-01T09:00:00Z"
DISPATCHED = {"dispatched_at": EARLY}
STAMPED = f"{ORIGIN}/{OWN}/output-20260301-1030.md"
SENTENCE = "Conflict between ann and ben on cost. Resolved by {}."
STATUS = f"{ORIGIN}/{OWN}/status.json"


def after_ben(at: str) -> Break:
    """Ann works on what ben wrote, who was through at ten."""
    return both(
        told("INPUTS:", f"INPUTS:\n- {ELSE} (required)"),
        manifest({"agent": "ann", "dispatched_at": at}, {"agent": "ben"}),
    )


def resolved(category: str, rule: str) -> Break:
    return conflict(category=category, sentence=SENTENCE.format(rule))


def succeeded(name: str) -> Break:
    return lambda root: agent(root, name)


def unmoved(root: Path) -> None:
    """The run stands where its agents wrote."""
    for name in ("ann", "ben"):
        listed = status(name)["outputs"][0] | {"file": f"{root}/agent-workspaces/{name}/output.md"}
        write(root, f"agent-workspaces/{name}/status.json", status(name, outputs=[listed]), 3599)


def decided(what: str) -> Break:
    return file(f"{COORD}/triage.json", {"decisions": [{"task_id": "ann-part", "decision": what}]})


SILENT: list[tuple[str, Break]] = [
    ("B01", file(f"{OWN}/status.json", '{"agent": "an', 1)),  # it is still being written
    ("B02", both(said(word="failure", outputs=[]), back(word="failure"))),
    ("B02 error", said(task_id=None, completed_at=None, outputs=None)),  # only warnings
    ("B03", said(word="partial")),
    ("B03", said(status=None)),  # that is B02
    ("B03 error", said(word="Done_With_Concerns")),  # known elsewhere: a warning
    ("B04", said(agent=None)),  # that is B02
    ("B05", said(completed_at="2026-03-01T11:00:00+01:00")),
    ("B05", said(completed_at="2026-03-01T12:00:30Z")),  # clocks may differ a little
    ("B06", said(word="failure", outputs=[])),
    ("B07", output("/moved/agent-workspaces/ann/output.md")),
    ("B08", output(f"{ORIGIN}/{OWN}/../ann/output.md")),
    ("B09", output(MINE, size_estimate="approximate size: small")),
    ("B09", output(MINE, size_estimate=None)),
    ("B10", said(word="failure", outputs=[])),
    ("B11", file(f"{OWN}/output.md", "later", 3598)),
    ("B12", file(f"{OWN}/ann-status-20260301-1000.json", status("ann", "failure"))),  # of a rerun
    ("B12", file(f"{OWN}/ben-status.json", status("ann", "failure"))),  # no name of its own
    ("B13", both(said(word="partial"), file(f"{OWN}/output.md", ""))),
    ("B14", output(MINE, description="x")),
    ("B15", file(f"{OWN}/scratch/x")),
    ("B16", said(errors=[], notes="Fine.")),
    ("B17", unmoved),
    ("B20", file("returns/ann-part.json", 'Here: {"status": "success"}')),
    ("B21", back(notes=None)),  # it may be left out
    ("B22", back(word="complete")),
    ("B23", back(word="failure")),
    ("B24", back(word="partial")),
    ("B25", back(summary="One. Two. Three.")),
    ("B26", back(word="done")),  # the same in another word
    ("B26", both(said(word="splendid"), back(word="failure"))),  # nothing to compare with
    ("B27", back(task_id=None)),
    ("B28", back(files_written=[MINE, STATUS])),  # the status file may be listed or not
    ("B29", back(files_written=[STATUS])),
    ("B29", back(files_written=[])),
    ("B30", back(files_written=["/moved/agent-workspaces/ann/output.md"])),
    ("B31", back(task_id="ann_1-part.two")),
    ("B31", back(task_id=None)),
    ("B32", file("returns/ann-part.json", '```json\n{"status": "success"}\n```')),
    ("B36", manifest({"agent": "ann"}, {"agent": "ben"})),
    ("B37", both(file(f"{COORD}/prompts/ann-part.md", "x"), manifest({"agent": "ann"}))),
    ("B37", file(f"{COORD}/triage.json", {})),  # another orchestrator's run, judged by acp
    ("B38", file(f"{COORD}/acp-journal.json", {"what": "x", "writes": []}, 1)),  # at work
    ("B39", file(f"{COORD}/manifest.json", '{"agents": [{"agent": "an', 1)),  # being written
    ("B40", output(f"{ORIGIN}/agent-workspaces/ann/../ann/output.md")),
    # Each agent once, each with an output of its own.
    ("B41", manifest({"agent": "ann", "output": MINE}, {"agent": "ben", "output": ELSE})),
    # A second run of the same agent, whose output bears a stamp.
    ("B41", manifest({"agent": "ann", "output": MINE}, {"agent": "ann", "output": STAMPED})),
    ("B42", said(task_id="ben-part-two")),
    ("B42", both(said(task_id=None), back(task_id=None), told("TASK ID: ann-part", "TASK ID:"))),
    # Not dispatched yet, so that it needs no workspace.
    ("B43", manifest({"agent": "cat", "task_id": "cat-part"})),
    ("B43", manifest({"agent": "ann", **DISPATCHED}, {"agent": "ben", **DISPATCHED})),
    ("B44", file("agent-workspaces/cat/notes.md", "x", 60 * 19)),
    ("B45", file("notes.md")),
    ("B46", manifest({"agent": "ann"}, {"agent": "ben"})),
    ("B46", both(manifest({"agent": "ann"}, {"agent": "ben"}), final())),
    # Missing, but nothing has been integrated.
    ("B46 error", manifest({"agent": "ann"}, {"agent": "ben"}, {"agent": "cat"})),
    # Without a manifest there is nothing to compare.
    ("B46", final()),
    # One of five may fail.
    ("B47", both(*map(succeeded, ("cat", "dan", "eve")), said(word="partial"))),
    # Dispatched after the other one's status.
    ("B48", after_ben("2026-03-01T10:00:01Z")),
    # Dispatched before, but it does not read the other one's output.
    ("B48", manifest({"agent": "ann", "dispatched_at": EARLY})),
    ("B49", told("(required)", f"(required)\n- {ORIGIN}/agent-workspaces/ben/none (optional)")),
    ("B49", told("task-spec.json (required)", "task-spec.json: read it (required)")),
    ("B50", told("the ann", "[the ann] of [a, b] and [Ab]")),
    ("B51", told(f"output to: {ORIGIN}/", "output to:  /moved/")),
    ("B52", told("JSON.", "JSON, as the SCOPE says.")),
    ("B53", told("Compare them.", "Compare them.\nAnd more.")),
    ("B54", told(f"within: {ORIGIN}/{OWN}", f"within: /moved/{OWN}/")),
    ("B55", told("may not launch", "may not launch any")),
    ("B60", both(said(word="failure"), decided("gap"), final())),
    ("B60", both(said(word="partial"), decided("accept"), final())),
    ("B61", final()),
    ("B61", both(final(), file("notes.md", "later", 5))),  # nothing that went into it
    ("B62", final()),
    ("B62", file("integration/notes.md")),  # nothing is final yet
    ("B63", final(integrated=["ann"], skipped=["ben"])),
    ("B64", final(integrated=["ann"], skipped=["ben"], gaps=["ben: left out"])),
    ("B65", resolved("factual", "the factual rule, the more sourced version, that of ann")),
    ("B65", final("The conflict between ann and ben is told below.\n")),
    ("B65", conflict(dismissed=True)),
    ("B66", resolved("factual", "the factual rule, the more sourced version, that of ann")),
    ("B66", resolved("coverage", "the coverage rule, merged, keeping the more detailed version")),
    ("B66", resolved("format", "the format rule, both in the structure of the final md output")),
    ("B66", resolved("taste", "tossing a coin")),
    ("B66", conflict()),
    ("B67", both(final(), file("integration/draft.md", "x", 60))),
    ("B67", both(final(), file("integration/old/final-output.txt", "x", 60))),
    ("B68", both(final(), file("integration/notes.md", "x", 60))),
]


@pytest.mark.parametrize(("code", "breaks"), SILENT)
def test_a_rule_is_silent(tmp_path: Path, code: str, breaks: Break) -> None:
    breaks(run(tmp_path))
    assert not [found for found in codes(tmp_path) if found.startswith(code)]


def test_each_rule_fires_somewhere_and_is_silent_where_it_nearly_would() -> None:
    assert {code.partition(" ")[0] for code, _ in FIRES} == set(CODES) - {UNSEEN}
    assert {code for code, _ in SILENT if " " not in code} == set(CODES) - {UNSEEN}
