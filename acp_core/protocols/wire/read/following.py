"""Following an agent elsewhere: a subscription that is kept up, in a thread of its own.

All agents that this process follows share one thread with one event loop, and each is followed
once, however many look at it. What is heard is taken down as records; whoever reads them asks
`Following.reading`, and is called when there is something new.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import random
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent import futures
from typing import TYPE_CHECKING, Any, TypeVar

from acp_core.model.text import clean_line
from acp_core.protocols.kit.wording import RETRYING
from acp_core.protocols.wire.network.agent_directory import Address
from acp_core.protocols.wire.network.links import missing
from acp_core.protocols.wire.read.folder import Reach, Reading
from acp_core.protocols.wire.read.known import (
    AWAY,
    FIRST_PAUSE,
    LONGEST_PAUSE,
    Known,
    Writer,
    record,
)
from acp_core.protocols.wire.schema.basics import Json

if TYPE_CHECKING:
    from acp_core.protocols.wire.network.client import Client
    from acp_core.protocols.wire.read.elsewhere import Elsewhere

_LEAVE = 1.0  # seconds for all of it to end with the process

T = TypeVar("T")

Changed = Callable[[], None]

_log = logging.getLogger(__name__)


class Following:
    """One agent that is followed; made by `follow`. The methods are for any thread."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._lock = threading.Lock()
        self._listeners: list[Changed] = []
        self._settled = threading.Event()
        self._writer = Writer(address.key)
        self._known = self._writer.open()
        self._known.away = f"reaching {address.name} …"
        self._known.lost = None  # that is counted from the first try that fails
        self._reach: Reach | None = None
        self._reading: Reading | None = None
        self._work: asyncio.Future[None] | Any = None
        self.elsewhere: Elsewhere | None = (
            None  # the folder of which it tells, where it is a bridge
        )
        self.uses = 0
        self.alone = False  # it answers one request at a time

    @property
    def folder(self) -> str:
        """Where what it says is kept."""
        return str(self._writer.folder)

    def start(self) -> None:
        """Begin to follow it."""
        self._work = _loop().run(self._follow())

    def listen(self, changed: Changed) -> None:
        """Have ``changed`` called, from any thread, after each change that `reading` was told of."""
        with self._lock:
            self._listeners.append(changed)

    def deafen(self, changed: Changed) -> None:
        """Call it no more."""
        with self._lock, contextlib.suppress(ValueError):
            self._listeners.remove(changed)

    def settle(self, seconds: float) -> bool:
        """Wait until it was reached, or is known not to be; False where that takes longer."""
        return self._settled.wait(seconds)

    def reading(self) -> Reading:
        """What is known now; the very object of the last call where nothing changed."""
        with self._lock:
            if self._reading is None:
                self._reading = self._known.reading(self.address.name, self._reach)
            return self._reading

    def raw(self, seq: int) -> str:
        """An entry of its log as JSON; "" where there is none."""
        with self._lock:
            return self._known.raw(seq)

    def end(self) -> None:
        """Follow it no more."""
        if self._work is not None:
            self._work.cancel()
        with self._lock:
            self._listeners.clear()
            self._writer.close()

    def ask(self, question: Callable[[Client], Awaitable[T]]) -> T:
        """Ask it something, and wait for the answer.

        Raises:
            WireError: it is not reached, or refuses.
        """
        from acp_core.protocols.wire.network.client import AgentError, Client

        reach = self._reach
        if reach is None:
            raise AgentError(f"{self.address.name} is not reachable now")

        async def work() -> T:
            async with Client(reach.url, reach.token) as client:
                return await question(client)

        answer: T = _loop().run(work()).result()
        return answer

    # What follows runs in the loop's thread.

    async def reflect(self, client: Client, card: Json) -> None:
        """Take over the state of the folder, where it is a bridge.

        Raises:
            WireError: it does not answer.
        """
        from acp_core.protocols.wire.read.elsewhere import Elsewhere, is_bridge

        if not is_bridge(card):
            return
        elsewhere = self.elsewhere or Elsewhere(self.address.key)
        await elsewhere.ask(client, card)
        self.elsewhere = elsewhere
        self._tell()

    @property
    def last(self) -> int:
        """The number of the last entry that is known."""
        return self._known.last

    def take(self, records: Sequence[Json]) -> None:
        """Take down what was observed."""
        with self._lock:
            for each in records:
                self._known.take(each)
            self._writer.add(records, self._known)
        self._tell()

    def reached(self, reach: Reach) -> None:
        """It answers."""
        with self._lock:
            self._reach = reach
            gone, self._known.away = self._known.away, ""
        self._tell()
        if gone:
            self.take([record(AWAY, why="")])

    def asked_every(self, seconds: float) -> None:
        """It cannot tell what happens while it answers: it is asked, with a pause between."""
        self.alone = True
        with self._lock:
            self._known.pause = seconds
        self._tell()

    def settled(self) -> None:
        """What it knew when it was reached is here."""
        self._settled.set()
        self._tell()

    def lost(self, why: str) -> None:
        """It does not answer."""
        with self._lock:
            same = self._reach is None and self._known.away == why
            self._reach = None
        if not same:
            self.take([record(AWAY, why=why)])
        self._settled.set()

    def _tell(self) -> None:
        with self._lock:
            fresh, self._reading = self._reading is None, None
            listeners = () if fresh else tuple(self._listeners)
        for changed in listeners:
            changed()

    @property
    def state(self) -> Known:
        """What is known; for the loop's thread alone, to be read only."""
        return self._known

    async def _follow(self) -> None:
        lacking = missing()
        if lacking:
            names = ", ".join(lacking)
            self.lost(f"{names} is missing here: pip install 'acp-tui[wire]' installs it")
            return
        from acp_core.protocols.wire.network.client import AgentError
        from acp_core.protocols.wire.read.elsewhere import Session

        pause = FIRST_PAUSE
        while True:
            session = Session(self)
            try:
                await session.run()
                why = "the connection ended"
            except AgentError as error:
                answered = error.status or error.untrusted
                why = str(error) if answered else f"cannot reach {self.address.name}"
                why = str(error) if session.reached else why
            except Exception as error:  # whatever a stranger made go wrong: try again later
                _log.info("following %s failed", self.address.key, exc_info=True)
                why = f"{type(error).__name__}: {error}"
            pause = FIRST_PAUSE if session.lasted else min(LONGEST_PAUSE, pause * 2)
            self.lost(clean_line(f"{why}{RETRYING}"))
            await asyncio.sleep(pause * random.uniform(0.7, 1.0))


