"""Agents that are run and talked to over loopback, then ended; what they leave is settled."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sqlite3
import urllib.request
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from tests.golden.builders.settled import START
from tests.golden.sandbox import environment
from tests.support import forked
from tests.support.waiting import until

STORE = "wire.sqlite3"
PATIENCE = 60.0
_NOW = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")
_PORT = re.compile(r'(127\.0\.0\.1:|"http_port":)\d+')
_ID = re.compile(
    r"(?<![0-9A-Za-z])[a-z]+_[0-9a-f]{16,64}(?![0-9A-Za-z])|ed25519_[\w-]{43}|(?<![\w-])[\w-]{43}(?![\w-])"
)
_KIND = re.compile(r"(?:ed25519|[a-z]+)_")


class Agent:
    """A process of `acp agent` that runs."""

    def __init__(self, root: Path, name: str, *options: str) -> None:
        self.name = name
        self.folder = root / "state/wire" / name
        words = ("agent", "--name", name, "--json", "--port", "0", "--http-port", "0")
        self._process = forked.start((*words, *options), root / "work", environment(root))
        about = json.loads(self._process.line() or "null")
        assert about, self._process.said()
        self.link, self.url = str(about["link"]), str(about["http_url"])
        self._owner = {"Authorization": f"Bearer {about['owner_token']}"}

    def post(self, path: str, **body: object) -> None:
        """POST JSON."""
        data = json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path,
            data,
            {"Content-Type": "application/json", **self._owner},
            method="POST",
        )
        _object(request)

    def get(self, path: str) -> Any:
        """The JSON at a path."""
        return _object(urllib.request.Request(self.url + path, headers=self._owner))

    def meet(self, other: Agent) -> None:
        """Connect to another agent; both know of it afterwards."""
        self.post("/peers/connect", link=other.link)
        until(lambda: any(each["connected"] for each in self.get("/peers")))
        until(lambda: any(each["connected"] for each in other.get("/peers")))

    def until_tasks(self, **status: str) -> None:
        """Wait until tasks, by their ids, have a status."""
        until(lambda: {t["id"]: t["status"] for t in self.get("/tasks")}.items() >= status.items())

    def until_messages(self, count: int) -> None:
        """Wait until it has sent and got so many messages."""
        until(lambda: self.get("/messages")["total"] >= count)

    def until_alone(self) -> None:
        """Wait until no peer is connected."""
        until(lambda: not any(each["connected"] for each in self.get("/peers")))

    def until_sent(self) -> None:
        """Wait until nothing is left to be sent, as its store says: also where it is killed then."""
        until(lambda: self._count("outgoing") == 0)

    def _count(self, table: str) -> int:
        with closing(sqlite3.connect(f"file:{self.folder / STORE}?mode=ro", uri=True)) as db:
            return int(db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])

    def end(self, number: int = signal.SIGTERM) -> None:
        """End it, and wait for that."""
        self._process.end(number)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(signal.SIGKILL)


def _object(request: urllib.request.Request) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=PATIENCE) as answer:
        return json.loads(answer.read())


def settled(agent: Agent, work: Path) -> Path:
    """The folder of an agent that has ended, moved to ``work``, with fixed times, ids and ports."""
    place = work / agent.name
    shutil.move(agent.folder, place)
    with closing(sqlite3.connect(place / STORE)) as db:
        db.execute("PRAGMA journal_mode=DELETE")
        _Settled(db).everything()
        db.commit()
        db.execute("VACUUM")
    for path in place.iterdir():
        if path.name not in (STORE, "lock"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return place


class _Settled:
    """The store of an agent: an entry is a minute after the one before it."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._ids: dict[str, str] = {}

    def everything(self) -> None:
        """Settle every table."""
        for seq, body in self._rows("SELECT seq, body FROM log ORDER BY seq"):
            self._set("log", "seq", seq, body=self._text(body, _minute(seq)))
        for seq, envelope in self._rows("SELECT seq, envelope FROM messages ORDER BY seq"):
            at = _minute(seq)
            self._set("messages", "seq", seq, at=at.timestamp(), envelope=self._text(envelope, at))
        self._tasks()
        self._peers()
        for id, frame in self._rows("SELECT id, frame FROM outgoing ORDER BY id"):
            at = _minute(60 + id)
            self._set("outgoing", "id", id, at=at.timestamp(), frame=self._text(frame, at))
        for key, value in self._rows("SELECT key, value FROM meta ORDER BY key"):
            self._set("meta", "key", key, value=self._text(value, START))
        self._references()

    def _tasks(self) -> None:
        found = self._rows("SELECT id, created_at, updated_at, content FROM tasks ORDER BY id")
        for id, created, updated, content in found:
            first, last = self._db.execute(
                "SELECT min(seq), max(seq) FROM log WHERE task_id = ?", (id,)
            ).fetchone()
            begun, ended = (_iso(_minute(seq or 0), created) for seq in (first, last))
            text = str(content).replace(created, begun).replace(updated, ended)
            text = self._text(text, _minute(last or 0))
            self._set("tasks", "id", id, created_at=begun, updated_at=ended, content=text)

    def _peers(self) -> None:
        names = "number, identity, link, card, public_key, connected_at, disconnected_at"
        for number, *values in self._rows(f"SELECT {names} FROM peers ORDER BY number"):
            times = (START, START, START, START, _minute(0), _minute(90))
            new = [self._text(value, at) for value, at in zip(values, times, strict=True)]
            columns = names.split(", ")[1:]
            self._set("peers", "number", number, **dict(zip(columns, new, strict=True)))

    def _references(self) -> None:
        """Columns that hold an id."""
        for table, columns in (
            ("messages", ("origin", "message_id", "peer_id", "task_id", "context_id",
                          "correlation_id", "flags")),
            ("log", ("task_id",)),
            ("seen", ("origin", "frame_id")),
            ("tasks", ("id", "peer_id", "context_id")),
            ("outgoing", ("peer_id", "frame_id")),
        ):  # fmt: skip
            for row in self._rows(f"SELECT rowid, {', '.join(columns)} FROM {table}"):
                new = [self._text(value, START) for value in row[1:]]
                self._set(table, "rowid", row[0], **dict(zip(columns, new, strict=True)))

    def _rows(self, query: str) -> list[Any]:
        return self._db.execute(query).fetchall()

    def _set(self, table: str, key: str, is_: object, /, **columns: object) -> None:
        names = ", ".join(f"{name} = ?" for name in columns)
        query = f"UPDATE {table} SET {names} WHERE {key} = ?"
        self._db.execute(query, (*columns.values(), is_))

    def _text(self, value: Any, at: datetime) -> Any:
        if isinstance(value, bytes):
            return self._text(value.decode(), at).encode()
        if not isinstance(value, str):
            return value
        value = _NOW.sub(lambda match: _settle(match[0], at), value)
        return _ID.sub(lambda match: self._id(match[0]), _PORT.sub(r"\g<1>7801", value))

    def _id(self, given: str) -> str:
        if given in self._ids.values():
            return given
        kind = match[0] if (match := _KIND.match(given)) else ""
        number = f"{len(self._ids) + 1:0{len(given) - len(kind)}x}"
        return self._ids.setdefault(given, kind + number)


def _minute(number: int) -> datetime:
    return START + timedelta(minutes=number)


def _settle(given: str, at: datetime) -> str:
    near = abs(datetime.fromisoformat(given) - datetime.now(UTC)) < timedelta(days=1)
    return _iso(at, given) if near else given


def _iso(at: datetime, like: str) -> str:
    """A time, written as another one is."""
    return at.isoformat(timespec="milliseconds").removesuffix("+00:00") + (
        "Z" if like.endswith("Z") else "+00:00"
    )
