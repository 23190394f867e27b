"""Whoever writes where it may not is named; the one whose files those were is not blamed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from acp_core.protocols.workspaces.read.manifest import layout
from acp_core.protocols.workspaces.write import integration
from tests.protocols.workspaces.making import integrate, read, run, states, status, write
from tests.protocols.workspaces.running import acp, entries, now, prepare, program
from tests.protocols.workspaces.test_causes import causes, manifest

BASE = "agent-workspaces"
OVER: dict[str, object] = {
    "dispatched_at": "2026-03-01T10:30:00Z",
    "ended_at": "2026-03-01T11:10:00Z",
}


def outside(root: Path, *names: str, others: tuple[str, ...] = ()) -> None:
    """Ben worked alone, or with others, and these files changed."""
    more: dict[str, Any] = {"outside": list(names)}
    more |= {"outside_while": list(others)} if others else {}
    manifest(root, ann=OVER, ben={**OVER, **more})


def test_who_wrote_into_the_workspace_of_another_is_named_and_not_that_one(
    tmp_path: Path,
) -> None:
    root = run(tmp_path)
    write(root, f"{BASE}/ann/output.md", "# By ben\n", 3_300)
    outside(root, f"{BASE}/ann/output.md")
    assert states(root) == {"ann": "overwritten", "ben": "success"}
    found = causes(root)[0]
    assert found.code == "E50"
    assert found.sentence == "ben wrote into the workspace of ann (output.md)"
    assert (found.about.participant, found.certain) == ("ben", True)
    assert found.evidence == (f"{BASE}/ann/output.md changed while ben worked",)
    assert (found.remedy, found.given) == ("rerun", (("agent", "ann"),))
    assert "contradicts itself" not in str(causes(root)) + str(read(root).needs)


def test_where_others_worked_too_all_are_named_and_nothing_is_certain(tmp_path: Path) -> None:
    root = run(tmp_path)
    write(root, f"{BASE}/ann/output.md", "# By ben\n", 3_300)
    outside(root, f"{BASE}/ann/output.md", others=("cat",))
    found = causes(root)[0]
    assert found.sentence.startswith("ben or cat wrote into the workspace of ann")
    assert not found.certain


def test_a_status_file_with_the_name_of_another_tells_who_wrote_it(tmp_path: Path) -> None:
    root = run(tmp_path)
    write(root, f"{BASE}/ann/status.json", status("ben", "failure"), 3_599)
    assert states(root)["ann"] == "overwritten"
    found = next(each for each in causes(root) if "names ben" in str(each.evidence))
    assert found.sentence == "ben wrote into the workspace of ann (status.json)"
    assert found.evidence == (f"{BASE}/ann/status.json names ben",)
    assert not found.certain


def test_the_own_status_holds_where_another_one_stands_beside_it(tmp_path: Path) -> None:
    root = run(tmp_path)
    write(root, f"{BASE}/ann/ann-status.json", status("ben", "failure"), 60)
    assert states(root)["ann"] != "overwritten"


def test_an_output_that_another_one_lists_as_its_own_is_that_ones_doing(tmp_path: Path) -> None:
    root = run(tmp_path)
    listed = status("ben", outputs=status("ann")["outputs"])
    write(root, f"{BASE}/ben/status.json", listed, 3_599)
    found = {each.code: each for each in causes(root)}
    assert found["E50"].about.participant == "ben"
    assert "E51" not in found or found["E51"].about.participant == "ben"
    assert states(root)["ann"] == "overwritten"


def test_what_does_not_touch_a_result_leaves_it_as_it_is(tmp_path: Path) -> None:
    root = run(tmp_path)
    write(root, f"{BASE}/ann/remark.md", "Of ben.\n", 3_300)
    outside(root, f"{BASE}/ann/remark.md")
    assert states(root) == {"ann": "success", "ben": "success"}
    assert "B08" in {each.code for each in read(root).findings}


def test_what_was_written_anew_since_is_not_held_against_anybody(tmp_path: Path) -> None:
    root = run(tmp_path)
    outside(root, f"{BASE}/ann/output.md")
    write(root, f"{BASE}/ann/output.md", "# By ann again\n", 60)
    assert states(root)["ann"] == "success"


def test_a_final_output_that_an_agent_wrote_is_not_the_orchestrators(tmp_path: Path) -> None:
    root = run(tmp_path)
    write(root, "integration/final-output.md", "# Of ben alone\n", 3_300)
    outside(root, "integration/final-output.md")
    snapshot = read(root)
    assert not snapshot.headline.startswith("integrat")
    (event,) = (each for each in snapshot.events if "final output" in each.summary)
    assert event.actor == "ben"
    assert "B68" in {each.code for each in snapshot.findings}
    assert [each.code for each in causes(root)] == ["E57"]  # it is ready to be integrated


def test_finishing_keeps_what_an_agent_wrote_in_its_place(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann")
    (root / "integration").mkdir()
    assert acp("dispatch", root, "--", *program(tmp_path / "own", ann="usurp")).code == 0
    assert entries(root)["ann"]["outside"] == ["integration/final-output.md"]
    assert now(root).headline.startswith("ready to integrate")
    assert acp("compare", root).code == 0
    assert acp("draft", root).code == 0
    warned = acp("finish", root, "--dry-run")
    assert "was written by ann: its content is kept as" in warned.text
    assert acp("finish", root).code == 0
    assert now(root).headline == "integrated: 1 success"
    kept = root / f"{BASE}/.coord/history/integration/final-output.md"
    assert kept.read_text() == "All mine.\n"
    assert "All mine" not in (root / "integration/final-output.md").read_text()


def test_finishing_once_more_keeps_what_a_person_changed(tmp_path: Path) -> None:
    root = run(tmp_path)
    assert acp("compare", root).code == 0
    assert acp("draft", root).code == 0
    drafted = integration.draft_file(layout(root))
    assert acp("finish", root).code == 0
    final = root / "integration/final-output.md"
    history = root / f"{BASE}/.coord/history/integration"
    assert final.read_text().startswith(drafted.read_text().rstrip("\n"))
    drafted.write_text(final.read_text())  # a person goes on with it
    assert acp("finish", root, "--gap", "x" * 9_000).code == 0  # it is what acp wrote
    assert max(map(len, final.read_text().splitlines())) == 8_000
    assert final.read_text().count(integration.METADATA) == 1
    assert final.read_text().startswith(drafted.read_text().partition("\n## ")[0])
    assert not history.exists()
    final.write_text("Better.\n")
    assert "was changed since" in acp("finish", root).text
    assert (history / "final-output.md").read_text() == "Better.\n"
    value = json.loads((root / "integration/status.json").read_text())
    assert len(value["sha256"]) == 64


def test_the_final_output_of_another_orchestrator_counts(tmp_path: Path) -> None:
    root = run(tmp_path)
    integrate(root)
    assert read(root).headline.startswith("integrated")
