"""A write of acp that was interrupted, and can be neither finished nor undone: others changed its files."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from acp_core.model.snapshot import Obstacle
from acp_core.protocols.governed.read.unfinished_write import COORDINATOR, NAME, RUN, fault
from acp_core.protocols.governed.schema import act_names

KEY = "A6:INTERRUPTED:journal"

"""The key of its obstacle."""


def of_run(root: Path, anyway: frozenset[str]) -> Iterator[Obstacle]:
    """The obstacle in a run, if there is one; a human can leave the files as they are.

    Args:
        root: the run's folder.
        anyway: names of acts that are never refused.
    """
    reason = fault(root)
    if reason:
        cure = f"acp governed take-files {shlex.quote(str(root))}"
        yield _obstacle(
            f"{RUN}/{NAME}",
            reason,
            f"review the files, then leave them as they are: {cure}",
            anyway | {act_names.TAKE_FILES},
            act_names.TAKE_FILES,
        )


def of_initiative(root: Path, anyway: frozenset[str]) -> Iterator[Obstacle]:
    """The obstacle in an initiative, if there is one; see `of_run`."""
    reason = fault(root, COORDINATOR)
    if reason:
        document = f"{COORDINATOR}/{NAME}"
        yield _obstacle(document, reason, f"review the files, then remove {document}", anyway, "")


def _obstacle(
    document: str, reason: str, cure: str, allowed: frozenset[str], remedy: str
) -> Obstacle:
    return Obstacle(
        "A6",
        "an interrupted write can be neither finished nor undone",
        cure,
        allowed,
        remedy,
        evidence=(reason,),
        document=document,
        key=KEY,
    )
