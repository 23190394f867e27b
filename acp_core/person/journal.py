"""What people did here: a line of JSON for every act, in the user's own state folder.

Participants never see it: what they must know stands in the collaboration. Standard library
only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from acp_core.files import atomic
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.secrets import mask
from acp_core.person import paths
from acp_core.person.paths import key_of

SCHEMA = "acp.act/1"
LARGEST = 16 << 20  # bytes of one journal; then a new one is begun
_LONGEST = 2_000  # characters of an input that are kept
_WORD = re.compile(r"[^\w.\-]+")


@dataclass(frozen=True, slots=True)
class Act:
    """One act of a person.

    Attributes:
        at: when it was done.
        action: its name.
        inputs: what the person gave; secrets are masked, long texts cut.
        state: how it ended, as in `acp_core.model.OutcomeState`.
        sentence: the same in words.
    """

    at: datetime
    action: str
    inputs: Mapping[str, str]
    state: str
    sentence: str


def path(key: str) -> Path:
    """Where the acts in one collaboration (a path or URL) are kept; it need not exist."""
    name = key_of(key)
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:16]
    word = _WORD.sub("_", name.rstrip("/").rpartition("/")[2])[:40].strip(".")
    return paths.state_folder() / "acts" / f"{word}-{digest}.jsonl"


def note(
    key: str, action: str, inputs: Mapping[str, object], state: str, sentence: str, now: datetime
) -> bool:
    """Keep an act for good. False where that is not possible: no act fails for want of it."""
    line = {
        "schema": SCHEMA,
        "at": now.isoformat(),
        "collaboration": key_of(key),
        "action": action,
        "inputs": {name: _short(value) for name, value in inputs.items()},
        "state": state,
        "sentence": mask(sentence),
    }
    data = json.dumps(line, ensure_ascii=True).encode() + b"\n"
    place = path(key)
    try:
        atomic.private_folder(place.parent)
        fd = os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, data)
            full = os.fstat(fd).st_size > LARGEST
        finally:
            os.close(fd)
        if full:
            os.replace(place, f"{place}.1")
    except OSError:
        return False
    return True


def _short(value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    text = mask(text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def read(key: str) -> tuple[Act, ...]:
    """The acts in one collaboration, oldest first; lines that make no sense are left out."""
    try:
        data = read_bounded(path(key), 2 * LARGEST)
    except Unreadable:
        return ()
    return tuple(act for line in data.splitlines() if (act := _act(line)) is not None)


def _act(line: bytes) -> Act | None:
    with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
        told = json.loads(line)
        inputs = {str(name): str(value) for name, value in told["inputs"].items()}
        at = datetime.fromisoformat(told["at"])
        return Act(at, str(told["action"]), inputs, str(told["state"]), str(told["sentence"]))
    return None
