"""Three repositories go through two barriers by commands alone, with scripted agents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.protocols.governed import making, multi, playing
from tests.protocols.governed.making import Object
from tests.protocols.governed.multi import NAMES, ledger, state

YES = ("--as", "olga", "--yes")


def ok(*words: str) -> str:
    """Run ``acp governed`` in a process of its own; it must succeed."""
    done = playing.acp(*words)
    assert done.code == 0, (words, done)
    return done.out


def coordinator(verb: str, root: Path, *more: str) -> Object:
    value: Object = json.loads(ok("coordinator", verb, str(root), "--json", *more))
    return value


def work(root: Path) -> None:
    """Each workstream's next turn is taken by its agent and accepted."""
    for name in NAMES:
        ok("step", str(root / name))
        ok("accept-turn", str(root / name))


@pytest.mark.slow
def test_an_initiative_by_commands_alone(tmp_path: Path) -> None:
    root, agents = tmp_path / "house", playing.agents(tmp_path / "bin")
    given = [part for role, line in agents.items() for part in ("--agent", f"{role}={line}")]
    for name in NAMES:
        playing.repository(root / name)
        playing.git(root / name, "switch", "-q", "-c", "lamp")
        ok("init", str(root / name), *given)
        playing.git(root / name, "add", "-A")
        playing.git(root / name, "commit", "-qm", "Govern")
    hook = root / "hooks/note.sh"
    hook.parent.mkdir()
    hook.write_text('#!/bin/sh\necho "$AGENTXCHAIN_EVENT" >> hooks/noted\n')
    hook.chmod(0o755)
    hooks = {"on_barrier_reached": "hooks/note.sh", "on_super_run_completed": "hooks/note.sh",
             "on_workstream_failed": "hooks/note.sh"}  # fmt: skip
    making.write(root / "agentxchain-multi.json", multi.configuration(hooks=hooks))
    assert "start a run in planning" in ok("coordinator", "init", str(root), "--dry-run")
    assert not (root / ".coordinator").exists()
    coordinator("init", root, *YES)

    ok("step", str(root / "auth"))
    ok("accept-turn", str(root / "auth"))
    held = playing.acp("approve-transition", str(root / "auth"), *YES)
    assert held.code == 2, "a local approval must not cross a barrier"
    assert state(root)["barriers"]["plan-sync"]["reached_by"] == ["auth"]  # without a step
    refused = playing.acp("coordinator", "approve-barrier", str(root), *YES)
    assert (refused.code, refused.err) == (2, "error: no cross-repo gate is open\n")
    for name in ("gateway", "web"):
        told = Path(json.loads(ok("step", str(root / name), "--json"))["bundle"])
        bundle = told if told.is_absolute() else root / name / told
        context = (bundle / "CROSS_REPO_CONTEXT.md").read_text()
        assert "**auth DEC-001** (pm, planning): pm decided." in context
        manifest = json.loads((bundle / "MANIFEST.json").read_text())
        assert "CROSS_REPO_CONTEXT.md" in [each["path"] for each in manifest["files"]]
        said = ok("accept-turn", str(root / name))
    assert "all workstreams reached plan-sync: its gate needs your approval" in said
    assert state(root)["barriers"]["plan-sync"]["status"] == "reached"
    asked = playing.acp("coordinator", "approve-barrier", str(root))
    assert asked.code == 2 and "no terminal to ask" in asked.err
    approved = coordinator("approve-barrier", root, "--comment", "One protocol.", *YES)
    assert {each["phase"] for each in approved["workstreams"].values()} == {"implementation"}

    work(root)
    for name in NAMES:  # no barrier ends this phase: each run has its own gate
        ok("approve-transition", str(root / name), *YES)
    work(root)
    assert coordinator("step", root)["barriers"]["ship-sync"]["status"] == "reached"
    place = root / "web/.agentxchain/state.json"
    good = place.read_bytes()
    place.write_bytes(good[: len(good) // 2])
    failed = playing.acp("coordinator", "approve-barrier", str(root), "--json", *YES)
    assert failed.code == 1
    assert failed.json()["status"] == "blocked:resync_failed"
    assert failed.json()["failed"][0].startswith("web: its state cannot be read")
    assert {state(root, name)["status"] for name in ("auth", "gateway")} == {"blocked"}
    again = playing.acp("coordinator", "resync", str(root))
    assert again.code == 1 and "web" in again.err
    place.write_bytes(good)
    done = coordinator("resync", root)
    assert (done["status"], done["failed"]) == ("completed", [])
    assert {state(root, name)["status"] for name in NAMES} == {"completed"}
    assert "the initiative is completed" in done["steps"]
    assert (root / "hooks/noted").read_text().split() == [
        "on_barrier_reached", "on_barrier_reached", "on_workstream_failed",
        "on_super_run_completed",
    ]  # fmt: skip
    decided = [line["type"] for line in ledger(root) if line["type"] != "hook"]
    assert decided[-3:] == ["workstream_recovered", "resync", "super_run_completed"]
    told = (root / ".coordinator/context/web/CROSS_REPO_CONTEXT.md").read_text()
    assert "plan-sync: approved by olga: One protocol." in told
    assert "src/lamp.py" in told
    assert coordinator("status", root)["status"] == "completed"
