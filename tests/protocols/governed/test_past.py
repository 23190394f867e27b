"""A run that nobody recorded is replayed as far as its own logs tell."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from acp_core.history.moments import EVENT
from acp_core.history.past import Past
from acp_core.model import Snapshot
from acp_core.model.past import Evidence
from acp_core.protocols import registry
from acp_core.protocols.discovery import identify
from acp_core.protocols.governed.past import GovernedDerivation
from tests.protocols.governed import making, playing
from tests.protocols.governed.acting import (
    acted,
    governed,
    open_folder,
    refused,
    state,
    told,
    turn_of,
)
from tests.protocols.governed.test_answers import hand_in

FILES = {
    "PM_SIGNOFF.md": "Approved: YES\n",
    "ROADMAP.md": "# Roadmap\n\nOne lamp.\n",
    "SYSTEM_SPEC.md": "## Purpose\n\nL.\n\n## Interface\n\nS.\n\n## Acceptance Tests\n\nIt lights.\n",
}
YES = ("--by", "olga", "--yes")


class Stood(NamedTuple):
    """How a run stood after a step; what would resolve a block is told by no log."""

    phase: str | None
    status: str
    waiting: tuple[tuple[str, datetime | None], ...]
    accepted: int


def stood(snapshot: Snapshot) -> Stood:
    waiting = tuple((turn.participant, turn.since) for turn in snapshot.turns)
    accepted = sum(event.kind == "turn_accepted" for event in snapshot.events)
    status = snapshot.headline.partition(";")[0]
    return Stood(snapshot.phase, status, waiting, accepted)


@pytest.fixture
def past(tmp_path: Path) -> Iterator[Callable[[], Past]]:
    opened: list[Past] = []

    def read() -> Past:
        found = identify(tmp_path / "lamp", registry.installed())
        assert found is not None
        opened.append(Past(found, datetime.now(UTC)))
        return opened[-1]

    yield read
    for each in opened:
        each.close()


def test_each_step_of_an_unrecorded_run_is_seen_as_it_stood(
    tmp_path: Path, past: Callable[[], Past]
) -> None:
    root = playing.repository(tmp_path / "lamp")
    seen: list[tuple[int, Stood]] = []

    def note() -> None:
        snapshot = open_folder(root).refresh(datetime.now(UTC))
        seen.append((len(told(root, "events.jsonl")), stood(snapshot)))
        time.sleep(0.005)  # two commands of one millisecond could not be told apart

    def do(*words: str) -> None:
        assert governed([words[0], str(root), *words[1:]]) in (0, 1)
        note()

    acted("init", root, "--goal", "Light the hall")
    do("step")
    [id] = state(root)["active_turns"]
    making.write(root / f".agentxchain/staging/{id}/turn-result.json", {})
    refused("accept-turn", root)
    do("reject-turn", "--reason", "Empty", *YES)
    do("step")
    hand_in_staged(root, phase_transition_request="implementation")
    note()
    do("reject-gate", "--comment", "No scope", *YES)
    do("step")
    hand_in_staged(root, phase_transition_request="implementation")
    note()
    do("approve-gate", *YES)
    do("escalate", "--reason", "Doubt", *YES)
    do("unblock", *YES)
    do("step")
    replay = past()
    assert not replay.recorded
    for count, expected in seen:
        event = told(root, "events.jsonl")[count - 1]
        at = datetime.fromisoformat(event["timestamp"])
        place = replay.nearest(at.replace(microsecond=at.microsecond + 500))
        assert place is not None
        found = stood(replay.at(place).snapshot)
        assert found == expected, (count, event)
    assert [each.phase for each in (replay.at(0).snapshot, replay.present)] == [
        "planning", "implementation"]  # fmt: skip


def test_a_time_that_happens_to_be_a_whole_second_is_exact(
    tmp_path: Path, past: Callable[[], Past]
) -> None:
    """Logs of runs hold milliseconds: .000 is no second in which something happened at some time."""
    root = playing.repository(tmp_path / "lamp")
    acted("init", root)
    acted("step", root)
    log = root / ".agentxchain/events.jsonl"
    times = ["2026-03-01T10:00:00.000Z", "2026-03-01T10:00:00.250Z"]
    events = zip(told(root, "events.jsonl"), times, strict=True)
    log.write_text("".join(json.dumps(e | {"timestamp": at}) + "\n" for e, at in events))
    replay = past()
    happened = [each.time for each in replay.moments if each.kind == EVENT]
    assert happened == [datetime.fromisoformat(at) for at in times]
    place = replay.nearest(happened[0] + timedelta(milliseconds=1))
    assert place is not None and "run_started" in replay.moments[place].what
    assert replay.place(replay.ids[place]) == place


def hand_in_staged(root: Path, **more: object) -> None:
    """The turn under way is handed in and accepted, with the gate's files filled in."""
    for name, words in FILES.items():
        (root / ".planning" / name).write_text(words)
    turn = turn_of(root)
    names = [f".planning/{name}" for name in FILES]
    result = making.result(run_id=turn["run_id"], turn_id=turn["turn_id"])
    making.write(root / f".agentxchain/staging/{turn['turn_id']}/turn-result.json", result | more)
    governed(["accept-turn", str(root), *[w for n in names for w in ("--exclude", n)]])
    assert not state(root)["active_turns"], state(root)


def test_a_turn_that_waited_is_not_called_without_a_bundle(
    tmp_path: Path, past: Callable[[], Past]
) -> None:
    root = playing.repository(tmp_path / "lamp")
    acted("init", root)
    hand_in(root)
    (root / ".planning/ROADMAP.md").write_text("# Another\n")
    replay = past()
    place = next(n for n, each in enumerate(replay.moments) if "turn_dispatched" in each.what)
    snapshot = replay.at(place).snapshot
    assert [finding.code for finding in snapshot.findings] == []
    met = {gate.label: gate.met for gate in snapshot.gates}
    assert met[".planning/ROADMAP.md"] is None and met[".planning/PM_SIGNOFF.md"] is False


@pytest.mark.parametrize("events", [b"", b"{}\n[]\n7\nnull\n{", b'{"payload": 7, "turn": []}\n'])
def test_logs_of_anything_are_read(events: bytes) -> None:
    known = {"agentxchain.json": json.dumps(making.config()).encode(),
             ".agentxchain/events.jsonl": events, ".agentxchain/state.json": b"[]"}  # fmt: skip
    made = GovernedDerivation().derive(Evidence(datetime.now(UTC), b"", known, {}))
    derived = made[".agentxchain/state.json"]
    assert derived is not None and json.loads(derived)["status"] == "idle"


def test_of_an_initiative_nothing_is_derived() -> None:
    known = dict.fromkeys(("agentxchain-multi.json", ".coordinator/state.json"), b"{}")
    assert GovernedDerivation().derive(Evidence(datetime.now(UTC), b"", known, {})) == {}
