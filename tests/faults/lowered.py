"""Limits that a campaign lowers, in whatever process: so that a long log, or a big fleet, is small."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SETTLED = 0.05  # s, as `acp_core.files.tree_state.SETTLED`: more than a step of the system's clock
LONG_LOGS = "ACP_TESTS_LONG_LOGS"  # set: every log counts as long, each new line is worth keeping


@contextmanager
def long_logs() -> Iterator[None]:
    """Let every log count as long here, and in the processes that the campaigns start."""
    before = [(module, name, getattr(module, name)) for module, name, _ in _of_logs()]
    _lower(_of_logs())
    os.environ[LONG_LOGS] = "1"
    try:
        yield
    finally:
        _lower(before)
        del os.environ[LONG_LOGS]


def as_told() -> None:
    """In a process that a campaign started: lower what it was told to, for good."""
    if LONG_LOGS in os.environ:
        _lower(_of_logs())


def big_fleets(reader: str) -> None:
    """Let a fleet of a few be big in this process, for good.

    Args:
        reader: the module of the reading processes; "" where none is to be started.
    """
    from acp_core.files import locked, tree_state
    from acp_core.fleet import kept_rows, readers, readings, snapshot_cache
    from acp_core.protocols.folder.read.facts import Facts
    from acp_core.protocols.processes import Process

    assert Facts.__init__.__kwdefaults__
    Facts.__init__.__kwdefaults__["grace"] = 0.0  # here and below: nobody is writing
    _lower([
        (readers, "READER", Process(reader, (), "")), (readers, "processors", lambda: 2 if reader else 1),
        (readers, "BATCH", 2), (readers, "START", 3.0), (readers, "PATIENCE", 1.0), (readings, "MANY", 8),
        (readings, "SAMPLE", 4), (kept_rows, "MANY", 4), (snapshot_cache, "NEWS", 1),
        (tree_state, "SETTLED", SETTLED), (locked, "QUIET", 0.0),
    ])  # fmt: skip


_Limits = list[tuple[Any, str, Any]]


def _of_logs() -> _Limits:
    from acp_core.protocols.folder.conduct import waiting
    from acp_core.protocols.folder.read import checkpoint
    from acp_core.protocols.folder.write import opened

    return [
        (opened, "LONG", 1), (waiting, "LONG", 1), (checkpoint, "TAIL", 1),
        (opened, "_PAUSE", 0.0), (waiting, "QUIET", 0.0), (waiting, "_GRACE", 0.0),
    ]  # fmt: skip


def _lower(limits: _Limits) -> None:
    for module, name, value in limits:
        setattr(module, name, value)
