"""Rules about the log as a whole.

Source: folder protocol specification, "Events". Standard library only.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from acp_core.model.light import TYPE_CHECKING
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.rules.finding import ADVICE, ERROR, Finding, left_out
from acp_core.protocols.folder.schema import LOG_FILE

if TYPE_CHECKING:
    from acp_core.protocols.folder.read.facts import Facts


def log_readable(facts: Facts) -> Iterator[Finding]:
    """The log can be read, holds an event and ends in a whole line."""
    if facts.log_problem == "missing":
        return  # said by the rule about missing files
    if facts.log_problem:
        yield Finding("ACP206", f"{LOG_FILE}: {facts.log_problem}", file=LOG_FILE)
    elif not facts.history.entries and not facts.history.check.bad_lines and not facts.tail_error:
        yield Finding("ACP205", f"{LOG_FILE} is empty", file=LOG_FILE)
    if facts.log_full:
        text = f"{LOG_FILE} is larger than acp reads it: {schema.MAX_LINES} lines, {schema.MAX_LOG} bytes"
        yield Finding("ACP208", text, file=LOG_FILE)


def log_lines(facts: Facts) -> Iterator[Finding]:
    """Every line is an event that is right by itself and after the ones before it."""
    check = facts.history.check
    yield from check.findings
    severities = {finding.code: finding.severity for finding in check.findings}
    for code, count in check.left_out.items():
        yield left_out(code, count, severities[code], LOG_FILE)


def log_tail(facts: Facts) -> Iterator[Finding]:
    """The last line ends in a newline."""
    if facts.tail_error:
        text = f"{facts.tail_error} (the last line is incomplete)"
        yield Finding("ACP207", text, ERROR, LOG_FILE, facts.tail_line)
    elif facts.tail_counts:
        text = f"{LOG_FILE} line {facts.tail_line}: the newline at the end is missing"
        yield Finding("ACP906", text, ADVICE, LOG_FILE, facts.tail_line)


def log_ahead(facts: Facts) -> Iterator[Finding]:
    """The last event is not dated in the future: whatever follows cannot be dated before it."""
    last = facts.history.last
    at = schema.parse_time(last.at) if last else None
    if last is not None and at is not None and at.timestamp() > time.time() + schema.CLOCKS_DIFFER:
        text = f"seq {last.name}: at {last.at!r} is in the future"
        yield Finding("ACP955", text, ADVICE, LOG_FILE, last.line, last.seq)


def log_can_become_valid(facts: Facts) -> Iterator[Finding]:
    """What is wrong with the log's lines stays wrong: earlier events are never rewritten."""
    broken = facts.lines.broken
    if broken is not None:
        from acp_core.protocols.folder.write.hopeless import way_out

        text = f"{LOG_FILE} can never become valid again: {way_out(facts.folder, facts.lines)}"
        yield Finding("ACP922", text, ADVICE, LOG_FILE, broken.line)


RULES = (log_readable, log_lines, log_tail, log_ahead, log_can_become_valid)
