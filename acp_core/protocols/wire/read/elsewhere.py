"""What is asked over a connection to an agent elsewhere: its log as it grows, or a folder that a bridge serves.

Of a folder on another machine both sides are here: the JSON in which a bridge tells a Snapshot, and
the Snapshot made of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from enum import Enum
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from acp_core.files.decode import text
from acp_core.model import (
    Action,
    Document,
    DocumentText,
    Event,
    Heading,
    Link,
    Outcome,
    OutcomeState,
    Preview,
    Snapshot,
    SourceState,
)
from acp_core.model.action import Change, Intent
from acp_core.model.errors import InvalidInput
from acp_core.model.format import continued, names_in
from acp_core.model.matter import Matter, Verdict
from acp_core.model.text import clean, clean_line
from acp_core.protocols.wire.network.agent_directory import Way, ways_to
from acp_core.protocols.wire.network.channels import until_one_ends
from acp_core.protocols.wire.network.client import AgentError, Client
from acp_core.protocols.wire.network.client import Event as AgentEvent
from acp_core.protocols.wire.read import folder, known
from acp_core.protocols.wire.read.bridged_matters import PARTS, of_earlier, plain, with_matters
from acp_core.protocols.wire.read.folder import EVENTS, TASKS, Reach
from acp_core.protocols.wire.read.known import Known
from acp_core.protocols.wire.schema.basics import Json, count, encode, fields_of, objects
from acp_core.protocols.wire.schema.bodies import data_part

if TYPE_CHECKING:
    from acp_core.protocols.wire.read.following import Following

T = TypeVar("T")

Asking = Callable[[Callable[[Client], Awaitable[Any]]], Any]

"""Asks the bridge something from any thread and waits; raises `WireError`."""

WAIT = 60  # seconds for an action

_MOST = 200  # actions, inputs of one, and changes that it would make

_DIFF = 100_000  # characters of one of these

_KINDS: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list[str],
}


def is_bridge(card: Json) -> bool:
    """Whether an agent's card says that it tells of a folder."""
    return isinstance(card.get("bridge"), dict)


class Elsewhere:
    """What is known of the folder behind a bridge. From any thread.

    Args:
        key: by which the collaboration is known here.
    """

    def __init__(self, key: str) -> None:
        self._mirror = Mirror(key)
        self._lock = threading.Lock()
        self.trouble = ""  # why its last answer could not be taken over
        self._allowed: frozenset[str] = frozenset()

    @property
    def snapshot(self) -> Snapshot | None:
        """The latest that was told."""
        return self._mirror.snapshot

    @property
    def limits(self) -> str:
        """What may be done here at all, and who allows more."""
        names = ", ".join(clean_line(name, 60) for name in sorted(self._allowed))
        return (
            f"This bridge allows reading and these actions: {names or 'none'}."
            " Its owner can allow an action: acp bridge FOLDER --allow NAME."
        )

    def refusal(self, name: str) -> str:
        """Why an act of this name is not offered."""
        if name in self._allowed:
            return "the bridge allows this action, but it is not possible in the folder now"
        return self.limits

    async def ask(self, client: Client, card: Json) -> None:
        """Ask for its state; what is no answer is said, and changes nothing.

        Raises:
            WireError: it does not answer.
        """
        allowed = frozenset(_texts(fields_of(card.get("bridge")).get("allowed")))
        told = await client.bridge("snapshot", **self._mirror.query)
        with self._lock:
            try:
                self._mirror.take(told, allowed)
                self._allowed, self.trouble = allowed, ""
            except Unfit as unfit:
                self.trouble = str(unfit)

    def load(self, asking: Asking, id: str) -> DocumentText:
        """The text of a document, asked for now.

        Raises:
            KeyError: there is no such document.
        """
        try:
            return self._mirror.text(asking(lambda client: client.bridge("document", id=id)))
        except Unfit as unfit:
            return DocumentText(id, "", "", note=str(unfit))
        except AgentError as error:
            if error.status == 404:
                raise KeyError(id) from None
            return DocumentText(id, "", "", note=clean_line(str(error)))

    def raw(self, asking: Asking, id: str) -> str:
        """An event as the folder holds it; "" where it cannot be had."""
        try:
            raw = asking(lambda client: client.bridge("event", id=id)).get("raw")
        except AgentError:
            return ""
        return clean(text(raw) or "")

    def actions(self, asking: Asking) -> Sequence[Action]:
        """What may be asked for now; none where the bridge does not answer."""
        try:
            found = asking(lambda client: client.bridge("actions")).get("actions")
        except AgentError:
            return ()
        made = [_action(each, asking) for each in objects(found)[:_MOST]]
        return [each for each in made if each is not None]


