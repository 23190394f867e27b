"""Signs written as words, for people who listen to what commands print: ``ACP_SIGNS=words``.

A sign beside a word that says the same is left out; a sign that stands alone is written as its word
(`mark`). Standard library only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

VARIABLE = "ACP_SIGNS"
"""The environment's variable that decides which signs are printed."""
WORDS = "words"

TABLE: Mapping[int, str] = str.maketrans(
    dict.fromkeys("●○◆◇■□▪▫▲△▼▽▶▸▾◀◂◦•⏺✓✗✔✘»«›‹❯❮↑↓↳⋯≡█▀▁▂▃▄▅▆▇░▒▓", "")
    | {chr(code): "" for code in range(0x2500, 0x2580)}  # lines and corners
    | {"→": "to", "←": "from", "·": ",", "—": "-", "–": "-", "−": "-", "…": "..."}
    | {"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'"}
)
"""What `str.translate` takes to print without signs and lines that a voice would spell out."""


def is_wanted(environment: Mapping[str, str] | None = None) -> bool:
    """Whether the person asked for words instead of signs."""
    said = (os.environ if environment is None else environment).get(VARIABLE, "")
    return said.strip().casefold() == WORDS


def mark(sign: str, word: str) -> str:
    """A sign that stands alone; the word that says the same where words are wanted."""
    return word if is_wanted() else sign
