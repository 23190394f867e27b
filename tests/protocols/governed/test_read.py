"""What a person sees of governed runs and initiatives, whatever their files hold."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_core import model
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.run import detect
from tests.protocols.governed import making
from tests.protocols.governed.acting import open_folder

NOW = datetime(2026, 3, 1, 11, tzinfo=UTC)
PENDING = {
    "status": "paused",
    "blocked_on": "human_approval:planning_done",
    "pending_phase_transition": {
        "from": "planning",
        "to": "implementation",
        "gate": "planning_done",
        "requested_by_turn": making.TURN,
    },
}


def seen(root: Path, now: datetime = NOW) -> model.Snapshot:
    assert detect(root)
    return open_folder(root).refresh(now)


def codes(snapshot: model.Snapshot) -> set[str]:
    return {finding.code for finding in snapshot.findings}


def rows(snapshot: model.Snapshot, panel: str) -> tuple[model.Row, ...]:
    return next(p.rows for p in snapshot.panels if p.id == panel)


def test_an_ordinary_project_is_no_run(tmp_path: Path) -> None:
    assert not detect(tmp_path)
    (tmp_path / "agentxchain.json").write_text('{"name": "something else"}')
    assert not detect(tmp_path)
    (tmp_path / "agentxchain.json").write_text("{")
    assert not detect(tmp_path)
    (tmp_path / ".agentxchain").mkdir()
    assert detect(tmp_path)  # a damaged run is a run


def test_what_is_written_while_it_is_read_contradicts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process accepts a turn between the readings of two files: nobody is told of damage."""
    making.make_run(tmp_path, of_state=making.under_way())
    read, reads = schema.read_log, list[Path]()

    def read_log(path: Path) -> schema.Log:
        if not reads:  # the state was read, and the logs were not
            making.write_lines(tmp_path / schema.HISTORY, making.accepted())
            making.write(tmp_path / schema.STATE, making.state(active_turns={}))
        reads.append(path)
        return read(path)

    monkeypatch.setattr(schema, "read_log", read_log)
    snapshot = seen(tmp_path, datetime.now(UTC))
    assert reads.count(tmp_path / schema.HISTORY) == 2, "it was read again, once"
    assert "ACCEPTED_ACTIVE" not in codes(snapshot)
    assert "turn_accepted" in {event.kind for event in snapshot.events}


def test_a_turn_is_waited_for_until_its_result_is_staged_then_you_are(tmp_path: Path) -> None:
    turns = {making.TURN: making.turn(deadline_at="2026-03-01T12:00:00Z")}
    making.make_run(tmp_path, of_state=making.state(active_turns=turns))
    run = open_folder(tmp_path)
    before = run.refresh(NOW)
    assert [turn.participant for turn in before.turns] == ["pm"]
    assert run.refresh(NOW + timedelta(seconds=5)) is before
    assert before.recheck_at == datetime(2026, 3, 1, 12, tzinfo=UTC)
    late = run.refresh(NOW + timedelta(hours=2))
    assert codes(late) == {"TURN_OVERDUE"}
    staged = tmp_path / f".agentxchain/staging/{making.TURN}/turn-result.json"
    making.write(staged, making.result(status="done"))
    wrong = run.refresh(NOW)
    assert "fails at schema: status must be one of" in wrong.findings[0].message
    assert 'set status to "completed"' in wrong.findings[0].remedy
    making.write(staged, making.result())
    after = run.refresh(NOW)
    assert not after.findings
    assert [turn.participant for turn in after.turns] == ["you"]
    assert [need.code for need in after.needs] == ["STAGED"]


