"""Plainly written arguments read at a tenth of what `argparse` costs: for what agents run at each turn.

Standard library only, and light.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

from acp_core.model.action_field import Field, Kind
from acp_core.model.light import Any

_PLAIN = frozenset({Kind.TEXT, Kind.LINES, Kind.CHOICE, Kind.FOLDER, Kind.FILE, Kind.NUMBER,
                    Kind.DURATION})  # fmt: skip


def quick(arguments: Sequence[str], fields: Sequence[Field]) -> SimpleNamespace | None:
    """What plainly written arguments say, option by option.

    Returns:
        The values by the fields' names, those that are not given at their ``empty``. None where
        anything is abbreviated, joined, missing or wrong: then the parser must say what it means
        (see `parser`).
    """
    known = {each.option: each for each in fields}
    given: dict[str, Any] = {}
    placed = []
    words = iter(arguments)
    for word in words:
        field = known.get(word)
        if field is None:
            placed.append(word)
            continue
        value = True if field.kind is Kind.FLAG else _value(field, next(words, "-"))
        if value is None:
            return None
        given[field.name] = value
    by_position = (each for each in fields if each.position and each.name not in given)
    for word in placed:
        field = next(by_position, None)
        value = None if field is None else _value(field, word)
        if field is None or value is None:
            return None
        given[field.name] = value
    if any(each.required and not given.get(each.name) for each in fields):
        return None
    return SimpleNamespace(**{each.name: given.get(each.name, each.empty) for each in fields})


def _value(field: Field, word: str) -> Any:
    """What a word says for a field; None where that must be looked at more closely."""
    if word.startswith("-") or field.kind not in _PLAIN:
        return None
    if field.kind is Kind.DURATION:
        plain = word.isascii() and word.replace(".", "", 1).isdigit() and len(word) < 8
        return float(word) if plain and field.least is field.most is None else None
    if field.kind is Kind.NUMBER:
        plain = word.isascii() and word.isdigit() and len(word) < 16
        return int(word) if plain and field.least is field.most is None else None
    return None if field.choices and word not in field.choices else word
