"""Plainly written arguments read at a tenth of what `argparse` costs: for what agents run at each turn.

Standard library only, and light.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

from acp_core.model.action_field import PLACE, PRESETS, Field, Kind
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


FOLDER = PLACE
"""The collaboration, by position or by name; the folder in which one stands where none is given."""

NAMED_FOLDER = PLACE._replace(default=None, required=True)
"""The collaboration, by position or by name, and always said: that of the commands that agents run."""

JSON = Field("json", help="Print one JSON object.", kind=Kind.FLAG, form=False)

DRY_RUN = Field(
    "dry_run", help="Show what would change; change nothing.", kind=Kind.FLAG, form=False
)

MATTER = Field(
    "matter", help="Refuse if the card has changed since `acp card` showed this digest.",
    metavar="DIGEST", form=False,
)  # fmt: skip

YES = Field("yes", help="Do not ask for confirmation.", kind=Kind.FLAG, form=False)

BY = Field(
    "by",
    "By",
    "Record this name as the person who acts [default: your account].",
    metavar="NAME",
    form=False,
)

REASON = Field("reason", "Reason", "Say why.", Kind.LINES, required=True, metavar="TEXT")

AGENT = Field(
    "agent", "Agent", "Choose the agent of one participant, or (without NAME) of all others.",
    Kind.LIST, metavar="[NAME=]PRESET", form=False, suggests=PRESETS, owner=True,
)  # fmt: skip

MODEL = Field("model", "Model", "Choose the agent's model (empty: the agent's default).",
              metavar="NAME", owner=True)  # fmt: skip

TIMEOUT = Field("timeout", "Timeout", "Time limit of one attempt.", Kind.DURATION, owner=True)

DEADLINE = Field("deadline", "Deadline", "Time limit of the whole run.", Kind.DURATION, owner=True)

JOBS = Field("jobs", "Agents at the same time", "Limit how many agents work at once.", Kind.NUMBER,
             owner=True)  # fmt: skip

RETRIES = Field("retries", "Retries", "Limit how often a failed attempt is repeated.", Kind.NUMBER,
                owner=True)  # fmt: skip

DETACH = Field(
    "detach", help="Run in the background: do not wait for the end.", kind=Kind.FLAG, form=False
)

ONCE = Field(
    "once", help="Start the agent for each attempt, even if it can hold a live session.",
    kind=Kind.FLAG, form=False, owner=True,
)  # fmt: skip

PERMISSIONS = Field(
    "permissions", "Permissions",
    "Decide what a live session may do without asking (default: the policy in config.toml).",
    Kind.CHOICE, choices=("ask", "edits", "all", "none"), metavar="POLICY", form=False,
    owner=True,
)  # fmt: skip

BUDGET = Field(
    "budget", "Budgets",
    "Limit what is spent: SCOPE is turn, participant, collaboration or day; AMOUNT is 2.50usd or "
    "10Mtokens.", Kind.LIST, metavar="SCOPE=AMOUNT", owner=True,
)  # fmt: skip

FORCE = Field("force", "Overwrite", "Overwrite existing files.", Kind.FLAG)

UNLOCKED = Field(
    "unlocked", help="Write even if locks do not work on this file system.",
    kind=Kind.FLAG, form=False,
)  # fmt: skip
