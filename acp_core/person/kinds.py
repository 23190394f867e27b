"""The kinds of values that a person may set; what is of another kind is refused, and where it stands.

Unlike strangers' JSON (`acp_core.files.decode`), what a person wrote is refused at its first mistake.
Imports nothing slow: settings are needed before the first picture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from acp_core.model.errors import InvalidInput


class WrongValue(InvalidInput, ValueError):
    """A value is not of its kind: ``where`` below what was looked at, and what is ``needed`` there."""

    def __init__(self, where: str, needed: str) -> None:
        super().__init__(f"{where}: {needed}")
        self.where, self.needed = where, needed


Check = Callable[[Any], None]
"""Raises `WrongValue` where a value is not of its kind."""


def check_that(fits: Callable[[Any], object], needed: str) -> Check:
    """Values that fit."""

    def check(value: object) -> None:
        if not fits(value):
            raise WrongValue("", needed)

    return check


def check_one_of(names: Iterable[str]) -> Check:
    """One of some texts."""
    known = tuple(names)
    return check_that(lambda value: value in known, f"one of {', '.join(known)}")


def check_read(read: Callable[[str], object]) -> Check:
    """A text that can be read; `ValueError` says what is needed."""

    def check(value: object) -> None:
        try:
            read(value if isinstance(value, str) else "")
        except ValueError as error:
            raise WrongValue("", str(error)) from None

    return check


def check_list(item: Check, needed: str) -> Check:
    """A list of such items."""

    def check(value: Any) -> None:
        check_that(lambda given: isinstance(given, list), needed)(value)
        for place, each in enumerate(value):
            check_below(item, each, f"[{place}]")

    return check


def check_table(item: Check, needed: str = "a table") -> Check:
    """A table with any names and such values."""

    def check(value: Any) -> None:
        check_that(lambda given: isinstance(given, dict), needed)(value)
        for name, each in value.items():
            check_below(item, each, f".{name}")

    return check


def check_fields(known: Mapping[str, Check], needed: str = "a table") -> Check:
    """A table with some of these names, each value of its own kind."""
    known_name = check_one_of(known)

    def check(value: Any) -> None:
        check_that(lambda given: isinstance(given, dict), needed)(value)
        for name, each in value.items():
            check_below(known_name, name, f".{name}")
            check_below(known[name], each, f".{name}")

    return check


def check_below(check: Check, value: object, where: str) -> None:
    """Check what stands at a place inside of something."""
    try:
        check(value)
    except WrongValue as error:
        raise WrongValue(where + error.where, error.needed) from None


IS_TEXT = check_that(lambda value: isinstance(value, str), "a text in quotes")
IS_SWITCH = check_that(lambda value: isinstance(value, bool), "true or false")
ARE_TEXTS = check_list(IS_TEXT, "a list of texts")
