"""What loops do where an agent cannot use its model service: nothing of it is a failed attempt."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core.agents import presets, registry
from acp_core.agents.presets import Preset
from acp_core.agents.state import Phase
from acp_core.cli.loops import sentence
from acp_core.diagnosis import actions
from acp_core.fleet import Fleet
from acp_core.loops import launch, wording
from acp_core.loops.acts.names import LOGIN, NUDGE, RELAUNCH
from acp_core.model import Matter, OutcomeState, Snapshot
from acp_core.protocols.contract import Collaboration
from tests.agents.support import ROOT, script, wait_for
from tests.cli.support import Acp
from tests.loops.support import (
    as_command,
    behave,
    command,
    log,
    make,
    prompt,
    stand_in,
    start,
    state,
    turns,
    wait_for_phase,
    wait_for_turns,
)
from tests.loops.test_parking import is_parked, wait_for_parked


def claude(folder: Path, how: str) -> Preset:
    """Claude Code's preset with a stand-in that behaves like this, run after run."""
    preset = as_command(presets.bundled()["claude"], stand_in(folder, "claude"))
    return replace(preset, env={"BEHAVIOUR_claude": behave(folder, how).partition("=")[2]})


def look(folder: Path) -> tuple[Snapshot, Matter]:
    """The collaboration, and the only thing that is the matter with it."""
    (snapshot,) = Fleet([folder], discover=False).read()
    (cause,) = snapshot.causes
    return snapshot, cause


