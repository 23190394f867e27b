"""Who can answer what an agent does not know.

Source: development cycle specification, "Conflict Resolution" and "Escalation Path": unclear
requirements go to RA, an incomplete plan to EP, and what no agent can settle to a person.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from acp_core.protocols.cycle.schema import AGENTS

USER = "user"
_ADDRESSED = re.compile(
    r"^\W{0,3}(ra|ep|cd|vas|user|human|person)\b\W{0,3}\s*:\s*(.*)$", re.I | re.S
)
_PLAN = re.compile(r"\bplan(?:ned)?\b|\btasks?\b|\bTASK-\d", re.I)
_WANTED = re.compile(
    r"\bFR-\d|\bEC-\d|requirement|unclear|clarif|ambiguous|edge case|specification", re.I
)


class Route(NamedTuple):
    """Who is asked what; ``options`` are the choices that were offered."""

    owner: str
    question: str
    options: tuple[str, ...] = ()


def route(text: str, reporter: str) -> Route:
    """Whom a blocker concerns: as it says itself, else by its words; a person where nobody else.

    Only an agent that works before the reporter can answer it.
    """
    match = _ADDRESSED.match(text)
    owner = match[1].lower() if match else _guess(text)
    question, *options = [part.strip() for part in (match[2] if match else text).split("|")]
    before = AGENTS[: AGENTS.index(reporter)] if reporter in AGENTS else AGENTS
    if owner not in before:
        owner = USER
    return Route(owner, question or text, tuple(each for each in options if each))


def _guess(text: str) -> str:
    if _WANTED.search(text):
        return "ra"
    return "ep" if _PLAN.search(text) else USER
