"""The results of tests, in whichever form they were written.

Source: development cycle specification, "Progress Markdown Files".
"""

from __future__ import annotations

from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.schema import Object


def _failing(results: Object) -> list[str]:
    """The tests that failed, by the suites that tell of each of their tests."""
    return [
        schema.text(test.get("name"))
        for suite in schema.objects(results.get("by_suite"))
        for test in schema.objects(suite.get("tests"))
        if schema.text(test.get("status")).lower() == "failed" and test.get("name")
    ]


class Tests:
    """The results of the tests, in whichever form they were written.

    Attributes:
        total, failed: numbers of tests, None where not told.
        rate: the share that passed, in percent; None where not told.
        coverage: in percent; None where it was not collected.
    """

    def __init__(self, value: Object) -> None:
        summary = schema.obj(value.get("summary"))
        names = value.get("failed_tests")
        self.names = schema.words(names) or _failing(value)
        self.total = schema.count(summary.get("total", value.get("total_tests")))
        self.passed = schema.count(summary.get("passed"))
        self.skipped = schema.count(summary.get("skipped"))
        self.failed = schema.count(summary.get("failed"))
        if self.failed is None:
            self.failed = len(names) if isinstance(names, list) else schema.count(names)
        self.executed = value.get("executed") is not False
        said = schema.percent(value.get("pass_rate", summary.get("pass_rate")))
        self.fraction = self._is_fraction(said)
        if said is not None and self.fraction:
            said *= 100
        if said is None and self.passed is not None and self.total:
            said = 100 * self.passed / self.total
        self.rate = said
        held = value.get("coverage", summary.get("coverage"))
        lines = held.get("lines") if isinstance(held, dict) else held
        covered = schema.percent(lines) or None  # 0 means that nobody collected it
        self.coverage = 100 * covered if covered and covered < 1 else covered

    def _is_fraction(self, rate: float | None) -> bool:
        """Whether a rate is a share of 1: one of exactly 1 is 1 % only where so many failed."""
        if rate is None or not 0 < rate <= 1:
            return False
        return rate < 1 or not (self.failed and self.total and self.failed / self.total > 0.9)

    @property
    def proven(self) -> bool:
        """Tests ran."""
        return bool(self.total) and self.executed

    @property
    def covered(self) -> str:
        """How much of the code the tests reach, in words."""
        return "not collected" if self.coverage is None else f"{self.coverage:g} %"

    def __str__(self) -> str:
        if not self.proven:
            return "no tests ran"
        failed = "" if self.failed is None else f", {self.failed} failed"
        rate = "" if self.rate is None else f", {self.rate:.0f} %"
        return f"{self.total} tests{failed}{rate}"
