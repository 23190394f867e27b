"""What the host of a mirror can be asked for: described by it, and judged by whoever shows it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from acp_core.model.action import Action, Intent
from acp_core.model.action_field import Field, Kind
from acp_core.model.action_spec import By
from acp_core.model.text import clean, clean_line
from acp_core.protocols.kit.owner_inputs import open_fields
from acp_core.stores import asking

STOPS = frozenset({Intent.STOP, Intent.STOP_EVERYTHING})
"""Acts that count whoever asks, where the host accepts requests to stop."""
DECISIONS = frozenset({Intent.DECIDE, Intent.ACCEPT, Intent.REJECT, Intent.ANSWER})
"""Acts that count only where who asks is proven."""
_PLAIN = frozenset(
    {Kind.TEXT, Kind.LINES, Kind.NUMBER, Kind.DECIMAL, Kind.FLAG, Kind.CHOICE, Kind.LIST}
)
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,60}")
_TEXTS = ("title", "help", "metavar")
_FLAGS = ("required", "optional")
_BOUNDS = ("least", "most")
_MOST = 200  # choices
_MOST_FIELDS = 30
_LONGEST = 500


class Offer(NamedTuple):
    """An act as a host describes it: see `acp_core.model.action.Action`."""

    name: str
    label: str
    sentence: str
    intent: Intent
    risky: bool
    fields: tuple[Field, ...]

    @property
    def verb(self) -> str:
        """What the host is asked for by it."""
        return "stop" if self.intent in STOPS else asking.DECIDE


def verb_of(action: Action) -> str:
    """What another host may ask this one for by an act; "" where it may not.

    What names a file or a command never is: that is this host's own (see `kit.owner_inputs`).
    """
    fields = action.fields or ()
    if action.by is not By.HUMAN or action.personal or action.owner or action.fields is None:
        return ""
    if any(each.form and not _is_plain(each) for each in fields):
        return ""
    return "stop" if action.intent in STOPS else asking.DECIDE if action.intent in DECISIONS else ""


def _is_plain(field: Field) -> bool:
    return field.kind in _PLAIN and field.items in _PLAIN and not field.names


def described(action: Action) -> dict[str, Any] | None:
    """An act of this host for the others; None where they cannot ask for it."""
    if not verb_of(action):
        return None
    return {
        "name": action.name,
        "label": action.label,
        "sentence": action.sentence,
        "intent": action.intent.value,
        "risky": action.risky,
        "fields": [_field(each) for each in open_fields(action)],
    }


def _field(field: Field) -> dict[str, Any]:
    told: dict[str, Any] = {"name": field.name, "kind": field.kind.value}
    told |= {name: getattr(field, name) for name in (*_TEXTS, *_FLAGS, *_BOUNDS)}
    default = field.default if isinstance(field.default, str | int | float | list) else None
    told |= {"items": field.items.value, "default": default}
    choices = [str(each) for each in field.choices]
    labels = {str(each): str(said) for each, said in field.labels.items()}
    return told | {"choices": choices, "labels": labels}


def decoded(value: Mapping[str, Any]) -> Offer | None:
    """An act as a stranger described it, safe to show; None where it is none."""
    try:
        fields = tuple(map(_decoded_field, value["fields"][:_MOST_FIELDS]))
        offer = Offer(
            _name(value["name"]), _words(value["label"]), _words(value["sentence"]),
            Intent(value["intent"]), value["risky"] is True, fields,
        )  # fmt: skip
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return offer if offer.intent in STOPS | DECISIONS else None


def _decoded_field(value: Mapping[str, Any]) -> Field:
    kind, items = Kind(value["kind"]), Kind(value["items"])
    if kind not in _PLAIN or items not in _PLAIN:
        raise ValueError("a kind")
    choices = tuple(_words(each) for each in value["choices"][:_MOST])
    if kind is Kind.CHOICE and not choices:
        raise ValueError("no choices")
    labels = {_words(each): _words(said) for each, said in list(value["labels"].items())[:_MOST]}
    return Field(
        _name(value["name"]).replace("-", "_"), kind=kind, items=items, choices=choices, labels=labels,
        default=_default(value["default"]), title=_words(value["title"]), help=_words(value["help"]),
        metavar=_words(value["metavar"]), required=value["required"] is True,
        optional=value["optional"] is True, least=_bound(value["least"]), most=_bound(value["most"]),
    )  # fmt: skip


def _default(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list):
        return [_words(each) for each in value[:_MOST]]
    return clean(_text(value))[:_LONGEST]


def _bound(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a bound")
    return value


def _name(value: Any) -> str:
    if not _NAME.fullmatch(_text(value)):
        raise ValueError("a name")
    return str(value)


def _words(value: Any) -> str:
    return clean_line(_text(value), _LONGEST)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a text")
    return value
