"""Where 0.2 keeps what belongs to a path, and a tree of its files carried to another path.

The names are worked out here once more, with nothing of acp: they are what is promised.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

LENGTHS = (32, 24, 16)  # digits of a digest in a file's name
_DIGEST = re.compile(r"(?<![0-9a-f])[0-9a-f]{16,}(?![0-9a-f])")
_BASE = "\0"  # in a word: the path of the tree


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
            _carry_recording(path, texts)
        elif path.suffix != ".sqlite3":
            _replace(path, texts)
        os.utime(path, ns=before)
    named = (each for folder in ("config", "state") for each in (tree / folder).rglob("*"))
    for path in sorted(named, reverse=True):
        for a, b in names:
            if a in path.name:
                path.rename(path.with_name(path.name.replace(a, b)))
                break


def _renamed(tree: Path, old: str, new: str) -> list[tuple[str, str]]:
    """Every digest in the files' names, and what stands in its place; the longest first."""
    found = [
        [digest(*(word.replace(_BASE, base) for word in words)) for base in (old, new)]
        for words in _matters(tree)
    ]
    return [(a[:length], b[:length]) for length in LENGTHS for a, b in found]


def unknown(tree: Path, base: str) -> list[str]:
    """Names below a person's state and settings with a digest that stands for nothing at ``base``."""
    digests = {digest(*(word.replace(_BASE, base) for word in words)) for words in _matters(tree)}
    known = {each[:length] for each in digests for length in LENGTHS}
    named = [each for folder in ("config", "state") for each in (tree / folder).rglob("*")]
    found = [
        (each, _DIGEST.search(each.name)) for each in named if each.parent.name != "permissions"
    ]
    return [str(each.relative_to(tree)) for each, digit in found if digit and digit[0] not in known]


def _matters(tree: Path) -> Iterator[tuple[str, ...]]:
    """What has files of its own: the words that its digest is made of."""
    for folder in sorted((tree / "work").iterdir()):
        path = f"{_BASE}/work/{folder.name}"
        yield (path,)
        for cycle in folder.glob(".workflow/.cycle/*.json"):
            yield path, cycle.stem
        for turn in folder.glob(".agentxchain/dispatch/turns/*"):
            yield path, turn.name
        for participant in _participants(tree, folder.name):
            yield path, participant
    store = f"git+file://{_BASE}/store.git"
    yield (store,)
    yield f"{store}#prices", "laptop"
    yield (f"{_BASE}/state/wire/Writer",)
    for home, settings in ((".claude", ".claude.json"), (".codex", ".codex/config.toml")):
        yield f"{_BASE}/{home}/skills/agent-collaboration", f"{_BASE}/{settings}"


def _participants(tree: Path, name: str) -> set[str]:
    states = (json.loads(each.read_bytes()) for each in tree.glob("state/loops/*/loop.json"))
    own = {each["participant"] for each in states if Path(each["folder"]).name == name}
    return own | {"orchestrator"}


def _files(tree: Path) -> list[Path]:
    found = [each for each in tree.rglob("*") if each.is_file() and not each.is_symlink()]
    own = [each for each in found if not any(part.endswith(".git") for part in each.parts)]
    return [each for each in own if not each.name.endswith(("-wal", "-shm"))]


def _replaced(data: bytes, texts: list[tuple[bytes, bytes]]) -> bytes:
    for old, new in texts:
        data = data.replace(old, new)
    return data


def _replace(path: Path, texts: list[tuple[bytes, bytes]]) -> None:
    data = path.read_bytes()
    after = _replaced(data, texts)
    if after != data:
        path.write_bytes(after)


def carry_store(path: Path, *texts: tuple[str, str]) -> None:
    """Replace texts in every row of an agent's store."""
    with closing(sqlite3.connect(path)) as db:
        tables = [
            name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        for table in tables:
            for column in [row[1] for row in db.execute(f"PRAGMA table_info({table})").fetchall()]:
                for old, new in texts:
                    db.execute(f"UPDATE {table} SET {column} = replace({column}, ?, ?) WHERE {column} LIKE ?",
                               (old, new, f"%{old}%"))  # fmt: skip
        db.commit()
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _carry_recording(path: Path, texts: list[tuple[bytes, bytes]]) -> None:
    """A recording names its collaboration, its loops name paths, and so may the contents that it keeps."""
    with closing(sqlite3.connect(path)) as db, db:
        for table, column in (("meta", "value"), ("look", "said"), ("loop", "said")):
            for row, value in db.execute(f"SELECT rowid, {column} FROM {table}").fetchall():
                data = value if isinstance(value, bytes) else str(value).encode()
                if (after := _replaced(data, texts)) != data:
                    kept = after if isinstance(value, bytes) else after.decode()
                    db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (kept, row))
        for (file,) in db.execute("SELECT id FROM file").fetchall():
            _carry_versions(db, file, texts)
        for digest, packed in db.execute(
            "SELECT digest, packed FROM content WHERE digest IN (SELECT findings FROM look)"
        ).fetchall():
            content = _kept(db, _replaced(zlib.decompress(packed), texts))
            db.execute("UPDATE look SET findings = ? WHERE findings = ?", (content, digest))
        db.execute(
            "DELETE FROM content WHERE digest NOT IN (SELECT findings FROM look)"
            " AND digest NOT IN (SELECT content FROM version WHERE content NOT NULL)"
        )


def _carry_versions(db: sqlite3.Connection, file: int, texts: list[tuple[bytes, bytes]]) -> None:
    """The contents of a file; of a log each holds what follows the first ``start`` bytes."""
    rows = db.execute(
        "SELECT v.id, v.start, v.whole, c.packed FROM version v JOIN content c ON c.digest = v.content"
        " WHERE v.file = ? ORDER BY v.id", (file,),
    ).fetchall()  # fmt: skip
    before = b""
    for row, start, digest, packed in rows:
        before = before[:start] + zlib.decompress(packed)
        after, begun = _replaced(before, texts), len(_replaced(before[:start], texts))
        if after == before:
            continue
        assert digest == hashlib.sha256(before).digest()
        content = _kept(db, after[begun:])
        db.execute("UPDATE version SET start = ?, size = ?, whole = ?, content = ? WHERE id = ?",
                   (begun, len(after), hashlib.sha256(after).digest(), content, row))  # fmt: skip


def _kept(db: sqlite3.Connection, data: bytes) -> bytes:
    """The digest of a content that is kept from now on."""
    digest = hashlib.sha256(data).digest()
    db.execute(
        "INSERT OR IGNORE INTO content VALUES (?, ?, ?)", (digest, len(data), zlib.compress(data))
    )
    return digest
