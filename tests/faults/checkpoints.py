"""What is kept of long logs is cut, exchanged and lost, and who keeps it is killed: only time is lost."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from random import Random

from tests.faults.bounds import bounded
from tests.faults.campaign import Campaign, Case
from tests.faults.kept_logs import Place, state
from tests.faults.lowered import long_logs
from tests.faults.shim import CHANGING, ERRORS, KILLED, READING, Faults
from tests.faults.together import Writer, said_aloud
from tests.protocols.folder.support import make_v1
from tests.protocols.folder.test_history import PEOPLE, rounds

_ACTS = 12  # of a case
_PIECE = 40  # bytes of a kept file that are cut and flipped in a case
_KINDS = (
    "acts", "cut", "acts", "killed", "acts", "failed", "acts", "together",
    "acts", "cut", "acts", "killed", "acts", "failed", "acts", "really long",
)  # fmt: skip


def cases(place: Path, seed: int) -> Iterator[Case]:
    """Of all kinds in turns, without an end."""
    faults: list[Faults] = []
    before = os.environ.get("ACP_CACHE")
    try:
        for number in count():
            kind, part = _KINDS[number % len(_KINDS)], number // len(_KINDS)
            chance = Random(f"{seed}-{number}")  # a case can be made again by its number alone
            at = Place(place / str(number), chance)
            run: Callable[[], None] = {
                "acts": partial(_acts, at, chance),
                "cut": partial(_cut, at, 2 * part + (number % len(_KINDS) > 1)),
                "killed": partial(_gone_wrong, at, chance, faults, ("kill", "tear")),
                "failed": partial(_gone_wrong, at, chance, faults, (*ERRORS, "short")),
                "together": partial(_together, at, chance),
                "really long": partial(_really_long, at, chance),
            }[kind]
            yield Case(f"{kind}: case {number} of seed {seed}", partial(_cleanly, at, run))
    finally:
        for each in faults:
            each.close()
        os.environ.pop("ACP_CACHE", None)
        if before is not None:
            os.environ["ACP_CACHE"] = before


def _cleanly(at: Place, run: Callable[[], None]) -> None:
    try:
        with bounded():
            run()
    finally:
        at.remove_all()


def _acts(at: Place, chance: Random) -> None:
    """Whatever others do to the log and to what is kept, commands go on."""
    with long_logs():
        at.make()
        _go_on(at, chance, _ACTS)


def _really_long(at: Place, chance: Random) -> None:
    """The same with a log that is longer than the limit, where only what is worth it is kept."""
    at.make(real=True)
    _go_on(at, chance, 4)


def _go_on(at: Place, chance: Random, acts: int) -> None:
    done: list[str] = []
    try:
        for _ in range(acts):
            if chance.random() < 0.1:
                at.change_user()
            if not at.kept() and chance.random() < 0.7:
                at.forget()  # whatever stands in the way
                at.compare(["next", "--participant", PEOPLE[0]])
            if chance.random() < 0.4:
                done.append(f"log {at.befall()}")
            if chance.random() < 0.4:
                done.append(f"kept {at.harm()}")
            done.append(at.act())
    except AssertionError as error:
        raise AssertionError(f"after {'; '.join(done)}: {error}") from None


def _cut(at: Place, part: int) -> None:
    """The kept file ends at each of some bytes, and each of them is another one."""
    words = ["next", "--participant", "zoë", "--json"]
    with long_logs():
        make_v1(at.folder, "reviewing", participants=PEOPLE)
        at.log.write_bytes(rounds(20))
        at.compare(words)
        (path,) = at.kept()
        whole = path.read_bytes()
        for step in range(_PIECE):
            size = (part * _PIECE + step) % len(whole)
            for data in (whole[:size], whole[:size] + bytes([whole[size] ^ 1]) + whole[size + 1 :]):
                path.write_bytes(data)
                at.compare(words)


def _gone_wrong(at: Place, chance: Random, servers: list[Faults], kinds: tuple[str, ...]) -> None:
    """An append that keeps where the log stands is killed, or its disk fails, at any operation."""
    kind = chance.choice(kinds)
    words = [
        "--participant",
        "ana",
        "--event",
        "blocked",
        "--summary",
        "Stop at once.",
        "--key",
        "k9",
    ]
    with long_logs():
        if not servers:
            servers.append(Faults())
        faults = servers[0]
        make_v1(at.folder, "reviewing", participants=PEOPLE)
        events = chance.randint(2, 60)
        at.log.write_bytes(rounds(events))
        if chance.random() < 0.6:
            at.compare(["next", "--participant", "ana"])
            at.log.write_bytes(rounds(events + chance.choice((0, 1, 7))))
        kept, place = state(at.cache), at.folder.parent
        line = ["append", "--folder", str(at.folder), *words, "--reply-to", "1"]
        env = {"ACP_CACHE": str(at.cache)}
        shutil.copytree(at.folder, place / "before")
        whole = faults.run(*line, kind="list" if kind in ERRORS else "count", env=env)
        assert whole.code == 0, whole
        shutil.rmtree(at.folder)
        (place / "before").rename(at.folder)
        at.put_back(kept)
        chosen = {"write"} if kind in ("tear", "short") else {*CHANGING, *READING} - {"close"}
        number = chance.choice([n for n, name in enumerate(whole.names, 1) if name in chosen])
        before = at.log.read_bytes()
        ran = faults.run(*line, kind=kind, at=number, env=env)
        told = (kind, number, whole.names[number - 1 :][:1], ran)
        assert ran.code in (0, KILLED) if kind in ("kill", "tear") else ran.code in range(5), told
        assert "TRACEBACK" not in ran.err and (ran.code == KILLED or ran.out + ran.err), told
        after = at.log.read_bytes()
        assert after.startswith(before), told
        assert ran.code != 0 or after.count(b"Stop at once.") == 1, told
        for name in PEOPLE:
            at.compare(["next", "--participant", name, "--json"])
        again = at.compare(["append", *words, "--reply-to", "1"])
        at.compare(["next", "--participant", "ben"])
        if after.endswith(b"\n"):
            assert again.code == 0 and at.log.read_bytes().count(b"Stop at once.") == 1, (
                told,
                again,
            )


def _together(at: Place, chance: Random) -> None:
    """Several write at once, with one cache or with two; some take no lock, some are killed."""
    with long_logs():
        make_v1(at.folder, "drafting", participants=PEOPLE)
        writers: list[Writer] = []
        kinds = ["folder", "folder", chance.choice(("folder", "unlocked"))]
        for kind, name in zip(kinds, PEOPLE, strict=True):
            at.change_user()
            os.environ["ACP_CACHE"] = str(at.cache)
            writers.append(Writer(kind, at.folder, name))
        for writer in writers:
            if chance.random() < 0.4:
                time.sleep(chance.uniform(0.1, 0.5))
                writer.kill()
        said = [each for writer in writers for each in writer.acknowledged()]
        data = at.log.read_bytes()
        held = Counter(said_aloud(data[: data.rfind(b"\n") + 1]))
        lost = [each for each in said if held[each] != 1]
        assert not lost, f"{len(lost)} of {len(said)} acknowledged are lost, or twice: {lost[:3]}"
        for user in range(2):
            at.use(user)
            for name in PEOPLE:
                at.compare(["next", "--participant", name, "--json"])
            words = ["append", "--participant", "ana", "--event", "blocked", "--reply-to", "1"]
            at.compare([*words, "--summary", f"Enough, says {user}."])


CHECKPOINT = Campaign(
    "checkpoint",
    "what is kept of long logs cut, exchanged, lost; its writers killed, its disk full",
    cases,
)