@pytest.mark.slow
def test_an_outage_uses_up_no_attempts_and_everybody_says_what_it_is(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    start(folder, "server", claude(tmp_path, "down down down down act"), retries=0, pause=0.3)
    pausing = wait_for_phase(folder, "server", Phase.PAUSING)
    assert wording.state(pausing) == "service trouble"
    assert "model service in trouble since" in sentence(pausing, datetime.now(UTC))
    _, cause = look(folder)
    assert (cause.code, cause.wanted) == ("B5", False)
    assert "cannot use its model service" in cause.sentence
    kept = wait_for_turns(folder, "server", 5)
    assert [each["took"] for each in kept] == [False] * 4 + [True]
    assert {each["attempt"] for each in kept} == {1}
    wait_for_phase(folder, "server", Phase.WAITING)
    assert state(folder, "server").shown.waits == 0
    assert "failed 4 times in a row; trying again in 8 s" in log(folder, "server")
    assert "last attempt" not in prompt(folder, "server", 5)


def test_pauses_in_an_outage_grow_up_to_half_an_hour() -> None:
    from tests.loops.support import spec

    asked = spec(Path("/c"), "server", pause=5.0)
    pauses = [asked.wait_after(number) for number in range(1, 9)]
    assert pauses == [5, 15, 45, 135, 405, 1215, 1800, 1800]


@pytest.mark.slow
def test_a_loop_that_waits_for_a_limit_goes_on_waiting_when_it_is_started_again(
    tmp_path: Path,
) -> None:
    folder = make(tmp_path / "c")
    preset = command(tmp_path, behave(tmp_path, "limited act"))
    start(folder, "server", preset, retries=0)
    before = wait_for_phase(folder, "server", Phase.PAUSING).shown
    assert registry.stop(str(folder), "server").done
    start(folder, "server", preset, retries=0)
    after = wait_for_phase(folder, "server", Phase.PAUSING).shown
    assert (after.retry_at, after.limited) == (before.retry_at, True)
    assert len(turns(folder, "server")) == 1
    registry.stop(str(folder), "server")
    start(folder, "server", command(tmp_path, "--other"))  # another program has no such limit
    wait_for_turns(folder, "server", 2)


def test_a_loop_that_waits_for_a_limit_is_parked_and_hears_a_message(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    preset = command(tmp_path, behave(tmp_path, "limited act"))
    paused = start(folder, "server", preset, interval=0.02)
    wait_for_parked(paused.pid)
    shown = state(folder, "server")
    assert (shown.phase, shown.shown.limited, shown.alive) == (Phase.PAUSING, True, True)
    registry.nudge(str(folder), "server", "Go on.", datetime.now(UTC))
    wait_for_turns(folder, "server", 2)
    assert "Go on." in prompt(folder, "server", 2)


@pytest.mark.slow
def test_a_loop_that_gave_up_is_parked_and_a_message_starts_another_attempt(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    held = start(folder, "server", claude(tmp_path, "logged-out act"), interval=0.02)
    wait_for_parked(held.pid)
    shown = state(folder, "server")
    assert (shown.phase, shown.alive) == (Phase.GAVE_UP, True)
    os.utime(folder / "events.jsonl")  # wakes it, and changes nothing for it
    wait_for(lambda: not is_parked(held.pid), "it to look")
    wait_for_parked(held.pid)
    assert len(turns(folder, "server")) == 1
    registry.nudge(str(folder), "server", "", datetime.now(UTC))
    wait_for_turns(folder, "server", 2)
    assert turns(folder, "server")[1]["took"]


@pytest.mark.parametrize(
    ("how", "words", "remedy", "advice"),
    [
        ("logged-out", "is not logged in", LOGIN, "claude auth login"),
        ("no-model", "asked for a model that is not available", RELAUNCH, "another model"),
        ("no-credit", "has no credit left", NUDGE, "add credit"),
    ],
)
def test_what_only_a_person_can_change_is_not_tried_again_and_again(
    tmp_path: Path, how: str, words: str, remedy: str, advice: str
) -> None:
    folder = make(tmp_path / "c")
    start(folder, "server", claude(tmp_path, f"{how} act"), retries=3)
    wait_for_phase(folder, "server", Phase.GAVE_UP)
    assert len(turns(folder, "server")) == 1
    _, cause = look(folder)
    assert cause.wanted and words in cause.sentence
    assert cause.remedy == remedy and advice in cause.instruction
    why = Acp(tmp_path)("why", str(folder), env={"ACP_STATE": os.environ["ACP_STATE"]}).stdout
    assert words in why and advice in why


def opened(folder: Path) -> tuple[Collaboration, Snapshot]:
    return launch.open_folder(str(folder)), look(folder)[0]


@pytest.mark.slow
def test_a_model_that_is_not_there_is_replaced_by_another(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    start(folder, "server", claude(tmp_path, "no-model act"), model="opus-0")
    wait_for_phase(folder, "server", Phase.GAVE_UP)
    relaunch = actions.action(*opened(folder), RELAUNCH)
    assert relaunch is not None
    same = relaunch.preview(relaunch.inputs(participant="server"))
    assert "is not available: choose another model (--model NAME)" in same.refused
    outcome = relaunch.perform(relaunch.inputs(participant="server", model="opus-9"))
    assert outcome.state is OutcomeState.DONE, outcome.sentence
    wait_for_turns(folder, "server", 2)
    command = " ".join(state(folder, "server").command)
    assert "--model opus-9" in command


def test_a_full_context_is_followed_by_a_session_that_is_told_what_was_done(
    tmp_path: Path,
) -> None:
    folder = make(tmp_path / "c")
    start(folder, "server", claude(tmp_path, "full act"))
    first, second = wait_for_turns(folder, "server", 2)
    assert [first["took"], second["took"]] == [False, True]
    told = prompt(folder, "server", 2)
    assert "Your last session ran out of context" in told
    assert "session s with stand-in-1" in told  # what it printed
    assert "Read only the parts of files that you need" in told


def runs_of(folder: Path) -> int:
    run = state(folder, "server").run
    return run.number if run else 0


def test_since_when_a_loop_is_at_work_begins_anew_with_each_turn(tmp_path: Path) -> None:
    """All others are through before the loop looks again: it never waits in between."""
    folder = make(tmp_path / "c")
    others = (
        "import json\nfrom pathlib import Path\nfrom tests.loops.support import append\n"
        f"folder = Path({str(folder)!r})\n"
        "last = json.loads((folder / 'events.jsonl').read_text().splitlines()[-1])\n"
        "if last['event'] == 'proposal_submitted':\n"
        "    for name in ('reader', 'reviewer'): append(folder, name, 'review_submitted', 2)\n"
        "else: time.sleep(600)"
    )
    own = f"sys.path.insert(0, {str(ROOT)!r})\nfrom tests.loops.agent import main\nmain()\n"
    start(folder, "server", presets.any_command([script(tmp_path, own + others)]))
    (first,) = wait_for_turns(folder, "server", 1)
    wait_for(lambda: runs_of(folder) == 2, "the second turn")
    since = state(folder, "server").shown.since
    assert since is not None
    assert since >= datetime.fromisoformat(first["ended"])
