"""Budgets: how much money and how many tokens programs may take, and how much of it is used.

Pure functions. A cap is written as ``turn=2usd`` or ``day=500ktokens``. Money is what programs say
that they cost; a program that says nothing is capped by its tokens only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from acp_core.model.errors import Refused

SCOPES = ("turn", "participant", "collaboration", "day")
"""One turn of a participant; all its turns; all participants of the collaboration, and all agents
of the day, of this account."""
WARN = 0.8
"""The share of a budget from which on it is warned."""
_AMOUNT = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([kM]?)\s*(usd|tokens?)")
_FACTORS = {"": 1, "k": 1_000, "M": 1_000_000}
_OF = {
    "turn": "this turn",
    "participant": "this participant",
    "collaboration": "this collaboration",
    "day": "today",
}
_SENTENCE = "the budget for "


@dataclass(frozen=True, slots=True)
class Cap:
    """A limit: ``amount`` of ``unit`` ("usd" or "tokens") in one of `SCOPES`."""

    scope: str
    unit: str
    amount: float

    def __str__(self) -> str:
        """As it is written."""
        if self.unit == "usd":
            return f"{self.scope}={self.amount:g}usd"
        return f"{self.scope}={self.amount:.0f}tokens"


@dataclass(frozen=True, slots=True)
class Spent:
    """What was taken; ``unknown`` says that the cost of a part of it is not known."""

    tokens: int = 0
    usd: float = 0.0
    unknown: bool = False

    def __add__(self, other: Spent) -> Spent:
        """Both together."""
        unknown = self.unknown or other.unknown
        return Spent(self.tokens + other.tokens, self.usd + other.usd, unknown)


@dataclass(frozen=True, slots=True)
class Use:
    """How much of a budget is used; ``at_least`` where the cost of a part of it is not known."""

    scope: str
    unit: str
    spent: float
    amount: float
    at_least: bool = False

    @property
    def share(self) -> float:
        """The used part, 1 for all of it."""
        return self.spent / self.amount if self.amount else 1.0

    @property
    def is_over(self) -> bool:
        """Whether it is used up."""
        return self.share >= 1

    @property
    def is_near(self) -> bool:
        """Whether it is used up, or nearly so."""
        return self.share >= WARN

    @property
    def sentence(self) -> str:
        """How much is used, for people."""
        verb = "is used up" if self.is_over else f"is used to {self.share:.0%}"
        return f"{_SENTENCE}{_OF.get(self.scope, self.scope)} {verb}: {self.figures}"

    @property
    def figures(self) -> str:
        """What is used of what: ``$1.70 of $2.00``."""
        least = "≥" if self.at_least else ""
        if self.unit == "usd":
            return f"{least}${self.spent:.2f} of ${self.amount:.2f}"
        return f"{self.spent:,.0f} of {self.amount:,.0f} tokens"


def caps_of(usual: Mapping[str, str], chosen: Iterable[str]) -> tuple[Cap, ...]:
    """The caps of the settings, as the options change them.

    Raises:
        Refused: one is no amount.
    """
    by_settings = [
        parse_amount(scope, word)
        for scope, words in usual.items()
        for word in words.replace(",", " ").split()
    ]
    return merged(by_settings, map(parse, chosen))


def stopped_it(why: str) -> bool:
    """Whether a budget is the reason for which a program was stopped."""
    return why.startswith(_SENTENCE)


def raised(found: Iterable[Use]) -> str:
    """The budget that is used up, twice as large, as it is written; "" where none is."""
    over = next((use for use in found if use.is_over), None)
    return doubled(over) if over else ""


def doubled(use: Use) -> str:
    """A budget twice as large as it is, or as what is used of it, as it is written."""
    return str(Cap(use.scope, use.unit, 2 * max(use.amount, use.spent)))


def parse(text: str) -> Cap:
    """A cap as a person writes it.

    Raises:
        Refused: it is none; says what one looks like.
    """
    scope, _, amount = text.partition("=")
    return parse_amount(scope.strip(), amount)


def parse_amount(scope: str, text: str) -> Cap:
    """A cap of a scope.

    Raises:
        Refused: the scope is unknown, or the text is no amount above zero.
    """
    if scope not in SCOPES:
        raise Refused(f"budget {scope!r}: must be one of {', '.join(SCOPES)}")
    found = _AMOUNT.fullmatch(text.strip())
    amount = float(found[1]) * _FACTORS[found[2]] if found else 0.0
    if found is None or not amount:
        raise Refused(f"budget {scope}={text}: must be an amount such as 2.50usd or 500ktokens")
    return Cap(scope, "usd" if found[3] == "usd" else "tokens", amount)


def merged(usual: Iterable[Cap], chosen: Iterable[Cap]) -> tuple[Cap, ...]:
    """Caps of which the chosen ones replace the usual ones of the same scope and unit."""
    by_what = {(cap.scope, cap.unit): cap for cap in (*usual, *chosen)}
    return tuple(by_what.values())


def uses(caps: Iterable[Cap], spent: Mapping[str, Spent]) -> tuple[Use, ...]:
    """How much of each cap is used.

    Args:
        caps: the limits.
        spent: what was taken, by scope.
    """
    found = []
    for cap in caps:
        taken = spent[cap.scope]
        amount = taken.usd if cap.unit == "usd" else float(taken.tokens)
        least = cap.unit == "usd" and taken.unknown
        found.append(Use(cap.scope, cap.unit, amount, cap.amount, least))
    return tuple(found)
