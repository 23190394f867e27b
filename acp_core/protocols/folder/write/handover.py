"""Handing an event to the process that publishes for this host: for whoever cannot reach the store.

An agent in a sandbox has no network and no keys, and the skill's scripts know no stores. They write
what they want appended to ``.acp/run/out/ID.json``; the process of ``acp sync``, which holds
``.acp/run/sync.lock``, publishes it with this account's credentials and answers in ``ID.done``. Who
asks is the owner of the file. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path

from acp_core.files import atomic
from acp_core.files.atomic import Unreadable, read_bounded
from acp_core.model.errors import Refused
from acp_core.model.light import TYPE_CHECKING, Any
from acp_core.person.paths import is_pinned, pin_of, state_folder
from acp_core.protocols.folder.read.following import LOCK, is_synced
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.records import Entry

if TYPE_CHECKING:
    from acp_core.protocols.folder.write.append import Appended, Request

OUT = os.path.join(".acp", "run", "out")

UNREACHABLE = 6  # exit code: nothing here can reach the store

LIMIT = 2 * records.MAX_DOCUMENT  # bytes of a request

FIELDS = ("participant", "event", "summary", "doc", "reply_to", "role", "sha256", "key",
          "expect_seq", "review", "take")  # fmt: skip
"""What of an event is handed over: never a path of another file, never edits."""

_PATIENCE = 180.0

_STEP, _FIRST_STEP = 0.005, 0.001  # seconds between two looks for the answer: at most, and at first


def hand_over(request: Request, make: type[Appended]) -> Appended:
    """Have an event published by the process that does so for this folder.

    Args:
        request: the event.
        make: what the answer is made into.

    Raises:
        Refused: it was refused, or no such process runs; nothing is appended.
    """
    folder = request.folder
    if request.edits:
        raise Refused("not appended: documents cannot be handed over with an event", UNREACHABLE)
    if not is_synced(folder):
        raise Refused(
            f"not appended: this collaboration is shared, and nothing here can reach its store; run `acp sync {folder}` "
            "on this machine, or append with `acp append`",
            UNREACHABLE,
        )
    id = os.urandom(12).hex()
    asked = os.path.join(folder, OUT, f"{id}.json")
    value = {name: getattr(request, name) for name in FIELDS}
    atomic.create(
        asked, json.dumps(value).encode(), sync=False
    )  # without an answer, it is asked anew
    answer = os.path.join(folder, OUT, f"{id}.done")
    until = time.monotonic() + _PATIENCE
    step = _FIRST_STEP
    while time.monotonic() < until:
        with contextlib.suppress(Unreadable):
            return _answered(folder, id, read_bounded(answer, LIMIT), make)
        if not is_synced(folder) and not os.path.lexists(answer):
            break
        time.sleep(step)
        step = min(_STEP, step * 1.1)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(asked)
        raise Refused("not appended: `acp sync` ended before it took the event up", UNREACHABLE)
    raise Refused(
        "`acp sync` took the event up and did not answer: it is not known whether it is appended; run the same "
        "command again",
        UNREACHABLE,
    )


def _answered(folder: str, id: str, data: bytes, make: type[Appended]) -> Appended:
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(folder, OUT, f"{id}.done"))
    if is_forged(folder, id, data):
        raise Refused(
            f"another program answered in place of `acp sync`: it is not known whether the event is appended; end what "
            f"has locked {os.path.join(folder, LOCK)}, and run the same command again",
            UNREACHABLE,
        )
    value: Any = json.loads(data)
    if "error" in value:
        raise Refused(str(value["error"]), int(value.get("code", 2)))
    entry = Entry(**value["entry"])
    return make(
        entry,
        str(value["phase"]),
        tuple(value["waiting"]),
        existing=bool(value["existing"]),
        warnings=tuple(value["warnings"]),
    )


_MOST = 100  # answers that are remembered of a folder

_LIMIT = 1 << 16


def note(folder: str, id: str, answer: bytes) -> None:
    """Note an answer before it is given; for the one process that publishes for the folder.

    Raises:
        OSError: it cannot be noted.
    """
    place = _place(folder)
    atomic.private_folder(place.parent)
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
