"""What an agent wrote stays as it wrote it: nobody else writes over its documents.

Source: development cycle specification, "State Consistency Rules" (single writer) and "Progress
Markdown Files" (no overwrites). Decided as for the state: what another run changed is put back and
said, and what it wrote is kept. Logs are watched elsewhere: they may grow. A copy of each document
is kept beside the orchestrator's own files, from when its writer ended until it begins again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.files import atomic, modes
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.protocols.cycle.conduct.escalation import AGAIN, ON, STOP, escalate
from acp_core.protocols.cycle.read import state_file
from acp_core.protocols.cycle.schema import Object, obj, text
from acp_core.protocols.cycle.write.changes import at
from acp_core.protocols.cycle.write.coordination import note, section

OVERWRITES = "overwrites"
_BYTES = 8 << 20  # of one document


class Overwritten(NamedTuple):
    """A document that somebody else's run changed or removed.

    Attributes:
        owner: the agent whose document it is.
        name: its name below the progress folder.
        kept: where what the other one wrote is kept, below that folder; "" where it removed it.
        is_back: it holds again what its owner wrote.
    """

    owner: str
    name: str
    kept: str
    is_back: bool


class Outputs:
    """The documents of a cycle's agents as they left them.

    Args:
        progress: the cycle's progress folder.
        place: a folder of the orchestrator's own, for this cycle.
    """

    def __init__(self, progress: Path, place: Path) -> None:
        self._progress = progress
        self._place = place

    def remember(self, agents: Iterable[str]) -> None:
        """Keep the documents of these agents as they stand."""
        names = set(agents)
        known = {n: d for n, d in self._known().items() if n.partition("/")[0] not in names}
        modes.private_folder(self._place)
        for agent in names:
            for path in state_file.agent_documents(self._progress, agent):
                data = _bytes(path)
                if data is not None:
                    known[f"{agent}/{path.name}"] = digest = hashlib.sha256(data).hexdigest()
                    self._keep(digest, data)
        data = json.dumps(known).encode()
        atomic.replace(self._place / "digests.json", data, sync=False, private=True)
        for each in self._place.iterdir():
            if each.name != "digests.json" and each.name not in known.values():
                each.unlink(missing_ok=True)

    def put_back(self, by: str, agents: Iterable[str]) -> list[Overwritten]:
        """Put back what a run changed in the folders of these agents, as far as it is kept."""
        owners, found = set(agents), []
        for name, digest in self._known().items():
            owner, path = name.partition("/")[0], self._progress / name
            now = _bytes(path)
            if owner not in owners or path.parent.is_symlink() or path.is_symlink():
                continue
            if now is None or hashlib.sha256(now).hexdigest() != digest:
                found.append(self._restored(Overwritten(owner, name, "", False), by, now, digest))
        return found

    def _restored(self, each: Overwritten, by: str, now: bytes | None, digest: str) -> Overwritten:
        before = _bytes(self._place / digest)
        kept = self._set_aside(each, by, now) if now is not None else ""
        if before is not None and hashlib.sha256(before).hexdigest() == digest:
            atomic.replace(self._progress / each.name, before)
            return each._replace(kept=kept, is_back=True)
        return each._replace(kept=kept)

    def _set_aside(self, each: Overwritten, by: str, data: bytes) -> str:
        """Keep what the other one wrote in the history of the document; where."""
        path = Path(each.name)
        modes.shared_folder(self._progress / each.owner / "history")
        word = hashlib.sha256(data).hexdigest()[:8]
        kept = f"{each.owner}/history/{path.stem}-by-{by}-{word}{path.suffix}"
        with contextlib.suppress(FileExistsError):
            atomic.create(self._progress / kept, data)
        return kept

    def _keep(self, digest: str, data: bytes) -> None:
        with contextlib.suppress(FileExistsError):
            atomic.create(self._place / digest, data, sync=False, private=True)

    def _known(self) -> dict[str, str]:
        """The digest of each document, by its name below the progress folder."""
        try:
            held = obj(json.loads(read_bounded(self._place / "digests.json", _BYTES)))
        except (Unreadable, ValueError, RecursionError):
            return {}
        return {name: text(digest) for name, digest in held.items()}


def record(state: Object, now: datetime, run: str, by: str, found: list[Overwritten]) -> None:
    """Say what a run changed that is not its own; ask a person where it could not be put back."""
    held = section(state)
    rows = held.get(OVERWRITES)
    held[OVERWRITES] = rows if isinstance(rows, list) else []
    for each in found:
        row: Object = {"file": each.name, "owner": each.owner, "by": by, "run": run, "at": at(now)}
        held[OVERWRITES].append(row | {"kept_as": each.kept, "put_back": each.is_back})  # type: ignore[attr-defined]
        what = f"{by} changed {each.name}, which only {each.owner} writes"
        kept = f"; the version of {by} is kept as {each.kept}" if each.kept else ""
        if each.is_back:
            note(state, now, "orchestrator", f"{what}: put back{kept}")
            continue
        note(state, now, "orchestrator", f"{what}: acp has no copy of the old content{kept}")
        question = f"{what}, and acp has no copy of the old content"
        escalate(state, now, "agent", question, (AGAIN, ON, STOP), agent=each.owner)


def _bytes(path: Path) -> bytes | None:
    """A document's bytes; None where it is missing, or cannot be read."""
    try:
        return read_bounded(path, _BYTES)
    except Unreadable:
        return None
