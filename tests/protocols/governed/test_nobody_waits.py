"""Whatever state a run is in, somebody has a move: agents take their turns, a person the first verdict.

That ends: the run is completed, or a person is named who has to do more than that.
"""

from __future__ import annotations

import json
import os
import random
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from acp_core import model
from acp_core.protocols.governed.schema import STATE
from acp_core.protocols.kit import guard
from tests.protocols.governed import playing, states
from tests.protocols.governed.acting import state, turn_of
from tests.protocols.governed.states import NOW
from tests.protocols.governed.test_agree import filled, seen

pytestmark = pytest.mark.usefixtures("in_memory")
MOST = 60  # moves that a run takes at most


def obey(root: Path, trail: list[str]) -> None:
    """Whoever has the turn does what its prompt says."""
    turn = turn_of(root)
    role, id = turn["assigned_role"], turn["turn_id"]
    trail.append(f"{role} works")
    staged = root / f".agentxchain/staging/{id}/turn-result.json"
    bundle = root / f".agentxchain/dispatch/turns/{id}"
    own = {"ACP_GOVERNED_TURN": id, "AGENTXCHAIN_PROJECT_ROOT": str(root),
           "AGENTXCHAIN_DISPATCH_DIR": str(bundle), "AGENTXCHAIN_STAGING_PATH": str(staged)}  # fmt: skip
    prompt = "# Execution Context\n\n## Required Output\n"
    subprocess.run([sys.executable, "-c", playing.AGENT], input=prompt, env={**os.environ, **own},
                   text=True, check=True, cwd=root, capture_output=True)  # fmt: skip
    result = json.loads(staged.read_text())
    if role != "dev" and (root / ".git").exists():  # what was so before, it did not change
        changed = playing.git(root, "status", "--porcelain", "-uall")
        result["files_changed"] = [each for each in result["files_changed"] if each in changed]
    staged.write_text(json.dumps(result))


def decide(root: Path, trail: list[str]) -> bool | None:
    """A person takes the first verdict; None where none is wanted, False where that is not enough."""
    collaboration, snapshot, causes = seen(root)
    wanted = [*snapshot.obstacles, *(each for each in (*causes, *snapshot.needs) if each.wanted)]
    for matter in wanted:
        if not matter.remedy or guard.blocking(snapshot.obstacles, matter.remedy):
            continue
        action = collaboration.action(matter.remedy, NOW)
        if action is None:
            continue
        values = action.inputs(**filled(action) | dict(matter.given))
        if action.preview(values).refused:
            continue
        outcome = action.perform(values)
        trail.append(f"{matter.code}: {matter.remedy}: {outcome.sentence}")
        if outcome.state is model.OutcomeState.DONE:
            return True
    return False if wanted else None


def play(root: Path, trail: list[str], *, edited: bool) -> None:
    """Go on until it is over, or until a person is named who has to do more."""
    for _ in range(MOST):
        snapshot = seen(root)[1]
        if snapshot.status is model.Status.COMPLETED:
            return
        decided = decide(root, trail)
        if decided is False:
            return
        if decided:
            continue
        assert snapshot.turns, f"nobody moves: {snapshot.headline}"
        if not (root / STATE).exists() or not state(root)["active_turns"]:
            assert snapshot.turns[0].participant == "you", snapshot.turns
            return  # a person is waited for
        obey(root, trail)
        decided = any(": " in each for each in trail[-6:])
    # Of a state that somebody edited an agent may not know what to make: a person is asked each time.
    assert edited and decided, f"no end after {MOST} moves"


def obeyed(name: str, wrong: list[str]) -> None:
    trail: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        root = states.run_in(Path(place) / "work", name)
        if not (root / ".git").exists():
            playing.repository(root)
        for each in wrong:
            states.DAMAGE[each](root)
        try:
            play(root, trail, edited=bool(wrong))
        except AssertionError as error:
            error.add_note(f"{name}, {wrong}: {trail[-20:]}")
            raise


def test_a_new_run_comes_to_its_end() -> None:
    obeyed("new", [])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(states.RUNS))
def test_whoever_obeys_comes_to_an_end(name: str) -> None:
    obeyed(name, [])


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_whoever_obeys_comes_to_an_end_whatever_happened() -> None:
    seed = secrets.randbelow(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    for _ in range(40):
        damages = chance.sample(sorted(states.DAMAGE), chance.randrange(1, 4))
        obeyed(chance.choice(sorted(states.RUNS)), damages)
