"""The tables of a recording, what its rows are called, and how much of it is kept.

One SQLite database for each collaboration. Contents are kept once, by their SHA-256, packed with
zlib. Times are seconds since 1970 (UTC). Names are bytes: UTF-8, with the lone surrogates that
stand for a file name's undecodable bytes. Nothing here imports SQLite: whoever only names bounds
need not wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

VERSION = 1
APPLICATION = 0x61637072  # "acpr": what the file is, for other programs
TABLES = """
CREATE TABLE meta(name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE content(digest BLOB PRIMARY KEY, size INTEGER NOT NULL, packed BLOB NOT NULL);
CREATE TABLE file(
    id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, log INTEGER NOT NULL, document BLOB NOT NULL);
CREATE TABLE version(
    id INTEGER PRIMARY KEY, file INTEGER NOT NULL REFERENCES file(id), since REAL NOT NULL,
    seen REAL NOT NULL, changed INTEGER, size INTEGER NOT NULL, whole BLOB NOT NULL,
    start INTEGER NOT NULL, content BLOB REFERENCES content(digest), state TEXT NOT NULL);
CREATE INDEX version_of_file ON version(file, id);
CREATE TABLE look(
    id INTEGER PRIMARY KEY, at REAL NOT NULL, said TEXT NOT NULL, findings BLOB NOT NULL);
CREATE TABLE loop(
    id INTEGER PRIMARY KEY, participant BLOB NOT NULL, at REAL NOT NULL, said TEXT NOT NULL);
CREATE TABLE span(
    recorder TEXT PRIMARY KEY, program TEXT NOT NULL, began REAL NOT NULL, until REAL NOT NULL);
"""
PRESENT, MISSING = "present", "missing"
TRIMMED = "thrown away, to keep the recording small"


@dataclass(frozen=True, slots=True)
class Version:
    """One content that a file had.

    Attributes:
        id: counts the versions of all files in the order in which they were kept.
        file: the file's name (see `acp_core.model.past.TrackedFile`).
        since: since when it was the content, as far as that can be told: the file's own time
            where that is possible, else when it was seen.
        seen: when the recorder saw it first.
        size: in bytes.
        whole: SHA-256 of the whole content; empty where it is not known.
        state: `PRESENT`, `MISSING`, or why the content was not kept.
    """

    id: int
    file: str
    since: float
    seen: float
    size: int
    whole: bytes
    state: str

    @property
    def present(self) -> bool:
        """Whether there was a file, and its content was kept."""
        return self.state == PRESENT


@dataclass(frozen=True, slots=True)
class Observed:
    """A file as a recorder found it.

    ``changed`` is the time of its last change (ns since 1970), None where there is none. ``data``
    is the content, for a log what follows the first ``start`` bytes, which are those of the
    version whose whole content has the digest ``follows``.
    """

    name: str
    log: bool
    document: str
    changed: int | None
    size: int
    whole: bytes
    data: bytes
    start: int = 0
    follows: bytes = b""
    state: str = PRESENT


@dataclass(frozen=True, slots=True)
class Seen:
    """What acp made of the collaboration at a moment: verdict, phase, who was waited for.

    ``content`` is a JSON object, ``findings`` the JSON list of what the validator said.
    """

    at: float
    content: str
    findings: str


@dataclass(frozen=True, slots=True)
class LoopChange:
    """Another state of a participant's loop: ``content`` is a JSON object."""

    at: float
    participant: str
    content: str


@dataclass(frozen=True, slots=True)
class Span:
    """A time in which a recorder looked: before and after, changes may have gone unseen."""

    program: str
    began: float
    until: float


DAYS = 90.0
MEGABYTES = 2_000.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long and how much is kept: ``days`` since the last change, ``megabytes`` in all.

    ``on`` False: nothing is recorded at all.
    """

    on: bool = True
    days: float = DAYS
    megabytes: float = MEGABYTES

    @classmethod
    def of(cls, settings: Mapping[str, float]) -> Bounds:
        """As the settings' ``[recording]`` table says, which was checked before."""
        given = {name: value for name, value in settings.items() if name in ("days", "megabytes")}
        return cls(on=bool(settings.get("on", True)), **given)


LARGEST = 16 << 20  # bytes of a document that are kept; of larger ones only that they are there
LARGEST_LOG = 512 << 20
