"""In every state that is not over somebody has a move: whoever obeys `next` comes to an end.

That is ``completed``, ``blocked``, or a sentence that names a person; nobody waits for nobody, and
nobody is told to append what is refused.
"""

from __future__ import annotations

import random
import secrets

import pytest

from tests.protocols.folder.obedient import play, somewhere


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
def test_whoever_obeys_comes_to_an_end_from_anywhere() -> None:
    first = secrets.randbelow(1 << 32)
    print(f"seeds {first} to {first + 9_999}")
    for seed in range(first, first + 10_000):
        obeyed(seed)
