"""A usage limit costs no more time than it must: a printed minute is that minute, and a reset that has just passed is no later one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core.agents import presets, registry
from acp_core.agents.presets import Preset
from acp_core.agents.state import Phase, RunnerState
from acp_core.cli.loops import facts, sentence
from acp_core.fleet import Fleet
from acp_core.loops import launch
from acp_core.loops.interrupted import interrupted
from acp_core.model import Matter
from acp_core.model.format import moment
from tests.agents.support import wait_for
from tests.cli.support import Acp
from tests.loops import week
from tests.loops.support import (
    behave,
    command,
    log,
    make,
    restart_machine,
    spec,
    start,
    state,
    turns,
    wait_for_phase,
    wait_for_turns,
)
from tests.loops.test_week import claude, resident
from tests.loops.week import Incident, World

TEXT = "You've hit your session limit · resets 10:53pm (UTC)"
PLENTY = 120.0  # seconds; nothing passes or fails by being quicker
BEGINS = (datetime.now(UTC) + timedelta(days=2)).replace(
    hour=22, minute=0, second=20, microsecond=0
)
RESET = BEGINS.replace(minute=53, second=0)
FIRST = RESET + timedelta(seconds=62)
"""The first try after the reset: the minute that was printed has passed, and a moment more."""
SOON = [timedelta(minutes=each) for each in (0, 1, 3, 8, 18, 28, 38, 48, 58, 68)]
"""How long after it the next ones are, for an hour."""


def plain(folder: Path, world: World, who: str) -> Preset:
    """A command of one's own that lives in this world."""
    claude(folder, world, who)
    path = folder / f"claude-{who}"
    path.write_text(path.read_text().replace("act('claude'", "act('agent'"))
    return presets.any_command([str(path)])


def world_with(folder: Path, hours: float, text: str = TEXT) -> World:
    """A world in which the service refuses for so long, whatever it prints."""
    (folder / "world").mkdir()
    world = World(folder / "world")
    world.make(BEGINS, [Incident("rate_limit", 0, hours, text, 429)])
    return world


def begin(folder: Path, world: World, agents: Callable[[Path, World, str], Preset]) -> Path:
    collaboration = make(folder / "c")
    asked = spec(collaboration, "server", pause=300.0, retries=0, permissions="edits")
    plan = launch.plan(asked, agents(folder, world, "server"), ask_version=False)
    week.start(world, plan.spec)
    return collaboration


def tries(folder: Path) -> list[datetime]:
    """When its agent was started, by the loop's own clock."""
    return [datetime.fromisoformat(each["started"]) for each in turns(folder, "server")]


def halted(world: World, folder: Path, at: datetime) -> RunnerState:
    """How the loop stands once the time has come to a halt there."""
    world.set(halts=at.isoformat())
    wait_for(lambda: world.now >= at, "the halt", PLENTY)
    return wait_for_phase(folder, "server", Phase.PAUSING)


def cause(folder: Path) -> Matter:
    (snapshot,) = Fleet([folder], discover=False).read()
    (found,) = snapshot.causes
    return found


def wait_until_taken(folder: Path) -> None:
    wait_for(lambda: any(each["took"] for each in turns(folder, "server")), "the turn", PLENTY)


@pytest.mark.slow
@pytest.mark.parametrize("agents", [claude, resident, plain])
def test_a_printed_minute_is_waited_for_to_its_end_and_not_until_tomorrow(
    tmp_path: Path, agents: Callable[[Path, World, str], Preset]
) -> None:
    world = world_with(tmp_path, (RESET.replace(second=27) - BEGINS) / timedelta(hours=1))
    world.set(halts=RESET.replace(minute=10).isoformat())
    folder = begin(tmp_path, world, agents)
    paused = halted(world, folder, RESET.replace(minute=10))
    assert paused.shown.limited and paused.shown.retry_at == FIRST
    assert "resumes at" in cause(folder).sentence
    assert not cause(folder).certain  # only a text said so
    world.set(halts=None)
    wait_until_taken(folder)
    assert tries(folder)[:2] == [BEGINS, FIRST]
    assert {each["attempt"] for each in turns(folder, "server")} == {1}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("agents", [claude, resident])
