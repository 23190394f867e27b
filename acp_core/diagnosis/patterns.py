"""What programs say when they cannot go on: patterns over the last lines that they printed.

What is found by them is inferred: no program promises to say it in these words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_LINE = 2_000  # characters of a line that are looked at


def _any(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(words), re.IGNORECASE)


PROMPT = _any(
    r"\[y/n(?:/[^\]]{0,20})?\]\s*:?\s*$",
    r"\(y(?:es)?/n(?:o)?(?:/[^)]{0,40})?\)\s*:?\s*\??\s*$",
    r"do you want to (?:proceed|continue|allow|trust)",
    r"do you trust",
    r"press (?:enter|any key|return) to",
    r"permission requested",
    r"waiting for (?:your )?(?:approval|permission|confirmation)",
    r"(?:enter|type) (?:your )?(?:password|passphrase)\b[^.]{0,40}:\s*$",
)
STDIN = _any(
    r"reading (?:additional )?(?:input|prompt) from stdin", r"waiting for (?:input on )?stdin"
)
RETRY = _any(r"reconnecting", r"waiting for network", r"\bretry(?:ing)?\b", r"\battempt \d+ failed")
WAITER = _any(r"invalid protocol\.json", r"^timeout: ")
WAITING = re.compile(r"^(?:waiting: )?waiting for (.{1,300}?)(?: after seq (\d{1,15}))?\s*$", re.I)


def first_match(pattern: re.Pattern[str], lines: Iterable[str]) -> str:
    """The first of these lines that a pattern matches; "" where it matches none."""
    return next((line for line in lines if pattern.search(line[:_LINE])), "")
