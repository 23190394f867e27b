"""What is too large, too deep, or no file at all, in the place of every file that is read."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from acp_core.protocols.contract import Collaboration
from acp_core.protocols.folder.schema.records import MAX_PARTICIPANTS
from tests.faults import places
from tests.faults.bounds import bounded
from tests.faults.campaign import Campaign, Case, mixed
from tests.faults.looking import acp, ask, look, opened
from tests.protocols.folder.support import make_v1

_LONG = 100 << 20  # bytes of one line
_DEEP = 1_000_000
_MANY = 10_000


def _hole(path: Path) -> None:
    """100 MB in one line, which begins as the file did."""
    start = path.read_bytes()[:2_000].rstrip(b"\n}] ")
    with path.open("wb") as file:
        file.write(start)
        file.write(b"x" * _LONG)


def _deep_list(path: Path) -> None:
    path.write_bytes(b"[" * _DEEP + b"]" * _DEEP + b"\n")


def _deep_object(path: Path) -> None:
    path.write_bytes(b'{"a":' * _DEEP + b"1" + b"}" * _DEEP + b"\n")


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _zero(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def _itself(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


def _away(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inner").write_text("{}")


def _socket(path: Path) -> None:
    import socket

    path.unlink()
    here = os.getcwd()
    os.chdir(path.parent)  # a socket's path may only be short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _gone(path: Path) -> None:
    path.unlink()


def _blank(path: Path) -> None:
    path.write_bytes(b"\n" * 500_000)


def _signs(path: Path) -> None:
    """What is slow for patterns that go back again and again."""
    path.write_bytes(b"##" + b" " * 50_000 + b"\n- [" + b"a - " * 20_000 + b"\n" + b"|" * 50_000)


def _lines(path: Path) -> None:
    """The file's own last line many times over."""
    last = path.read_bytes().rstrip(b"\n").rsplit(b"\n", 1)[-1][:2_000]
    path.write_bytes((last + b"\n") * 20_000)


WAYS: dict[str, Callable[[Path], None]] = {
    "100 MB in one line": _hole, "a list a million deep": _deep_list,
    "an object a million deep": _deep_object, "a pipe": _pipe, "a link to /dev/zero": _zero,
    "a link to itself": _itself, "a link to a file elsewhere": _away, "a folder": _folder,
    "a socket": _socket, "nothing": _gone, "an empty file": _empty, "500,000 empty lines": _blank,
    "lines that patterns are slow on": _signs, "its last line 20,000 times": _lines,
}  # fmt: skip


def cases(place: Path, seed: int) -> Iterator[Case]:
    """All of them, in an order of chance."""
    yield from mixed(_cases(place), seed)


def _cases(place: Path) -> Iterator[Case]:
    """Each file of each protocol in each of these ways; the large ones where it counts."""
    yield from _many(place)
    for kind in places.MAKERS:
        for name in places.files(places.made(kind, place)):
            if name.endswith("-shm"):
                continue
            for way, change in WAYS.items():
                yield Case(
                    f"{kind}: {way} in place of {name}",
                    lambda k=kind, n=name, c=change: _one(place, k, n, c),
                )


def _one(place: Path, kind: str, name: str, change: Callable[[Path], None]) -> None:
    root = places.copied(kind, place, place / "limits" / kind)
    with bounded():
        before = opened(root)
        if before is not None:
            before.refresh(datetime.now(UTC))
        change(root / name)
        look(root)
        _still(before)
        acp("validate", str(root))
    shutil.rmtree(root)


def _still(collaboration: Collaboration | None) -> None:
    if collaboration is not None:
        try:
            ask(collaboration, datetime.now(UTC))
        finally:
            collaboration.close()


def _many(place: Path) -> Iterator[Case]:
    yield Case("folder: 10,000 participants", lambda: _participants(place))
    yield Case("workspaces: 10,000 agents in the manifest", lambda: _agents(place))
    yield Case("governed: 10,000 roles", lambda: _roles(place))
    yield Case("cycle: 10,000 tasks that depend on each other", lambda: _tasks(place))


def _participants(place: Path) -> None:
    people = tuple(f"agent-{number}" for number in range(_MANY))
    root = make_v1(place / "many", "reviewing", participants=people)
    with bounded():
        snapshot = look(root)
        assert snapshot is not None
        told = [each.message for each in snapshot.findings if each.code == "ACP121"]
        assert told == [f"protocol.json has more than {MAX_PARTICIPANTS} participants"]
        words = ("--folder", str(root), "--participant", "agent-77", "--event", "blocked")
        assert acp("append", *words, "--summary", "Stop.", "--reply-to", "2").code == 0
        for command in ("validate", "show", "why", "report", "chart", "stats", "status"):
            acp(command, str(root))
    shutil.rmtree(root)


def _agents(place: Path) -> None:
    root = places.copied("coordinated", place, place / "many")
    path = root / "agent-workspaces/.coord/manifest.json"
    held = json.loads(path.read_text())
    first = held["agents"][0]
    held["agents"] += [first | {"agent": f"a{n}", "task_id": f"t{n}"} for n in range(_MANY)]
    path.write_text(json.dumps(held))
    _all(root)


def _roles(place: Path) -> None:
    root = places.copied("governed", place, place / "many")
    path = root / "agentxchain.json"
    held = json.loads(path.read_text())
    role = next(iter(held["roles"].values()))
    held["roles"] |= {f"role-{number}": role for number in range(_MANY)}
    path.write_text(json.dumps(held))
    _all(root)


def _tasks(place: Path) -> None:
    root = places.copied("cycle", place, place / "many")
    path = next(root.glob(".workflow/.cycle/*.json"))
    held = json.loads(path.read_text())
    task = held["plan"]["tasks"][0]
    held["plan"]["tasks"] = [
        task | {"id": f"T{n}", "depends_on": [f"T{n - 1}", f"T{n // 2}"]} for n in range(_MANY)
    ]
    path.write_text(json.dumps(held))
    _all(root)


def _all(root: Path) -> None:
    with bounded():
        assert look(root) is not None
        for command in ("validate", "show", "why", "report", "chart", "stats", "status"):
            acp(command, str(root))
    shutil.rmtree(root)


LIMITS = Campaign(
    "limits", "too large, too deep, too many, or no file at all, for every file", cases
)
