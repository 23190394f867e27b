"""Loops over real collaborations, with real processes: a turn is taken when its event appears."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core.agents import presets, registry
from acp_core.agents.state import Phase
from acp_core.fleet import Fleet
from acp_core.loops.launch import Restart
from acp_core.model import Matter
from acp_core.model.turn import Mode
from tests.agents.support import wait_for
from tests.cli.support import Acp
from tests.loops.support import (
    PEOPLE,
    append,
    as_command,
    behave,
    command,
    events,
    is_valid,
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
from tests.support.private import open_to_others

MIXES = [
    ("claude", "codex", "opencode"),
    ("gemini", "qwen", "aider"),
    ("aider", "claude", "gemini"),
]


@pytest.mark.parametrize(
    ("mix", "v2"),
    [
        pytest.param(mix, v2, marks=pytest.mark.slow if place or v2 else (),
                     id=f"{'-'.join(mix)}-{'v2' if v2 else 'v1'}")
        for place, mix in enumerate(MIXES)
        for v2 in (False, True)
    ],
)  # fmt: skip
def test_any_mix_of_programs_reaches_the_end(
    tmp_path: Path, mix: tuple[str, ...], v2: bool
) -> None:
    folder = make(tmp_path / "c", v2=v2)
    known = presets.bundled()
    for participant, name in zip(PEOPLE, mix, strict=True):
        program = stand_in(tmp_path, name)
        start(folder, participant, as_command(known[name], program))
    for participant in PEOPLE:
        wait_for_phase(folder, participant, Phase.DONE)
    assert events(folder)[-1]["event"] == "completed"
    assert is_valid(folder)
    assert open_to_others() == []
    for participant, name in zip(PEOPLE, mix, strict=True):
        kept = turns(folder, participant)
        assert {each["program"] for each in kept} == {name}
        assert all(each["took"] for each in kept)
        by = {each["recorded_by"] for each in kept}
        assert by == ({"loop"} if name == "aider" else {"program"})
        assert state(folder, participant).shown.tokens_in >= 1000


@pytest.mark.slow
def test_two_corrective_prompts_bring_a_participant_to_its_turn(tmp_path: Path) -> None:
    """The first run does nothing, the second is refused; the third is told of it and obeys."""
    folder = make(tmp_path / "c")
    faults = behave(tmp_path, "idle early obey")
    start(folder, "server", command(tmp_path, faults))
    for name in ("reader", "reviewer"):
        start(folder, name, command(tmp_path))
    for name in PEOPLE:
        wait_for_phase(folder, name, Phase.DONE)
    assert is_valid(folder)
    first, second, third = turns(folder, "server")[:3]
    assert [each["took"] for each in (first, second, third)] == [False, False, True]
    assert [each["attempt"] for each in (first, second, third)] == [1, 2, 3]
    assert first["exit_code"] == second["exit_code"] == 0  # which proves nothing
    assert "last attempt" not in prompt(folder, "server", 1)
    assert "Nothing was refused" in prompt(folder, "server", 2)
    corrected = prompt(folder, "server", 3)
    assert "error: seq 2: completed is not allowed from phase drafting" in corrected
    assert "last attempt" not in prompt(folder, "server", 4)
    assert state(folder, "server").shown.restarts == 2


@pytest.mark.slow
def test_a_loop_that_gives_up_stays_visible_until_a_person_helps(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    preset = command(tmp_path, behave(tmp_path, "crash idle early"))
    start(folder, "server", preset, retries=2)
    given_up = wait_for_phase(folder, "server", Phase.GAVE_UP)
    assert given_up.alive
    assert "completed is not allowed from phase drafting" in given_up.shown.note
    assert len(turns(folder, "server")) == 3
    registry.nudge(str(folder), "server", "Take your time, then submit.", datetime.now(UTC))
    wait_for(lambda: len(events(folder)) == 2, "the event of the server")
    assert "Take your time, then submit." in prompt(folder, "server", 4)
    assert wait_for_phase(folder, "server", Phase.WAITING).shown.nudged


def test_a_loop_that_gave_up_goes_on_when_somebody_else_takes_the_turn(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    start(folder, "server", command(tmp_path, behave(tmp_path, "idle")), retries=0)
    wait_for_phase(folder, "server", Phase.GAVE_UP)
    append(folder, "server", "proposal_submitted", 1)
    assert wait_for_phase(folder, "server", Phase.WAITING).alive
    for name, seq in (("reader", 2), ("reviewer", 2)):
        append(folder, name, "review_submitted", seq)
    wait_for(lambda: events(folder)[-1]["event"] == "proposal_revised", "the revision")


def test_a_blocked_collaboration_ends_its_loops(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    start(folder, "reader", command(tmp_path))
    wait_for_phase(folder, "reader", Phase.WAITING)
    append(folder, "server", "blocked", 1)
    done = wait_for_phase(folder, "reader", Phase.DONE)
    assert done.shown.note == "blocked"
    wait_for(lambda: not state(folder, "reader").alive, "the end of the loop")
    assert not state(folder, "reader").died


def test_a_parked_loop_survives_whatever_happens_to_the_files(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    start(folder, "reader", command(tmp_path))
    wait_for_phase(folder, "reader", Phase.WAITING)
    whole = (folder / "protocol.json").read_bytes()
    line = json.dumps({"seq": 2, "from": "server", "event": "proposal_submitted"})
    (folder / "protocol.json").write_bytes(whole[: len(whole) // 2])
    with (folder / "events.jsonl").open("a") as file:
        file.write(line[: len(line) // 2])
    folder.rename(tmp_path / "moved")
    time.sleep(0.3)
    (tmp_path / "moved").rename(folder)
    data = (folder / "events.jsonl").read_bytes()
    (folder / "events.jsonl").write_bytes(data[: data.rindex(b"\n") + 1])
    (folder / "protocol.json").write_bytes(whole)
    append(folder, "server", "proposal_submitted", 1)
    wait_for_turns(folder, "reader", 1)
    assert len(events(folder)) == 3
    assert state(folder, "reader").shown.attempt <= 1


def test_a_turn_has_a_deadline(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    start(folder, "server", command(tmp_path, behave(tmp_path, "hang")), turn_limit=0.6)
    given_up = wait_for_phase(folder, "server", Phase.GAVE_UP)
    assert given_up.run is not None
    assert given_up.run.stopped == "the turn's deadline passed"
    assert given_up.run.exit == "killed by SIGTERM"
    assert given_up.shown.turn_deadline is not None


@pytest.mark.slow
def test_it_goes_on_by_itself_when_its_limit_is_reset(tmp_path: Path) -> None:
    """A program that its model service refuses is no failed try, however often that happens."""
    folder = make(tmp_path / "c")
    refused = behave(tmp_path, "limit limit act")
    start(folder, "server", command(tmp_path, refused), retries=0, turn_limit=30)
    paused = wait_for_phase(folder, "server", Phase.PAUSING)
    assert paused.shown.limited and paused.shown.retry_at is not None
    assert paused.shown.retry_at > datetime.now(UTC)
    first, second, third = wait_for_turns(folder, "server", 3)
    assert [first["took"], second["took"], third["took"]] == [False, False, True]
    assert "the limit resets at" in Path(paused.log).read_text()


@pytest.mark.slow
def test_a_limit_is_waited_for_until_a_person_says_otherwise(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    start(folder, "server", command(tmp_path, behave(tmp_path, "limited act")), retries=0)
    paused = wait_for_phase(folder, "server", Phase.PAUSING)
    shown = Acp(tmp_path)("ps", env={"ACP_STATE": os.environ["ACP_STATE"]}).stdout
    assert "resumes at" in shown and "limit" in shown
    (found,) = causes_of(folder)
    assert found.code == "B4" and not found.wanted
    assert "resumes at" in found.sentence
    registry.nudge(paused.folder, "server", "", datetime.now(UTC))
    wait_for_turns(folder, "server", 1)
    start(folder, "reader", command(tmp_path, behave(tmp_path, "limited")))
    wait_for_phase(folder, "reader", Phase.PAUSING)
    assert registry.stop(str(folder), "reader").done
    assert not state(folder, "reader").alive


def causes_of(folder: Path) -> tuple[Matter, ...]:
    (snapshot,) = Fleet([folder], discover=False).read()
    return snapshot.causes


@pytest.mark.slow
def test_the_whole_has_a_deadline(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    deadline = datetime.now(UTC) + timedelta(seconds=1)
    start(folder, "server", command(tmp_path, behave(tmp_path, "hang")), deadline=deadline)
    stopped = wait_for_phase(folder, "server", Phase.STOPPED)
    assert stopped.shown.note == "the deadline passed"
    wait_for(lambda: not state(folder, "server").alive, "the end of the loop")


@pytest.mark.slow
def test_a_program_that_lingers_after_its_turn_is_ended(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    claude = as_command(presets.bundled()["claude"], stand_in(tmp_path, "claude"))
    lingering = replace(
        claude, env={"BEHAVIOUR_claude": behave(tmp_path, "linger").partition("=")[2]}
    )
    start(folder, "server", lingering, linger=0.2)
    (kept,) = wait_for_turns(folder, "server", 1)
    assert kept["took"]
    assert kept["finished"]
    assert kept["stopped"].endswith("kept running")
    plain = command(tmp_path, behave(tmp_path, "linger"))
    start(folder, "reader", plain, linger=0.2)
    (kept,) = wait_for_turns(folder, "reader", 1)
    assert kept["took"]
    assert kept["stopped"] == "the turn was over but it kept running"


def test_which_program_version_and_model_took_a_turn_is_kept(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    start(folder, "server", as_command(presets.bundled()["claude"], stand_in(tmp_path, "claude")))
    (kept,) = wait_for_turns(folder, "server", 1)
    assert (kept["program"], kept["version"], kept["model"]) == ("claude", "9.9.9", "stand-in-1")
    assert (kept["event"], kept["turn"], kept["cost"]) == ("proposal_submitted (seq 2)", "1", 0.01)


@pytest.mark.parametrize(
    "words", [["--prompt-text", "{prompt}"], ["--prompt-file", "{prompt_file}"], []]
)
def test_a_prompt_gets_there_every_way_and_its_command_runs(
    tmp_path: Path, words: list[str]
) -> None:
    """The objective holds what a shell would obey; the command in the prompt is run as it is."""
    folder = tmp_path / "c $(touch x)"
    make(folder, objective="Choose `id`; $(touch x) {prompt} 'so' \"it\" is")
    start(folder, "server", command(tmp_path, "--process", *words))
    (kept,) = wait_for_turns(folder, "server", 1)
    assert kept["took"], log(folder, "server")
    assert not list(tmp_path.rglob("x"))


def test_a_program_that_is_not_there_is_reported_and_tried_again(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    program = Path(stand_in(tmp_path, "agent"))
    preset = presets.any_command([str(program)])
    append(folder, "server", "proposal_submitted", 1)
    start(folder, "server", preset, pause=0.2)
    program.rename(tmp_path / "elsewhere")
    for name in ("reader", "reviewer"):
        append(folder, name, "review_submitted", 2)
    wait_for_phase(folder, "server", Phase.PAUSING)
    assert "No such file" in state(folder, "server").shown.note
    (tmp_path / "elsewhere").rename(program)
    wait_for(lambda: events(folder)[-1]["event"] == "proposal_revised", "the revision")


# --- a program that takes part alone -------------------------------------------------------


@pytest.mark.slow
def test_a_program_that_loops_by_itself_is_started_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTS", str(tmp_path))
    folder = make(tmp_path / "c")
    start(folder, "server", command(tmp_path, "--alone"), mode=Mode.ALONE)
    for name in ("reader", "reviewer"):
        start(folder, name, command(tmp_path))
    for name in PEOPLE:
        wait_for_phase(folder, name, Phase.DONE)
    assert is_valid(folder)
    assert len(turns(folder, "server")) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("restart", "runs"), [(Restart.NEVER, 1), (Restart.ON_FAILURE, 3), (Restart.ALWAYS, 5)]
)
def test_a_program_that_loops_by_itself_is_restarted_as_asked(
    tmp_path: Path, restart: Restart, runs: int
) -> None:
    """It ends at once, though it is its turn, again and again."""
    folder = make(tmp_path / "c")
    preset = command(tmp_path, behave(tmp_path, "idle crash " * 9))
    start(folder, "server", preset, mode=Mode.ALONE, restart=restart, retries=2, pause=0.02)
    if restart is Restart.ALWAYS:
        wait_for_turns(folder, "server", runs)
        return
    given_up = wait_for_phase(folder, "server", Phase.GAVE_UP)
    assert len(turns(folder, "server")) == runs
    assert given_up.alive


def test_a_program_that_ended_well_too_early_is_started_again_at_its_turn(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    start(folder, "reader", command(tmp_path, behave(tmp_path, "idle idle")), mode=Mode.ALONE)
    wait_for_turns(folder, "reader", 1)
    wait_for_phase(folder, "reader", Phase.WAITING)
    append(folder, "server", "proposal_submitted", 1)
    wait_for_turns(folder, "reader", 2)
