"""Runs as other orchestrators leave them: each opens with the right states, and can be judged."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.schema import TO_WRITE, parse_return
from tests.protocols.workspaces.making import (
    NOW,
    ORIGIN,
    agent,
    codes,
    integrate,
    prompt,
    read,
    returned,
    run,
    states,
    status,
    write,
)
from tests.protocols.workspaces.running import acp, told

BASE = "agent-workspaces"


def finished(root: Path) -> None:
    """All succeeded, with files in scratch, integrated with a gap."""
    run(root)
    write(root, f"{BASE}/ann/scratch/notes.txt", "x")
    integrate(root, gaps=["Nobody looked at latency."])


def prefixed(root: Path) -> None:
    """The other names, and one who did it twice; no prompts, no returns."""
    for name, file in (("ann", "ann-output-20260301-1000.md"), ("ben", "ben-output.json")):
        write(root, f"{BASE}/{name}/{file}", "{}")
        write(root, f"{BASE}/{name}/{name}-status.json", status(name, file=file), 3599)
    write(root, f"{BASE}/ann/ann-output-20260301-0900.md", "# Old\n", 7200)


def in_flight(root: Path) -> None:
    """One of each: through, half, failed, at work, only dispatched, not even that."""
    agent(root, "ann")
    agent(root, "ben", "partial")
    agent(root, "cat", "failure")
    write(root, f"{BASE}/dan/output.md", "# So far\n", 60)
    write(root, f"{BASE}/eve/.gitkeep", "")
    write(root, "prompts/fay-part.md", prompt("fay"))


def contradictory(root: Path) -> None:
    """What they say is not what is there."""
    write(root, f"{BASE}/ann/status.json", status("ann"))
    other = {"agent": "zoe", "completed_at": "1/3/2026"}
    write(root, f"{BASE}/ben/output.md", "x")
    write(root, f"{BASE}/ben/status.json", status("ben", file="output.md") | other)
    agent(root, "cat", "complete")
    listed = status("cat")["outputs"][0] | {"file": f"{ORIGIN}/{BASE}/ann/output.md"}
    write(root, f"{BASE}/cat/status.json", status("cat", "complete", outputs=[listed]))
    agent(root, "dan", "partial")
    write(root, "returns/dan-part.json", returned("dan"))
    agent(root, "eve")
    write(root, f"{BASE}/eve/eve-status.json", status("eve", "failure"))
    write(root, f"{BASE}/fay/status.json", '{"agent": "fay", "sta', 1)
    write(root, "output.md", "whose?")


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (finished, {"ann": "success", "ben": "success"}),
        (prefixed, {"ann": "success", "ben": "success"}),
        (in_flight, {"ann": "success", "ben": "partial", "cat": "failure", "dan": "working",
                     "eve": "dispatched", "fay": "not dispatched"}),
        (contradictory, {"ann": "inconsistent", "ben": "inconsistent", "cat": "inconsistent",
                         "dan": "inconsistent", "eve": "inconsistent", "fay": "working"}),
    ],
)  # fmt: skip
def test_agents_stand_where_they_are(
    tmp_path: Path, make: object, expected: dict[str, str]
) -> None:
    make(tmp_path)  # type: ignore[operator]
    assert states(tmp_path) == expected


def test_what_contradicts_itself_is_said_once_for_each(tmp_path: Path) -> None:
    contradictory(tmp_path)
    wanted = {"B03 warning", "B04 error", "B05 warning", "B06 error", "B08 error", "B12 error"}
    assert wanted | {"B26 error", "B40 error", "B45 warning"} <= codes(tmp_path)
    assert [need.code for need in read(tmp_path).needs][:5] == ["inconsistent"] * 5


@pytest.mark.parametrize(
    ("said", "how"),
    [
        (json.dumps(returned("ann")), "success"),
        (f"```json\n{json.dumps(returned('ann', 'partial'))}\n```\nThat is all.", "partial"),
        ("I wrote the report to output.md and everything is fine.", None),
        ("", None),
        (json.dumps({"status": "complete", "agent": "ann", "result": {"findings": []}}), "success"),
        ("STATUS: BLOCKED\nTASK_ID: 3\nAGENT: ann\n\n## Summary\n- no", "failure"),
        (f"{json.dumps({'a': 1})}\n{json.dumps({'status': 'failed'})}", "failure"),
        ("[" * 4000 + "{" * 4000, None),
    ],
)
def test_whatever_was_returned_is_understood_or_said_not_to_be(said: str, how: str | None) -> None:
    value, _ = parse_return(said)
    assert (schema.outcome(value["status"]) if value else None) == how


def test_a_run_of_another_orchestrator_is_judged_and_integrated(tmp_path: Path) -> None:
    """Nothing of ours stands in it: agents are its folders."""
    run(tmp_path)
    agent(tmp_path, "ben", "partial")
    assert acp("triage", tmp_path, "ben", "skip", "--reason", "too little").code == 0
    assert acp("conflicts", tmp_path, "--find").code == 0
    assert told("conflicts", tmp_path)["conflicts"] == []
    assert acp("integrate", tmp_path, "--draft").code == 0
    assert acp("integrate", tmp_path, "--finish").code == 0
    found = json.loads((tmp_path / "integration/status.json").read_text())
    assert (found["integrated"], found["skipped"]) == (["ann"], ["ben"])
    assert not (tmp_path / BASE / ".coord/manifest.json").exists()
    ended = acp("dispatch", tmp_path, "--dry-run", "--", "true")
    assert "no agent is left to dispatch" in ended.text


HOSTILE = ["\x1b]2;owned\x07", "[red]x[bold]", "~rf", "a b", "x\ny", "é" * 60, "\u202eevil"]


def test_hostile_names_and_texts_do_no_harm(tmp_path: Path) -> None:
    root = tmp_path / "run"
    run(root)
    for name in HOSTILE:
        write(root, f"{BASE}/{name}/status.json", status(name, "partial") | {"task_id": name})
        write(root, f"returns/{name}.json", returned(name, "partial", errors=[name * 3]))
    outside = sorted(path for path in tmp_path.rglob("*") if not path.is_relative_to(root))
    for words in (
        ("status", root),
        ("triage", root),
        ("conflicts", root),
        ("integrate", root),
        *(("triage", root, name, "skip", "--reason", f"no {name}") for name in HOSTILE),
        ("conflicts", root, "--add", HOSTILE[0], "--between", "ann,ben", "--category", "factual"),
        ("conflicts", root, "--resolve", "c1", "--keep", "ann", "--because", "sourced"),
        ("conflicts", root, "--find"),
        ("integrate", root, "--draft"),
        ("integrate", root, "--finish"),
        ("dispatch", root, "--dry-run", "--", "true"),
    ):
        if "--finish" in words:
            draft = root / "agent-workspaces/.coord/draft/final-output.md"
            draft.write_text(draft.read_text().replace(TO_WRITE, "Kept."))
        ended = acp(*words)
        assert ended.code in (0, 1), (words, ended.text)
        assert not {"\x1b", "\x07", "\u202e"} & set(ended.text), words
    assert sorted(path for path in tmp_path.rglob("*") if not path.is_relative_to(root)) == outside
    final = (root / "integration/final-output.md").read_text()
    assert not {"\x1b", "\x07", "\u202e"} & set(final)
    assert "x\u2424y (x\u2424y): partial, skipped" in final
    assert len(json.loads((root / "integration/status.json").read_text())["skipped"]) == 7


def test_what_is_no_file_is_never_read(tmp_path: Path) -> None:
    run(tmp_path)
    status_file = tmp_path / BASE / "ann/status.json"
    status_file.unlink()
    os.mkfifo(status_file)
    os.utime(status_file, (NOW.timestamp() - 60, NOW.timestamp() - 60))
    told = [finding.message for finding in read(tmp_path).findings]
    assert "the status file is not a regular file" in told
