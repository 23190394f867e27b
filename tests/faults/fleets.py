"""Big fleets whose finished collaborations change, whose cache is damaged, and whose readers die.

Whatever happens, `acp status --json` says what one process says that has an empty cache. Here a few
collaborations are a big fleet (see `lowered`); the processes are real ones.
"""

from __future__ import annotations

import contextlib
import hashlib
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

import psutil

from tests.faults import fleet_reader, lowered
from tests.faults.bounds import bounded
from tests.faults.campaign import Campaign, Case
from tests.faults.looker import Look, Looker
from tests.faults.looking import Ran
from tests.faults.mutations import mutated
from tests.protocols.folder.support import make_v1
from tests.support import finished

_KINDS = {"folder": 14, "workspaces": 2, "governed": 2, "initiative": 1, "cycle": 2}
_GOING_ON = 2  # collaborations
_ROUNDS = 4  # of a case
_GONE = 30.0  # s until a process that was told to end is gone
_KILLED = -9
_SOON = 1.0  # s in which reading processes begin, if any do
_OLD = 86_400.0  # s
_STRANGER = 54_321  # another account


class Place:
    """A fleet and a person's cache.

    Attributes:
        work: where the collaborations are.
        cache: the file with what is kept of them.
    """

    def __init__(self, place: Path, chance: Random, looker: Looker, pattern: Path) -> None:
        self._place, self._chance = place, chance
        self._looker = looker
        self._pattern = pattern
        self.work = place / "work"
        self._notes = place / "readers"
        self._numbers = count()

    @property
    def kept(self) -> Path:
        (found,) = (self._place / "own/cache/snapshots").glob("*.json")
        return found

    def make(self) -> None:
        shutil.rmtree(self._place, ignore_errors=True)
        shutil.copytree(self._pattern, self.work, symlinks=True)

    def remove_all(self) -> None:
        """Leave nothing behind, no process either."""
        self._looker.begin_anew()
        for each in self.readers():
            each.kill()
        shutil.rmtree(self._place, ignore_errors=True)

    # Looking

    def begin(self, reader: str = "", alone: bool = False) -> Look:
        """Begin to look; ``alone`` in one process that has the same state, and an empty cache."""
        number = next(self._numbers)
        own = self._place / (f"alone-{number}" if alone else "own")
        if alone and (self._place / "own/state").exists():
            shutil.copytree(self._place / "own/state", own / "state", symlinks=True)
        self._notes.mkdir(exist_ok=True)
        if not alone:
            for each in self._notes.iterdir():
                each.unlink(missing_ok=True)
        env = {"ACP_CACHE": str(own / "cache"), "ACP_STATE": str(own / "state"),
               "ACP_TESTS_READER": reader, "ACP_TESTS_READERS": str(self._notes)}  # fmt: skip
        out = self._place / f"look-{number}"
        return self._looker.begin(out, "status", "--json", str(self.work), alone=alone, **env)

    def end(self, look: Look) -> Ran:
        """What came of it; the exit code is negative where it was killed.

        Raises:
            AssertionError: it ended in another way than it may.
        """
        ran = self._looker.end(look)
        assert ran.code in (0, 2, _KILLED), ran
        assert ran.code != 2 or ran.err, (ran, "nothing was said")
        return ran

    def wanted(self) -> Ran:
        """What one process says of which nothing was kept."""
        return self.end(self.begin(alone=True))

    def until_read(self) -> None:
        """Wait until a reading process has begun, if one does."""
        until = time.monotonic() + _SOON
        while not any(self._notes.iterdir()) and time.monotonic() < until:
            time.sleep(0.01)

    def until_gone(self) -> None:
        """Wait until no reading process of this fleet is left.

        Raises:
            AssertionError: one stays.
        """
        until = time.monotonic() + _GONE
        while left := [*self.readers()]:
            assert time.monotonic() < until, f"left behind: {left}"
            time.sleep(0.02)

    def let_go_on(self) -> None:
        """Whoever is left, and was stopped, goes on: only so can it see that nobody listens."""
        for each in self.readers():
            with contextlib.suppress(psutil.Error):
                each.resume()

    def readers(self) -> Iterator[psutil.Process]:
        for each in psutil.process_iter(["cmdline"]):
            if fleet_reader.HERE not in (each.info["cmdline"] or ()):
                continue
            with contextlib.suppress(psutil.Error):
                own = each.environ().get("ACP_TESTS_READERS") == str(self._notes)
                if own and each.status() != psutil.STATUS_ZOMBIE:
                    yield each

    # What befalls the collaborations

    def change(self) -> str:
        """Change one of them. Returns what was done."""
        name = self._chance.choice(_UNSEEN if self._chance.random() < 0.3 else [*_CHANGES])
        folder = self._chance.choice(sorted(each for each in self.work.iterdir() if each.is_dir()))
        with contextlib.suppress(OSError, IndexError, ValueError):
            _CHANGES[name](self, folder)
        return f"{folder.name} {name}"

    def age(self) -> None:
        """Let nothing have been written just now: nobody is writing any more."""
        then = time.time() - _OLD
        for path in (self.work, *self.work.rglob("*")):
            with contextlib.suppress(OSError):
                if path.lstat().st_mtime > then:
                    os.utime(path, (then, then), follow_symlinks=False)

    def a_file(self, folder: Path) -> Path:
        chosen = [
            each
            for each in sorted(folder.rglob("*"))
            if each.is_file() and ".git" not in each.parts
        ]
        return self._chance.choice(chosen)

    def grow(self, folder: Path) -> None:
        with self.a_file(folder).open("ab") as file:
            file.write(b"\n## Late\n\nOne word more.\n")

    def replace(self, folder: Path) -> None:
        """Another file of the same size and time."""
        path = folder / "protocol.json"
        path = path if path.is_file() else self.a_file(folder)
        found, data = path.stat(), path.read_bytes()
        made = path.with_name("made")
        made.write_bytes(data.replace(b"e", b"E"))
        os.utime(made, ns=(found.st_atime_ns, found.st_mtime_ns))
        made.replace(path)

    def damage(self, folder: Path) -> None:
        path = self.a_file(folder)
        path.write_bytes(mutated(path.read_bytes(), self._chance))

    def cut(self, folder: Path) -> None:
        path = self.a_file(folder)
        data = path.read_bytes()
        path.write_bytes(data[: self._chance.randrange(len(data))])

    def swap(self, folder: Path) -> None:
        other = self._chance.choice(sorted(self.work.iterdir()))
        aside = self.work / "aside"
        folder.rename(aside)
        other.rename(folder)
        aside.rename(other)

    def go_on(self, folder: Path) -> None:
        shutil.rmtree(folder)
        make_v1(folder, "reviewing")

    def touch(self, folder: Path) -> None:
        os.utime(self.a_file(folder))

    def link(self, folder: Path) -> None:
        aside = self._place / f"linked-{next(self._numbers)}"
        folder.rename(aside)
        folder.symlink_to(aside)

    def pipe(self, folder: Path) -> None:
        path = self.a_file(folder)
        path.unlink()
        os.mkfifo(path)

    def restore(self, folder: Path) -> None:
        shutil.rmtree(folder)
        shutil.copytree(self._pattern / folder.name, folder, symlinks=True)

    def more(self, folder: Path) -> None:
        shutil.copytree(self._pattern / "folder0", folder / "more")

    # What befalls what is kept

    def harm(self) -> str:
        """Change what is kept. Returns what was done."""
        name = self._chance.choice([*_HARMS])
        with contextlib.suppress(OSError, ValueError):
            _HARMS[name](self)
        return name

    def cut_kept(self) -> None:
        data = self.kept.read_bytes()
        self.kept.write_bytes(data[: self._chance.randrange(len(data))])

    def flip_kept(self) -> None:
        data = bytearray(self.kept.read_bytes())
        data[self._chance.randrange(len(data))] ^= 1 << self._chance.randrange(8)
        self.kept.write_bytes(data)

    def exchange_rows(self) -> None:
        """Each row stands for another collaboration, with a digest that fits."""

        def moved(rows: list[list[Any]]) -> list[list[Any]]:
            keys = [row[0] for row in rows]
            return [[key, *row[1:]] for key, row in zip(keys[1:] + keys[:1], rows, strict=True)]

        self._rewrite(moved)

    def damage_rows(self) -> None:
        """Rows are none, with a digest that fits."""
        odd = self._chance.choice(([], [None] * 5, [7, 7, 7, 7, 7], ["folder", [], [], "", []]))
        self._rewrite(lambda rows: [[row[0], *(odd if row[0] else row[1:])] for row in rows])

    def lie(self) -> None:
        """Another account wrote what did not happen, or could have."""
        if self._chance.random() < 0.5:
            self.kept.chmod(self._chance.choice((0o620, 0o602)))
        else:
            os.chown(self.kept, _STRANGER, -1)
        self._rewrite(lambda rows: [_untrue(row) for row in rows])

    def _rewrite(self, change: Callable[[list[list[Any]]], list[list[Any]]]) -> None:
        head, _, content = self.kept.read_bytes().partition(b"\n")
        content = json.dumps(change(json.loads(content))).encode()
        told = json.loads(head) | {"digest": hashlib.sha256(content).hexdigest()}
        self.kept.write_bytes(json.dumps(told).encode() + b"\n" + content)

    def no_file(self) -> None:
        path = self.kept
        aside = path.with_name("aside")
        path.replace(aside)
        (path.mkdir, partial(path.symlink_to, aside), partial(os.mkfifo, path))[
            self._chance.randrange(3)
        ]()

    def no_folder(self) -> None:
        place = self._place / "own/cache/snapshots"
        shutil.rmtree(place)
        place.write_bytes(b"")

    def forget(self) -> None:
        place = self._place / "own/cache/snapshots"
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink()