def _action(told: Json, asking: Asking) -> Action | None:
    """An action that a bridge offers; None where its inputs cannot be asked for here."""
    name, schema = told.get("name"), told.get("inputs")
    if not isinstance(name, str) or not name.isprintable() or not isinstance(schema, dict):
        return None
    inputs = _inputs(schema)
    if inputs is None:
        return None
    sentence = clean_line(str(told.get("sentence") or ""))

    def preview(given: BaseModel) -> Preview:
        return _preview(name, sentence, given, asking)

    def perform(given: BaseModel) -> Outcome:
        return _perform(name, given, asking)

    return Action(
        name=name,
        label=clean_line(str(told.get("label") or name), 60),
        sentence=sentence,
        inputs=inputs,
        preview=preview,
        perform=perform,
        risky=told.get("risky") is True,
        intent=_intent(told.get("intent")),
    )


def _intent(told: object) -> Intent:
    return next((each for each in Intent if each.value == told), Intent.OTHER)


def _inputs(schema: Json) -> type[BaseModel] | None:
    """A model for plain inputs (texts, numbers, switches, choices)."""
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, dict) or len(properties) > _MOST:
        return None
    fields: dict[str, Any] = {}
    for name, about in properties.items():
        needed = isinstance(required, list) and name in required
        kind = _kind(about) if isinstance(about, dict) else None
        if kind is None or not name.isidentifier() or name.startswith("_"):
            if needed:
                return None
            continue
        usual = ... if needed else about.get("default")
        words: dict[str, Any] = {
            part: clean_line(about[part]) for part in ("title", "description")
            if isinstance(about.get(part), str)
        }  # fmt: skip
        fields[name] = (kind if needed else kind | None, Field(default=usual, **words))
    try:
        return create_model("Inputs", **fields)
    except Exception:  # whatever a stranger's names and defaults make impossible
        return None


def _kind(about: Json) -> Any:
    choices = about.get("enum")
    if isinstance(choices, list):
        texts = tuple(_texts(choices))
        return Literal[texts] if texts else None
    several = about.get("anyOf")
    if isinstance(several, list):
        plain = [each for each in objects(several) if each.get("type") != "null"]
        return _kind(plain[0]) if len(plain) == 1 else None
    return _KINDS.get(text(about.get("type")) or "")


def _preview(name: str, sentence: str, given: BaseModel, asking: Asking) -> Preview:
    """What the bridge says that would be done; of one that cannot say it, that it would be asked."""
    asked = f"{sentence} The bridge runs the action in the original folder."
    inputs = given.model_dump(mode="json", exclude_none=True)
    try:
        told = asking(lambda client: client.preview(name, inputs))
    except AgentError as error:
        return Preview(asked, notes=(f"its changes are unknown: {clean_line(str(error))}",))
    return Preview(
        clean_line(str(told.get("sentence") or asked)),
        changes=tuple(map(_change, objects(told.get("changes"))[:_MOST])),
        warnings=_lines(told.get("warnings")),
        notes=(
            "The bridge runs the action in the original folder.",
            *_lines(told.get("notes")),
        ),
        refused=clean_line(str(told.get("refused") or "")),
    )


def _change(told: Json) -> Change:
    verb, path, diff = (str(told.get(key) or "") for key in ("verb", "path", "diff"))
    return Change(clean_line(path), clean_line(verb, 40), clean(diff[:_DIFF]))


def _lines(value: object) -> tuple[str, ...]:
    return tuple(map(clean_line, _texts(value)))


def _texts(value: object) -> list[str]:
    found = value[:_MOST] if isinstance(value, list) else []
    return [each for each in found if isinstance(each, str)]


