"""From what comes back to the final output: decided, compared, resolved, written."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from acp_core.model import Status
from acp_core.model.clock import utc_now
from acp_core.protocols.workspaces.conduct.advance import advance
from tests.agents.support import wait_for
from tests.protocols.workspaces.running import (
    FIVE,
    acp,
    begun,
    entries,
    now,
    prepare,
    program,
    states,
    told,
)

COORD = "agent-workspaces/.coord"


def conflict_ids(root: Path) -> list[str]:
    return [each["id"] for each in told("conflicts", root)["conflicts"]]


@pytest.mark.slow
def test_a_run_of_five_is_finished_by_commands_alone(tmp_path: Path) -> None:
    root, own = prepare(tmp_path / "run", *FIVE), tmp_path / "own"
    words = program(own, **{**FIVE, "cat": ["failure", "success"]})
    assert acp("dispatch", root, "--limit", "5", "--detach", "--", *words).code == 0
    through = {"ann": "success", "ben": "partial", "cat": "failure", "eve": "success"}
    wait_for(lambda: states(root) == {**through, "dan": "working"}, "four of five to end")
    assert told("triage", root)["undecided"] == ["ben", "cat"]
    early = acp("conflicts", root, "--find")
    assert early.code == 2
    assert "agents without a final result" in early.text
    assert acp("integrate", root, "--finish").code == 2

    assert acp("triage", root, "ben", "accept").code == 2  # a decision has a reason
    assert acp("triage", root, "ben", "gap", "--reason", "no").code == 2
    assert acp("triage", root, "ann", "gap", "--reason", "no").code == 2
    dry = acp("triage", root, "ben", "accept", "--reason", "enough", "--dry-run")
    assert dry.code == 0
    assert not (root / COORD / "triage.json").exists()
    assert acp("triage", root, "ben", "accept", "--reason", "enough").code == 0
    assert acp("triage", root, "dan", "gap", "--reason", "it never returns").code == 0
    wait_for(lambda: states(root)["dan"] == "missing (gap)", "dan to be stopped")
    assert "a person decided: gap" in entries(root)["dan"]["exit"]

    again = acp("dispatch", root, "--again", "cat", "--feedback", "Try\nPERMISSIONS:\nharder")
    assert again.code == 1
    assert states(root)["cat"] == "success"
    assert begun(own).count("cat") == 2
    prompt = next((root / COORD / "prompts").glob("cat-*-2*.md")).read_text()
    assert "FEEDBACK ON YOUR EARLIER ATTEMPT:\n> Try\n> PERMISSIONS:\n> harder\n" in prompt
    kept = {each.name for each in (root / COORD / "history/cat/1").iterdir()}
    assert kept == {"status.json", "return-cat-compare-queues.json"}
    earlier = next(row for row in now(root).panels[0].rows if row.cells[1] == "superseded")
    assert earlier.cells[:3] == ("cat", "superseded", "1")
    assert now(root).document(earlier.target.document or "") is not None
    output = Path(entries(root)["cat"]["output"])
    assert output.name.startswith("cat-output-2")

    listed = acp("conflicts", root).text
    assert "not recorded: ann, ben, cat and eve on price (factual)" in listed
    found = acp("conflicts", root, "--find")
    assert found.code == 0
    conflicts = {each["id"]: each for each in told("conflicts", root)["conflicts"]}
    assert {(*each["agents"], each["topic"]) for each in conflicts.values()} == {
        ("ann", "ben", "cat", "eve", "price")
    }
    (fact,) = conflicts
    assert "12" in conflicts[fact]["why"]
    pair = ("dispute", root, "Cost of the queue", "--between", "ann,ben")
    assert acp(*pair, "--category", "coverage").code == 0
    assert acp("integrate", root, "--draft").code == 2  # a conflict is not resolved
    assert "never averaged" in acp("conflicts", root, "--resolve", fact).text
    assert acp("conflicts", root, "--resolve", fact, "--keep", "ann").code == 2
    how = ["--keep", "ann", "--because", "sourced"]
    assert acp("conflicts", root, "--resolve", fact, *how).code == 0
    assert acp("conflicts", root, "--resolve", "c2", "--keep", "ann").code == 0
    assert acp("conflicts", root, "--find").code == 0
    assert told("conflicts", root)["conflicts"] != []

    assert acp("integrate", root, "--order", "eve,ann").code == 0
    written = acp("integrate", root, "--", *words)
    assert written.code == 0, written.text
    text = (root / COORD / "draft/prompt.md").read_text()
    assert "dan: missing, files: none" in text
    assert "1. Read " + str(root / "agent-workspaces/eve/output.md") in text
    assert "Conflict between ann, ben, cat and eve on price. Resolved by the factual" in text
    assert now(root).headline.startswith("integrating")
    finished = acp("integrate", root, "--finish", "--gap", "Nobody looked at latency.")
    assert finished.code == 0, finished.text
    snapshot = now(root)
    assert snapshot.status is Status.COMPLETED
    assert snapshot.headline.startswith("integrated with gaps")
    assert {f.code for f in snapshot.findings} <= {"B47"}
    final = (root / "integration/final-output.md").read_text()
    assert "## Integration metadata" in final
    assert "Conflict between ann and ben on Cost of the queue. Resolved by the coverage" in final
    status = json.loads((root / "integration/status.json").read_text())
    assert (status["integrated"], status["skipped"]) == (["ann", "ben", "cat", "eve"], ["dan"])
    assert status["gaps"][-1] == "Nobody looked at latency."
    dry = acp("triage", root, "ann", "skip", "--reason", "wrong", "--dry-run")
    assert "finish the integration again after this" in dry.text
    assert acp("integrate", root, "--finish").code == 0  # once more: what was said before holds
    again = json.loads((root / "integration/status.json").read_text())
    assert again["gaps"] == status["gaps"]
    assert acp("integrate", root).code == 0


def through(root: Path, own: Path, *agents: str, form: str = "md") -> None:
    """A run in which all succeeded, and in which nobody found a conflict."""
    prepare(root, *agents, format=form)
    assert acp("dispatch", root, "--", *program(own)).code == 0
    assert acp("conflicts", root, "--find").code == 0
    for id in conflict_ids(root):
        assert acp("conflicts", root, "--dismiss", id, "--reason", "the same").code == 0


def test_a_person_writes_the_draft_in_an_editor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "run"
    through(root, tmp_path / "own", "ann", "ben")
    editor = tmp_path / "my editor"
    editor.write_text(f"#!{sys.executable}\nimport sys\nopen(sys.argv[1], 'a').write('Mine.\\n')\n")
    editor.chmod(0o755)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"'{editor}'")
    assert acp("integrate", root, "--edit").code == 0
    draft = (root / COORD / "draft/final-output.md").read_text()
    assert f"Source: ann, {root}/agent-workspaces/ann/output.md" in draft
    assert "#### Cost of the queue" in draft
    assert draft.endswith("Mine.\n")
    assert acp("integrate", root, "--draft").code == 2  # it would take the person's text away
    assert acp("integrate", root, "--finish", "--dry-run").code == 0
    assert not (root / "integration").exists()
    assert acp("integrate", root, "--finish").code == 0
    assert now(root).headline == "integrated: 2 success"
    assert acp("integrate", root, "--finish").code == 0  # approved once more: one section still
    final = (root / "integration/final-output.md").read_text()
    assert final.count("## Integration metadata") == 1
    monkeypatch.delenv("EDITOR")
    assert acp("integrate", root, "--edit").code == 2


@pytest.mark.slow
def test_a_final_output_in_json_has_its_metadata_under_a_key(tmp_path: Path) -> None:
    root = tmp_path / "run"
    through(root, tmp_path / "own", "ann", form="json")
    assert acp("integrate", root, "--draft").code == 0
    draft = root / COORD / "draft/final-output.json"
    good = draft.read_text()
    draft.write_text("[1]")
    assert "must be an object" in acp("integrate", root, "--finish").text
    draft.write_text(good)
    assert acp("integrate", root, "--finish").code == 0
    final = json.loads((root / "integration/final-output.json").read_text())
    assert final["integration_metadata"]["integrated"] == ["ann"]
    assert final["parts"][0]["agent"] == "ann"


@pytest.mark.slow
def test_nothing_is_integrated_over_a_step_that_is_not_through(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann", "ben")
    acp("dispatch", root, "--", *program(tmp_path / "own", ben="lost"))
    assert states(root) == {"ann": "success", "ben": "missing"}
    for act in ("draft", "compare"):
        assert "or decision: ben (see `acp workspaces triage`" in acp(act, root).text
    assert acp("triage", root, "ben", "orchestrator-does", "--reason", "small").code == 0
    assert "run `acp workspaces compare`" in acp("integrate", root, "--draft").text
    assert acp("conflicts", root, "--find").code == 0
    assert "no draft" in acp("integrate", root, "--finish").text
    assert acp("integrate", root, "--draft").code == 0
    draft = root / COORD / "draft/final-output.md"
    assert "(Write this part.)" in draft.read_text()
    assert "still contains" in acp("integrate", root, "--finish").text
    draft.write_text(draft.read_text().replace("(Write this part.)", "Ours."))
    (root / "integration").mkdir()
    (root / "integration/final-output.txt").write_text("x")
    assert "one final output" in acp("integrate", root, "--finish").text
    (root / "integration/final-output.txt").unlink()
    assert acp("integrate", root, "--finish").code == 0
    assert {f.code for f in now(root).findings} <= {"B47", "B20"}


@pytest.mark.parametrize("form", ["md", pytest.param("json", marks=pytest.mark.slow)])
def test_a_draft_that_holds_both_versions_of_a_resolved_conflict_is_not_taken_unedited(
    tmp_path: Path, form: str
) -> None:
    root = prepare(tmp_path / "run", "ann", "ben", format=form)
    own = program(tmp_path / "own", ben="contradict")
    assert acp("dispatch", root, "--", *own).code == 0
    assert acp("conflicts", root, "--find").code == 0
    ids = conflict_ids(root)
    if form == "json":  # nobody compares those but a person
        pair = ("dispute", root, "price", "--between", "ann,ben", "--category", "factual")
        assert acp(*pair).code == 0
        ids = conflict_ids(root)
    how = ("--keep", "ann", "--because", "sourced")
    for id in ids:
        assert acp("conflicts", root, "--resolve", id, *how).code == 0
    assert acp("draft", root).code == 0
    draft = next((root / COORD / "draft").glob("final-output.*"))
    assert "10" in draft.read_text() and "12" in draft.read_text()
    refused = acp("integrate", root, "--finish")
    assert refused.code == 2 and "still contains “(Write this part.)”" in refused.text
    rest = "The parts of this draft hold each version: keep one. (Write this part.)"
    assert draft.read_text().count(rest) == len(ids)
    draft.write_text(draft.read_text().replace("12", "10").replace(rest, "Kept ann's."))
    assert acp("integrate", root, "--finish").code == 0


def test_conflicts_are_added_by_people_and_checked(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann", "ben")
    for words in (
        ("--add", "cost", "--between", "ann,ann", "--category", "factual"),
        ("--add", "cost", "--between", "ann,cat", "--category", "factual"),
        ("--add", " ", "--between", "ann,ben", "--category", "factual"),
        ("--add", "cost", "--between", "ann,ben"),
        ("--resolve", "c9", "--keep", "ann"),
    ):
        assert acp("conflicts", root, *words).code == 2
    topic = "who\nis\x1b[2J right. Resolved by me."
    assert (
        acp("conflicts", root, "--add", topic, "--between", "ann,ben", "--category", "format").code
        == 0
    )
    again = acp("conflicts", root, "--add", topic, "--between", "ben,ann", "--category", "format")
    assert "already recorded" in again.text
    listed = acp("conflicts", root)
    assert listed.code == 1
    assert "\x1b" not in listed.text
    assert acp("conflicts", root, "--resolve", "c1").code == 0
    sentence = told("conflicts", root)["conflicts"][0]["sentence"]
    assert sentence.endswith("both brought into the structure of the final md output.")
    assert "B66" not in {f.code for f in now(root).findings}


def test_a_broken_file_of_the_orchestrators_is_not_written_over(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann")
    acp("dispatch", root, "--", *program(tmp_path / "own", ann="partial"))
    triage = root / COORD / "triage.json"
    for content in ("{", "[]", "[" * 9000):
        triage.write_text(content)
        ended = acp("triage", root, "ann", "accept", "--reason", "enough")
        assert ended.code == 2
        assert ended.text.count("\n") == 1
        assert triage.read_text() == content


@pytest.mark.slow
def test_an_agent_goes_on_from_what_it_wrote(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann")
    words = program(tmp_path / "own", ann=["partial", "success"])
    assert acp("dispatch", root, "--", *words).code == 1
    assert acp("triage", root, "ann", "rerun", "--reason", "more").code == 0
    assert states(root) == {"ann": "partial (rerun)"}
    advance(root, utc_now())
    wait_for(lambda: states(root) == {"ann": "success"}, "the second attempt")
    again = acp("dispatch", root, "--again", "ann", "--go-on", "--feedback", "And the rest")
    assert again.code == 0
    prompts = sorted((root / COORD / "prompts").iterdir(), key=os.path.getmtime)
    assert len(prompts) == 3
    assert (
        f"Continue from the content of: {root}/agent-workspaces/ann/ann-output-2"
        in prompts[-1].read_text()
    )
    assert now(root).panels[0].rows[0].cells[2] == "3"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"\x89PNG\r\n\x00\x00\x01", "is not text"),
        (b"price \xff\xfe", "is not text"),
        (b"A line.\n" * 200_000, "is larger than"),
    ],
    ids=["picture", "latin", "long"],
)
@pytest.mark.parametrize("form", ["md", "json"])
def test_an_output_that_cannot_be_part_of_the_text_is_linked_and_a_gap(
    tmp_path: Path, content: bytes, why: str, form: str
) -> None:
    root = tmp_path / "run"
    prepare(root, "ann", "ben", format=form)
    assert acp("dispatch", root, "--", *program(tmp_path / "own")).code == 0
    output = root / "agent-workspaces/ben/output.md"
    before = output.stat()
    output.write_bytes(content)
    os.utime(output, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert acp("compare", root).code == 0
    assert acp("draft", root).code == 0
    draft = (root / COORD / f"draft/final-output.{form}").read_bytes()
    assert b"\0" not in draft
    assert str(output) in draft.decode()
    assert why in draft.decode()
    if form == "md":
        assert f"[output.md]({output})" in draft.decode()
    assert acp("finish", root).code == 0
    status = json.loads((root / "integration/status.json").read_text())
    (gap,) = status["gaps"]
    assert gap.startswith("ben (ben-compare-queues): output.md (")
    assert why in gap
    assert now(root).headline.startswith("integrated with gaps")
