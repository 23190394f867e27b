"""Every golden by its name, and how it is made."""

from __future__ import annotations

from collections.abc import Callable

from tests.golden import capture
from tests.golden.state import State
from tests.golden.states import all_states


def all_goldens() -> dict[str, Callable[[], str]]:
    """What makes each golden's text."""
    return {name: _maker(state) for name, state in all_states().items()}


def _maker(state: State) -> Callable[[], str]:
    return lambda: capture.as_text(capture.captured(state))
