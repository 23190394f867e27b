"""Why a collaboration is stuck, as one word of the model (see `acp_core.model`).

Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a collaboration does not go on, and what a human can do about it.

    Attributes:
        code: which kind of cause, for good: a letter for its group (A: log or state files, B: the
            one whose turn it is, C: a half-done turn, D: a gate, E: a human or something outside)
            and a number.
        headline: the cause in a plain sentence, without its full stop and without ages.
        advice: what to do about it, in a few words.
        evidence: what was observed, a line each.
        certain: whether it was observed as such, or inferred from what was.
        wanted: a human is wanted; False where it may well pass by itself.
        remedy: name of the `Action` that mends it, where there is one.
        given: inputs of that action that mend this very cause, by name.
        others: names of further actions that may help.
        participant: whom it is about.
        since: since when it has been so, as far as known.
        key: stays the same as long as it is the same cause; acknowledgements hold for it.
        explains: keys of the Snapshot's needs that are this very thing.
        root: it is the reason for what else is said of this participant (of anybody, where it
            names none), and goes before it.
        document, line, event: where to look.
    """

    code: str
    headline: str
    advice: str = ""
    evidence: tuple[str, ...] = ()
    certain: bool = True
    wanted: bool = True
    remedy: str | None = None
    given: tuple[tuple[str, str], ...] = ()
    others: tuple[str, ...] = ()
    participant: str | None = None
    since: datetime | None = None
    key: str = ""
    explains: tuple[str, ...] = ()
    root: bool = False
    document: str | None = None
    line: int | None = None
    event: str | None = None
