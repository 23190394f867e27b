"""What acp does not write over, as one word of the model (see `acp_core.model`).

Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Damage that was seen, or somebody else's claim: until it is cleared, writes are refused.

    The refusal of a write, the cause that `acp why` prints and the line on top of the screen are
    made from the same obstacle, so that they cannot disagree. What is no damage (a program that
    ended without an event) is a `Cause` and no obstacle.

    Attributes:
        code: the code of its `Cause`.
        sentence: what is wrong and where, in one line without its full stop.
        cure: what to do: a command that is complete as it stands, or what has to be chosen.
        allowed: names of the acts that are not refused: those that mend it, or that end it all.
        remedy: the act that mends it; "" where none of acp's does.
        given: inputs of that act, by name.
        evidence: what was observed, a line each.
        participant: whom it is about.
        document, line: where to look.
        key: stays the same as long as it is the same obstacle.
        wanted: a human is wanted to clear it; False for somebody else's claim, which is as it
            should be as long as they work.
    """

    code: str
    sentence: str
    cure: str
    allowed: frozenset[str] = frozenset()
    remedy: str = ""
    given: tuple[tuple[str, str], ...] = ()
    evidence: tuple[str, ...] = ()
    participant: str | None = None
    document: str | None = None
    line: int | None = None
    key: str = ""
    wanted: bool = True
