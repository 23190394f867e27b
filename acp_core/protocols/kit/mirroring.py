"""What a mirror shows of a collaboration: the files that its protocol tracks, and where it stands."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from acp_core.model import Snapshot, Status
from acp_core.model.action import Action, Intent
from acp_core.model.action_field import Field, Kind
from acp_core.model.action_spec import By
from acp_core.model.errors import Refused
from acp_core.model.past import TrackedFile
from acp_core.model.text import clean, clean_line
from acp_core.protocols import registry
from acp_core.protocols.discovery import DiscoveredCollaboration, identify
from acp_core.protocols.kit.owner_inputs import open_fields
from acp_core.stores import asking, mirror
from acp_core.stores.engine import MAX_BYTES, MAX_FILES
from acp_core.stores.mirror import KINDS
from acp_core.stores.tree import NotShared, Tree

_MOST_PARTS = 100

_MOST_PEOPLE = 64

_LONGEST = 500


class Taken(NamedTuple):
    """A file as it is now: its name in the mirror, when it was written (ns), and its bytes."""

    name: str
    written: int
    data: bytes


class Contents(NamedTuple):
    """What a mirror is made of.

    Attributes:
        protocol: the collaboration's.
        files: what leaves this machine.
        staying: names of tracked files that do not, each with the reason.
        watched: the folders in which a change matters.
        snapshot: where it stands.
        acts: what this host can be asked for now.
    """

    protocol: str
    files: tuple[Taken, ...]
    staying: tuple[str, ...]
    watched: frozenset[Path]
    snapshot: Snapshot
    acts: tuple[dict[str, Any], ...] = ()


def kind_of(folder: str) -> str:
    """The protocol of the collaboration in a folder, if there are mirrors of it; else ""."""
    found = identify(Path(folder), registry.installed())
    return found.protocol.name if found is not None and found.protocol.name in KINDS else ""


def collect(folder: str, now: datetime) -> Contents:
    """Read a collaboration for its mirror.

    Raises:
        Refused: none of that kind stands there, or it is too large.
        OSError: a file cannot be read.
    """
    found = identify(Path(folder), registry.installed())
    if found is None or found.protocol.name not in KINDS:
        raise Refused(f"{folder} holds no collaboration that can be shared")
    root = os.path.realpath(folder)
    files: dict[str, Taken] = {}
    staying: list[str] = []
    opened = found.open()
    try:
        snapshot = opened.refresh(now)
        watched = opened.watched()
        acts = tuple(told for told in map(described, opened.actions(now)) if told)
        for each in _parts(found, snapshot):
            base = os.path.realpath(each.key)
            for tracked in _tracked(opened if each is found else each, now):
                real = os.path.realpath(os.path.dirname(tracked.path))
                path = os.path.join(real, os.path.basename(tracked.path))
                name = os.path.relpath(path, root).replace(os.sep, "/")
                taken, reason = _take(base, path, name)
                if taken is not None:
                    files[name] = taken
                elif reason:
                    staying.append(f"{name} ({reason})")
    finally:
        opened.close()
    if len(files) > MAX_FILES // 2 or sum(len(each.data) for each in files.values()) > MAX_BYTES:
        raise Refused(
            f"{folder} has more than {MAX_FILES // 2} files or {MAX_BYTES >> 20} MiB: it cannot be shared"
        )
    ordered = tuple(files[name] for name in sorted(files))
    return Contents(found.protocol.name, ordered, tuple(staying), watched, snapshot, acts)


def _parts(found: DiscoveredCollaboration, snapshot: Snapshot) -> Iterator[DiscoveredCollaboration]:
    """A collaboration, and those that it consists of."""
    yield found
    for part in snapshot.parts[:_MOST_PARTS]:
        other = identify(Path(part), registry.installed())
        if other is not None and other.protocol.name in KINDS:
            yield other


def _tracked(of: Any, now: datetime) -> Sequence[TrackedFile]:
    if not isinstance(of, DiscoveredCollaboration):
        return of.tracked_files()  # type: ignore[no-any-return]
    opened = of.open()
    try:
        opened.refresh(now)
        return opened.tracked_files()
    finally:
        opened.close()


def _take(base: str, path: str, name: str) -> tuple[Taken | None, str]:
    """A file that may leave, or why it stays; neither where it is gone."""
    below = os.path.relpath(path, base).replace(os.sep, "/")
    if below.startswith("../"):
        return None, "it lies elsewhere"
    if reason := mirror.reason_against(name):
        return None, reason
    try:
        data = Tree(base).read(below)
        written = os.lstat(path).st_mtime_ns
    except NotShared as error:
        return None, str(error)
    except FileNotFoundError:
        return None, ""
    return (None, "") if data is None else (Taken(name, max(0, written), data), "")


def summary(contents: Contents) -> dict[str, Any]:
    """What lists of many collaborations tell of it; see `acp_core.protocols.folder.read.current_state`."""
    shot = contents.snapshot
    phases = {Status.COMPLETED: "completed", Status.BLOCKED: "blocked"}
    people: dict[str, list[Any]] = {
        each.id: [each.id, each.kind] for each in shot.participants[:_MOST_PEOPLE]
    }
    for turn in shot.turns:
        at = turn.since.isoformat() if turn.since else ""
        known: list[Any] = people.get(turn.participant, [turn.participant, "unknown"])
        people[turn.participant] = [*known[:2], -1, at]
    told: dict[str, Any] = {
        "dialect": shot.dialect,
        "objective": shot.objective[:_LONGEST],
        "phase": phases.get(shot.status, shot.phase or "active"),
        "stopped": shot.phase,
        "progress": shot.progress,
        "changed": shot.changed.isoformat() if shot.changed else "",
        "started": shot.started.isoformat() if shot.started else "",
        "people": list(people.values()),
        "protocol": contents.protocol,
    }  # fmt: skip
    if shot.needs:
        need = shot.needs[0]
        since = need.since.isoformat() if need.since else ""
        who = need.about.participant or "human"
        told["duty"] = need.sentence[:_LONGEST]
        told["people"] = [e for e in told["people"] if e[0] != who] + [[who, "human", -1, since]]
    if shot.status is Status.BLOCKED:
        told["blocked"] = [shot.needs[0].about.participant or "" if shot.needs else "",
                           shot.headline[:_LONGEST], "", "blocked", 0]  # fmt: skip
    return told


def matter_of(folder: str, mark: str, now: datetime) -> str:
    """The digest of how things stand in a folder that this host conducts; see `mirror.matter`.

    Raises:
        Refused: no collaboration stands there.
        OSError: a file cannot be read.
    """
    contents = collect(folder, now)
    files = tuple(mirror.file_of(e.name, e.written, e.data, None) for e in contents.files)
    return mirror.matter(mirror.Manifest(mark, 0, contents.protocol, "", "", "", "", files))


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