_CHANGES: dict[str, Callable[[Place, Path], object]] = {
    "has another letter": lambda place, folder: fleet_reader.rename(folder),
    "has a file that was replaced": Place.replace,
    "has grown": Place.grow,
    "is damaged": Place.damage,
    "is cut": Place.cut,
    "changed places": Place.swap,
    "goes on": Place.go_on,
    "was touched": Place.touch,
    "is a link": Place.link,
    "has a pipe": Place.pipe,
    "is restored": Place.restore,
    "has one inside": Place.more,
    "is gone": lambda place, folder: shutil.rmtree(folder),
    "has lost a file": lambda place, folder: place.a_file(folder).unlink(),
    "has a file more": lambda place, folder: (folder / "notes.md").write_text("# Notes\n"),
    "cannot be read": lambda place, folder: folder.chmod(0),
}
_UNSEEN = ["has another letter", "has a file that was replaced"]  # by who compares size and time
_HARMS: dict[str, Callable[[Place], None]] = {
    "cut": Place.cut_kept,
    "flipped": Place.flip_kept,
    "exchanged": Place.exchange_rows,
    "damaged": Place.damage_rows,
    "lied about": Place.lie,
    "no file": Place.no_file,
    "no folder": Place.no_folder,
    "forgotten": Place.forget,
}


