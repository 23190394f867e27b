"""Loops that a restart of the machine interrupted go on as they were, and none does anything twice."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core.agents import registry
from acp_core.agents.state import Phase
from acp_core.loops.interrupted import go_on, interrupted
from tests.agents.support import wait_for
from tests.loops.support import (
    behave,
    command,
    events,
    make,
    prompt,
    restart_machine,
    start,
    state,
    turns,
    wait_for_phase,
    wait_for_turns,
)
from tests.loops.test_failures import claude


@pytest.mark.slow
def test_an_attempt_that_a_restart_of_the_machine_ended_is_no_attempt(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    start(folder, "server", command(tmp_path, behave(tmp_path, "hang act")), retries=0)
    wait_for(lambda: state(folder, "server").last_output, "the agent")
    restart_machine(folder)
    assert [(spec.participant, why) for spec, why in go_on()] == [("server", "")]
    first, second = wait_for_turns(folder, "server", 2)
    assert [first["took"], second["took"]] == [False, True]
    assert {first["attempt"], second["attempt"]} == {1}
    assert "A part of the work may be done" in prompt(folder, "server", 2)
    assert interrupted() == []


def test_a_turn_that_was_taken_before_the_restart_is_not_taken_again(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    start(folder, "server", command(tmp_path, behave(tmp_path, "linger")), linger=600)
    wait_for(lambda: len(events(folder)) == 2, "the event")
    restart_machine(folder)
    assert [why for _, why in go_on()] == [""]
    wait_for_phase(folder, "server", Phase.WAITING)
    assert [each["took"] for each in turns(folder, "server")] == [True]
    assert len(events(folder)) == 2


def test_who_waited_for_a_person_does_so_after_the_restart(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    start(folder, "server", claude(tmp_path, "logged-out act"))
    note = wait_for_phase(folder, "server", Phase.GAVE_UP).shown.note
    restart_machine(folder)
    go_on()
    wait_for(lambda: state(folder, "server").alive, "the loop")
    shown = wait_for_phase(folder, "server", Phase.GAVE_UP).shown
    assert (shown.note, len(turns(folder, "server"))) == (note, 1)
    registry.nudge(str(folder), "server", "", datetime.now(UTC))
    assert wait_for_turns(folder, "server", 2)[1]["took"]


def test_who_was_stopped_or_has_ended_stays_so(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    start(folder, "server", command(tmp_path))
    registry.stop(str(folder), "server")
    restart_machine(folder)
    assert go_on() == []
