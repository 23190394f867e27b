"""Examples and exit codes of `acp cycle`."""

from __future__ import annotations

from acp_core.protocols.kit.manual import Manual, Page

MANUAL: Manual = {
    "cycle": Page(
        (
            "acp cycle status",
            "acp cycle start --help",
        ),
    ),
    "cycle start": Page(
        ('acp cycle start "Export the report as CSV" --program claude --agent cd=codex',),
    ),
    "cycle run": Page(
        (
            "acp cycle run",
            "acp cycle run --foreground",
        ),
    ),
    "cycle status": Page(
        ("acp cycle status --json",),
    ),
    "cycle feedback": Page(
        ('acp cycle feedback cd "Quote fields with commas"',),
    ),
    "cycle decide": Page(
        ('acp cycle decide DEC-001 2 --rationale "It is the smaller change"',),
    ),
    "cycle resolve": Page(
        ('acp cycle resolve BLK-001 "The account is there now"',),
    ),
    "cycle extend": Page(
        ('acp cycle extend "Also as JSON"',),
    ),
    "cycle pause": Page(
        ("acp cycle pause",),
    ),
    "cycle resume": Page(
        ("acp cycle resume",),
    ),
    "cycle stop": Page(
        ('acp cycle stop --reason "No longer wanted"',),
    ),
    "cycle accept": Page(
        ('acp cycle accept --reason "The rest is for later"',),
    ),
    "cycle rerun": Page(
        ("acp cycle rerun vas",),
    ),
    "cycle limit": Page(
        ("acp cycle limit 8",),
    ),
    "cycle rebuild": Page(
        ("acp cycle rebuild --dry-run",),
    ),
    "cycle phase-result": Page(
        ("acp cycle phase-result printed.txt --agent cd",),
        (),
    ),
}