def _untrue(row: list[Any]) -> list[Any]:
    """A row with another name and another objective."""
    *rest, (protocol, dialect, *_, location), told = [*row[:-1], row[-1][:5], row[-1][5:]]
    return [*rest, [protocol, dialect, "x", "y", location, *told]]


def cases(place: Path, seed: int) -> Iterator[Case]:
    """Fleets without an end."""
    pattern = place / "pattern"
    _make(pattern)
    looker = Looker()
    try:
        for number in count():
            chance = Random(f"{seed}-{number}")  # a case can be made again by its number alone
            at = Place(place / str(number), chance, looker, pattern)
            yield Case(f"fleet: case {number} of seed {seed}", partial(_one, at, chance))
    finally:
        looker.close()


def _make(pattern: Path) -> None:
    for kind, number in _KINDS.items():
        made = finished.KINDS[kind][0](pattern.parent / "made" / kind)
        for each in range(number):
            shutil.copytree(made, pattern / f"{kind}{each}", symlinks=True)
    for each in range(_GOING_ON):
        make_v1(pattern / f"going-on{each}", "reviewing")


def _one(at: Place, chance: Random) -> None:
    done: list[str] = []
    try:
        with bounded():
            at.make()
            for number in range(_ROUNDS):
                for _ in range(chance.choice((0, 1, 2, 4))):
                    done.append(at.change())
                if number and chance.random() < 0.35:
                    done.append(f"cache {at.harm()}")
                at.age()
                time.sleep(2 * lowered.SETTLED)
                _look(at, chance, done)
            at.age()
            time.sleep(2 * lowered.SETTLED)
            wanted = at.wanted()
            _same(at.end(at.begin()), wanted)
            at.until_gone()
    except AssertionError as error:
        raise AssertionError(f"after {'; '.join(done)}: {error}") from None
    finally:
        at.remove_all()


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
        if how != "killed" or each.code != _KILLED:
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
