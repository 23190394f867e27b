"""Where 0.1.0 keeps what belongs to a path, and a tree of its files carried to another path.

The names are worked out here once more, with nothing of acp: they are what is promised.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

LENGTHS = (24, 16)  # digits of a digest in a file's name


def digest(*words: str) -> str:
    """The digest that stands for a real path, or for something in it."""
    return hashlib.sha256("\0".join(words).encode()).hexdigest()


def loop(state: Path, folder: Path, participant: str) -> Path:
    """The folder of a participant's loop."""
    name = f"{folder.name}-{participant}-{digest(str(folder), participant)[:16]}"
    return state / "loops" / name


def recording(state: Path, folder: Path) -> Path:
    """The recording of a collaboration."""
    return state / "recordings" / f"{folder.name}-{digest(str(folder))[:16]}.recording"


def process_of_turn(state: Path, root: Path, turn: str) -> Path:
    """The record of the process that takes a governed turn."""
    return state / "governed" / digest(str(root), turn)[:24] / "process.json"


def memory_of_cycle(state: Path, root: Path, cycle: str) -> Path:
    """What was written last into a cycle's state."""
    return state / "cycles" / f"{cycle[:60]}-{digest(str(root), cycle)[:16]}.json"


def carry(tree: Path, old: str, new: str, *others: tuple[str, str]) -> None:
    """Let the files below ``tree`` be as if all of it had always stood at ``new``, not at ``old``.

    ``others`` are further texts, with what stands in their place.
    """
    names = _renamed(tree, old, new)
    texts = [(a.encode(), b.encode()) for a, b in ((old, new), *names, *others)]
    for path in _files(tree):
        before = (path.stat().st_atime_ns, path.stat().st_mtime_ns)
        if path.suffix == ".recording":
            _carry_recording(path, old, new)
        elif path.suffix != ".sqlite3":
            _replace(path, texts)
        os.utime(path, ns=before)
    for path in sorted(tree.glob("state/*/*"), reverse=True):
        for a, b in names:
            if a in path.name:
                path.rename(path.with_name(path.name.replace(a, b)))
                break


def _renamed(tree: Path, old: str, new: str) -> list[tuple[str, str]]:
    """Every digest in the files' names, and what stands in its place; the longest first."""
    found = [
        (digest(f"{old}{path}", *words), digest(f"{new}{path}", *words))
        for path, words in _matters(tree)
    ]
    return [(a[:length], b[:length]) for length in LENGTHS for a, b in found]


def _matters(tree: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What has files of its own: a path below the tree, and what in it."""
    for folder in sorted((tree / "work").iterdir()):
        path = f"/work/{folder.name}"
        yield path, ()
        for cycle in folder.glob(".workflow/.cycle/*.json"):
            yield path, (cycle.stem,)
        for turn in folder.glob(".agentxchain/dispatch/turns/*"):
            yield path, (turn.name,)
        for participant in _participants(tree, folder.name):
            yield path, (participant,)


def _participants(tree: Path, name: str) -> set[str]:
    states = (json.loads(each.read_bytes()) for each in tree.glob("state/loops/*/loop.json"))
    own = {each["participant"] for each in states if Path(each["folder"]).name == name}
    return own | {"orchestrator"}


def _files(tree: Path) -> list[Path]:
    found = [each for each in tree.rglob("*") if each.is_file() and ".git" not in each.parts]
    return [each for each in found if not each.name.endswith(("-wal", "-shm"))]


def _replace(path: Path, texts: list[tuple[bytes, bytes]]) -> None:
    data = after = path.read_bytes()
    for old, new in texts:
        after = after.replace(old, new)
    if after != data:
        path.write_bytes(after)


def _carry_recording(path: Path, old: str, new: str) -> None:
    """A recording names its collaboration in one place."""
    with closing(sqlite3.connect(path)) as db, db:
        [(key,)] = db.execute("SELECT value FROM meta WHERE name = 'key'").fetchall()
        carried = key.replace(old.encode(), new.encode())
        db.execute("UPDATE meta SET value = ? WHERE name = 'key'", (carried,))
