"""A collaboration in a folder, watched, and served as an agent, so that it is seen elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.types import ASGIApp

from acp_core.model import Action, Document, DocumentText, Event, OutcomeState, Snapshot, Turn
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.contract import Collaboration, Watched
from acp_core.protocols.kit import owner_inputs, schema
from acp_core.protocols.kit.owner_inputs import open_to_others
from acp_core.protocols.kit.wording import reason
from acp_core.protocols.wire import write as wire_write
from acp_core.protocols.wire.conduct.agent import Agent
from acp_core.protocols.wire.read import bridged_matters, elsewhere, store
from acp_core.protocols.wire.schema.basics import (
    MESSAGE,
    Code,
    Json,
    TaskState,
    WireError,
    encode,
    fields_of,
    invalid,
    now_text,
    objects,
    time_text,
)
from acp_core.protocols.wire.schema.bodies import data_part, text_part
from acp_core.protocols.wire.serving.http import Call, Endpoint, Param, answer
from acp_core.protocols.wire.write import Retention, Tx

logger = logging.getLogger("acp.wire")

_AGAIN = 1.0  # seconds until what could not be told is tried again


class Bridge:
    """What the endpoints need. ``snapshot`` is the latest that was told."""

    def __init__(self, watched: Watched, setup: BridgeSetup, snapshot: Snapshot) -> None:
        self.watched = watched
        self.key = setup.folder
        self.allowed = setup.allowed
        self.snapshot = snapshot

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """What it answers beyond an agent's endpoints."""
        return BRIDGE_ENDPOINTS

    @property
    def about(self) -> dict[str, object]:
        """What the card says of it."""
        return {
            "protocol": self.snapshot.protocol,
            "name": self.snapshot.name,
            "snapshot": "/bridge/snapshot",
            "document": "/bridge/document",
            "event": "/bridge/event",
            "actions": "/bridge/actions",
            "allowed": sorted(self.allowed),
        }


async def _check_allowed(watched: Watched, setup: BridgeSetup) -> None:
    """See to it that each act that others may ask for is one.

    Raises:
        Refusal: it is none; says which there are now.
    """
    for name in sorted(setup.allowed):
        if not await watched.call(partial(watched.knows, name=name)):
            there = [each.name for each in await watched.call(watched.actions)]
            raise invalid(
                f"--allow {clean_line(name, 60)}: unknown action;"
                f" possible now: {', '.join(there) or 'none'}"
            )


async def _allowed(watched: Watched, setup: BridgeSetup) -> list[Allowed]:
    """What others may ask for, and with which inputs."""
    found = []
    for name in sorted(setup.allowed):
        try:
            action = await watched.call(partial(watched.action, name=name))
        except (Refused, OSError):
            action = None
        if action is None:
            found.append(Allowed(name, note="not possible now"))
        elif reason := owner_inputs.against(action):
            found.append(Allowed(name, note=f"refused: {reason}"))
        else:
            inputs = (each.name for each in owner_inputs.open_fields(action))
            found.append(Allowed(name, tuple(inputs)))
    return found


