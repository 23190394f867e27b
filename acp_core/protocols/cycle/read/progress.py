"""What stands in one cycle's progress folder.

Source: development cycle specification, "Progress Markdown Files" and "Coordination Log".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from acp_core.files.reading import Unreadable, read_head
from acp_core.files.records import File, read_record, read_text
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.schema import Cycle

LIMIT = 4 << 20  # bytes of one file that are read
_TEXTS = 32 << 20  # bytes of logs that are read in all
_HEAD = 64 << 10  # bytes of an agent's document that are looked at
_HEADS = 100  # documents
_RESULTS = 200
_PAST = 30  # earlier test results
_READ = re.compile(r"/(?:coordination/(?:feedback|timeline)\.md|[a-z]+/[a-z-]+\.(?:log|ndjson))$")
_RESULT = re.compile(r"coordination/phase-results/[A-Za-z0-9._-]+\.(?:txt|md)")
_PAST_TESTS = re.compile(r"vas/history/test-results-v[0-9.]+\.json")


def filled(cycle: Cycle, before: Cycle | None, logs: bool) -> Cycle:
    """The cycle with what its files hold.

    Args:
        cycle: its state and its files.
        before: as it was read before: what has not changed since is not read again.
        logs: whether its logs, and what agents reported, are read too.
    """
    if before and before.files == cycle.files and before.whole >= logs:
        return replace(
            cycle,
            plan_file=before.plan_file,
            tests_file=before.tests_file,
            tests_past=before.tests_past,
            heads=before.heads,
            texts=before.texts,
            results=before.results,
            whole=before.whole,
        )
    by_name = {file.name.removeprefix(cycle.progress): file for file in cycle.files}
    plan, tests = by_name.get("ep/plan.json"), by_name.get("vas/test-results.json")
    past = [file for name, file in by_name.items() if _PAST_TESTS.fullmatch(name)]
    past.sort(key=lambda file: schema.version_in(file.path.stem) or (0, 0, 0))
    pages = [file for name, file in by_name.items() if _is_page(name)]
    return replace(
        cycle,
        plan_file=read_record(plan, LIMIT) if plan else None,
        tests_file=read_record(tests, LIMIT) if tests else None,
        tests_past=tuple(read_record(file, LIMIT) for file in past[-_PAST:]),
        heads={file.name: _head(file) for file in pages[:_HEADS]},
        texts=_texts(cycle) if logs else {},
        results=_results(by_name) if logs else {},
        whole=logs,
    )


def is_log(name: str) -> bool:
    """Whether a file is a log, or the coordination's timeline or feedback."""
    return _READ.search(name) is not None


def _texts(cycle: Cycle) -> dict[str, str]:
    """The logs and the coordination's documents; one that cannot be read is left out."""
    texts: dict[str, str] = {}
    left = _TEXTS
    for file in cycle.files:
        if is_log(file.name) and file.size <= left:
            text, problem = read_text(file, LIMIT)
            if not problem:
                texts[file.name] = text
                left -= file.size
    return texts


def _results(by_name: Mapping[str, File]) -> dict[str, str]:
    found = [f for name, f in by_name.items() if _RESULT.fullmatch(name)]
    return {file.name: read_text(file, LIMIT)[0] for file in found[-_RESULTS:]}


def _is_page(name: str) -> bool:
    """A document that an agent keeps itself, not one of its past."""
    folder, _, rest = name.partition("/")
    return folder in schema.AGENTS and "/" not in rest and rest.endswith(".md")


def _head(file: File) -> str:
    """How a document begins; "" where it cannot be read. Its lines end in line feeds."""
    if file.link:
        return ""
    try:
        text = read_head(file.path, _HEAD).decode("utf-8", "replace").removeprefix("\ufeff")
    except Unreadable:
        return ""
    return text.replace("\r\n", "\n").replace("\r", "\n")
