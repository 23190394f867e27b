"""The agents of this user that run here: they belong to the fleet, whatever paths are given."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from acp_core.protocols.wire.conduct.agent import place

_LISTENED = 200  # folders of agents that are listened to, those that changed last


def running() -> tuple[tuple[str, ...], frozenset[Path]]:
    """The folders of those that run, and the folders in which one may begin to."""
    root = place.root()
    found: list[tuple[float, Path]] = []
    with contextlib.suppress(OSError), os.scandir(root) as entries:
        for each in entries:
            with contextlib.suppress(OSError):
                if each.is_dir(follow_symlinks=False):
                    found.append((each.stat().st_mtime, Path(each.path)))
    listened = [path for _, path in sorted(found, reverse=True)[:_LISTENED]]
    keys = tuple(str(path) for path in listened if place.held(path))
    return keys, frozenset({root, *listened})
