"""Rooms of a relay, in memory: members, and the frames that wait for each of them.

A frame is kept as the text that it came as. It is taken off a member's queue when the member
asks for what follows it, so that an answer which got lost on its way is given again.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from acp_core.protocols.wire.schema import Code, Refusal, invalid

TOKEN = re.compile(r"[A-Za-z0-9_-]{6,64}")


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of everything a relay bears."""

    rooms: int = 500
    members: int = 64  # of one room
    frames: int = 512  # that wait for one member
    bytes: int = 4 << 20  # that wait for one member
    idle: float = 3600.0  # seconds after which a room without members goes
    silent: float = 60.0  # seconds without a question after which a member is gone
    rate: int = 2000  # frames a second of one room
    latest: int = 200  # frames for all that are kept for who has no place in the room


class Entry(NamedTuple):
    """What a member is told: a frame of ``sender``, or that ``sender`` came or went (``event``).

    ``shared``: it went to all. ``sender`` is "" where somebody without a place in the room spoke.
    """

    seq: int
    sender: str
    text: str = ""
    event: str = ""
    shared: bool = False


class Member:
    """A place in a room. ``secret`` is shown by who has it; ``id`` is what others are told."""

    def __init__(self, name: str, host: bool, now: float) -> None:
        self.id = f"m_{os.urandom(6).hex()}"
        self.secret = f"sess_{os.urandom(16).hex()}"
        self.name = name
        self.host = host
        self.seen = now
        self.waiting: deque[Entry] = deque()
        self.bytes = 0
        self.turn = 0  # of its questions; an older one is answered at once

    def put(self, entry: Entry) -> None:
        """Let an entry wait for it."""
        self.waiting.append(entry)
        self.bytes += len(entry.text)

    def after(self, seq: int, most: int) -> list[Entry]:
        """What follows a place; what does not is taken off."""
        while self.waiting and self.waiting[0].seq <= seq:
            self.bytes -= len(self.waiting.popleft().text)
        return [self.waiting[n] for n in range(min(most, len(self.waiting)))]


@dataclass
class Room:
    """A room. ``key``: the digest of what its host alone knows, where it has one."""

    token: str
    key: bytes | None
    bounds: Bounds
    used: float
    members: dict[str, Member] = field(default_factory=dict)
    latest: deque[Entry] = field(default_factory=deque)
    ids: deque[str] = field(default_factory=lambda: deque(maxlen=1000))
    seq: int = 0
    left: float = 0.0
    at: float = 0.0

    @property
    def host(self) -> Member | None:
        """Who opened it, while that one is here."""
        return next((member for member in self.members.values() if member.host), None)

    def join(self, name: str, key: str | None, now: float) -> Member:
        """A new member; a host takes the place of the one before.

        Raises:
            Refusal: the key is wrong, or the room is full.
        """
        host = key is not None
        if host and (self.key is None or not hmac.compare_digest(self.key, digest(key or ""))):
            raise Refusal(Code.FORBIDDEN, "not the key of this room")
        if host and self.host:
            self.leave(self.host)
        if len(self.members) >= self.bounds.members:
            raise Refusal(Code.BUSY, "the room is full")
        member = Member(name, host, now)
        self._tell(member, "joined")
        self.members[member.id] = member
        return member

    def leave(self, member: Member) -> None:
        """A member goes; the others are told."""
        if self.members.pop(member.id, None):
            self._tell(member, "left")

    def of(self, secret: str) -> Member:
        """The member who shows this.

        Raises:
            Refusal: nobody here has it.
        """
        for member in self.members.values():
            if hmac.compare_digest(member.secret.encode(), secret.encode("utf-8", "replace")):
                return member
        raise Refusal(Code.FORBIDDEN, "invalid_session")

    def send(self, sender: Member | None, to: str | None, text: str, now: float) -> int:
        """Let a frame wait for a member, or for all; its number.

        Raises:
            Refusal: no such member, too fast, or too many frames are waiting for the receiver.
        """
        if to is None:
            fitting = [member for member in self.members.values() if member is not sender]
        elif to in self.members:
            fitting = [self.members[to]]
        else:
            raise Refusal(Code.NOT_FOUND, "no such member")
        self.left = min(self.bounds.rate, self.left + (now - self.at) * self.bounds.rate)
        self.at = now
        if self.left < 1:
            raise Refusal(Code.BUSY, "too many frames a second")
        for member in fitting:
            if not self._has_room(member, text):
                raise Refusal(Code.BUSY, "too many frames are waiting for the receiver")
        self.left -= 1
        self.seq += 1
        entry = Entry(self.seq, sender.id if sender else "", text, shared=to is None)
        for member in fitting:
            member.put(entry)
        if to is None:
            self.latest.append(entry)
            while len(self.latest) > self.bounds.latest or _size(self.latest) > self.bounds.bytes:
                self.latest.popleft()
        return self.seq

    def sweep(self, now: float) -> None:
        """Let those go who asked for nothing for too long."""
        for member in list(self.members.values()):
            if now - member.seen > self.bounds.silent:
                self.leave(member)

    def _has_room(self, member: Member, text: str) -> bool:
        few = len(member.waiting) < self.bounds.frames
        return few and (not member.waiting or member.bytes + len(text) <= self.bounds.bytes)

    def _tell(self, about: Member, event: str) -> None:
        self.seq += 1
        for member in self.members.values():
            if member is not about and (member.host or about.host):
                member.put(Entry(self.seq, about.id, event=event))


class Rooms:
    """All rooms of a relay."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._rooms: dict[str, Room] = {}

    def open(self, token: str | None, key: str | None, now: float) -> tuple[Room, bool]:
        """The room of a token, a new one where there is none; says whether it was there.

        Raises:
            Refusal: no token, another's room, or too many rooms.
        """
        token = token or f"tok_{os.urandom(12).hex()}"
        if not TOKEN.fullmatch(token):
            raise invalid("token: must be 6 to 64 letters, digits, _ and -")
        known = self._rooms.get(token)
        if known:
            given = digest(key) if key is not None else b""
            if known.key is not None and not hmac.compare_digest(known.key, given):
                raise Refusal(Code.FORBIDDEN, "not the key of this room")
            known.used = now
            return known, True
        self.sweep(now)
        if len(self._rooms) >= self.bounds.rooms:
            raise Refusal(Code.BUSY, "too many rooms")
        room = Room(token, digest(key) if key is not None else None, self.bounds, now)
        room.left, room.at = self.bounds.rate, now
        self._rooms[token] = room
        return room, False

    def get(self, token: str, now: float) -> Room:
        """The room of a token.

        Raises:
            Refusal: there is none.
        """
        room = self._rooms.get(token)
        if room is None:
            raise Refusal(Code.FORBIDDEN, "invalid_token")
        room.used = now
        room.sweep(now)
        return room

    def close(self, room: Room, key: str | None) -> None:
        """Close a room: its host alone can.

        Raises:
            Refusal: somebody else asked.
        """
        if room.key is None or not hmac.compare_digest(room.key, digest(key or "")):
            raise Refusal(Code.FORBIDDEN, "not the key of this room")
        self._rooms.pop(room.token, None)
        room.members.clear()

    def sweep(self, now: float) -> None:
        """Let rooms go that nobody uses."""
        for room in list(self._rooms.values()):
            room.sweep(now)
            if not room.members and now - room.used > self.bounds.idle:
                del self._rooms[room.token]

    def __len__(self) -> int:
        return len(self._rooms)


def digest(key: str) -> bytes:
    """What is kept of a key."""
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()


def _size(entries: deque[Entry]) -> int:
    return sum(len(entry.text) for entry in entries)
