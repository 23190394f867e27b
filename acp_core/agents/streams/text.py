"""Programs that print text for people: any command, and aider."""

from __future__ import annotations

import re
from collections import deque
from typing import Any

from acp_core.agents.streams.progress import Parser, money, short

_TOKENS = re.compile(
    r"^Tokens: ([\d.,]{1,12})([kM]?) sent\b.{0,80}?\b([\d.,]{1,12})([kM]?) received"
)
_COST = re.compile(r"Cost: \$([\d.,]{1,12}) message, \$([\d.,]{1,12}) session")
_MODEL = re.compile(r"^(?:Main )?[Mm]odel: (\S{1,100})")
_VERSION = re.compile(r"^[Aa]ider v(\S{1,40})$")
_KEPT = 20  # lines of the error stream
_LINE = 2_000  # characters of the last line
_UNITS = {"": 1, "k": 1000, "M": 1_000_000}


class Text(Parser):
    """Lines are progress by themselves; aider's counts are understood.

    Its output is the work of an agent: only its error stream and its last line may say why it failed.
    """

    def __init__(self) -> None:
        super().__init__()
        self._errors: deque[str] = deque(maxlen=_KEPT)
        self._last: tuple[str, ...] = ()  # line of the output
        self.progress.error_lines = ()

    def take(self, record: dict[str, Any], now: float) -> list[str]:
        """A JSON record means nothing here: it is text that the program printed."""
        import json

        text = json.dumps(record, ensure_ascii=False)
        return self.plain(text, now)

    def plain(self, text: str, now: float) -> list[str]:
        """Take a line."""
        progress = self.progress
        progress.said = text
        if match := _TOKENS.match(text):
            progress.tokens_in += _number(match[1], match[2])
            progress.tokens_out += _number(match[3], match[4])
            progress.tokens_estimated = True  # rounded to tenths of thousands
        if match := _COST.search(text):
            progress.cost = money(_amount(match[2]))
        if match := _MODEL.match(text):
            progress.model = match[1]
        if match := _VERSION.match(text):
            progress.version = match[1]
        progress.quote(text)
        self._last = (short(text, _LINE),)
        progress.error_lines = (*self._errors, *self._last)
        return super().plain(text, now)

    def complain(self, line: bytes, now: float) -> list[str]:
        """Take a line of the standard error, where what it runs may say that it refuses."""
        lines = super().complain(line, now)
        for printed in lines:
            self.progress.quote(printed)
            self._errors.append(printed)
            self.progress.error_lines = (*self._errors, *self._last)
        return lines


def _number(digits: str, unit: str) -> int:
    return int(_amount(digits) * _UNITS[unit])


def _amount(digits: str) -> float:
    try:
        return float(digits.replace(",", ""))
    except ValueError:
        return 0.0