@contextlib.asynccontextmanager
async def bridging(agent: Agent, setup: BridgeSetup) -> AsyncIterator[Bridge]:
    """Watch the folder and tell of it as long as the block lasts."""
    watched = setup.watch(setup.folder)
    changes = watched.changes()
    feed = Feed(agent, watched, setup.folder)
    await feed.load()
    while not (first := watched.snapshot):
        await anext(changes)
    await _check_allowed(watched, setup)
    if setup.tell is not None:
        setup.tell(await _allowed(watched, setup))
    bridge = Bridge(watched, setup, first)
    await feed.tell(bridge.snapshot)

    async def follow() -> None:
        async for _ in changes:
            shown = watched.snapshot
            while shown is not None and shown is not bridge.snapshot:
                bridge.snapshot = shown
                try:
                    await feed.tell(shown)
                except Exception:  # it goes on with the next state, whatever was wrong with one
                    logger.exception("could not publish a change of the folder")
                    await asyncio.sleep(_AGAIN)
                shown = watched.snapshot

    work = [
        asyncio.create_task(follow()),
        asyncio.create_task(Acting(agent, watched, setup).follow()),
    ]
    try:
        yield bridge
    finally:
        for each in work:
            each.cancel()
        await asyncio.gather(*work, return_exceptions=True)
        await changes.aclose()  # type: ignore[attr-defined]
        await watched.close()


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
        kept = await self._agent.store.read(lambda db: store.find_value(db, _KEPT))
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
                [said, data_part({"event": elsewhere.event_json(event)})],
            )

    def _write_text(self, tx: Tx, document: Document, text: DocumentText) -> None:
        content = elsewhere.document_json(document, text)
        id = f"doc_{_short(f'{document.id} {document.version}')}"
        at = time_text(document.changed) if document.changed else now_text()
        self._message(tx, id, self._agent.config.name, at, [data_part({"document": content})])

    def _message(self, tx: Tx, id: str, sender: str, at: str, parts: list[Json]) -> None:
        def make(seq: int) -> tuple[Json, Json]:
            envelope: Json = {"type": MESSAGE, "message_id": id, "server_seq": seq, "ts": at,
                              "from": sender or "unknown", "role": "agent", "parts": parts,
                              "context_id": "folder"}  # fmt: skip
            return envelope, {"_bridge": True}

        wire_write.add_message(tx, "in", _ORIGIN, id, None, make)

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
            "waiting": [bridged_matters.plain(turn) for turn in shown.turns],
            "needs": [need.sentence for need in shown.needs],
            "events": len(shown.events),
            "documents": {each.id: each.version for each in shown.documents},
        }
        # Also where only something else is different, such as a finding: it is to be asked for.
        wire_write.add_log_entry(tx, SNAPSHOT, {**state, "ts": now_text()})
        kept = {"folder": self._key, "last": self._last, "texts": self._texts}
        wire_write.keep_value(tx, _KEPT, encode(kept).decode())

    def _write_turns(self, tx: Tx, shown: Snapshot) -> None:
        now = {_turn_id(turn): turn for turn in shown.turns}
        for id, turn in now.items():
            if store.find_task(tx.db, id) is None:
                part = text_part(f"{turn.participant}: {turn.what}")
                task = wire_write.create_task(
                    tx, wire_write.LOCAL, [part], id=id, context_id="folder"
                )
                wire_write.update_task(tx, task, TaskState.WORKING, None, None)
        open_tasks, _ = store.find_tasks(tx.db, store.TaskFilter(status="working"), 1000)
        for task in open_tasks:
            if str(task["id"]).startswith(TURN) and task["id"] not in now:
                wire_write.update_task(tx, task, TaskState.COMPLETED, None, None)


def _mark(event: Event) -> str:
    """What an event is known by: also in a folder that was begun anew it is another then."""
    return _short(f"{event.id}\0{event.kind}\0{event.at}\0{event.actor}\0{event.summary}")


def _turn_id(turn: Turn) -> str:
    since = turn.since_event or (turn.since.isoformat() if turn.since else "")
    return TURN + _short(f"{turn.participant}\0{turn.what}\0{since}")


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


_PAGE = 100


class Asked(BaseModel):
    """What somebody asks to be done; fields beside it are no inputs, and those of the owner are refused."""

    model_config = ConfigDict(extra="allow", strict=True)

    action: str
    inputs: dict[str, Any] = {}
    dry_run: bool = False


class Done(BaseModel):
    """What came of it."""

    state: str
    sentence: str
    changes: list[str] = []
    preview: Json | None = None  # of a dry run, all that it says


