"""Runs as other orchestrators leave them: each opens with the right states, and can be judged."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.schema.returns import parse
from acp_core.protocols.workspaces.write.drafting import TO_WRITE
from tests.protocols.workspaces.making import (
    NOW,
    agent,
    read,
    returned,
    run,
    status,
    write,
)
from tests.protocols.workspaces.running import acp, told

BASE = "agent-workspaces"


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
    value, _ = parse(said)
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
