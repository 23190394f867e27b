from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from acp_core.files import transaction
from acp_core.files.transaction import Failed as Failed
from acp_core.files.transaction import Interrupted as Interrupted
from acp_core.files.transaction import Recovered as Recovered
from acp_core.protocols.governed import schema

RUN, COORDINATOR = ".agentxchain", ".coordinator"

NAME = transaction.JOURNAL

_ABOVE = 6  # folders above a run in which an initiative is looked for


def interrupted(root: Path, home: str = RUN) -> Interrupted | None:
    """The writing that was begun here and not finished, or None; never raises."""
    return transaction.interrupted(root, home)


def fault(root: Path, home: str = RUN) -> str:
    """Why what was interrupted can be neither finished nor undone; "" where it can, or nothing was."""
    return transaction.fault(root, home)


def above(root: Path) -> Iterator[Path]:
    """The folders above a run, nearest first, in which a coordinator keeps its files."""
    for place in list(Path(os.path.abspath(root)).parents)[:_ABOVE]:
        if (place / schema.MULTI_CONFIG).is_file() and (place / COORDINATOR).is_dir():
            yield place