class Acting:
    """Does what is asked for, one thing after the other."""

    def __init__(self, agent: Agent, watched: Watched, setup: BridgeSetup) -> None:
        self._agent, self._watched, self._setup = agent, watched, setup

    async def follow(self) -> None:
        """Look at every task that comes."""
        hub = self._agent.hub
        await self._give_up()
        while not hub.closed:
            place = hub.last
            while task := await self._submitted():
                await self._work_on(task)
            await hub.grown(place, 60.0)

    async def _give_up(self) -> None:
        """What was begun before a crash is not repeated: nobody knows how far it came."""

        def work(tx: Tx) -> None:
            found, _ = store.find_tasks(tx.db, store.TaskFilter(status="working"), 1000)
            for task in found:
                if not str(task["id"]).startswith(TURN):
                    error = "the bridge ended meanwhile: check whether the action was done"
                    wire_write.update_task(tx, task, TaskState.FAILED, None, error)
                    wire_write.tell_task(tx, task)

        await self._agent.store.write(work)

    async def _submitted(self) -> Json | None:
        found, _ = await self._agent.store.read(
            lambda db: store.find_tasks(db, store.TaskFilter(status="submitted"), _PAGE)
        )
        return next((each for each in found if each["direction"] != wire_write.DELEGATED), None)

    async def _work_on(self, task: Json) -> None:
        await self._enter(task, TaskState.WORKING, None, "")
        error, done = "", None
        try:
            done = await self._do(_asked(task))
        except (Refused, OSError) as refused:
            error = reason(refused)
        except Exception as fault:
            logger.exception("an action failed")
            error = f"{type(fault).__name__} inside the bridge"
        ended = TaskState.COMPLETED if done else TaskState.FAILED
        artifact = {"parts": [data_part(done.model_dump())]} if done else None
        await self._enter(task, ended, artifact, error)

    async def _enter(self, task: Json, state: TaskState, artifact: Json | None, error: str) -> None:
        def work(tx: Tx) -> str | None:
            now = store.find_task(tx.db, task["id"])
            if now is None or TaskState(now["status"]).terminal:
                return None
            news = wire_write.update_task(tx, now, state, artifact, error or None)
            return str(now["peer_id"]) if news and wire_write.tell_task(tx, now) else None

        peer_id = await self._agent.store.write(work)
        if peer_id:
            self._agent.peers.queued(peer_id)

    async def _do(self, asked: Asked) -> Done:
        return await carry_out(self._watched, self._setup.folder, self._setup.allowed, asked)


async def carry_out(watched: Watched, folder: str, allowed: frozenset[str], asked: Asked) -> Done:
    """Do what is asked for, or show what it would do, where that is allowed.

    Raises:
        Refused: it is not, or cannot be done now.
    """
    if asked.action not in allowed:
        names, name = ", ".join(sorted(allowed)) or "none", clean_line(asked.action, 60)
        raise Refused(f"the action {name} is not allowed here (allowed: {names})")
    owner_inputs.check_beside(asked.action, asked.model_extra or ())
    return await watched.call(
        lambda opened: perform(watched.action(opened, asked.action), asked, folder)
    )


def _asked(task: Json) -> Asked:
    """The action that a task asks for.

    Raises:
        Refused: none.
    """
    for part in objects(fields_of(task.get("input")).get("parts")):
        content = fields_of(part.get("content"))
        if "action" in content:
            try:
                return Asked.model_validate(content)
            except ValidationError as error:
                raise Refused(first_problem(error)) from None
    raise Refused('this is a bridge: send a data part {"action": .., "inputs": {..}}')


def perform(action: Action | None, asked: Asked, folder: str) -> Done:
    """Do what is asked for, or show what it would do.

    Args:
        action: the action of that name as it can be done now; None where there is none.
        asked: with which inputs.
        folder: the collaboration's, which is not told.

    Raises:
        Refused: it cannot be done now.
    """
    if action is None:
        raise Refused(f"{clean_line(asked.action, 60)} cannot be done now")
    try:
        inputs = owner_inputs.from_others(action, asked.inputs)
    except ValidationError as error:
        raise Refused(first_problem(error)) from None
    preview = action.preview(inputs)
    if preview.refused:
        raise Refused(preview.refused)
    if asked.dry_run:
        told = elsewhere.preview_json(preview, folder)
        changes = [f"{each['verb']} {each['path']}" for each in told["changes"]]
        return Done(state="preview", sentence=preview.sentence, changes=changes, preview=told)
    outcome = action.perform(inputs)
    if outcome.state in (OutcomeState.REFUSED, OutcomeState.UNKNOWN):
        raise Refused(outcome.sentence)
    return Done(state=outcome.state.value, sentence=outcome.sentence)


def first_problem(error: ValidationError) -> str:
    """What is wrong with what was asked for, on one line."""
    name, said = next(schema.problems(error))
    return clean_line(f"{name or 'inputs'}: {said}", 300)


_ID = (Param("id", required=True),)


