"""What is found in a state file, whole or not.

Source: development cycle specification, "Shared State File".
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.records import NO_OBJECT, shallow
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.schema import Object
from acp_core.protocols.cycle.state import what_is_lacking

LIMIT = 4 << 20  # bytes of a state file


class StateFile(NamedTuple):
    """What was found of a state file: the object in it, its bytes, and what is wrong with it."""

    state: Object
    data: bytes
    problem: str


def read_state_file(path: Path) -> StateFile:
    """What a state file holds at this moment; no link is followed."""
    if path.is_symlink():
        return StateFile({}, b"", "is a symbolic link")
    try:
        data = read_bounded(path, LIMIT)
    except Unreadable as error:
        return StateFile({}, b"", schema.LOST if error.missing else str(error))
    state, problem = parsed(data)
    return StateFile(state, data, problem or what_is_lacking(state))


def parsed(data: bytes) -> tuple[Object, str]:
    """The object in the bytes of a state file, and why there is none ("" where there is one)."""
    try:
        value = json.loads(data.decode("utf-8", "replace").removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return {}, "is not valid JSON"
    if not shallow(value):
        return {}, "is nested too deeply"
    return (value, "") if isinstance(value, dict) else ({}, NO_OBJECT)