class _Loop:
    """The thread, and its event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="acp-wire", daemon=True)
        self._thread.start()
        atexit.register(self._end)

    def _end(self) -> None:
        """Let the work end, and the thread, before the interpreter does.

        A thread that still runs then is torn off wherever it is. Where that is inside a library, or
        it is printing, the whole process may end with SIGABRT.
        """
        if self._thread.is_alive():  # not in a process that was forked
            futures.wait([self.run(self._cancel())], _LEAVE)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(_LEAVE)

    async def _cancel(self) -> None:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for each in left:
            each.cancel()
        if left:
            await asyncio.wait(left)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Have it done; to be cancelled by who asked for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)


_shared = threading.Lock()

_running: _Loop | None = None

_followed: dict[str, Following] = {}


def _loop() -> _Loop:
    global _running
    if _running is None:
        _running = _Loop()
    return _running


def follow(address: Address) -> Following:
    """Follow an agent, or share in following it; to be given back to `leave`."""
    with _shared:
        found = _followed.get(address.key)
        if found is None:
            found = _followed[address.key] = Following(address)
            found.start()
        found.uses += 1
        return found


def leave(following: Following) -> None:
    """Have no more use for it: when nobody has, it ends."""
    with _shared:
        following.uses -= 1
        if following.uses <= 0:
            if _followed.get(following.address.key) is following:
                del _followed[following.address.key]
            following.end()
