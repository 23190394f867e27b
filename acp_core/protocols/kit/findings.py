"""Making findings of validator rules: each severity has a function; all texts become safe to show."""

from __future__ import annotations

from collections.abc import Iterable

from acp_core.files.records import File
from acp_core.model import Finding, Severity
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
