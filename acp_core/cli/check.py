"""What a check of ``acp doctor`` says."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class State(str, Enum):
    """How a check came out. What is ``OPTIONAL`` is absent, and nothing suffers by it."""

    OK = "ok"
    WARN = "warn"
    MISSING = "missing"
    OPTIONAL = "optional"


class Check(NamedTuple):
    """What was looked at, what was found, and what to do (empty where it is well)."""

    group: str
    name: str
    state: State
    value: str
    advice: str = ""
