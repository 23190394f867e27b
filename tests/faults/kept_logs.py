"""What is kept of long logs, and whatever befalls it or the log: it changes nothing but the time.

After each act a command with the person's cache must do, say and write the very same as one that has
an empty cache, beside a copy of the same bytes. Almost all logs here are short and count as long.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import acp_core
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.write import append as _append  # noqa: F401  # `clocks` needs it
from tests.faults import clocks
from tests.faults.looking import Ran, acp
from tests.faults.mutations import mutated
from tests.protocols.folder.support import change_protocol, make_v1, make_v2
from tests.protocols.folder.test_history import KINDS, ODD, PEOPLE, a_log, rounds

_LOG = "events.jsonl"
_REAL = 9_300  # events: more than a megabyte
_STRANGER = 54_321  # another account
_TIMES = datetime(2026, 2, 28, 10, 0, 2, tzinfo=UTC), datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC)
_FAILING = ("open", "read", "write", "replace", "mkdir", "fchmod", "fsync")
_SAME_SIZE = (
    (b'"from":"ana"', b'"from":"ben"'), (b"_submitted", b"_submittex"), (b"proposal_s", b"deadline_s"),
    (b'"reply_to":1', b'"reply_to":2'), (b'"Done."', b'"Dome."'), (b"review.md", b"../etc.md"), (b"T10:", b"T23:"),
)  # fmt: skip


class Place:
    """A collaboration, the caches of two people, and a twin of which nothing is kept.

    Attributes:
        folder: the collaboration.
        cache: that of who acts now.
        failing: which operation fails in that, and with what error.
    """

    def __init__(self, place: Path, chance: Random) -> None:
        self._place, self._chance = place, chance
        self.folder, self._twin = place / "run", place / "twin"
        self._caches = (place / "cache", place / "cache of another")
        self.cache = self._caches[0]
        self.failing: tuple[str, int] | None = None
        self._now = chance.choice(_TIMES)
        self._stale: list[bytes] = []  # what was kept before, of this log or another

    @property
    def log(self) -> Path:
        return self.folder / _LOG

    def make(self, real: bool = False) -> None:
        """A log by chance; a ``real`` one is longer than the limit."""
        make = self._chance.choice((make_v1, make_v2))
        make(self.folder, self._chance.choice(("reviewing", "passed")), participants=PEOPLE)
        if real:
            self.log.write_bytes(rounds(_REAL))
        elif self._chance.random() < 0.7:
            self.log.write_bytes(self.new_log())

    def new_log(self) -> bytes:
        kind = self._chance.choice(("", "", "", *KINDS))
        return self._chance.choice(
            (
                lambda: rounds(self._chance.randint(2, 60)),
                lambda: a_log(self._chance, records.V1, kind),
                lambda: a_log(self._chance, records.V2, kind),
            )
        )()

    def kept(self) -> list[Path]:
        """The kept files of who acts now."""
        with contextlib.suppress(OSError):
            found = sorted((self.cache / "logs").glob("*.json"))
            return [each for each in found if each.is_file()]
        return []

    def change_user(self) -> None:
        self.use(self._chance.randrange(2))

    def use(self, number: int) -> None:
        """Act as the first or the second person."""
        self.cache = self._caches[number]

    def put_back(self, kept: dict[str, bytes]) -> None:
        """Have nothing but this in the cache."""
        shutil.rmtree(self.cache, ignore_errors=True)
        for name, data in kept.items():
            path = self.cache / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(0o600)

    def remove_all(self) -> None:
        """Leave nothing behind."""
        shutil.rmtree(self._place, ignore_errors=True)

    # What befalls the log

    def befall(self) -> str:
        """Change the log as others would. Returns what was done."""
        name = self._chance.choice([*_BEFALLS])
        with contextlib.suppress(OSError, IndexError, ValueError, KeyError, TypeError):
            _BEFALLS[name](self)
        return name

    def append(self) -> None:
        data = self.log.read_bytes()
        last = json.loads(data.splitlines()[-1])
        sender, event = self._chance.choice(PEOPLE), self._chance.choice(records.EVENTS_V2)
        fields = {**last, "seq": last["seq"] + 1, "from": sender, "event": event, "reply_to": 1}
        with self.log.open("ab") as file:
            file.write(records.encode_event(fields))

    def append_odd(self) -> None:
        with self.log.open("ab") as file:
            file.write(self._chance.choice(ODD) + self._chance.choice((b"\n", b"")))

    def rewrite(self) -> None:
        """Other bytes, the same size and time; in the same file, or in another one."""
        found, data = self.log.stat(), self.log.read_bytes()
        old, new = self._chance.choice(_SAME_SIZE)
        if self._chance.random() < 0.3:
            at = self._chance.randrange(len(data))
            data = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        elif self._chance.random() < 0.5:
            data = data.replace(old, new)
        else:
            at = self._chance.choice([i for i in range(len(data)) if data.startswith(old, i)])
            data = data[:at] + new + data[at + len(old) :]
        self._put(data, other=self._chance.random() < 0.3)
        os.utime(self.log, ns=(found.st_atime_ns, found.st_mtime_ns))

    def truncate(self) -> None:
        data = self.log.read_bytes()
        if self._chance.random() < 0.5:
            lines = data.splitlines(keepends=True)
            data = b"".join(lines[: self._chance.randrange(len(lines))])
        else:
            data = data[: self._chance.randrange(len(data))]
        self._put(data)

    def tear(self) -> None:
        data = self.log.read_bytes()
        self._put(data[: -self._chance.randint(1, 30)])

    def replace(self) -> None:
        self._put(self.new_log(), other=self._chance.random() < 0.5)

    def grow(self) -> None:
        self._put(self.log.read_bytes() + b"".join(
            rounds(self._chance.randint(2, 90)).splitlines(keepends=True)[self._chance.randrange(40) :]
        ))  # fmt: skip

    def remove(self) -> None:
        self.log.unlink()

    def other_people(self) -> None:
        names = [*PEOPLE, "dan"]
        self._chance.shuffle(names)
        change_protocol(self.folder, participants=[{"id": name, "role": "x"} for name in names])

    def other_dialect(self) -> None:
        make = self._chance.choice((make_v1, make_v2))
        other = make(self._place / "dialect", "reviewing", participants=PEOPLE)
        shutil.copy(other / "protocol.json", self.folder)

    def _put(self, data: bytes, other: bool = False) -> None:
        if other:
            made = self.log.with_name("made")
            made.write_bytes(data)
            made.replace(self.log)
        else:
            self.log.write_bytes(data)

    # What befalls the file that is kept

    def harm(self) -> str:
        """Change what is kept. Returns what was done."""
        name = self._chance.choice([*_HARMS])
        for path in self.kept():
            with contextlib.suppress(OSError):
                found = path.stat()
                if found.st_uid == os.geteuid() and not found.st_mode & 0o022:  # no lie
                    self._stale = [*self._stale[-7:], path.read_bytes()]
        with contextlib.suppress(OSError, IndexError, ValueError):
            _HARMS[name](self)
        return name

    def cut(self) -> None:
        path = self._chance.choice(self.kept())
        data = path.read_bytes()
        path.write_bytes(data[: self._chance.randrange(len(data))])

    def mutate(self) -> None:
        path = self._chance.choice(self.kept())
        path.write_bytes(mutated(path.read_bytes(), self._chance))

    def exchange(self) -> None:
        """With one of earlier, of another log, or of another person."""
        for path in self.kept():
            path.write_bytes(self._chance.choice(self._stale))

    def of_another_folder(self) -> None:
        other = self._place / "other"
        make_v1(other, "reviewing", participants=PEOPLE)
        self._aside(other)

    def of_another_version(self) -> None:
        """It derives something else, and its files have these names by chance."""
        now, acp_core.__version__ = acp_core.__version__, "99.0"
        try:
            self._aside(self.folder, lie)
        finally:
            acp_core.__version__ = now

    def _aside(self, folder: Path, change: Callable[[bytes], bytes] = bytes) -> None:
        """Put what is kept of ``folder`` now where other files are."""
        names = self.kept()
        self.forget()
        self.run("next", "--folder", str(folder), "--participant", PEOPLE[0])
        for made in self.kept():
            data = change(made.read_bytes())
            for path in (made, *names):
                path.write_bytes(data)
                path.chmod(0o600)

    def lied_about(self) -> None:
        """Another account wrote there what did not happen, or could have."""
        for path in self.kept():
            data = lie(path.read_bytes())
            if self._chance.random() < 0.5:
                path.chmod(self._chance.choice((0o620, 0o602)))
            else:
                os.chown(path, _STRANGER, -1)
            path.write_bytes(data)

    def unreadable(self) -> None:
        for path in self.kept():
            path.chmod(path.stat().st_mode & 0o022)

    def of_a_stranger(self) -> None:
        places = [*self.kept(), self.cache / "logs", self.cache]
        os.chown(self._chance.choice(places), _STRANGER, -1)

    def no_file(self) -> None:
        path = self._chance.choice(self.kept())
        aside = path.with_name("aside")
        path.replace(aside)
        (path.mkdir, partial(path.symlink_to, aside), partial(os.mkfifo, path))[
            self._chance.randrange(3)
        ]()

    def no_folder(self) -> None:
        place = self._chance.choice((self.cache, self.cache / "logs"))
        shutil.rmtree(place)
        place.write_bytes(b"")

    def read_only(self) -> None:
        (self.cache / "logs").chmod(0o500)

    def fail(self) -> None:
        """From now on: whoever reads or writes there meets a disk that is full, or damaged."""
        number = self._chance.choice((errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EINTR))
        self.failing = self._chance.choice(_FAILING), number

    def forget(self) -> None:
        """As if nothing had ever been kept."""
        self.failing = None
        with contextlib.suppress(NotADirectoryError):
            shutil.rmtree(self.cache, ignore_errors=True)
        self.cache.unlink(missing_ok=True)

    # Acting, and what must be

    def run(self, *words: str, cache: Path | None = None) -> Ran:
        os.environ["ACP_CACHE"] = str(cache or self.cache)
        with clocks.standing(self._now), _failing(self.cache, self.failing):
            return acp(*words, most=4)

    def act(self) -> str:
        """Run a command by chance, and compare. Returns its words."""
        words = self.words()
        self.compare(words)
        return " ".join(words)

    def words(self) -> list[str]:
        chance, who = self._chance, self._chance.choice((*PEOPLE, "dan"))
        words = [chance.choice(("next", "next", "wait", "append", "append", "append"))]
        words += ["--participant", who, *chance.choice(([], ["--json"]))]
        if words[0] == "wait":
            words += ["--timeout", "0.001"]
        if words[0] == "append":
            words += ["--event", chance.choice(("blocked", *records.EVENTS_V2))]
            words += ["--summary", chance.choice(("Said.", "Said again."))]
            words += chance.choice(([], ["--reply-to", chance.choice("1239")]))
            words += chance.choice(([], ["--doc", chance.choice(("conclusion.md", "review.md"))]))
            words += chance.choice(([], ["--key", chance.choice(("k1", 'k"2', "ké"))]))
            words += chance.choice(([], [], [], ["--expect-seq", "3"]))
        return words

    def compare(self, words: list[str]) -> Ran:
        """Run a command here, and in a twin of which nothing is kept.

        Raises:
            AssertionError: they differ, or what was written before is not there any more.
        """
        before = state(self.folder)
        shutil.rmtree(self._twin, ignore_errors=True)
        shutil.copytree(self.folder, self._twin, symlinks=True)
        nothing = self._place / "nothing"
        shutil.rmtree(nothing, ignore_errors=True)
        name, *rest = words
        wanted = self.run(name, "--folder", str(self._twin), *rest, cache=nothing)
        found = self.run(name, "--folder", str(self.folder), *rest)
        after = state(self.folder)
        assert _told(found, self.folder) == _told(wanted, self._twin), (words, found, wanted)
        assert after == state(self._twin), (words, "other files")
        if name != "append" or found.code not in (0, 4):
            assert after.get(_LOG) == before.get(_LOG), (words, "the log is another one")
        else:
            assert after[_LOG].startswith(before[_LOG]), (words, "what was written is lost")
        return found


_BEFALLS: dict[str, Callable[[Place], None]] = {
    "nothing": lambda place: None,
    "an event more": Place.append,
    "an odd line more": Place.append_odd,
    "rewritten": Place.rewrite,
    "rewritten again": Place.rewrite,
    "truncated": Place.truncate,
    "torn": Place.tear,
    "replaced": Place.replace,
    "grown": Place.grow,
    "gone": Place.remove,
    "other participants": Place.other_people,
    "other participants again": Place.other_people,
    "another dialect": Place.other_dialect,
}
_HARMS: dict[str, Callable[[Place], None]] = {
    "cut": Place.cut,
    "mutated": Place.mutate,
    "exchanged": Place.exchange,
    "of another folder": Place.of_another_folder,
    "of another version": Place.of_another_version,
    "unreadable": Place.unreadable,
    "of another account": Place.of_a_stranger,
    "lied about": Place.lied_about,
    "no file": Place.no_file,
    "no folder": Place.no_folder,
    "a read-only folder": Place.read_only,
    "on a failing disk": Place.fail,
    "forgotten": Place.forget,
}


def lie(data: bytes) -> bytes:
    """What is kept, with another phase, and a digest that fits."""
    head, _, content = data.partition(b"\n")
    try:
        told = json.loads(content)
        told["core"][0] += ""
    except (ValueError, TypeError, LookupError):
        return data  # it was harmed before
    told["core"][0] = "reviewing" if told["core"][0] == "blocked" else "blocked"
    content = json.dumps(told, separators=(",", ":")).encode()
    return head[:65] + hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def state(folder: Path) -> dict[str, bytes]:
    """The files of a collaboration."""
    paths = sorted(folder.rglob("*"))
    return {str(each.relative_to(folder)): each.read_bytes() for each in paths if each.is_file()}


def _told(ran: Ran, folder: Path) -> Ran:
    return ran._replace(
        out=ran.out.replace(str(folder), "FOLDER"), err=ran.err.replace(str(folder), "FOLDER")
    )


@contextlib.contextmanager
def _failing(cache: Path, failing: tuple[str, int] | None) -> Iterator[None]:
    """Let an operation fail wherever it is one in the cache."""
    if failing is None:
        yield
        return
    name, number = failing
    real = getattr(os, name)

    def call(place: Any, *args: Any, **kwargs: Any) -> Any:
        where = os.readlink(f"/proc/self/fd/{place}") if isinstance(place, int) else str(place)
        if not where.startswith(f"{cache}/"):
            return real(place, *args, **kwargs)
        if name == "write":
            real(place, bytes(args[0])[: len(args[0]) // 2])
        raise OSError(number, os.strerror(number), where)

    setattr(os, name, call)
    try:
        yield
    finally:
        setattr(os, name, real)
