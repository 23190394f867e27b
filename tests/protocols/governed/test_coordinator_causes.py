"""Why initiatives are stuck: each cause fires where it should, and not where all is well."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from acp_core import model
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from tests.protocols.governed import making, multi
from tests.protocols.governed.acting import open_folder, seen, step, synchronise
from tests.protocols.governed.multi import NOW, begin, state

LATER = NOW + timedelta(hours=2)


def stuck(root: Path, now: datetime = LATER) -> dict[str, model.Matter]:
    """The causes by their codes."""
    opened = open_folder(root)
    snapshot = opened.refresh(now)
    return {cause.code: cause for cause in opened.causes(DiagnosisContext(snapshot, Clock(now)))}


def names(root: Path) -> set[str]:
    """What can be done."""
    return {action.name for action in open_folder(root).actions(LATER)}


def change(root: Path, name: str, **more: object) -> None:
    place = root / name / ".agentxchain/state.json" if name else root / ".coordinator/state.json"
    making.write(place, state(root, name) | more)
    multi.unseal(root / name)


def test_a_barrier_that_the_coordinator_has_not_seen_reached(tmp_path: Path) -> None:
    begin(tmp_path)
    multi.all_ask(tmp_path)
    found = stuck(tmp_path)
    assert found["D10"].remedy == "coordinate"
    assert "all workstreams reached plan-sync" in found["D10"].sentence
    step(tmp_path)
    assert "D10" not in stuck(tmp_path)


def test_a_gate_that_a_workstream_left_is_shut_until_the_coordinator_looks(tmp_path: Path) -> None:
    begin(tmp_path)
    multi.all_ask(tmp_path)
    step(tmp_path)
    change(tmp_path, "web", status="active", blocked_on=None, pending_phase_transition=None)
    (cause,) = stuck(tmp_path).values()
    assert (cause.code, cause.remedy) == ("D10", "coordinate")
    assert cause.sentence == "The coordinator has not noticed that web left plan-sync"
    assert names(tmp_path) == {"coordinate"}
    assert open_folder(tmp_path).cards(LATER) == ()
    step(tmp_path)
    assert "D10" not in stuck(tmp_path)


def test_an_approval_that_moved_nobody(tmp_path: Path) -> None:
    begin(tmp_path)
    multi.all_ask(tmp_path)
    step(tmp_path)
    kept = state(tmp_path)["barriers"]
    approved = kept["plan-sync"] | {"status": "approved", "approved_at": making.AT}
    change(tmp_path, "", barriers=kept | {"plan-sync": approved})
    assert stuck(tmp_path)["D11"].remedy == "resync"
    synchronise(tmp_path)
    assert "D11" not in stuck(tmp_path)


def test_a_barrier_that_a_workstream_can_never_reach(tmp_path: Path) -> None:
    begin(tmp_path)
    place = tmp_path / "web/agentxchain.json"
    config = making.config()
    routing = {"planning": config["routing"]["planning"]}
    making.write(place, config | {"routing": routing})
    found = stuck(tmp_path)
    assert "web can never reach barrier ship-sync" in found["D8"].sentence
    making.write(place, config)
    assert "D8" not in stuck(tmp_path)
    change(tmp_path, "web", status="failed")
    assert "failed before barrier" in stuck(tmp_path)["D8"].sentence


def test_a_workstream_that_cannot_be_read(tmp_path: Path) -> None:
    begin(tmp_path)
    place = tmp_path / "web/.agentxchain/state.json"
    good = place.read_bytes()
    place.write_bytes(b'{"status"')
    assert stuck(tmp_path)["A3"].about.participant == "web"
    assert stuck(tmp_path)["A3"].remedy == "mend_workstream" in names(tmp_path)
    place.write_bytes(good)
    assert "A3" not in stuck(tmp_path)
    change(tmp_path, "web", run_id="run_other")
    assert "web runs run_other" in stuck(tmp_path)["A4"].sentence
    place.write_bytes(good)
    assert "A4" not in stuck(tmp_path)


Object = making.Object


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"workstreams": {"plan": {"phase": "dreaming", "repos": []}}},
            "the unknown phase dreaming",
        ),
        ({"workstreams": {"plan": {"phase": "planning", "repos": ["x"]}}}, "unknown repository x"),
        ({"workstreams": {"p": {"phase": "planning", "entry_repo": "q"}}}, "enters at q"),
        (
            {"workstreams": {"p": {"phase": "planning", "depends_on": ["z"]}}},
            "depends on the unknown workstream z",
        ),
        ({"workstreams": {"p": {"phase": "planning", "completion_barrier": "?"}}}, "unknown kind"),
        ({"routing": {"planning": {}}}, "hall has the phases planning, implementation"),
    ],
)
def test_a_wrong_configuration_of_the_existing_layout_is_named(
    tmp_path: Path, more: Object, said: str
) -> None:
    root = making.make_existing(tmp_path, "all_repos_accepted", hall=making.state())
    place = root / "agentxchain-multi.json"
    good = json.loads(place.read_text())
    opened = open_folder(root)
    assert "MULTI_CONFIG" not in {f.code for f in opened.refresh(LATER).findings}
    making.write(place, good | more)
    told = [f.message for f in opened.refresh(LATER).findings if f.code == "MULTI_CONFIG"]
    assert any(said in each for each in told), told


def test_a_wrong_configuration_of_an_initiative_is_named(tmp_path: Path) -> None:
    begin(tmp_path, ("auth",))
    assert not seen(tmp_path, LATER).findings
    hooks = {"on_lunch": "x.sh"}
    making.write(tmp_path / "agentxchain-multi.json", multi.configuration(("auth",), hooks=hooks))
    [finding] = seen(tmp_path, LATER).findings
    assert finding.code == "MULTI_CONFIG" and "on_lunch" in finding.message
