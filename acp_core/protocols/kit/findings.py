"""Making findings of validator rules: each severity has a function; all texts become safe to show."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace

from acp_core.files.reading import Stamp, Unreadable, just_changed, open_regular, stamp, stamp_of
from acp_core.files.records import File
from acp_core.files.unseen import NOTHING, Unseen, unseen_lines
from acp_core.model import Finding, Severity, Snapshot, Verdict
from acp_core.model.past import TrackedFile
from acp_core.model.text import clean_line

UNSEEN_TEXT = (
    "Agents read text that is invisible to people, and may follow it as an instruction.",
    "Remove these characters, and find out who wrote them.",
)

"""Explanation and remedy of text that people cannot see."""


def error(code: str, message: str, file: File | None = None, line: int | None = None) -> Finding:
    """A finding that makes the whole invalid."""
    return _finding(code, Severity.ERROR, message, file, line)


def warning(code: str, message: str, file: File | None = None, line: int | None = None) -> Finding:
    """A finding that somebody should look at."""
    return _finding(code, Severity.WARNING, message, file, line)


def advice(code: str, message: str, file: File | None = None, line: int | None = None) -> Finding:
    """A finding that may be left as it is."""
    return _finding(code, Severity.ADVICE, message, file, line)


def lines_of(findings: Iterable[Finding]) -> list[str]:
    """Findings for people, the worst first; each with its code and where it is."""
    rank = list(Severity)
    return [_line(each) for each in sorted(findings, key=lambda each: rank.index(each.severity))]


def _line(finding: Finding) -> str:
    document, line = finding.document, finding.line
    where = f" ({document}:{line})" if line else f" ({document})" if document else ""
    return f"{finding.severity.value.upper()}: {finding.code} {finding.message}{where}"


def _finding(
    code: str, severity: Severity, message: str, file: File | None, line: int | None
) -> Finding:
    document = clean_line(file.name) if file else None
    return Finding(code, severity, clean_line(message), document, line if document else None)


LIMIT = 64 << 20  # bytes of a file that are looked at

_JSON = (".json", ".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True)
class _Scan:
    """What was seen of a file as of ``stamp``; ``offset`` and ``lines`` are those that are complete.

    ``again`` says that it had just changed then: the next look is not saved.
    """

    stamp: Stamp
    again: bool = False
    offset: int = 0
    lines: int = 0
    unseen: Unseen = NOTHING


class UnseenText:
    """Looks at files again only where they changed; of a log only at what was added.

    Args:
        code: the code of the findings.
    """

    def __init__(self, code: str) -> None:
        self._code = code
        self._looks: dict[str, _Scan] = {}

    def added(self, snapshot: Snapshot, files: Iterable[TrackedFile]) -> Snapshot:
        """The Snapshot with such findings among its own; the very same where there are none."""
        found = self.findings(files)
        if not found:
            return snapshot
        worse = snapshot.verdict is Verdict.VALID and any(
            each.severity is Severity.WARNING for each in found
        )
        verdict = Verdict.WARNINGS if worse else snapshot.verdict
        return replace(snapshot, findings=(*snapshot.findings, *found), verdict=verdict)

    def findings(self, files: Iterable[TrackedFile]) -> tuple[Finding, ...]:
        """A finding for each of these files that holds such text; none for unreadable ones."""
        files = tuple(files)
        looks = {each.path: _scan(each, self._looks.get(each.path)) for each in files}
        self._looks = {path: look for path, look in looks.items() if look is not None}
        return tuple(
            self._finding(file, look.unseen)
            for file in files
            if (look := self._looks.get(file.path)) is not None and look.unseen.lines
        )

    def _finding(self, file: TrackedFile, unseen: Unseen) -> Finding:
        severity = Severity.WARNING if unseen.words else Severity.ADVICE
        document = file.document or None
        line = unseen.first if document else None
        return Finding(self._code, severity, unseen.sentence, document, line)


def _scan(file: TrackedFile, before: _Scan | None) -> _Scan | None:
    now = stamp(file.path)
    if now is None:
        return None
    if before is not None and before.stamp == now and not before.again:
        return before
    try:
        descriptor, status = open_regular(file.path)
        with os.fdopen(descriptor, "rb") as opened:
            grew = file.log and before is not None and before.offset <= status.st_size
            look = before if grew and before is not None else _Scan(now)
            opened.seek(look.offset)
            data = opened.read(LIMIT - look.offset)
    except (Unreadable, OSError):
        return None
    look = replace(look, stamp=stamp_of(status), again=just_changed(status.st_mtime))
    return _read(look, data, file)


def _read(look: _Scan, data: bytes, file: TrackedFile) -> _Scan:
    """The look after what was read behind its offset; of a log, complete lines count."""
    complete = data.rfind(b"\n") + 1
    read = data[:complete] if file.log else data
    found = unseen_lines(read, look.lines + 1, json=file.name.endswith(_JSON))
    return replace(
        look,
        offset=look.offset + complete,
        lines=look.lines + read.count(b"\n"),
        unseen=look.unseen.then(found),
    )


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    """What the findings mean for the whole."""
    severities = {finding.severity for finding in findings}
    if Severity.ERROR in severities:
        return Verdict.INVALID
    return Verdict.WARNINGS if Severity.WARNING in severities else Verdict.VALID
