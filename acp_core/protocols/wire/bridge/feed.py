"""What happens in the folder, told in the bridge's log.

Each event is a message with a ``server_seq``; each version of a document is one with its text as
a data part; each turn of a participant is a task. With every change comes a short
``acp.snapshot`` entry: who reads the stream knows that there is a new state to be asked for.
"""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from acp_core.model import Document, DocumentText, Event, Snapshot, Turn
from acp_core.protocols.contract import Collaboration, Watched
from acp_core.protocols.wire.bridge import written
from acp_core.protocols.wire.conduct.agent import tasks
from acp_core.protocols.wire.conduct.agent.core import Agent
from acp_core.protocols.wire.schema import MESSAGE, Json, invalid, now_text, time_text
from acp_core.protocols.wire.schema.decode import encode
from acp_core.protocols.wire.schema.parts import data_part, text_part
from acp_core.protocols.wire.state import TaskState
from acp_core.protocols.wire.write import keep, messages
from acp_core.protocols.wire.write import tasks as stored
from acp_core.protocols.wire.write.database import Tx

logger = logging.getLogger("acp.wire")
SNAPSHOT = "acp.snapshot"
TURN = "turn_"
_ORIGIN = "bridge"
_KEPT = "bridge"
_NEVER = datetime.fromtimestamp(0, UTC)
_AT_ONCE = 500  # entries of one transaction
_TOLD = 5_000  # events that are told of a folder that is new here, the latest


class Feed:
    """Tells the changes of one collaboration.

    Args:
        watched: the collaboration.
        key: its folder.
    """

    def __init__(self, agent: Agent, watched: Watched, key: str) -> None:
        self._agent, self._watched, self._key = agent, watched, key
        self._events = 0  # of the timeline, that are told
        self._last = ""
        self._texts: dict[str, str] = {}  # a document's id -> the version that is told
        self._shown: Snapshot | None = None

    async def load(self) -> None:
        """Find out what was told before.

        Raises:
            Refusal: of another folder, which is nothing for those who are given this link.
        """
        kept = await self._agent.store.read(lambda db: keep.get(db, _KEPT))
        known = json.loads(kept) if kept else {}
        if known.get("folder", self._key) != self._key:
            name = self._agent.config.name
            raise invalid(f"{name} already serves {known['folder']}: choose another --name")
        self._last, self._texts = known.get("last", ""), known.get("texts", {})

    async def tell(self, shown: Snapshot) -> None:
        """Tell what is new in a Snapshot; nothing where it was only read again."""
        timeless = replace(shown, as_of=_NEVER, recheck_at=None)
        if timeless == self._shown:
            return
        events = self._new(shown)
        texts = []
        for document in shown.documents:
            if self._texts.get(document.id) != document.version and document.state == "present":
                text = await self._text(document)
                if text:
                    texts.append((document, text))
        for start in range(0, len(events), _AT_ONCE):
            some = events[start : start + _AT_ONCE]
            await self._agent.store.write(partial(self._write_events, events=some))
            self._last = _mark(some[-1])
        self._events = len(shown.events)
        for document, text in texts:
            write = partial(self._write_text, document=document, text=text)
            await self._agent.store.write(write)
            self._texts[document.id] = document.version
        await self._agent.store.write(partial(self._write_state, shown=shown))
        self._shown = timeless

    def _new(self, shown: Snapshot) -> list[Event]:
        """The events that were not told yet: those behind the last one that was."""
        events = shown.events
        told = self._events
        if 0 < told <= len(events) and _mark(events[told - 1]) == self._last:
            return list(events[told:])
        for place in range(len(events) - 1, -1, -1):
            if _mark(events[place]) == self._last:
                return list(events[place + 1 :])
        return list(events[-_TOLD:])

    async def _text(self, document: Document) -> DocumentText | None:
        def load(opened: Collaboration) -> DocumentText:
            return opened.load(document.id)

        try:
            return await self._watched.call(load)
        except KeyError:  # gone since
            return None

    def _write_events(self, tx: Tx, events: list[Event]) -> None:
        for event in events:
            said = text_part(f"{event.kind}: {event.summary}" if event.summary else event.kind)
            self._message(
                tx,
                f"evt_{_mark(event)}",
                event.actor,
                time_text(event.at) if event.at else now_text(),
                [said, data_part({"event": written.event(event)})],
            )

    def _write_text(self, tx: Tx, document: Document, text: DocumentText) -> None:
        content = written.document(document, text)
        id = f"doc_{_short(f'{document.id} {document.version}')}"
        at = time_text(document.changed) if document.changed else now_text()
        self._message(tx, id, self._agent.config.name, at, [data_part({"document": content})])

    def _message(self, tx: Tx, id: str, sender: str, at: str, parts: list[Json]) -> None:
        def make(seq: int) -> tuple[Json, Json]:
            envelope: Json = {"type": MESSAGE, "message_id": id, "server_seq": seq, "ts": at,
                              "from": sender or "unknown", "role": "agent", "parts": parts,
                              "context_id": "folder"}  # fmt: skip
            return envelope, {"_bridge": True}

        messages.add(tx, "in", _ORIGIN, id, None, make)

    def _write_state(self, tx: Tx, shown: Snapshot) -> None:
        self._write_turns(tx, shown)
        state = {
            "type": SNAPSHOT,
            "name": shown.name,
            "protocol": shown.protocol,
            "status": shown.status.value,
            "phase": shown.phase,
            "round": shown.round,
            "headline": shown.headline,
            "waiting": [written.plain(turn) for turn in shown.turns],
            "needs": [need.text for need in shown.needs],
            "events": len(shown.events),
            "documents": {each.id: each.version for each in shown.documents},
        }
        # Also where only something else is different, such as a finding: it is to be asked for.
        messages.log(tx, SNAPSHOT, {**state, "ts": now_text()})
        kept = {"folder": self._key, "last": self._last, "texts": self._texts}
        keep.put(tx, _KEPT, encode(kept).decode())

    def _write_turns(self, tx: Tx, shown: Snapshot) -> None:
        now = {_turn_id(turn): turn for turn in shown.turns}
        for id, turn in now.items():
            if stored.get(tx.db, id) is None:
                part = text_part(f"{turn.participant}: {turn.what}")
                task = tasks.create(tx, tasks.LOCAL, [part], id=id, context_id="folder")
                tasks.update(tx, task, TaskState.WORKING, None, None)
        open_tasks, _ = stored.page(tx.db, stored.TaskFilter(status="working"), 1000)
        for task in open_tasks:
            if str(task["id"]).startswith(TURN) and task["id"] not in now:
                tasks.update(tx, task, TaskState.COMPLETED, None, None)


def _mark(event: Event) -> str:
    """What an event is known by: also in a folder that was begun anew it is another then."""
    return _short(f"{event.id}\0{event.kind}\0{event.at}\0{event.actor}\0{event.summary}")


def _turn_id(turn: Turn) -> str:
    since = turn.since_event or (turn.since.isoformat() if turn.since else "")
    return TURN + _short(f"{turn.participant}\0{turn.what}\0{since}")


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
