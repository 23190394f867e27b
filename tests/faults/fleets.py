"""Big fleets whose finished collaborations change, whose cache is damaged, and whose readers die.

Whatever happens, `acp status --json` says what one process says that has an empty cache. Here a few
collaborations are a big fleet (see `lowered`); the processes are real ones.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from tests.faults import fleet_reader
from tests.faults.bounds import bounded
from tests.faults.campaign import Campaign, Case
from tests.faults.kept_fleets import KILLED, Place
from tests.faults.looker import Looker
from tests.faults.looking import Ran
from tests.protocols.folder.support import make_v1
from tests.support import finished

_KINDS = {"folder": 14, "workspaces": 2, "governed": 2, "initiative": 1, "cycle": 2}
_GOING_ON = 2  # collaborations
_ROUNDS, _HARMED = 4, 12  # of a case


def cases(place: Path, seed: int) -> Iterator[Case]:
    """Fleets without an end."""
    pattern = place / "pattern"
    _make(pattern)
    looker = Looker()
    try:
        for number in count():
            chance = Random(f"{seed}-{number}")  # a case can be made again by its number alone
            at = Place(place / str(number), chance, looker, pattern)
            kind, run = ("rows", _rows_alone) if number % 2 else ("fleet", _fleet)
            yield Case(f"{kind}: case {number} of seed {seed}", partial(_cleanly, at, run, chance))
    finally:
        looker.close()


def _make(pattern: Path) -> None:
    for kind, number in _KINDS.items():
        made = finished.KINDS[kind][0](pattern.parent / "made" / kind)
        for each in range(number):
            shutil.copytree(made, pattern / f"{kind}{each}", symlinks=True)
    for each in range(_GOING_ON):
        make_v1(pattern / f"going-on{each}", "reviewing")


def _cleanly(at: Place, run: Callable[[Place, Random, list[str]], None], chance: Random) -> None:
    done: list[str] = []
    try:
        with bounded():
            at.make()
            run(at, chance, done)
    except AssertionError as error:
        raise AssertionError(f"after {'; '.join(done)}: {error}") from None
    finally:
        at.remove_all()


def _fleet(at: Place, chance: Random, done: list[str]) -> None:
    """Collaborations change between looks, and what is kept; processes fail meanwhile."""
    for number in range(_ROUNDS):
        for _ in range(chance.choice((0, 1, 2, 4))):
            done.append(at.change())
        if number and chance.random() < 0.35:
            done.append(f"cache {at.harm()}")
        at.settle()
        _look(at, chance, done)
    at.settle()
    wanted = at.wanted()
    _same(at.end(at.begin()), wanted)
    at.until_gone()


def _rows_alone(at: Place, chance: Random, done: list[str]) -> None:
    """What is kept is harmed again and again, and no other process reads."""
    at.settle()
    at.end(at.begin(alone=True))
    wanted = at.wanted()
    for _ in range(_HARMED):
        done.append(at.harm())
        _same(at.end(at.begin(alone=True)), wanted)
        if not at.is_kept():
            at.forget()
            _same(at.end(at.begin(alone=True)), wanted)


def _look(at: Place, chance: Random, done: list[str]) -> None:
    """Look in one of several ways, and compare."""
    before = at.wanted()
    how = chance.choice(
        ("plainly", "with odd readers", "with odd readers", "twice at once", "killed")
    )
    reader = ""
    if how == "with odd readers" or chance.random() < 0.3:
        which, what = chance.choice(("one", "all")), chance.choice([*fleet_reader.WHAT])
        reader = f"{which} {what} {chance.randint(1, 3)}"
    if how == "killed" and chance.random() < 0.5:
        reader = "all hang 1"  # they see nothing but that nobody listens any more
    done.append(f"looked {how}, {reader or 'readers as they are'}")
    looks = [at.begin(reader)]
    if how == "twice at once":
        looks.append(at.begin(reader))
    if how == "killed":
        if chance.random() < 0.7:
            at.until_read()
        time.sleep(chance.uniform(0.0, 0.4))
        os.kill(looks[0].pid, 9)
    found = [at.end(each) for each in looks]
    at.let_go_on()
    at.until_gone()
    changes = " change " in reader
    wanted = (before, at.wanted()) if changes else (before,)
    for each in found:
        if how != "killed" or each.code != KILLED:
            _same(each, *wanted, forecasts=not changes and len(looks) == 1)


def _same(found: Ran, *wanted: Ran, forecasts: bool = True) -> None:
    """Each row is as in one of these; forecasts, which follow from all, where ``forecasts`` says so.

    Raises:
        AssertionError: one is not.
    """
    left_out = {"as_of"} if forecasts else {"as_of", "forecast"}  # the former: when it looked
    rows = [_rows(each, left_out) for each in wanted]
    mine = _rows(found, left_out)
    for name, row in mine.items():
        allowed = [each.get(name) for each in rows]
        assert row in allowed, (name, [_differing(row, each) for each in allowed])
    assert mine.keys() in [each.keys() for each in rows], "other collaborations"
    assert found.code in [each.code for each in wanted], (found.code, wanted[0].code)
    assert found.err in [each.err for each in wanted], (found.err, wanted[0].err)


def _rows(ran: Ran, left_out: set[str]) -> dict[str, Any]:
    told = json.loads(ran.out)
    rows = {
        each["key"]: {name: value for name, value in each.items() if name not in left_out}
        for each in told["collaborations"]
    }
    return rows | {"problems": told["problems"]}


def _differing(one: Any, other: Any) -> Any:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return one, other
    return [(name, one[name], other.get(name)) for name in one if one[name] != other.get(name)]


FLEET = Campaign(
    "fleet",
    "big fleets: finished ones change, kept rows are damaged, reading processes killed",
    cases,
)
