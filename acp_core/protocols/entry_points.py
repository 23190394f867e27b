"""What other distributions name as entry points of ours, asked at next to no cost where none does.

Importing ``importlib.metadata`` and asking it takes 12 to 25 ms of every start, while most people
have no other protocol. So the files that it would read are searched for the group's name first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_METADATA = (".dist-info", ".egg-info")


def named(group: str) -> Iterable[EntryPoint]:
    """The entry points of a group, of every distribution that Python finds."""
    if not _may_be_named(group.encode()):
        return ()
    from importlib.metadata import entry_points

    return entry_points(group=group)


def _may_be_named(group: bytes) -> bool:
    """Whether some distribution may name the group; also where that is not seen in folders."""
    others = (finder for finder in sys.meta_path if finder is not PathFinder)
    if any(hasattr(finder, "find_distributions") for finder in others):
        return True
    return any(_is_in(str(place) or os.curdir, group) for place in sys.path)


def _is_in(place: str, group: bytes) -> bool:
    """Whether a distribution in this folder of ``sys.path`` may name the group."""
    try:
        names = [name for name in os.listdir(place) if _is_metadata(name)]
    except NotADirectoryError:
        return True  # an archive
    except OSError:
        return False
    return any(group in _read(os.path.join(place, name, "entry_points.txt")) for name in names)


def _is_metadata(name: str) -> bool:
    lowered = name.lower()
    return lowered.endswith(_METADATA) or lowered == "egg-info"


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
