"""What a rule says, and what all of them say together.

Source: folder protocol specification, "Validation". Standard library only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from acp_core.model.light import NamedTuple
from acp_core.model.text import clean_line

ERROR, WARNING, ADVICE = "error", "warning", "advice"

VALID, WITH_WARNINGS, INVALID = 0, 1, 2

SHOWN = 100  # findings of one code that are listed; the rest is counted

_LINE = 4_000  # characters of one printed line

_VERDICTS = (
    "ACP validation passed",
    "ACP validation passed with warnings",
    "ACP validation failed",
)


class Finding(NamedTuple):
    """One thing that a rule says. Texts are raw: they are made safe when shown.

    ``file`` is relative to the collaboration's folder; ``line`` counts from 1; ``seq`` is
    that of the event it speaks of. Advice never changes the verdict, unless asked for.
    """

    code: str
    message: str
    severity: str = ERROR
    file: str | None = None
    line: int | None = None
    seq: int | None = None


class Report:
    """What all rules say of one collaboration.

    Attributes:
        findings: errors, then warnings, then advice; each in the order of the rules.
        verdict: `VALID`, `WITH_WARNINGS` or `INVALID`, as every validator would say.
    """

    def __init__(self, findings: Iterable[Finding]) -> None:
        listed = list(limited(findings))
        self.errors = tuple(f for f in listed if f.severity == ERROR)
        self.warnings = tuple(f for f in listed if f.severity == WARNING)
        self.advice = tuple(f for f in listed if f.severity == ADVICE)
        self.findings = (*self.errors, *self.warnings, *self.advice)
        self.verdict = INVALID if self.errors else WITH_WARNINGS if self.warnings else VALID

    def lines(self) -> list[str]:
        """The verdict, the errors and the warnings as text, safe to print; advice is not in it."""
        return [
            _VERDICTS[self.verdict],
            *(f"ERROR: {clean_line(finding.message, _LINE)}" for finding in self.errors),
            *(f"WARNING: {clean_line(finding.message, _LINE)}" for finding in self.warnings),
        ]

    def advice_lines(self) -> list[str]:
        """The advice as text, safe to print."""
        return [f"ADVICE: {clean_line(finding.message, _LINE)}" for finding in self.advice]

    def exit_code(self, strict: bool = False) -> int:
        """The verdict; with ``strict``, advice counts as a warning."""
        if strict and self.verdict == VALID and self.advice:
            return WITH_WARNINGS
        return self.verdict


def limited(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings, of each code at most `SHOWN`, and how many more there are."""
    seen: Counter[str] = Counter()
    severity: dict[str, str] = {}
    file: dict[str, str | None] = {}
    for finding in findings:
        seen[finding.code] += 1
        if seen[finding.code] <= SHOWN:
            severity[finding.code], file[finding.code] = finding.severity, finding.file
            yield finding
    for code, count in seen.items():
        if count > SHOWN:
            yield left_out(code, count - SHOWN, severity[code], file[code])


def left_out(code: str, count: int, severity: str, file: str | None) -> Finding:
    """The finding that stands for ``count`` more of ``code`` that are not listed."""
    return Finding("ACP290", f"{count:,} more findings {code} are not listed", severity, file)
