"""What a human lets run: a run's hooks and services, an initiative's scripts and addresses.

A configuration comes with a repository: nothing that it names is run until a human has seen it and
said so. What was seen is remembered by its content in acp's own folder; a script that changed since
is not run. Standard library only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

from acp_core.files import atomic
from acp_core.files.locked import locked_folder
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.person import paths as places
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.trust import asked, fingerprint, trusted_file


def trust_run(root: Path) -> list[str]:
    """Allow what the configuration asks for, as it stands; returns what that is.

    Raises:
        OSError: it cannot be remembered.
    """
    config = schema.read_object(root / schema.CONFIG).value
    place = trusted_file()
    atomic.private_folder(place.parent)
    with locked_folder(str(place.parent)):
        known = schema.read_object(place).value
        known[os.path.realpath(root)] = fingerprint(root, config)
        atomic.replace(place, (json.dumps(known, indent=1) + "\n").encode())
    return asked(config)


_LARGEST = 4 << 20  # bytes of a script


def is_script_trusted(root: Path, path: str) -> bool:
    """Whether a script of the initiative is, as it stands, what a human let run."""
    seen = script_digest(root, path)
    return bool(seen) and _known(root).get(path) == seen


def trust_scripts(root: Path, paths: Iterator[str] | tuple[str, ...]) -> list[str]:
    """Let these scripts run, as they stand; returns those that are there.

    Raises:
        OSError: it cannot be remembered.
    """
    place = _place()
    atomic.private_folder(place.parent)
    found = {path: seen for path in paths if (seen := script_digest(root, path))}
    with locked_folder(str(place.parent)):
        known = schema.read_object(place).value
        known[_key(root)] = {**schema.obj(known, _key(root)), **found}
        atomic.replace(place, json.dumps(known, indent=1).encode())
    return list(found)


def script_digest(root: Path, path: str) -> str:
    """The SHA-256 of a script inside of the initiative, "" where there is none."""
    inside = schema.inside(root, path)
    if inside is None:
        return ""
    with contextlib.suppress(Unreadable):
        return hashlib.sha256(read_bounded(inside, _LARGEST)).hexdigest()
    return ""


def _known(root: Path) -> schema.Object:
    return schema.obj(schema.read_object(_place()).value, _key(root))


def _key(root: Path) -> str:
    return os.path.realpath(root)


def _place() -> Path:
    return places.state_folder() / "governed" / "trusted.json"
