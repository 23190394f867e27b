"""Conflicts between outputs: found, added, resolved by the rule of their category, or dismissed.

Source: agent workspaces specification, "Conflict Resolution Protocol".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from acp_core.files.transaction import REPLACE, Write
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.format import count
from acp_core.protocols.workspaces.read import conflict_hints
from acp_core.protocols.workspaces.read.conflict_hints import Hint
from acp_core.protocols.workspaces.schema import CATEGORIES, GROUNDS, coord
from acp_core.protocols.workspaces.schema.coord import Conflict, Conflicts
from acp_core.protocols.workspaces.write import dispatch, triage
from acp_core.protocols.workspaces.write import manifest as manifests
from acp_core.protocols.workspaces.write.layout import Layout, read_json
from acp_core.protocols.workspaces.write.writing import Step, encode, iso

Object = dict[str, Any]


def current_hints(place: Layout) -> list[Hint]:
    """What a machine finds in the outputs now.

    Raises:
        Refused: there is no manifest that can be read.
    """
    run = dispatch.read_run(place, utc_now())
    order = dict.fromkeys([*manifests.read(place).order, *(agent.name for agent in run.agents)])
    outputs = conflict_hints.outputs(run, list(order))
    return conflict_hints.hints(outputs, conflict_hints.built_on(run))


def record_hints(place: Layout, by: str = "") -> Step:
    """What writing the hints down would write.

    What was settled or recorded by a person stays as it is; a hint that is no longer true goes.

    Raises:
        Refused: not every agent is through and decided on.
    """
    run = dispatch.read_run(place, utc_now())
    triage.require_all(run)
    value, items = _read(place)
    now = {about(each): each for each in current_hints(place)}
    left = [each for each in items if not (_is_open_hint(each) and about(each) not in now)]
    known = {about(each) for each in left}
    new = [each for key, each in now.items() if key not in known]
    numbers = _numbers(left)
    made = [
        {
            "id": f"c{next(numbers)}",
            **_plain(each),
            "hint": True,
            "found_by": "acp",
            "at": iso(utc_now()),
        }
        for each in new
    ]
    written = [*(each.raw for each in left), *made]
    value |= {"looked_at": iso(utc_now()), "by": by or triage.me(), "conflicts": written}
    sentence = f"Compare the outputs: {count(len(new), 'new hint')}, {len(written)} recorded."
    return Step(sentence, (Write(place.conflicts, REPLACE, encode(value)),))


def _is_open_hint(item: Conflict) -> bool:
    return item.is_open and item.is_hint


def add(place: Layout, agents: list[str], topic: str, category: str, by: str = "") -> Step:
    """What adding a conflict would write; a hint that says the same becomes a conflict.

    Raises:
        Refused: it is not between two agents of the run, or lacks its topic.
    """
    run = dispatch.read_run(place, utc_now())
    pair = [triage.find(run, name).name for name in agents]
    if len(set(pair)) != 2:
        raise Refused("a conflict is between two agents")
    _require(category)
    if not topic.strip():
        raise Refused("give the conflict a topic")
    value, items = _read(place)
    topic = conflict_hints.topic_of(topic)
    new = {
        "id": f"c{next(_numbers(items))}",
        "agents": pair,
        "topic": topic,
        "category": category,
        "files": [],
        "hint": False,
        "found_by": by or triage.me(),
        "at": iso(utc_now()),
    }
    key = frozenset(pair), topic.lower()
    same = next((each for each in items if about(each) == key), None)
    if same is not None and not _is_open_hint(same):
        raise Refused("this conflict is already recorded")
    if same is not None:
        same.raw.update(hint=False, category=category, found_by=new["found_by"])
    value["conflicts"] = [*(each.raw for each in items), *([] if same else [new])]
    sentence = f"Add the conflict of {' and '.join(pair)} on {topic} ({category})."
    return Step(sentence, (Write(place.conflicts, REPLACE, encode(value)),))


def resolve(
    place: Layout,
    id: str,
    *,
    category: str = "",
    keep: str = "",
    because: str = "",
    by: str = "",
    alike: bool = False,
) -> Step:
    """What resolving a conflict would write, with its record sentence.

    Args:
        place: the run.
        id: the conflict's.
        category: another one than was thought; "" for that.
        keep: the agent whose version holds, or is the more detailed one.
        because: for a fact: one of `GROUNDS`.
        by: who decides.
        alike: resolve the other open ones on this topic in the same way, as far as ``keep`` has a
            part in them.

    Raises:
        Refused: there is no such conflict, or what its category asks for is missing.
    """
    value, items = _read(place)
    item = _find(items, id)
    category = category or item.category
    _require(category)
    if len(item.agents) < 2:
        raise Refused(f"{id} does not name two agents")
    if keep and keep not in item.agents:
        raise Refused(f"{keep!r} is not part of {id}: the conflict is between {item.between}")
    rule = _rule(place, category, keep, because)
    made: Object = {"category": category, "rule": rule, "keep": keep, "by": by or triage.me()}
    made |= {"resolved_at": iso(utc_now()), "dismissed": False}
    sentences = []
    for each in [item, *(_alike(items, item) if alike else ())]:
        if len(each.agents) > 1 and (not keep or keep in each.agents):
            topic = conflict_hints.topic_of(each.topic)
            sentences.append(f"Conflict between {each.between} on {topic}. Resolved by {rule}.")
            each.raw.update(made, sentence=sentences[-1])
    value["conflicts"] = [each.raw for each in items]
    if not sentences[1:]:
        return Step(sentences[0], (Write(place.conflicts, REPLACE, encode(value)),))
    topic = conflict_hints.topic_of(item.topic)
    sentence = f"{count(len(sentences), 'conflict')} on {topic}. Resolved by {rule}."
    return Step(sentence, (Write(place.conflicts, REPLACE, encode(value)),), notes=tuple(sentences))


def _alike(items: list[Conflict], item: Conflict) -> list[Conflict]:
    """The other open conflicts on the same topic, of the same category."""
    same = item.topic.lower(), item.category.lower()
    others = (each for each in items if each is not item and each.is_open)
    return [each for each in others if (each.topic.lower(), each.category.lower()) == same]


def _rule(place: Layout, category: str, keep: str, because: str) -> str:
    """The rule of a category, as the record sentence names it.

    A fact is never averaged: one version holds, and it is said why.
    """
    if category == "factual":
        if not keep:
            raise Refused(
                "choose whose version of the fact holds (--keep): facts are never averaged"
            )
        if because not in GROUNDS:
            raise Refused(
                f"give the reason why the version holds (--because): {', '.join(GROUNDS)}"
            )
        return f"the factual rule, the more {because} version, that of {keep}"
    if category == "coverage":
        detailed = f", that of {keep}" if keep else ""
        return f"the coverage rule, merged and keeping the more detailed version{detailed}"
    return f"the format rule, both brought into the structure of the final {_form(place)} output"


def dismiss(place: Layout, id: str, reason: str, by: str = "", *, alike: bool = False) -> Step:
    """What dismissing a conflict would write: it is none; ``alike``: nor are the others like it.

    Raises:
        Refused: there is no such conflict, or no reason is given.
    """
    reason = " ".join(reason.split())[:2_000]
    if not reason:
        raise Refused("give the reason why this is not a conflict")
    value, items = _read(place)
    item = _find(items, id)
    gone = [item, *(_alike(items, item) if alike else ())]
    made: Object = {
        "dismissed": True,
        "reason": reason,
        "by": by or triage.me(),
        "resolved_at": iso(utc_now()),
    }
    for each in gone:
        each.raw.update(made)
        each.raw.pop("sentence", None)
    value["conflicts"] = [each.raw for each in items]
    ids = ", ".join(each.id or "?" for each in gone)
    return Step(f"Dismiss {ids}: {reason}", (Write(place.conflicts, REPLACE, encode(value)),))


def recorded(place: Layout) -> list[Conflict]:
    """The conflicts that are written down.

    Raises:
        Refused: they cannot be read.
    """
    return _read(place)[1]


def _read(place: Layout) -> tuple[Object, list[Conflict]]:
    value = read_json(place.conflicts) or {}
    return value, list(coord.parse(Conflicts, value).conflicts)


def _find(items: list[Conflict], id: str) -> Conflict:
    item = next((each for each in items if each.id == id), None)
    if item is None:
        known = ", ".join(each.id for each in items) or "none"
        raise Refused(f"no conflict {id!r} (conflicts: {known})")
    return item


def _require(category: str) -> None:
    if category not in CATEGORIES:
        raise Refused(f"the category {category!r} is unknown (categories: {', '.join(CATEGORIES)})")


def about(item: Conflict | Hint) -> tuple[frozenset[str], str]:
    """Between whom it is, and on what: one of each is written down."""
    return frozenset(item.agents), item.topic.lower()


def _numbers(items: list[Conflict]) -> Iterator[int]:
    taken = {each.id for each in items}
    return (number for number in range(1, 10_000) if f"c{number}" not in taken)


def _plain(hint: Hint) -> Object:
    return {
        "agents": list(hint.agents),
        "topic": hint.topic,
        "category": hint.category,
        "files": list(hint.files),
        "why": hint.why,
    }


def _form(place: Layout) -> str:
    return manifests.read(place).form
