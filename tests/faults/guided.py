"""Fuzzing that watches which lines it reaches: atheris, where it is installed.

``python -m tests.faults.guided SECONDS SEED CORPUS`` fuzzes every parser with what our own programs
wrote as a start; it ends with an error at the first input that a parser does not stand.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.faults.campaign import Campaign, Case

_ROOT = Path(__file__).resolve().parents[2]
_ROUND = 20  # seconds of a case


def available() -> bool:
    """Whether atheris is installed: it is no requirement, and not to be had for every Python."""
    return find_spec("atheris") is not None


def cases(place: Path, seed: int) -> Iterator[Case]:
    """Rounds without an end, each from another seed, all with one growing corpus."""
    from tests.faults import places

    if not available():
        return
    corpus = place / "corpus"
    corpus.mkdir()
    for kind in places.MAKERS:
        root = places.made(kind, place)
        for number, name in enumerate(places.files(root)):
            if "sqlite" not in name:
                (corpus / f"{kind}-{number}").write_bytes((root / name).read_bytes()[:4_000])
    for number in range(1_000_000):
        at = seed * 1_000 + number + 1
        yield Case(f"{_ROUND} s from seed {at}", partial(_round, corpus, at))


def _round(corpus: Path, seed: int) -> None:
    words = [sys.executable, "-m", "tests.faults.guided", str(_ROUND), str(seed), str(corpus)]
    ended = subprocess.run(words, cwd=_ROOT, capture_output=True, text=True, check=False)
    said = [line for line in ended.stderr.splitlines() if not line.startswith(("INFO", "WARN"))]
    assert ended.returncode == 0, "\n".join(said)[-1_500:]


def _targets() -> Iterator[Callable[[bytes], object]]:
    """Every parser of strangers' bytes, each with what it may raise."""
    from acp_core.agents import streams
    from acp_core.files import markdown
    from acp_core.model.text import clean, clean_line
    from acp_core.protocols.cycle import schema as cycle
    from acp_core.protocols.cycle.read import progress
    from acp_core.protocols.folder import schema
    from acp_core.protocols.folder.schema import documents
    from acp_core.protocols.governed import schema as governed
    from acp_core.protocols.wire.schema import basics
    from acp_core.protocols.wire.schema.basics import WireError
    from acp_core.protocols.workspaces import schema as workspaces_schema

    def text(work: Callable[[str], object]) -> Callable[[bytes], object]:
        return lambda data: work(data.decode("utf-8", "replace"))

    def printed(name: str) -> Callable[[bytes], object]:
        def feed(data: bytes) -> None:
            parser = streams.parser(name)
            for line in data.split(b"\n"):
                parser.feed(line, 1e9)

        return feed

    def wire(data: bytes) -> None:
        with contextlib.suppress(WireError):
            basics.decode_object(data)

    def protocol(data: bytes) -> None:
        with contextlib.suppress(ValueError):
            schema.participant_ids(schema.decode_protocol(data))

    def times(data: bytes) -> None:
        value: Any = None
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(data)
        cycle.moment(value)
        governed.moment({"at": value}, "at")

    yield lambda data: list(schema.parse_lines(data))
    yield protocol
    yield wire
    yield times
    for work in (documents.scan_readiness, documents.scan_review, documents.scan_conclusion,
                 documents.scan_decisions, markdown.headings, workspaces_schema.parse_return, progress.parse_result,
                 progress.typed, clean, clean_line, lambda t: list(markdown.check_boxes(t))):  # fmt: skip
        yield text(work)
    yield from _streams(printed)


def _streams(
    printed: Callable[[str], Callable[[bytes], object]],
) -> Iterator[Callable[[bytes], object]]:
    from acp_core.agents import streams

    for name in streams.NAMES:
        yield printed(name)


def main(seconds: str, seed: str, corpus: str) -> None:
    """Fuzz until the time is up."""
    import atheris

    with atheris.instrument_imports(include=["acp_core"]):
        targets = list(_targets())

    def one(data: bytes) -> None:
        if data:
            targets[data[0] % len(targets)](data[1:])

    options = [f"-max_total_time={seconds}", f"-seed={seed}", "-max_len=4000", "-rss_limit_mb=1024",
               "-timeout=20", "-verbosity=0", f"-artifact_prefix={corpus}/../"]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, corpus], one)
    atheris.Fuzz()


GUIDED = Campaign("atheris", "fuzzing of all parsers that follows the lines reached", cases)


if __name__ == "__main__":
    main(*sys.argv[1:4])
