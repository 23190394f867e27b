"""In every state that is not over somebody has a move: whoever obeys `next` comes to an end.

That is ``completed``, ``blocked``, or a sentence that names a person; nobody waits for nobody, and
nobody is told to append what is refused.
"""

from __future__ import annotations

import random
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core.diagnosis.engine import diagnose
from acp_core.protocols.folder.schema import records
from acp_core.protocols.kit.diagnosis import Clock, DiagnosisContext
from tests.protocols.folder.acting import open_folder
from tests.protocols.folder.disorder import DAMAGES, EVENTS, befall
from tests.protocols.folder.obedient import play, somewhere
from tests.protocols.folder.obedient_files import Files
from tests.protocols.folder.support import UPTO, make_v1, make_v2, read_protocol

FOUND = (
    26,  # carriage returns end the lines: nobody was named
    69,  # the log is lost: `next` said to begin it anew, which is refused
    191,  # no line of the log is an event: likewise
    755,  # a heading of a review stood there before its event
)
"""What the search on files found: seeds of states in which nobody had a move."""


def obeyed(seed: int) -> None:
    chance = random.Random(seed)
    world = somewhere(chance)
    trail = len(world.trail)
    try:
        play(world, chance, deaf=chance.random() < 0.3)
    except AssertionError as error:
        error.add_note(
            f"seed {seed}; before: {world.trail[:trail]}; then: {world.trail[trail:][-30:]}"
        )
        raise


@pytest.mark.parametrize("seed", range(200))
def test_whoever_obeys_comes_to_an_end(seed: int) -> None:
    obeyed(seed)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_whoever_obeys_comes_to_an_end_from_anywhere() -> None:
    first = secrets.randbelow(1 << 32)
    print(f"seeds {first} to {first + 9_999}")
    for seed in range(first, first + 10_000):
        obeyed(seed)


def obeyed_on_files(place: Path, seed: int) -> None:
    """A collaboration that was begun, and to which something happened."""
    chance = random.Random(seed)
    beginning = (chance.choice((make_v1, make_v2)), chance.choice(UPTO))
    damages = chance.sample((*DAMAGES, *EVENTS), chance.randrange(4))
    folder = befall(place, beginning, damages)
    try:
        protocol = read_protocol(folder)
        if not records.participant_ids(protocol):
            return  # there is nobody who could act
    except (OSError, ValueError):
        return
    with pytest.MonkeyPatch.context() as patch:
        world = Files(folder, patch)
        try:
            play(world, chance, deaf=chance.random() < 0.3)
        except AssertionError as error:
            error.add_note(f"seed {seed}: {beginning}, {damages}; then: {world.trail[-30:]}")
            raise
    if not world.over():
        assert names_a_person(folder), f"seed {seed}: {beginning}, {damages}"


def names_a_person(folder: Path) -> bool:
    """Whether some problem is the move of who runs the collaboration."""
    opened = open_folder(folder)
    now = datetime.now(UTC)
    opened.refresh(now)
    seen = opened.refresh(now + timedelta(seconds=10))
    case = DiagnosisContext(seen, Clock(now + timedelta(seconds=10)))
    return any(each.wanted for each in (*seen.obstacles, *seen.needs, *diagnose(opened, case)))


@pytest.mark.parametrize("seed", (*range(10), *FOUND))
def test_whoever_obeys_on_files_comes_to_an_end(seed: int, tmp_path: Path) -> None:
    obeyed_on_files(tmp_path, seed)


@pytest.mark.slow
def test_whoever_obeys_on_files_comes_to_an_end_whatever_happened(tmp_path: Path) -> None:
    first = secrets.randbelow(1 << 32)
    print(f"seeds {first} to {first + 199}")
    for seed in range(first, first + 200):
        obeyed_on_files(tmp_path / str(seed), seed)
