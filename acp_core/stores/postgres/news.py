"""News of collaborations: who waits is told at once, by the server's notices, or by a look every 5 s.

A notice is sent after the commit, apart from it (`acp_core.stores.postgres.publishing`), so that it
may be missing; and a notice is no proof, since everybody in the database can send one. It only
makes somebody look. Of all that wait in this process one watches the socket, for the others, too.
"""

from __future__ import annotations

import contextlib
import select
import threading
import time
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from acp_core.stores.postgres.link import Connection

LOOK = 5.0  # seconds between two looks
_SLICE = 1.0  # seconds after which the socket may be another one
_LONGEST = 100  # characters of a payload that is looked at
_MOST = 20_000  # names that an ear keeps


class Line(Protocol):
    """A connection as those who wait need it.

    ``made`` says how often it was made: news may have been missed in between.
    """

    made: int

    def socket(self) -> int:
        """The socket on which something may come; a connection is made where there is none."""
        ...

    def take_in(self) -> bool:
        """Take in what came, without waiting; False where the connection is lost."""
        ...


class Ear:
    """What one waiter heard and has not yet seen to.

    Args:
        name: the collaboration that matters; None for all.
    """

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.heard: dict[str, int] = {}  # the revision that was told of, by collaboration

    def takes(self, name: str, revision: int) -> bool:
        """Keep what was told, if it matters here."""
        if self.name not in (None, name) or len(self.heard) >= _MOST:
            return False
        self.heard[name] = max(revision, self.heard.get(name, 0))
        return True

    def take(self) -> dict[str, int]:
        """What was heard, which is seen to from now on."""
        heard, self.heard = self.heard, {}
        return heard


class News:
    """The ears of a process for one database.

    Args:
        line: the connection on which news come.
    """

    def __init__(self, line: Line) -> None:
        self._line = line
        self._ears: set[Ear] = set()
        self._turn = threading.Condition()
        self._watching = False

    def open(self, name: str | None) -> Ear:
        """An ear, from now on."""
        ear = Ear(name)
        with self._turn:
            self._ears.add(ear)
        return ear

    def close(self, ear: Ear) -> None:
        """The ear is not needed any more."""
        with self._turn:
            self._ears.discard(ear)

    def tell(self, payload: str) -> None:
        """Somebody says that a collaboration changed: ``NAME REVISION``; a stranger's words."""
        name, _, number = payload[:_LONGEST].partition(" ")
        if not number.isascii() or not number.isdigit() or len(number) > 18:
            return
        with self._turn:
            told = [ear for ear in self._ears if ear.takes(name, int(number))]
            if told:
                self._turn.notify_all()

    def wait(self, ear: Ear, seconds: float) -> dict[str, int]:
        """Wait until something is heard.

        Returns:
            The revisions that were told of, by collaboration. Nothing where the time has passed,
            or where news may have been missed: then it is time to look.

        Raises:
            SharingError: the connection was lost, and none can be made.
        """
        deadline = time.monotonic() + seconds
        with self._turn:
            while self._watching and not ear.heard:
                left = deadline - time.monotonic()
                if left <= 0 or not self._turn.wait(left):
                    break
            if ear.heard or self._watching:
                return ear.take()
            self._watching = True
        try:
            self._watch(ear, deadline)
        finally:
            with self._turn:
                self._watching = False
                self._turn.notify_all()  # another one watches now
                heard = ear.take()
        return heard

    def _watch(self, ear: Ear, deadline: float) -> None:
        made = self._line.made
        while not ear.heard:
            left = deadline - time.monotonic()
            if left <= 0:
                return
            socket = self._line.socket()
            if self._line.made != made:
                return  # whatever was said before this connection was not heard: look
            poll = select.poll()
            poll.register(socket, select.POLLIN)
            poll.poll(min(left, _SLICE) * 1_000)  # at once where another thread has just closed it
            self._line.take_in()


def send(connection: Connection, name: str, revision: int) -> None:
    """Tell everybody that a collaboration changed; in a transaction of its own, which need not last.

    Never raises: the change is made, and who does not hear of it looks.

    NOTIFY within the transaction of the change would make all changes of the database, of whatever
    collaboration, follow one another while each waits for the disk.
    """
    import psycopg

    notice = f"begin; set local synchronous_commit = off; notify acp, '{name} {revision}'; commit"
    with contextlib.suppress(psycopg.Error):
        connection.execute(notice.encode())
