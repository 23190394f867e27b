"""What the demo's participants write, and the fleet that pictures are made of."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_core.model import Snapshot, Status, Verdict
from acp_core.protocols.folder import PROTOCOL
from acp_core.protocols.folder.rehearsal import scenario
from acp_core.protocols.folder.rehearsal.rehearse import Company
from acp_core.protocols.folder.rehearsal.scenario import Write
from acp_core.protocols.folder.schema.records import OBSOLETE_FILES
from acp_core.protocols.registry import load as load_object
from tests.agents.support import wait_for

NOW = datetime(2026, 5, 4, 14, 3, tzinfo=UTC)
texts = st.lists(
    st.sampled_from(["# A\n", "\n", "one\n", "- [ ] box\n", "- [x] box\n", "two"])
).map("".join)


class TestWriting:
    @given(texts, texts)
    @settings(max_examples=200)
    def test_stages_lead_from_the_old_text_to_the_new_one(self, old: str, new: str) -> None:
        stages = scenario.stages(old, new)
        assert (stages[-1:] or [old]) == [new]
        assert all(one != other for one, other in zip([old, *stages], stages, strict=False))

    def test_a_new_text_comes_paragraph_by_paragraph(self) -> None:
        assert scenario.stages("", "# A\n\none\ntwo\n\nthree\n") == [
            "# A\n\n",
            "# A\n\none\ntwo\n\n",
            "# A\n\none\ntwo\n\nthree\n",
        ]

    def test_boxes_are_checked_one_after_the_other(self) -> None:
        old = "- [ ] one\n- [ ] two\n"
        new = scenario.result(Write("readiness.md", tick=True), old, {})
        assert scenario.stages(old, new) == ["- [x] one\n- [ ] two\n", "- [x] one\n- [x] two\n"]

    def test_what_cannot_be_found_is_not_replaced(self) -> None:
        with pytest.raises(ValueError, match=r"proposal\.md does not hold 'one'"):
            scenario.result(Write("proposal.md", find="one", replace="two"), "three", {})

    def test_gates_are_listed_by_source(self) -> None:
        protocol = {"completionGates": [{"source": "objective", "text": "A"}, "B"]}
        lists = scenario.gate_lists(protocol)
        assert lists["gates"] == "- [ ] A\n- [ ] B"
        assert lists["objective_gates"] == "- [ ] A"


ALL = [(scenario.SCENARIOS, path.stem) for path in sorted(scenario.SCENARIOS.glob("*.toml"))] + [
    (scenario.FLEET, path.stem) for path in sorted(scenario.FLEET.glob("*.toml"))
]


@pytest.mark.parametrize(("folder", "name"), ALL, ids=[name for _, name in ALL])
class TestScenarios:
    def test_everybody_who_acts_takes_part(self, folder: Path, name: str) -> None:
        played = scenario.load(name, folder)
        assert {step.by for step in played.steps} <= set(played.participants)

    def test_no_text_speaks_of_an_obsolete_file(self, folder: Path, name: str) -> None:
        text = (folder / f"{name}.toml").read_text(encoding="utf-8")
        assert not any(obsolete in text for obsolete in OBSOLETE_FILES)


EXPECTED = {
    "session-tokens": ("blocked", Status.BLOCKED, Verdict.VALID),
    "index-rebuild": ("reviewing", Status.ACTIVE, Verdict.VALID),
    "metric-names": ("revising", Status.ACTIVE, Verdict.INVALID),
    "log-retention": ("revising", Status.ACTIVE, Verdict.INVALID),
    "order-retries": ("reviewing", Status.ACTIVE, Verdict.VALID),
    "webhook-signatures": ("revising", Status.ACTIVE, Verdict.VALID),
    "build-cache": ("drafting", Status.ACTIVE, Verdict.VALID),
    "page-cursors": ("completed", Status.COMPLETED, Verdict.VALID),
    "config-reload": ("completed", Status.COMPLETED, Verdict.VALID),
    "column-rename": ("completed", Status.COMPLETED, Verdict.VALID),
}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Snapshot]:
    folders = scenario.make_fleet(tmp_path_factory.mktemp("fleet"), NOW)
    opened = {name: load_object(PROTOCOL.open)(str(path)) for name, path in folders.items()}
    return {name: collaboration.refresh(NOW) for name, collaboration in opened.items()}


class TestTheFleet:
    @pytest.mark.parametrize("name", EXPECTED)
    def test_each_stands_where_it_should(self, fleet: dict[str, Snapshot], name: str) -> None:
        snapshot = fleet[name]
        found = (snapshot.phase, snapshot.status, snapshot.verdict)
        assert found == EXPECTED[name], [finding.message for finding in snapshot.findings]

    def test_nothing_happened_in_the_future(self, fleet: dict[str, Snapshot]) -> None:
        for snapshot in fleet.values():
            assert snapshot.changed is not None
            assert snapshot.changed <= NOW

    def test_a_person_is_waited_for(self, fleet: dict[str, Snapshot]) -> None:
        snapshot = fleet["index-rebuild"]
        assert [turn.participant for turn in snapshot.turns] == ["lead"]
        assert [need.about.participant for need in snapshot.needs] == ["lead"]

    def test_a_text_changed_after_it_was_settled(self, fleet: dict[str, Snapshot]) -> None:
        assert [n.about.document for n in fleet["config-reload"].notices] == ["conclusion.md"]

    def test_the_same_time_makes_the_same_fleet(self, tmp_path: Path) -> None:
        for name in ("one", "two"):
            scenario.make_fleet(tmp_path / name, NOW)
        one, two = (
            {
                path.relative_to(tmp_path / name): path.read_bytes()
                for path in sorted((tmp_path / name).rglob("*"))
                if path.is_file()
            }
            for name in ("one", "two")
        )
        assert one == two


def test_a_participant_that_ended_is_no_zombie(tmp_path: Path) -> None:
    """Nobody asks after it while the dashboard is open."""
    others = set(psutil.Process().children())
    company = Company({"ann": (sys.executable, "-c", "print('done')")}, tmp_path)
    company.start()
    wait_for(lambda: company.log("ann").read_text() == "done\n", "its output")
    wait_for(lambda: set(psutil.Process().children()) <= others, "its process to be gone")
    assert company.running() == ()
    assert company.failures() == ()
    company.stop()