def _perform(name: str, given: BaseModel, asking: Asking) -> Outcome:
    inputs = given.model_dump(mode="json", exclude_none=True)

    async def ask(client: Client) -> Json:
        task = await client.create([data_part({"action": name, "inputs": inputs})])
        return await client.settled(str(task.get("id")), WAIT)

    try:
        task = asking(ask)
    except AgentError as error:
        state = OutcomeState.UNKNOWN if not error.status else OutcomeState.REFUSED
        return Outcome(state, clean_line(str(error)))
    status = task.get("status")
    if status == "completed":
        return Outcome(OutcomeState.DONE, _sentence(task) or "Done.")
    if status == "failed":
        return Outcome(OutcomeState.REFUSED, clean_line(str(task.get("error") or "refused")))
    return Outcome(OutcomeState.REQUESTED, "The bridge has not reported a result yet.")


def _sentence(task: Json) -> str:
    parts = objects(fields_of(task.get("artifact")).get("parts"))
    content = fields_of(parts[0].get("content")) if parts else {}
    return clean_line(str(content.get("sentence") or ""))


FORM = "acp.snapshot/1"

EVENTS_TOLD = 5_000  # that are told at once, the latest

TEXT = 400_000  # characters of a document

DIFF = 40_000  # characters of what would become of a file

CHANGES = 100  # files that an act would change


def snapshot_json(shown: Snapshot, have: int = 0, digest: str = "") -> Json:
    """A Snapshot, with the events that the reader does not have.

    Args:
        have: how many events the reader has, from the first on.
        digest: what `digest_of` says of these: the others alone are told where they are the same.
    """
    total = len(shown.events)
    known = 0 < have <= total and digest_of(islice(shown.events, have)) == digest
    begin = have if known else max(0, total - EVENTS_TOLD)
    here = replace(
        shown,
        key="",
        location=os.path.basename(shown.key),
        events=(),
        documents=tuple(replace(each, path=None) for each in shown.documents),
        parts=(),
        lineage=tuple(_elsewhere(each) for each in shown.lineage),
    )
    return {
        "form": FORM,
        "snapshot": {**plain(here), **of_earlier(here)},
        "begin": begin,
        "total": total,
        "digest": digest_of(shown.events),
        "events": [event_json(each) for each in islice(shown.events, begin, None)],
    }


def event_json(told: Event) -> Json:
    """An event of the timeline."""
    return {name: plain(value) for name, value in told._asdict().items()}


def document_json(about: Document, text: DocumentText) -> Json:
    """A document with its text; of a long one the beginning, which is said."""
    fields_ = {name: value for name, value in plain(about).items() if name != "path"}
    cut = len(text.text) > TEXT
    note = f"only the first {TEXT} characters are sent" if cut else text.note
    return {
        **fields_,
        "version": text.version,
        "text": text.text[:TEXT],
        "text_note": note,
        "headings": plain(text.headings),
    }


def preview_json(shown: Preview, folder: str) -> Json:
    """What an act would do; its files are named as in the folder, and nothing of the machine is."""
    return {
        "sentence": shown.sentence.replace(folder, os.path.basename(folder)),
        "changes": [
            {"verb": each.verb, "path": _inside(each.path, folder), "diff": each.diff[:DIFF]}
            for each in shown.changes[:CHANGES]
        ],
        "warnings": list(shown.warnings),
        "notes": list(shown.notes),
        "refused": shown.refused,
    }


def _inside(path: str, folder: str) -> str:
    """A path as seen from the folder; of one elsewhere, its name alone."""
    if not os.path.isabs(path):
        return path
    near = os.path.relpath(path, folder)
    return os.path.basename(path) if near.startswith(os.pardir) else near


def digest_of(events: Iterable[Event] | Sequence[Event]) -> str:
    """What tells two beginnings of a timeline apart."""
    found = hashlib.sha256()
    for each in events:
        found.update(f"{each.id}\0{each.kind}\0{each.problem}\n".encode("utf-8", "replace"))
    return found.hexdigest()


def _elsewhere(link: Link) -> Link:
    return replace(link, location=os.path.basename(link.location), found=False)


LARGEST = 48 << 20  # bytes of an answer

HELD_EVENTS = 20_000  # that are held, the latest

_ITEMS = 5_000  # of a list

_LINE, _TEXT = 1_000, 8_000  # characters of a line, and of what may have several

_DEPTH = 8


_LONG = frozenset({"cells", "evidence"})  # fields that may have several lines

_ACTIONS = frozenset({"action"})


