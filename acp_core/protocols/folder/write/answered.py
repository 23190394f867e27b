"""That an answer in a shared folder is that of ``acp sync``: noted where nobody writes who only has the folder.

Agents write in the folder, and could answer in place of the process that publishes for it: an append
would then say 0 of an event that no store has. Standard library only.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from acp_core.files import atomic, modes
from acp_core.files.atomic import Unreadable, read_bounded
from acp_core.person.paths import state_folder
from acp_core.person.pins import is_pinned, pin_of

_MOST = 100  # answers that are remembered of a folder
_LIMIT = 1 << 16


def note(folder: str, id: str, answer: bytes) -> None:
    """Note an answer before it is given; for the one process that publishes for the folder.

    Raises:
        OSError: it cannot be noted.
    """
    place = _place(folder)
    modes.private_folder(place.parent)
    noted = [*_noted(place).items(), (id, _digest(answer))][-_MOST:]
    atomic.replace(place, json.dumps(dict(noted)).encode(), sync=False, private=True)


def is_forged(folder: str, id: str, answer: bytes) -> bool:
    """Whether an answer is not that of the process, as far as the reader can tell.

    Who does not have the account's configuration, in a sandbox for instance, cannot.
    """
    return is_pinned(folder) and _noted(_place(folder)).get(id) != _digest(answer)


def _place(folder: str) -> Path:
    return state_folder() / "answers" / os.path.basename(pin_of(folder))


def _noted(place: Path) -> dict[str, str]:
    try:
        value = json.loads(read_bounded(place, _LIMIT))
    except (Unreadable, ValueError, RecursionError):
        return {}
    return {str(id): str(each) for id, each in value.items()} if isinstance(value, dict) else {}


def _digest(answer: bytes) -> str:
    from hashlib import sha256  # late: only where something is handed over

    return sha256(answer).hexdigest()
