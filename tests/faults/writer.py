"""Writers for the campaigns: ``python -m tests.faults.writer KIND FOLDER NAME START COUNT``.

Each writes COUNT times and prints a line for every write that was acknowledged. The kind
``unlocked`` stands for tools that take no lock: it reads the log, thinks, and appends.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from tests.faults import lowered


def main(kind: str, folder: str, name: str, start: str, count: str) -> None:
    lowered.as_told()
    for number in range(int(start), int(start) + int(count)):
        said = f"{name} says {number} aloud"
        if kind == "unlocked":
            code = unlocked(Path(folder), name, said)
        else:
            with contextlib.redirect_stdout(io.StringIO()):
                code = write(kind, folder, name, said)
        if code in (0, 4):
            print(f"{code} {said}", flush=True)


def write(kind: str, folder: str, name: str, said: str) -> int:
    """One write through acp's own command; its exit code."""
    if kind == "folder":
        from acp_core.protocols.folder.acts import agents

        words = ["--folder", folder, "--participant", name, "--event", "blocked"]
        return agents.append([*words, "--summary", said, "--reply-to", "1"])
    if kind == "governed":
        from acp_core.protocols.governed.acts.table import COMMANDS

        return COMMANDS.main(["talk", folder, "--text", said, "--as", name])
    from acp_core.protocols.cycle.acts.table import COMMANDS

    return COMMANDS.main(["feedback", "cd", said, "--folder", folder])


def unlocked(folder: Path, name: str, said: str) -> int:
    """One append as a tool does it that knows no lock."""
    log = folder / "events.jsonl"
    try:
        last: dict[str, Any] = json.loads(log.read_bytes().splitlines()[-1])
        event = {"seq": last["seq"] + 1, "from": name, "event": "blocked", "at": last["at"]}
    except (ValueError, IndexError, KeyError):
        return 2
    time.sleep(0.002)
    line = json.dumps(event | {"summary": said, "reply_to": 1}).encode() + b"\n"
    with log.open("ab", buffering=0) as file:
        file.write(line)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    main(*sys.argv[1:6])
