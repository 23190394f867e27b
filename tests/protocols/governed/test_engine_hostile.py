"""Whatever a repository's files hold: no action raises, and nothing outside of the run is touched."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from acp_core.model import Outcome, Preview
from tests.protocols.governed import making, playing
from tests.protocols.governed.acting import (
    YES,
    acted,
    governed,
    refused,
    run_actions,
    seen,
    state,
)
from tests.protocols.governed.making import Object
from tests.protocols.governed.test_read import codes

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=5)
    | st.sampled_from(["active", "paused", "blocked", "idle", "pm", "planning", "../..", making.TURN]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
WITH_TURN = making.under_way()
STATE_KEYS = sorted(WITH_TURN | {"pending_phase_transition": 0, "pending_run_completion": 0,
                                 "provenance": 0, "barriers": 0, "escalation": 0})  # fmt: skip
CONFIG_KEYS = sorted(making.config() | {"rules": 0, "prompts": 0, "hooks": 0})


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    changes=st.dictionaries(st.sampled_from(STATE_KEYS), VALUES, max_size=3),
    configured=st.dictionaries(st.sampled_from(CONFIG_KEYS), VALUES, max_size=2),
    result=st.dictionaries(st.sampled_from(sorted(making.result())), VALUES, max_size=2),
)
def test_no_value_anywhere_makes_an_action_raise(
    tmp_path_factory: pytest.TempPathFactory,
    changes: Object,
    configured: Object,
    result: Object,
) -> None:
    root = making.make_run(tmp_path_factory.mktemp("run"), of_state=WITH_TURN)
    making.write(root / ".agentxchain/state.json", WITH_TURN | changes)
    making.configure(root, making.config() | configured)
    staged = root / f".agentxchain/staging/{making.TURN}/turn-result.json"
    making.write(staged, making.result() | result)
    for action in run_actions(str(root)):
        values = {"by": "olga", "comment": "c", "reason": "r", "words": "w", "detail": ""}
        try:
            inputs = action.inputs.model_validate(dict(action.defaults) | values)
        except ValidationError:
            continue
        assert isinstance(action.preview(inputs), Preview)
        if action.name != "step":  # nothing is started here
            assert isinstance(action.perform(inputs), Outcome)


@pytest.mark.parametrize("id", ["../../../src", "..", "a/b", "", "x" * 200, "a\\b"])
def test_a_turn_s_id_is_never_a_way_elsewhere(tmp_path: Path, id: str) -> None:
    root = playing.repository(tmp_path / "lamp")
    (root / "src").mkdir()
    (root / "src/turn-result.json").write_text(json.dumps(making.result(turn_id=id)))
    (root / "src/main.py").write_text("A = 1\n")
    for status in ("dispatched", "failed", "failed_acceptance"):
        turns = {id: making.turn(turn_id=id, status=status)}
        of_state = making.state(active_turns=turns)
        making.configure(root, making.config())
        making.write(root / ".agentxchain/state.json", of_state)
        for words in (["accept-turn"], ["check"], ["correct"], ["step"], ["escalate", "--reason", "x", *YES],
                      ["reject-turn", "--reason", "x", *YES]):  # fmt: skip
            assert governed([words[0], str(root), *words[1:]]) == 2, (words, status)
        reason = {"category": "x", "recovery": {}}
        blocked = of_state | {"status": "blocked", "blocked_on": "x", "blocked_reason": reason}
        making.write(root / ".agentxchain/state.json", blocked)
        refused("unblock", root, "--drop-turn", *YES)
    assert sorted(p.name for p in (root / "src").iterdir()) == ["main.py", "turn-result.json"]


def test_links_lead_nowhere(tmp_path: Path, root: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "TALK.md").unlink()
    (root / "TALK.md").symlink_to(outside / "talk.md")
    refused("talk", root, "--text", "x")
    refused("step", root)
    (root / "TALK.md").unlink()
    (root / ".agentxchain/staging").symlink_to(outside)
    acted("step", root, "--no-run")
    refused("accept-turn", root)
    assert not list(outside.iterdir())
    linked = tmp_path / "linked"
    playing.repository(linked)
    (linked / ".agentxchain").symlink_to(outside)
    assert "Traceback" not in refused("init", linked)
    assert not list(outside.iterdir())


def test_a_policy_that_opens_gates_by_itself_is_an_error_and_is_not_followed(
    root: Path,
) -> None:
    path = root / "agentxchain.json"
    config = json.loads(path.read_text())
    config["approval_policy"] = {"phase_transitions": {"default": "auto_approve"}}
    config["gates"]["planning_signoff"]["requires_human_approval"] = False
    path.write_text(json.dumps(config))
    snapshot = seen(root, datetime.now(UTC))
    assert [f.code for f in snapshot.findings] == ["CONFIG", "CONFIG"]
    assert "CONFIG" in codes(snapshot)
    acted("step", root)
    acted("accept-turn", root)
    assert (state(root)["status"], state(root)["phase"]) == ("paused", "planning")