class Unfit(InvalidInput):
    """An answer is not what a bridge says; the message is one line."""


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore")

    form: str
    snapshot: dict[str, Any]
    begin: int = Field(ge=0, le=10**9)
    total: int = Field(ge=0, le=10**9)
    digest: str = Field(max_length=200)
    events: list[dict[str, Any]] = Field(max_length=EVENTS_TOLD + HELD_EVENTS)


class _Text(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: str
    version: str = Field(max_length=500)
    text: str = Field(max_length=2 * TEXT)
    text_note: str = ""
    headings: list[Heading] = Field(default=[], max_length=_ITEMS)


class Mirror:
    """What is known of the folder behind one bridge.

    Args:
        key: by which the collaboration is known here.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._events: list[Event] = []
        self._digest = ""
        self._told = 0  # how many events the bridge has
        self.snapshot: Snapshot | None = None

    @property
    def query(self) -> dict[str, str | int]:
        """What to say so that the bridge tells the new events alone."""
        return {"have": self._told, "digest": self._digest} if self._told else {}

    def take(self, told: Json, allowed: Collection[str] = ()) -> Snapshot:
        """Take an answer over; gives what is known by then.

        Args:
            allowed: the names of the actions that may be asked for.

        Raises:
            Unfit: it is none; nothing was taken over.
        """
        try:
            answer = _Answer.model_validate(told)
            if answer.form != FORM:
                raise Unfit(
                    f"unsupported schema version of the bridge: {clean_line(answer.form, 60)}"
                )
            known = set(Event._fields)
            new = [
                _event().validate_python({n: v for n, v in each.items() if n in known})
                for each in answer.events
            ]
            given = _snapshot().validate_python({**with_matters(answer.snapshot), "events": ()})
        except ValidationError as error:
            raise Unfit(_words(error)) from None
        except RecursionError:
            raise Unfit("the bridge's answer is nested too deeply") from None
        cleaned = [_cleaned(each, frozenset(allowed), 0) for each in new]
        goes_on = answer.begin == self._told and bool(self._told)
        events = ([*self._events, *cleaned] if goes_on else cleaned)[-HELD_EVENTS:]
        shown = _cleaned(given, frozenset(allowed), 0)
        self._events, self._told, self._digest = events, answer.total, answer.digest
        self.snapshot = replace(
            shown,
            key=self._key,
            protocol="wire",
            headline=_plain_headline(shown),
            dialect=clean_line(f"bridge, {shown.protocol} {shown.dialect}".strip(), 60),
            location=clean_line(self._key, 4096),
            events=tuple(events),
            documents=tuple(replace(each, path=None) for each in shown.documents),
            parts=(),
            lineage=tuple(replace(each, found=False) for each in shown.lineage),
            source=_source(shown),
            limits="",
            recheck_at=None,
        )
        return self.snapshot

    def text(self, told: Json) -> DocumentText:
        """The text of a document.

        Raises:
            Unfit: it is none.
        """
        try:
            given = _Text.model_validate(told)
        except ValidationError as error:
            raise Unfit(_words(error)) from None
        return DocumentText(
            id=clean_line(given.id),
            version=clean_line(given.version),
            text=clean(given.text),
            headings=tuple(
                Heading(min(9, max(1, each.level)), clean_line(each.title), max(1, each.line))
                for each in given.headings
            ),
            note=clean_line(given.text_note),
        )


def _plain_headline(shown: Snapshot) -> str:
    """The headline without what is to be done, which is said again of the causes here."""
    advice = continued(shown.causes[0].instruction, names_in(shown)) if shown.causes else ""
    return shown.headline.removesuffix(f" What to do: {advice}.") if advice else shown.headline


def _source(shown: Snapshot) -> Any:
    """How the bridge reads its folder: that it is reached is another matter."""
    if shown.source.state is SourceState.LIVE:
        return shown.source
    return replace(shown.source, note=f"at the bridge: {shown.source.note}"[:_LINE])


@cache
def _snapshot() -> TypeAdapter[Snapshot]:
    return TypeAdapter(Snapshot)


@cache
def _event() -> TypeAdapter[Event]:
    return TypeAdapter(Event)


def _cleaned(value: Any, allowed: frozenset[str], depth: int, name: str = "") -> Any:
    """A part of the model with every text in it made safe, and nothing longer than it may be."""
    if isinstance(value, Enum) or value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, datetime):
        return value if value.tzinfo else value.astimezone()
    if isinstance(value, str):
        if name in _ACTIONS:
            return value if value in allowed else None
        return clean(value)[:_TEXT] if name in _LONG else clean_line(value, _LINE)
    if depth > _DEPTH:
        raise Unfit("the bridge's answer is nested too deeply")
    if isinstance(value, Event):
        return Event(*(_cleaned(part, allowed, depth + 1) for part in value))
    if isinstance(value, Verdict):
        given = _cleaned(value.given, allowed, depth + 1)
        return value._replace(given=given)
    if isinstance(value, PARTS):
        if isinstance(value, Matter):
            possible = tuple(each for each in value.verdicts if each.act in allowed)
            value = value._replace(verdicts=possible)
        parts = {
            part: _cleaned(getattr(value, part), allowed, depth + 1, part) for part in value._fields
        }
        return value._replace(**parts)
    if isinstance(value, frozenset):
        return frozenset(clean_line(str(each), _LINE) for each in islice(value, _ITEMS))
    if isinstance(value, tuple | list):
        return tuple(_cleaned(each, allowed, depth + 1, name) for each in value[:_ITEMS])
    if is_dataclass(value) and not isinstance(value, type):
        parts = {
            each.name: _cleaned(getattr(value, each.name), allowed, depth + 1, each.name)
            for each in fields(value)
        }
        return replace(value, **parts)
    raise Unfit(f"the bridge's answer holds a {type(value).__name__}")


def _words(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(each) for each in first["loc"][:6])
    return clean_line(f"the bridge's answer is invalid: {where}: {first['msg']}", 300)


TIMEOUT = 10.0  # seconds for an answer

HEALTH = 10.0  # seconds between two looks at its peers, while nothing happens

QUEUE = 2.0  # the same while something waits for one of them: nothing tells that it arrived

GATHER = 0.1  # seconds in which changes of peers and tasks are gathered

LASTED = 5.0  # seconds after which a connection counts as good

RATE = 4_000  # entries a second at most: a flood is slowed down, not taken in

BURST = 3 * EVENTS

BATCH = 200  # entries that are taken down together

SETTLED = 0.5  # seconds without an entry, after which no more of the past is expected

ALL_PAST = 2.0  # seconds after which nothing is the past of one that does not say how much it has

OPENING = 0.3  # seconds within which another maker's agent has begun its stream

ALONE = 3.0  # seconds without an answer beside a stream: it answers one request at a time

ASKING = 5.0  # seconds between two questions to such an agent

TASKS_ASKED = 20  # tasks that are asked for one by one; more come as a list


class Session:
    """Follows an agent until the connection breaks. ``reached``: there was one."""

    def __init__(self, following: Following) -> None:
        self._following = following
        self._began = time.monotonic()
        self._taken = 0
        self._queue: asyncio.Queue[AgentEvent] = asyncio.Queue(BATCH)
        self._dirty: set[str] = set()
        self._stale = asyncio.Event()  # peers or tasks may be others than before
        self._reflected = asyncio.Event()  # the folder of a bridge is another than before
        self._counting: Counting | None = None  # of an agent of another make
        self.reached = False

    @property
    def lasted(self) -> bool:
        """Whether it was reached, and stayed so for a while."""
        return self.reached and time.monotonic() - self._began > LASTED

    async def run(self) -> None:
        """Follow it.

        Raises:
            WireError: it cannot be reached, or refuses; or the connection broke.
        """
        client, reach = await self._reach()
        try:
            self.reached = True
            self._began = time.monotonic()
            if not reach.owner:
                await self._from_outside(client, reach)
            else:
                await self._as_owner(client, reach)
        finally:
            await client.close()

    async def _reach(self) -> tuple[Client, Reach]:
        """The way in that gives most rights.

        Raises:
            WireError: there is none; says what the first that answered said.
        """
        found = await asyncio.to_thread(
            lambda: list(dict.fromkeys(ways_to(self._following.address)))
        )
        refusal: AgentError | None = None
        outside: Way | None = None
        for way in found:
            try:
                async with Client(way.url, way.token, TIMEOUT) as client:
                    await _status(client)
                return Client(way.url, way.token, TIMEOUT), Reach(way.url, way.token)
            except AgentError as error:
                refusal = refusal or error
                if error.status == 403 and way.token:
                    outside = outside or way
                if not error.status and not outside:
                    break  # nobody answers: another token changes nothing
        if outside:
            reach = Reach(outside.url, outside.token, owner=False)
            return Client(outside.url, outside.token, TIMEOUT), reach
        raise refusal or AgentError("not reachable")

    async def _from_outside(self, client: Client, reach: Reach) -> None:
        """With a peer's rights: the card is all that is told."""
        while True:
            self._card(await client.card())
            self._following.reached(reach)
            self._following.settled()
            await asyncio.sleep(HEALTH)

    async def _as_owner(self, client: Client, reach: Reach) -> None:
        status = await _status(client)
        card = await client.card()
        if not card.get("instance_id"):
            await self._another_make(client, reach, card)
            return
        last = count(status.get("server_seq")) or 0
        before = self._following.state
        other = before.card.get("instance_id") not in (None, card.get("instance_id"))
        if other or last < before.last:  # another agent, or its log began anew
            self._following.take([known.record(known.ANEW)])
        self._card(card)
        await self._following.reflect(client, card)
        await self._update(client, None)
        self._following.reached(reach)
        since = max(self._following.last, last - EVENTS)
        await until_one_ends(
            self._listen(client, since),
            self._take_down(last),
            self._keep(client),
            self._reflect(client, card),
        )
        raise AgentError("it ended the stream")

    async def _another_make(self, client: Client, reach: Reach, card: Json) -> None:
        """Follow an agent that has no durable log: what it says is counted here."""
        self._counting = Counting(self._following.state)
        self._card(card)
        await self._update(client, None)
        await self._heard(client)
        self._following.reached(reach)
        self._following.settled()
        if not self._following.alone:
            with contextlib.suppress(_Alone):
                await until_one_ends(
                    self._listen(client, 0),
                    self._take_down(0),
                    self._keep(client),
                    self._check_alone(client),
                )
                raise AgentError("it ended the stream")
        self._following.asked_every(ASKING)
        while True:
            await asyncio.sleep(ASKING)
            await self._update(client, None)
            await self._heard(client)

    async def _heard(self, client: Client) -> None:
        """Take down the messages that it still has."""
        found = [self._numbered("acp.message", each) for each in await client.heard()]
        news = [each for each in found if each]
        if news:
            self._following.take([known.entry(*each) for each in news])

    def _numbered(self, kind: str, body: Json, seq: int = 0) -> AgentEvent | None:
        if self._counting is None:
            return AgentEvent(seq, kind, body) if seq else None
        return self._counting.numbered(kind, body)

    async def _check_alone(self, client: Client) -> None:
        """See whether it answers anybody while it tells what happens.

        Raises:
            _Alone: it does not; the stream has to end.
        """
        await asyncio.sleep(OPENING)
        try:
            async with asyncio.timeout(ALONE):
                await _status(client)
        except TimeoutError:
            raise _Alone from None
        await asyncio.Event().wait()

    async def _listen(self, client: Client, since: int | None) -> None:
        """Read its log as it comes; no faster than it is taken down."""
        try:
            async for event in client.stream(since, again=False):
                if event.kind == "acp.snapshot":
                    self._reflected.set()
                if event.kind in _NO_ENTRIES:
                    continue
                if made := self._numbered(event.kind, event.data, event.seq):
                    await self._queue.put(made)
        except AgentError as error:
            if since is None or self._counting is None or error.status not in (400, 404):
                raise
            await self._listen(client, None)  # it knows no such question

    async def _take_down(self, last: int) -> None:
        """Take down what was read; says when all is here that was there at the beginning."""
        settled = self._following.last >= last
        if settled:
            self._following.settled()
        while True:
            try:
                event = await asyncio.wait_for(self._queue.get(), None if settled else SETTLED)
            except TimeoutError:  # it promised more than it has
                settled = True
                self._following.settled()
                continue
            batch = [event]
            live = settled and (last > 0 or time.monotonic() - self._began > ALL_PAST)
            while len(batch) < BATCH and not self._queue.empty():
                batch.append(self._queue.get_nowait())
            await self._take(batch, live)
            if not settled and batch[-1].seq >= last:
                settled = True
                self._following.settled()

    async def _take(self, batch: list[AgentEvent], live: bool) -> None:
        self._following.take([known.entry(*event, live=live) for event in batch])
        self._dirty.update(
            id
            for event in batch
            if event.kind != "acp.reply" and (id := text(event.data.get("task_id"))) is not None
        )
        self._stale.set()
        self._taken += len(batch)
        ahead = (self._taken - BURST) / RATE - (time.monotonic() - self._began)
        if ahead > 0:
            await asyncio.sleep(min(ahead, 5.0))

    async def _keep(self, client: Client) -> None:
        """Keep peers and tasks up to date."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stale.wait(), QUEUE if self._waits else HEALTH)
            await asyncio.sleep(GATHER)
            self._stale.clear()
            wanted, self._dirty = self._dirty, set()
            await self._update(client, None if self._counting else wanted)

    @property
    def _waits(self) -> bool:
        return any(peer.queued for peer in self._following.state.peers)

    async def _reflect(self, client: Client, card: Json) -> None:
        """Ask a bridge for the state of its folder whenever it has said that there is a new one."""
        while True:
            await self._reflected.wait()
            self._reflected.clear()
            await self._following.reflect(client, card)

    def _card(self, card: Json) -> None:
        plain = {name: value for name, value in card.items() if name not in _NOT_KEPT}
        if {**plain, "timestamp": ""} != {**self._following.state.card, "timestamp": ""}:
            self._following.take([known.record(known.CARD, card=plain)])

    async def _update(self, client: Client, wanted: set[str] | None) -> None:
        """Look at tasks (None: at the latest of all) and peers."""
        tasks = await _tasks(client, wanted)
        peers = known.peers(await _or_none(client.peers()))
        have = self._following.state
        same = peers == [peer.raw for peer in have.peers]
        news = [] if same else [known.record(known.PEERS, peers=peers)]
        plain = [{name: task[name] for name in task if name not in _TWICE} for task in tasks]
        news += [  # asked for first and told last: a task's peer is always known
            known.record(known.TASK, task=task)
            for task in reversed(plain)
            if task.get("id") and not have.holds(task)
        ]
        if news:
            self._following.take(news)


class _Alone(Exception):
    """It answers one request at a time, and a stream is one that does not end."""


async def _tasks(client: Client, wanted: set[str] | None) -> list[Json]:
    """The wanted tasks, or the latest of all."""
    if wanted is None or len(wanted) > TASKS_ASKED:
        query: dict[str, str | int] = {"sort": "-updated_at", "limit": TASKS}
        try:
            return (await _or_none(client.tasks(**query)))[:TASKS]
        except AgentError as error:
            if error.status != 400:
                raise
            return (await _or_none(client.tasks()))[:TASKS]  # it knows no such order
    found: list[Json] = []
    for id in wanted:
        with contextlib.suppress(AgentError):  # it was thrown away meanwhile
            found.append(await client.task(id))
    return found


async def _status(client: Client) -> Json:
    """The agent's figures, where it has such (the specification asks for none)."""
    try:
        return await client.status()
    except AgentError as error:
        if error.status != 404:
            raise
        return {}


async def _or_none(asking: Awaitable[list[Json]]) -> list[Json]:
    """A list, where the agent has such and shows it."""
    try:
        return await asking
    except AgentError as error:
        if error.status not in (403, 404):
            raise
        return []


_NO_ENTRIES = ("acp.ready", "acp.ping", "ready", "ping", "keepalive", "heartbeat")

_NOT_KEPT = ("self", "peer", "link")

_TWICE = ("ok", "task", "history")

_REMEMBERED = 4 * EVENTS


class Counting:
    """Gives what is new the numbers that follow those of the entries that are known."""

    def __init__(self, known: Known) -> None:
        self._last = known.last
        self._seen = dict.fromkeys(
            _identity(each.kind, folder.body_of(each)) for each in known.entries
        )

    def numbered(self, kind: str, body: Json) -> AgentEvent | None:
        """The event with its number; None where it is known already."""
        identity = _identity(kind, body)
        if identity in self._seen:
            return None
        self._seen[identity] = None
        if len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]
        self._last += 1
        return AgentEvent(self._last, kind, body)


def _identity(kind: str, body: Json) -> tuple[str, object]:
    """By what an event is known: a message by its id, all else by what it says, but for its number."""
    id = text(body.get("message_id"))
    if kind in ("acp.message", "acp.reply") and id is not None:
        return "message", id
    return kind, encode({name: value for name, value in body.items() if name != "seq"})