def _bridge(call: Call) -> Bridge:
    bridge = call.agent.bridge
    if not isinstance(bridge, Bridge):
        raise WireError(Code.NOT_FOUND, "this agent is not a bridge")
    return bridge


async def get_snapshot(call: Call) -> ASGIApp:
    """``GET /bridge/snapshot``: everything that is shown of the folder, now."""
    have, digest = call.count("have"), call.text("digest") or ""
    shown = _bridge(call).snapshot
    return answer(await asyncio.to_thread(elsewhere.snapshot_json, shown, have, digest))


async def get_document(call: Call) -> ASGIApp:
    """``GET /bridge/document?id=..``: a document's text as it is now."""
    bridge, id = _bridge(call), call.text("id")
    about = bridge.snapshot.document(id)
    if about is None:
        raise WireError(Code.NOT_FOUND, "no such document")
    try:
        text = await bridge.watched.call(lambda opened: opened.load(about.id))
    except KeyError:
        raise WireError(Code.NOT_FOUND, "the document no longer exists") from None
    return answer(elsewhere.document_json(about, text))


async def get_event(call: Call) -> ASGIApp:
    """``GET /bridge/event?id=..``: an event as the folder holds it."""
    bridge, id = _bridge(call), call.text("id")
    if id is None:
        raise invalid("id is missing")
    raw = await bridge.watched.call(lambda opened: opened.raw_event(id))
    if not raw:
        raise WireError(Code.NOT_FOUND, "no such event")
    return answer({"id": id, "raw": raw})


async def get_actions(call: Call) -> ASGIApp:
    """``GET /bridge/actions``: what may be asked for and can be done now."""
    bridge = _bridge(call)
    found = map(open_to_others, await bridge.watched.call(bridge.watched.actions))
    listed = [
        {
            "name": name,
            "label": each.label,
            "sentence": each.sentence,
            "risky": each.risky,
            "intent": each.intent.value,
            "inputs": each.inputs.model_json_schema(),
        }
        for each in found
        for name in (each.name, *each.aliases)
        if name in bridge.allowed and not each.owner
    ]
    return answer({"actions": listed, "allowed": sorted(bridge.allowed)})


async def get_preview(call: Call) -> ASGIApp:
    """``POST /bridge/preview``: what an act that is allowed would do; nothing is done."""
    bridge, body = _bridge(call), await call.body()
    try:
        asked = Asked.model_validate({**body, "dry_run": True})
        done = await carry_out(bridge.watched, bridge.key, bridge.allowed, asked)
    except ValidationError as error:
        raise invalid(first_problem(error)) from None
    except (Refused, OSError) as refused:
        return answer({"preview": {"sentence": "", "refused": reason(refused)}})
    return answer({"preview": done.preview})


BRIDGE_ENDPOINTS = (
    Endpoint(
        "GET",
        ("/bridge/snapshot",),
        get_snapshot,
        readers=True,
        query=(Param("have", "number", 0), Param("digest")),
    ),
    Endpoint("GET", ("/bridge/document",), get_document, readers=True, query=_ID, refuses=(404,)),
    Endpoint("GET", ("/bridge/event",), get_event, readers=True, query=_ID, refuses=(404,)),
    Endpoint("GET", ("/bridge/actions",), get_actions, readers=True),
    Endpoint(
        "POST",
        ("/bridge/preview",),
        get_preview,
        readers=True,
        body=("action", "inputs"),
        needed=("action",),
        refuses=(404,),
    ),
)

KEPT = Retention(log=5_000, tasks=1_000, slack=500)
"""A bridge's log holds texts of documents: it keeps less of it than an agent."""

TAKEN = 65_536  # bytes of what others may send to a bridge


class Allowed(NamedTuple):
    """An act that others may ask for: its name, and what they may give; ``note`` says why not now."""

    name: str
    inputs: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class BridgeSetup:
    """The folder, absolute, what watches it, and the names of the actions that others may ask for.

    ``tell`` is called once with what each of these means now.
    """

    folder: str
    watch: Callable[[str], Watched]
    allowed: frozenset[str] = frozenset()
    tell: Callable[[list[Allowed]], object] | None = None

    def open(self, agent: Agent) -> AbstractAsyncContextManager[Bridge]:
        """Watch the folder and tell of it as long as the block lasts."""
        return bridging(agent, self)
