"""A week without anybody: loops go on over limits, outages and a restart, and ask a person once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from acp_core.agents import presets, registry
from acp_core.agents.loop_directory import place
from acp_core.agents.presets import Preset
from acp_core.agents.state import Phase
from acp_core.fleet import Fleet
from acp_core.loops import launch
from acp_core.loops.acts.names import LOGIN
from acp_core.loops.interrupted import interrupted
from acp_core.model import Matter
from tests.agents.live.support import left_of, words
from tests.agents.live_agent import MODES
from tests.agents.support import ROOT, wait_for
from tests.loops import week
from tests.loops.support import (
    PEOPLE,
    as_command,
    events,
    is_valid,
    log,
    make,
    restart_machine,
    spec,
    state,
    turns,
    wait_for_phase,
)
from tests.loops.week import Incident, World

LIMIT = "You've hit your weekly limit · resets {date}, {time} (UTC)"
PLENTY = 250.0  # seconds; nothing passes or fails by being quicker
INCIDENTS = [
    Incident("server_error", 0, 1.5, "API Error: 529 Overloaded", 529),
    Incident("rate_limit", 20, 80, LIMIT, 429),
    Incident("overloaded", 90, 92, "API Error: 503 Service Unavailable", 503),
    Incident("authentication_failed", 100, 10_000, "Not logged in · Please run /login", 401, "server"),
    Incident("connection", 112, 113, "API Error: Connection error. ECONNREFUSED", 500),
]  # fmt: skip


def claude(folder: Path, world: World, who: str) -> Preset:
    """Claude Code's preset with the stand-in that lives in this world."""
    path = folder / f"claude-{who}"
    path.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from pathlib import Path\nfrom tests.loops.week import act\n"
        f"act('claude', Path({str(world.folder)!r}), {who!r})\n"
    )
    path.chmod(0o755)
    return as_command(presets.bundled()["claude"], str(path))


def wanted(folder: Path) -> list[Matter]:
    """What a person is asked for; the files, too, bear the real time."""
    (snapshot,) = Fleet([folder], discover=False).read()
    return [each for each in snapshot.causes if each.wanted]


def resident(folder: Path, world: World, who: str) -> Preset:
    """The same in a live session."""
    own = folder / f"live-{who}"
    own.mkdir()
    path = own / "agent"
    path.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from pathlib import Path\nfrom tests.loops.week import reside\n"
        f"reside(Path({str(world.folder)!r}), {who!r})\n"
    )
    path.chmod(0o755)
    _, *options = words(own, "--shape", "claude")
    return replace(claude(folder, world, who), live=(str(path), *options), ask_mode=MODES["claude"])


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("agents", [claude, resident], ids=["once", "live"])
def test_a_week_with_limits_outages_a_restart_and_a_login_asks_a_person_once(
    tmp_path: Path, agents: Callable[[Path, World, str], Preset]
) -> None:
    folder = make(tmp_path / "c")
    (tmp_path / "world").mkdir()
    world = World(tmp_path / "world")
    begins = datetime.now(UTC).replace(second=0, microsecond=0)
    world.make(begins, INCIDENTS)
    world.set(halts=world.at(50).isoformat())
    for who in PEOPLE:
        asked = spec(folder, who, pause=300.0, retries=0, permissions="edits")
        plan = launch.plan(asked, agents(tmp_path, world, who), ask_version=False)
        week.start(world, plan.spec)

    wait_for(lambda: world.now >= world.at(50), "the middle of the limit", PLENTY)
    limited = [each for each in registry.runners() if each.shown.limited]
    resets = [each.shown.retry_at for each in limited]
    assert resets and all(at and at > world.at(80) for at in resets)
    assert wanted(folder) == []
    runs = {who: len(turns(folder, who)) for who in PEOPLE if has_run(folder, who)}
    restart_machine(folder)
    asked_again = interrupted()
    assert {each.participant for each in asked_again} == set(PEOPLE)
    for again in asked_again:
        week.start(world, again)
    assert interrupted() == []
    for each in limited:
        assert wait_for_phase(folder, each.participant, Phase.PAUSING).shown.limited
    assert {who: len(turns(folder, who)) for who in runs} == runs  # nothing is done twice
    world.set(halts=None)

    wait_for(lambda: state(folder, "server").phase is Phase.GAVE_UP, "the login", PLENTY)
    asked_for = [(each.remedy, each.about.participant) for each in wanted(folder)]
    assert asked_for[0] == (LOGIN, "server")
    assert {who for _, who in asked_for} == {
        "server"
    }  # what its turn still lacks is said beside it
    world.set(over=["authentication_failed"])
    registry.nudge(str(folder), "server", "", world.now)

    for who in PEOPLE:
        wait_for(partial(is_done, folder, who), f"{who} to be done", PLENTY)
    assert is_valid(folder) and events(folder)[-1]["event"] == "completed"
    assert world.now - begins > timedelta(days=5)
    assert set(world.read()["met"]) == {each.name for each in INCIDENTS}
    logs = "".join(log(folder, who) for who in PEOPLE)
    assert logs.count("it needs a person") == 1
    assert {each["attempt"] for who in PEOPLE for each in turns(folder, who)} == {1}
    taken = [each["event"] for who in PEOPLE for each in turns(folder, who) if each["took"]]
    assert len(taken) == len(set(taken))
    for who in PEOPLE:
        shown = state(folder, who).shown
        assert shown.live == ("yes" if agents is resident else "")
        assert left_of(place(str(folder), who)) == []
    assert ("is resumed" in logs) == (agents is resident)  # after the restart, too


def is_done(folder: Path, who: str) -> bool:
    """Whether a participant's loop saw the end."""
    return state(folder, who).phase is Phase.DONE


def has_run(folder: Path, who: str) -> bool:
    """Whether a participant's agent was started yet."""
    return state(folder, who).run is not None