def test_the_same_words_after_the_reset_are_no_new_time_for_an_hour(
    tmp_path: Path, agents: Callable[[Path, World, str], Preset]
) -> None:
    world = world_with(tmp_path, 5)
    folder = begin(tmp_path, world, agents)
    late = halted(world, folder, FIRST + timedelta(minutes=2))
    assert not late.shown.limited and late.shown.retry_at == FIRST + SOON[2]
    assert f"should have been reset at {moment(RESET, world.now)}" in sentence(late, world.now)
    found = cause(folder)
    assert (found.code, found.wanted, found.certain) == ("B4", False, False)
    assert f"which should have been reset at {moment(RESET, RESET)}; retries at" in found.sentence
    assert "the service still refuses" in found.evidence[0]
    told = facts(late)["limit"]
    assert isinstance(told, dict) and told["at"] == RESET.isoformat() and told["late"] == 2
    hourly = halted(world, folder, FIRST + SOON[-1] + timedelta(minutes=30))
    tomorrow = RESET + timedelta(days=1)
    assert hourly.shown.retry_at == FIRST + SOON[-1] + timedelta(hours=1)
    assert f"every hour until the limit resets at {moment(tomorrow, world.now)}" in sentence(
        hourly, world.now
    )
    assert "retries every hour" in cause(folder).evidence[0]
    world.set(halts=None)
    wait_until_taken(folder)
    later = [FIRST + SOON[-1] + timedelta(hours=each) for each in (1, 2, 3)]
    assert tries(folder)[: 2 + len(SOON) + 2] == [BEGINS, *(FIRST + each for each in SOON), *later]
    assert {each["attempt"] for each in turns(folder, "server")} == {1}
    said = log(folder, "server")
    assert "the limit should have been reset at" in said and "trying every hour" in said
    assert state(folder, "server").shown.limit is None


@pytest.mark.slow
def test_a_first_refusal_in_the_printed_minute_is_of_today(tmp_path: Path) -> None:
    world = world_with(tmp_path, 1)
    world.set(now=RESET.replace(second=30).isoformat(), halts=RESET.replace(second=30).isoformat())
    folder = begin(tmp_path, world, plain)
    wait_for(lambda: turns_or_none(folder), "the refusal", PLENTY)
    assert wait_for_phase(folder, "server", Phase.PAUSING).shown.retry_at == FIRST


def turns_or_none(folder: Path) -> bool:
    found = registry.find(str(folder), "server")
    return found is not None and (Path(found.place) / "turns.jsonl").exists()


@pytest.mark.slow
def test_a_reset_that_passed_while_nobody_ran_is_waited_for_no_longer(tmp_path: Path) -> None:
    world = world_with(tmp_path, 0.9)
    folder = begin(tmp_path, world, claude)
    halted(world, folder, RESET.replace(minute=20))
    restart_machine(folder)
    morning = BEGINS + timedelta(hours=10)
    world.set(now=morning.isoformat(), halts=None)
    (again,) = interrupted()
    week.start(world, again)
    wait_until_taken(folder)
    assert tries(folder)[:2] == [BEGINS, morning]


@pytest.mark.slow
def test_what_an_earlier_version_noted_of_a_limit_is_waited_for(tmp_path: Path) -> None:
    """acp 0.2.0 noted the end of its pause only: the same words are then read as of today."""
    world = world_with(tmp_path, 1)
    folder = begin(tmp_path, world, claude)
    halted(world, folder, RESET.replace(minute=20))
    restart_machine(folder)
    path = Path(state(folder, "server").place) / "loop.json"
    noted = json.loads(path.read_text())
    del noted["limit"], noted["run"]["told_at"], noted["run"]["error_lines"]
    noted["retry_at"] = (RESET + timedelta(seconds=1)).isoformat()
    path.write_text(json.dumps(noted))
    (again,) = interrupted()
    week.start(world, again)
    shown = halted(world, folder, RESET.replace(minute=30)).shown
    assert (shown.limited, shown.retry_at, shown.limit) == (
        True,
        RESET + timedelta(seconds=1),
        None,
    )
    assert "the limit resets at" in cause(folder).evidence[0]
    world.set(halts=None)
    wait_until_taken(folder)
    assert tries(folder)[:3] == [BEGINS, RESET + timedelta(seconds=1), FIRST]


def test_the_words_of_a_commands_work_use_up_its_attempts_as_anything_else(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    path = tmp_path / "worker"
    path.write_text(
        "#!/bin/sh\ncat >/dev/null\n"
        "echo 'The handler answers 429 once the daily quota is used up, and 503 in an outage.'\n"
        "echo 'FAILED test_login.py: unauthorized requests get 401' >&2\n"
        "echo 'Ready: nobody resets at 5pm'\nexit 1\n"
    )
    path.chmod(0o755)
    start(folder, "server", presets.any_command([str(path)]), retries=1)
    given_up = wait_for_phase(folder, "server", Phase.GAVE_UP)
    assert len(turns(folder, "server")) == 2 and given_up.shown.failure == "agent"
    assert (cause(folder).code, cause(folder).wanted) == ("B2", True)


def test_why_and_ps_say_what_is_inferred_of_a_limit(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    start(folder, "server", command(tmp_path, behave(tmp_path, "limited")))
    paused = wait_for_phase(folder, "server", Phase.PAUSING).shown
    assert paused.limit is not None and not paused.limit.certain
    env = {"ACP_STATE": os.environ["ACP_STATE"]}
    assert "inferred" in Acp(tmp_path)("why", str(folder), env=env).stdout
    assert "resumes at" in Acp(tmp_path)("ps", env=env).stdout
    told = json.loads(Acp(tmp_path)("ps", "--json", env=env).stdout)
    assert '"certain": false' in json.dumps(told) and "error_lines" in json.dumps(told)
    assert wait_for_turns(folder, "server", 1)[0]["attempt"] == 1
