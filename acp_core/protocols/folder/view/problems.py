"""What is wrong, how bad it is, and whether a human is wanted for it.

A state between two writes (the log written, protocol.json not yet) is no alarm: only what
lasts for longer than `SETTLE` seconds is.
"""

from __future__ import annotations

from datetime import UTC, datetime

from acp_core.model import Finding, Link, Need, Severity, Turn, Verdict
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.folder import rules, schema
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.rules.checks import is_behind
from acp_core.protocols.folder.schema import LOG_FILE
from acp_core.protocols.folder.view.timeline import EventLog
from acp_core.protocols.folder.write.hopeless import remedy

SETTLE = 2.0
REWRITTEN = "ACP921"
_LAG = frozenset({"ACP150", "ACP151", "ACP920"})
_REPAIRABLE = frozenset(
    {"ACP101", "ACP110", "ACP111", "ACP112", "ACP118", "ACP119", "ACP150", "ACP151",
     "ACP205", "ACP207", "ACP301", "ACP906", "ACP920"}
)  # fmt: skip
_VERDICTS = (Verdict.VALID, Verdict.WARNINGS, Verdict.INVALID)
_MESSAGE = 1_000


class Trouble:
    """Findings, verdict and needs of one collaboration, with the clock in mind.

    Attributes:
        report: what the rules say, without a lag that is younger than `SETTLE`.
        recheck: when to look again although nothing changes, in seconds since 1970, or None.
    """

    def __init__(self) -> None:
        self.report = rules.Report(())
        self.recheck: float | None = None
        self._first = True
        self._lag_since: float | None = None
        self._invalid_since: float | None = None

    def judge(self, facts: Facts, now: float) -> None:
        """Let the rules speak about what was read."""
        self.recheck = None
        report = rules.judge(facts)
        began = _newest(facts, now) if self._first else now
        self._first = False
        findings: tuple[rules.Finding, ...] = report.findings
        if any(f.code in _LAG for f in findings) and is_behind(facts):
            self._lag_since = self._lag_since if self._lag_since is not None else began
            if self._too_young(self._lag_since, now):
                report = rules.Report(f for f in findings if f.code not in _LAG)
        else:
            self._lag_since = None
        if report.verdict == rules.INVALID:
            if self._invalid_since is None:
                lags = self._lag_since is not None and self._only_lags(report)
                self._invalid_since = self._lag_since if lags else began
            if facts.lines.broken is None:  # what is wrong with a whole line stays wrong
                self._too_young(self._invalid_since or began, now)
        else:
            self._invalid_since = None
        self.report = report

    def _too_young(self, since: float, now: float) -> bool:
        until = since + SETTLE
        if now < until:
            self.recheck = until if self.recheck is None else min(self.recheck, until)
            return True
        return False

    @property
    def verdict(self) -> Verdict:
        """The verdict in the Snapshot's words."""
        return _VERDICTS[self.report.verdict]

    @staticmethod
    def _only_lags(report: rules.Report) -> bool:
        return all(finding.code in _LAG for finding in report.errors)

    def findings(self, facts: Facts, events: EventLog) -> tuple[Finding, ...]:
        """What the rules say, and what happened to the log since it was opened."""
        session = [
            Finding(
                REWRITTEN,
                Severity.ADVICE,
                f"events.jsonl was {reason} after it was read: recorded history has changed",
                LOG_FILE,
                explanation=_about(REWRITTEN)[0],
                remedy=_about(REWRITTEN)[1],
            )
            for _, reason in facts.rewritten[-3:]
        ]
        return (*(_as_finding(finding, events) for finding in self.report.findings), *session)

    def needs(self, facts: Facts, now: float) -> tuple[Need, ...]:
        """A need for a folder that is invalid, or whose protocol.json lags, for too long."""
        since, broken = self._invalid_since, facts.lines.broken is not None
        if since is None or (now < since + SETTLE and not broken):
            return ()
        errors = self.report.errors
        moment = datetime.fromtimestamp(since, UTC)
        if self._only_lags(self.report) and self._lag_since is not None:
            last = facts.history.last
            return (
                Need(
                    key=f"lagging:{clean_line(last.name) if last else ''}",
                    code="lagging",
                    text="protocol.json is out of date with the event log: agents may wait for the wrong participant",
                    since=moment,
                    action="repair",
                ),
            )
        from acp_core.protocols.kit.diagnosis import mark  # late: most folders are valid

        codes = sorted({finding.code for finding in errors})
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        about = mark(f"{each.code} {each.message}" for each in errors)
        return (
            Need(
                key=f"invalid:{','.join(codes)}:{about}",
                code="invalid",
                text=f"invalid: {clean_line(errors[0].message, 200)}{more}",
                since=moment,
                action=_way_out(facts, codes),
            ),
        )


def _way_out(facts: Facts, codes: list[str]) -> str | None:
    """The action that helps."""
    if facts.takes_no_more or facts.lines.broken is not None:
        return remedy(facts.lines, takes_no_more=facts.takes_no_more) or None
    return None if _REPAIRABLE.isdisjoint(codes) else "repair"


def blocked_need(facts: Facts, links: tuple[Link, ...]) -> tuple[Need, ...]:
    """A need for a blocked collaboration, until it was continued elsewhere."""
    machine = facts.history.machine
    if machine.phase != "blocked" or any(link.relation == "continued_by" for link in links):
        return ()
    blockers = facts.history.blockers
    if not blockers:
        return ()
    entry, more = blockers[0], f" (and {len(blockers) - 1} more)" if len(blockers) > 1 else ""
    who, why = clean_name(entry.sender, 100), clean_line(entry.summary, 300) + more
    return (
        Need(
            key=f"blocked:{clean_line(blockers[-1].name)}",
            code="blocked",
            text=f"blocked by {who}: {why}",
            participant=who,
            since=schema.parse_time(entry.at),
            action="continue",
        ),
    )


def turn_needs(turns: tuple[Turn, ...], humans: frozenset[str], action: str) -> tuple[Need, ...]:
    """A need for each person whose turn it is; ``humans`` are ids as they are shown."""
    return tuple(
        Need(
            key=f"turn:{turn.participant}:{turn.since_event}",
            code="turn",
            text=f"{turn.participant} must {turn.what}",
            participant=turn.participant,
            since=turn.since,
            action=action or None,
        )
        for turn in turns
        if turn.participant in humans
    )


def _as_finding(finding: rules.Finding, events: EventLog) -> Finding:
    event = None
    if finding.file == LOG_FILE and finding.line is not None:
        event = events.id_at_line(finding.line)
    elif finding.seq is not None and events.find(str(finding.seq)) is not None:
        event = str(finding.seq)
    explanation, remedy = _about(finding.code)
    return Finding(
        code=finding.code,
        severity=Severity(finding.severity),
        message=clean_line(finding.message, _MESSAGE),
        document=clean_line(finding.file, 300) if finding.file else None,
        line=finding.line,
        event=event,
        explanation=explanation,
        remedy=remedy,
        action="repair" if finding.code in _REPAIRABLE else None,
    )


def _about(code: str) -> tuple[str, str]:
    from acp_core.protocols.folder.rules.codes import about

    return about(code)


def _newest(facts: Facts, now: float) -> float:
    """When a file last changed: since then the folder is as it is."""
    times = [file.modified for file in (*facts.files.values(), *facts.others.values())]
    return min(now, max((time for time in times if time is not None), default=now))
