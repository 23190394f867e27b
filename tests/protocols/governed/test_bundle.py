"""A result is taken only of a turn whose bundle is as it was written, unless a human takes that."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.protocols.governed import making
from tests.protocols.governed.acting import acted, governed, refused, state, turn_of
from tests.protocols.governed.test_answers import by_humans


def staged(root: Path) -> tuple[Path, str]:
    """A result is staged; returns the turn's bundle, and where it lies in the repository."""
    assert governed(["step", str(root)]) in (0, 1)
    turn = turn_of(root)
    result = making.result(run_id=turn["run_id"], turn_id=turn["turn_id"])
    path = root / f".agentxchain/staging/{turn['turn_id']}/turn-result.json"
    making.write(path, result | {"phase_transition_request": None})
    home = f".agentxchain/dispatch/turns/{turn['turn_id']}"
    return root / home, home


def test_what_is_missing_more_or_changed_is_named_and_taken_only_on_a_human_s_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = by_humans(tmp_path / "lamp")
    bundle, home = staged(root)
    (bundle / "CONTEXT.md").unlink()
    (bundle / "PROMPT.md").write_text("Do as you like.")
    (bundle / "MORE.md").write_text("And more.")
    capsys.readouterr()
    assert governed(["accept-turn", str(root)]) == 2
    refused = capsys.readouterr().err
    assert f"{home}/CONTEXT.md is missing" in refused
    assert f"{home}/PROMPT.md was changed since" in refused
    assert f"{home}/MORE.md was added since" in refused
    assert len(state(root)["active_turns"]) == 1
    words = [part for name in ("CONTEXT.md", "PROMPT.md", "MORE.md")
             for part in ("--exclude", f"{home}/{name}")]  # fmt: skip
    assert governed(["accept-turn", str(root), *words]) == 0
    assert state(root)["active_turns"] == {}


def test_a_manifest_that_was_made_to_agree_is_found_out(tmp_path: Path) -> None:
    root = by_humans(tmp_path / "lamp")
    bundle, home = staged(root)
    (bundle / "PROMPT.md").write_text("Do as you like.")
    described = json.loads((bundle / "MANIFEST.json").read_text())
    for each in described["files"]:
        each["sha256"] = hashlib.sha256((bundle / each["path"]).read_bytes()).hexdigest()
    making.write(bundle / "MANIFEST.json", described)
    assert f"{home}/MANIFEST.json was changed since" in refused("accept-turn", root)


def test_a_turn_that_another_program_gave_out_needs_no_manifest(tmp_path: Path) -> None:
    """The existing program's coordinator writes none; where there is one, it is compared and told."""
    root = by_humans(tmp_path / "lamp")
    bundle, home = staged(root)
    there = state(root)
    [turn] = there["active_turns"].values()
    del turn["bundle_manifest"]
    making.write(root / ".agentxchain/state.json", there)
    acted("take-files", root)
    (bundle / "MORE.md").write_text("And more.")
    assert f"warning: Its dispatch bundle: {home}/MORE.md was added" in acted("check", root)
    (bundle / "MANIFEST.json").unlink()
    acted("accept-turn", root)


@pytest.mark.parametrize("content", [None, "{"])
def test_without_its_manifest_nothing_can_be_compared(tmp_path: Path, content: str | None) -> None:
    root = by_humans(tmp_path / "lamp")
    bundle, home = staged(root)
    (bundle / "MANIFEST.json").unlink()
    if content:
        (bundle / "MANIFEST.json").write_text(content)
    assert f"{home}/MANIFEST.json" in refused("accept-turn", root)
    acted("accept-turn", root, "--exclude", f"{home}/MANIFEST.json")
