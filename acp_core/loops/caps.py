"""The budgets of a loop: those of its spec, which a person may change while it runs."""

from __future__ import annotations

from collections.abc import Callable

from acp_core.agents.budgets import Cap
from acp_core.agents.place import Place
from acp_core.files.reading import stamp
from acp_core.loops import spec as specs
from acp_core.loops.spec import Spec


def caps_in(where: Place, spec: Spec) -> Callable[[], tuple[Cap, ...]]:
    """What gives the caps of a loop as they are now; its spec is read again when it changes.

    Args:
        where: the loop's place.
        spec: what the loop was asked to do.
    """
    seen: object = None
    caps = spec.caps

    def read() -> tuple[Cap, ...]:
        nonlocal seen, caps
        found = stamp(where.spec)
        if found != seen:
            seen = found
            saved = specs.load(where)
            caps = saved.caps if saved else caps
        return caps

    return read