def test_paths_that_lead_out_are_never_read(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("Approved: YES")
    root = making.make_run(tmp_path / "run")
    gates = {"planning_done": {"requires_files": ["../secret.md", "/etc/hostname", "link.md"]}}
    making.configure(root, making.config() | {"gates": gates})
    os.symlink(tmp_path / "secret.md", root / "link.md")
    snapshot = seen(root)
    assert {gate.evidence for gate in snapshot.gates} == {"leads out of the repository"}
    streams = {"repos": {"x": {"path": "../run"}}}
    making.write(tmp_path / "house/agentxchain-multi.json", streams)
    outside = seen(tmp_path / "house")
    assert "PATH" in codes(outside) and not outside.parts


def test_a_repository_that_ended_or_stopped_by_itself_is_named(tmp_path: Path) -> None:
    ended = making.state(status="completed")
    stopped = making.state(status="blocked", blocked_on="human:which lamp?")
    making.make_existing(tmp_path, "all_repos_accepted", hall=ended, attic=stopped)
    found = {f.code: f.message for f in seen(tmp_path).findings}
    assert found == {
        "REPO_COMPLETED": "Workstream hall is completed while the initiative is in planning.",
        "REPO_BLOCKED": "Workstream attic is blocked (human:which lamp?), but the coordinator "
        "does not know it.",
    }


def test_a_repository_that_stands_as_the_coordinator_knows_is_not(tmp_path: Path) -> None:
    home = tmp_path / ".agentxchain/multirepo"
    making.make_existing(
        tmp_path, "all_repos_accepted", hall=making.state(), attic=making.state(status="blocked")
    )
    told = json.loads((home / "state.json").read_text())
    told["repo_runs"]["attic"]["status"] = "blocked"
    making.write(home / "state.json", told)
    assert codes(seen(tmp_path)) == set(), "what it has recorded itself"
    told["phase"] = "verification"
    making.write(home / "state.json", told)
    over = making.state(status="completed", phase="verification")
    making.write(tmp_path / "repos/hall/.agentxchain/state.json", over)
    assert codes(seen(tmp_path)) == set(), "runs are completed first in the last phase"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(key=st.sampled_from(sorted(making.state(**PENDING) | {"current_turn": 1})), value=values,
       where=st.sampled_from(["state", "config", "history", "turn"]), place=st.integers(0, 99))  # fmt: skip
def test_any_value_anywhere_gives_a_snapshot(
    tmp_path: Path, key: str, value: object, where: str, place: int
) -> None:
    root = tmp_path / "run"
    turns = {making.TURN: making.turn()}
    of_state = making.state(active_turns=turns, **PENDING)
    making.make_run(root, of_state=of_state, history=(making.accepted(),))
    if where == "state":
        making.write(root / ".agentxchain/state.json", of_state | {key: value})
    elif where == "config":
        field = sorted(making.config())[place % len(making.config())]
        making.configure(root, making.config() | {field: value})
    elif where == "history":
        field = sorted(making.accepted())[place % len(making.accepted())]
        making.write_lines(root / ".agentxchain/history.jsonl", making.accepted(**{field: value}))
    else:
        changed = {making.TURN: making.turn(status=value), "../../x": making.turn()}
        making.write(root / ".agentxchain/state.json", of_state | {"active_turns": changed})
    run = open_folder(root)
    assert run.refresh(NOW).protocol == "governed"
    assert len({count.what for count in run.story().counts}) == len(run.story().counts) > 0


@pytest.mark.parametrize("name", ["state.json", "history.jsonl", "decision-ledger.jsonl"])
@pytest.mark.parametrize("content", [b"\xff\xfe{", b"[1]", b'{"a": ', b"[" * 5000, b'"x"\n7\n'])
def test_damaged_files_become_findings(tmp_path: Path, name: str, content: bytes) -> None:
    making.make_run(tmp_path)
    (tmp_path / ".agentxchain" / name).write_bytes(content)
    assert codes(seen(tmp_path)) & {"FILE_UNREADABLE", "LOG_LINE"}


def test_a_document_and_a_raw_event_are_loaded(tmp_path: Path) -> None:
    making.make_run(tmp_path, history=(making.accepted(),))
    run = open_folder(tmp_path)
    snapshot = run.refresh(NOW)
    assert run.load("TALK.md").headings[0].title == "Talk"
    assert '"Planned the lamp."' in run.raw_event(snapshot.events[0].id)
    assert run.watched() >= {tmp_path, tmp_path / ".agentxchain"}
    with pytest.raises(KeyError):
        run.load("../other")
