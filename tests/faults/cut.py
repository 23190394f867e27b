"""Every log, journal and state is cut at every byte: a reader gives findings and never raises."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from acp_core.model import Snapshot
from tests.faults import places
from tests.faults.campaign import Campaign, Case, mixed
from tests.faults.looking import acp, look

_OLD = 3_600  # seconds: nobody is writing any more


def _check(root: Path, name: str, before: Snapshot, half: bool) -> None:
    os.utime(root / name, (time.time() - _OLD,) * 2)
    seen = look(root)
    if half and seen is not None:
        said = [(finding.code, finding.message) for finding in seen.findings]
        known = [(finding.code, finding.message) for finding in before.findings]
        assert [each for each in said if each not in known] or seen.source.note, "nothing is said"


def _is_half(name: str, whole: bytes, size: int) -> bool:
    """Whether what is left is no whole number of records."""
    if name.endswith(".json"):
        return size < len(whole.rstrip()) and size > 0
    if not name.endswith((".jsonl", ".ndjson", ".log")):
        return False
    # without its newline only, a line is whole for a reader, and torn for a writer
    return size > 0 and whole[size - 1 : size] != b"\n" and whole[size : size + 1] != b"\n"


def cases(place: Path, seed: int) -> Iterator[Case]:
    """All of them, in an order of chance."""
    yield from mixed(_cases(place), seed)


def _cases(place: Path) -> Iterator[Case]:
    """Each file that programs write to, one byte shorter each time."""
    for kind, names in places.LOGS.items():
        copy = places.copied(kind, place, place / kind)
        for whole_name in names:
            # a workstream's own files are judged where it is looked at itself
            part, _, name = whole_name.rpartition("/.agentxchain/")
            root = copy / part if part else copy
            name = f".agentxchain/{name}" if part else whole_name
            path = root / name
            before = look(root)
            assert before is not None and path.exists(), whole_name
            whole = path.read_bytes()
            # a database is a matter of pages: each one's borders, and what is between them in steps
            steps = range(len(whole)) if "sqlite" not in name else _page_cuts(len(whole))
            for size in steps:

                def run(path: Path = path, size: int = size, whole: bytes = whole,
                        root: Path = root, name: str = name, kind: str = kind,
                        before: Snapshot = before) -> None:  # fmt: skip
                    if kind == "wire":
                        places.copied(kind, place, root)
                    path.write_bytes(whole[:size])
                    try:
                        _check(root, name, before, _is_half(name, whole, size))
                        if size % 97 == 0:
                            acp("validate", str(root))
                    finally:
                        path.write_bytes(whole)

                yield Case(f"{kind}: {name} cut at byte {size} of {len(whole)}", run)


def _page_cuts(size: int) -> Iterator[int]:
    seen = set()
    for border in range(0, size, 4096):
        for at in (border - 1, border, border + 1, border + 24, border + 101, border + 2048):
            if 0 <= at < size and at not in seen:
                seen.add(at)
                yield at


CUT = Campaign("cut", "each log, journal, state and database cut at every byte", cases)
