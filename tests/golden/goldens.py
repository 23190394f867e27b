"""Every golden by its name, and how it is made."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.golden import capture, helps, openapi, pictures
from tests.golden.state import State
from tests.golden.states import all_states

Makers = dict[str, Callable[[], str]]


def all_goldens() -> Makers:
    """What makes each golden's text."""
    states: Makers = {name: partial(_state, name, state) for name, state in all_states().items()}
    helped: Makers = {name: partial(helps.text, name) for name in helps.kept()}
    drawn: Makers = {name: partial(pictures.text, name) for name in pictures.names()}
    return states | helped | drawn | {openapi.NAME: openapi.text}


def make(name: str) -> str:
    """The text of a golden as it is today; empty where there is nothing of this name."""
    return helps.text(name) if name.startswith("help/") else all_goldens()[name]()


def _state(name: str, state: State) -> str:
    return capture.as_text(capture.captured(name, state))
