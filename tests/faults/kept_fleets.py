"""A big fleet and what is kept of it, and whatever befalls either; see `fleets`."""

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
from tests.faults.looker import Look, Looker
from tests.faults.looking import Ran
from tests.faults.mutations import mutated
from tests.protocols.folder.support import make_v1

_GONE = 30.0  # s until a process that was told to end is gone
KILLED = -9
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

    def is_kept(self) -> bool:
        """Whether there is a file."""
        with contextlib.suppress(ValueError):
            return self.kept.is_file()
        return False

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

    def begin(self, reader: str = "", alone: bool = False, fresh: bool = False) -> Look:
        """Begin to look; ``alone`` in one process, ``fresh`` with an empty cache and the same state."""
        number = next(self._numbers)
        own = self._place / (f"fresh-{number}" if fresh else "own")
        if fresh and (self._place / "own/state").exists():
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
        assert ran.code in (0, 2, KILLED), ran
        assert ran.code != 2 or ran.err, (ran, "nothing was said")
        return ran

    def wanted(self) -> Ran:
        """What one process says of which nothing was kept."""
        return self.end(self.begin(alone=True, fresh=True))

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

    def settle(self) -> None:
        """Let nothing have been written just now: nobody is writing any more."""
        then = time.time() - _OLD
        for path in (self.work, *self.work.rglob("*")):
            with contextlib.suppress(OSError):
                if path.lstat().st_mtime > then:
                    os.utime(path, (then, then), follow_symlinks=False)
        time.sleep(2 * lowered.SETTLED)

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
            place.unlink(missing_ok=True)


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
