"""A folder on another machine, asked of its bridge: its state, its texts, and what may be done."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field, create_model

from acp_core.files.decode import text
from acp_core.model import Action, DocumentText, Outcome, OutcomeState, Preview, Snapshot
from acp_core.model.action import Change, Intent
from acp_core.model.text import clean, clean_line
from acp_core.protocols.wire.bridge.mirror import Mirror, Unfit
from acp_core.protocols.wire.network.answers import WireError
from acp_core.protocols.wire.network.client import Client
from acp_core.protocols.wire.schema import Json
from acp_core.protocols.wire.schema.lenient import fields_of, objects
from acp_core.protocols.wire.schema.parts import data_part

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
        except WireError as error:
            if error.status == 404:
                raise KeyError(id) from None
            return DocumentText(id, "", "", note=clean_line(str(error)))

    def raw(self, asking: Asking, id: str) -> str:
        """An event as the folder holds it; "" where it cannot be had."""
        try:
            raw = asking(lambda client: client.bridge("event", id=id)).get("raw")
        except WireError:
            return ""
        return clean(text(raw) or "")

    def actions(self, asking: Asking) -> Sequence[Action]:
        """What may be asked for now; none where the bridge does not answer."""
        try:
            found = asking(lambda client: client.bridge("actions")).get("actions")
        except WireError:
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
    except WireError as error:
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
    except WireError as error:
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
