"""The states whose goldens are kept: one module for each protocol, with its `STATES`."""

from __future__ import annotations

import importlib
import pkgutil

from tests.golden.state import State


def all_states() -> dict[str, State]:
    """Every state by its name in full: ``protocol/state``."""
    return {
        f"{module.name}/{state.name}": state
        for module in pkgutil.iter_modules(__path__)
        for state in _states(module.name)
    }


def _states(protocol: str) -> tuple[State, ...]:
    states: tuple[State, ...] = getattr(
        importlib.import_module(f"{__name__}.{protocol}"), "STATES", ()
    )
    return states
