"""What a person decides in a cycle, as cards: decisions, blockers, failed agents, limits, results.

Their facts are what agents say, tests, tasks, what to read and what changed in it. Source:
development cycle specification, "Escalation Path" and "Conflict Resolution".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from acp_core.model.card import Card, CardSection, CardVerdict
from acp_core.model.format import count
from acp_core.model.snapshot import Document, Row, Tone
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.read import progress
from acp_core.protocols.cycle.read.scan import is_damaged
from acp_core.protocols.cycle.schema import (
    ACCEPT_ACT,
    AGENTS,
    DECIDE_ACT,
    DEPENDS,
    EXTEND_ACT,
    FEEDBACK_ACT,
    LIMIT_ACT,
    RERUN_ACT,
    RESOLVE_ACT,
    RESUME_ACT,
    Blocker,
    Cycle,
    Decision,
    written,
)
from acp_core.protocols.cycle.view import panels
from acp_core.protocols.kit.documents import MOST, Evidence, texts
from acp_core.protocols.kit.wording import safe


@dataclass
class Facts(Evidence):
    """The rows of one card of a cycle.

    Attributes:
        cycle: the cycle, read just now.
    """

    cycle: Cycle

    # --- what agents say ---------------------------------------------------------------------

    def summary(self, name: str) -> str:
        """What an agent reported of its last run, in a line; "" where it reported nothing."""
        text = self.cycle.results.get(self._report(name), "")
        found = progress.parse_result(text) if text else None
        return safe(found.summary if found else "")

    def reported(self, name: str, besides: str = "") -> CardSection:
        """What an agent says last: the summary of its run, and its message."""
        agent = self.cycle.agent(name)
        told = (self.summary(name), safe(agent.last_message or agent.message), safe(agent.error))
        lines = [each for each in dict.fromkeys(told) if each and each not in besides]
        target = self.target(self._report(name))
        return CardSection(f"{name} reports", tuple(Row((each,), target=target) for each in lines))

    def blocker(self, each: Blocker | None, besides: str = "", by: str = "") -> CardSection:
        """A blocker: what it is, who reported it and who was asked, as far as no title says so."""
        if each is None:
            return CardSection("Blocker", ())
        what = safe(each.description)
        reporter = each.reported_by.lower()
        told = f"reported by {safe(each.reported_by)}" if reporter not in ("", by) else ""
        asked = f"{safe(each.routed_to)} was asked" if each.routed_to else ""
        cells = ("" if what in besides else what, told, asked)
        row = Row((safe(each.id), *cells), tone=Tone.BLOCKED)
        return CardSection("Blocker", (row,) if any(cells) else ())

    def errors(self, name: str, besides: str = "") -> CardSection:
        """How an agent's runs came to nothing, the last one first."""
        told = [safe(e.error) for e in self.cycle.state.phase_errors if e.phase.lower() == name]
        lines = [each for each in dict.fromkeys(reversed(told)) if each not in besides]
        return texts("Errors", lines, Tone.REVISE)

    def waiting(self, name: str) -> CardSection:
        """The agents that cannot begin before this one is through."""
        behind: list[str] = []
        for each in AGENTS:
            if DEPENDS[each] in (name, *behind):
                behind.append(each)
        what = f"{', '.join(behind)}, until {name} has completed"
        return CardSection("Waiting", (Row((what,)),) if behind else ())

    def questions(self) -> CardSection:
        """What CD asks in its issues.md, each with its line."""
        found = state.read_issues(self.cycle.head("cd/issues.md")).questions
        name = f"{self.cycle.progress}cd/issues.md"
        rows = tuple(Row((safe(e.text),), target=self.target(name, e.line)) for e in found[:MOST])
        return CardSection("Questions", rows)

    # --- how good it is ----------------------------------------------------------------------

    def tests(self) -> CardSection:
        """The latest test results, then each test that failed."""
        cycle = self.cycle
        if not cycle.state.test_results and cycle.tests_file is None:
            return CardSection("Tests", ())
        found = state.tests(cycle)
        good = None if not found.proven else not found.failed
        target = self.target(f"{cycle.progress}vas/test-results.json")
        covered = f"coverage {found.covered}" if found.proven else ""
        tone = Tone.REVISE if good is False else Tone.PASS if good else Tone.REVIEW
        rows = [Row((str(found), covered), checked=good, tone=tone, target=target)]
        names = [safe(each) for each in found.names]
        rows += [Row((each,), checked=False, tone=Tone.REVISE) for each in names[:MOST]]
        if len(names) > MOST:
            rows.append(Row((f"and {len(names) - MOST} more",), target=target))
        return CardSection("Tests", tuple(rows))

    def tasks(self) -> CardSection:
        """The tasks of the plan that are not done."""
        rows = [
            Row((safe(each.id), safe(each.title or each.description), safe(each.state)))
            for each in state.undone(self.cycle)
        ]
        return CardSection("Not done", tuple(rows[:MOST]))

    def issues(self) -> CardSection:
        """What was found wrong in the current iteration."""
        last = self.cycle.state.iterations[-1:]
        told = dict.fromkeys(issue for each in last for issue in each.issues_found)
        return texts("Issues", list(told), Tone.REVIEW)

    # --- what there is to read ---------------------------------------------------------------

    def read(self, *agents: str) -> CardSection:
        """The documents of these agents."""
        rows = []
        for name in agents:
            start = f"{self.cycle.progress}{name}/"
            own = [file.name for file in self.cycle.files if file.name.startswith(start)]
            inside = sorted(n.removeprefix(self.cycle.progress) for n in own)
            for each in sorted(inside, key=panels.order):
                target = self.target(f"{self.cycle.progress}{each}")
                if each.count("/") == 1 and target.document:
                    rows.append(Row((safe(each),), target=target))
        return CardSection("Read", tuple(rows[:MOST]))

    def changed(self) -> CardSection:
        """The documents of which an earlier version is kept, with lines added and removed."""
        rows: list[Row] = []
        for each in list(panels.compared(self.cycle))[:MOST]:
            since = f"v{written(each.version)}"
            names = (f"{each.inside} {since}", each.inside)
            rows += self.differs(each.old, each.new, names, each.inside, f"since {since}")
        return CardSection("Changed", tuple(rows))

    def _report(self, name: str) -> str:
        """The file in which an agent's last run is reported."""
        run = self.cycle.agent(name).run
        return f"{self.cycle.progress}coordination/phase-results/{run}.txt" if run else ""


_STRICT = ("agent", "limit", "gate", "unproven")  # decisions that are made by an option alone
_SETTLED = timedelta(seconds=30)  # an orchestrator that runs has acted by then
_MOST = 20  # cards of a kind


def cycle_cards(cycle: Cycle | None, known: Sequence[Document]) -> tuple[Card, ...]:
    """What waits for a person's decision in a cycle now.

    Args:
        cycle: the one that is shown, read just now; None where there is none.
        known: the documents of its latest Snapshot, to which rows may point.
    """
    if cycle is None or not cycle.value or is_damaged(cycle):
        return ()
    by_id = {each.id: each for each in known}
    makers = (_decisions, _blockers, _failed, _results, _limits, _waiting, _unanswered)
    return tuple(card for make in makers for card in make(cycle, by_id))


Known = dict[str, Document]


# --- a decision that is asked for -------------------------------------------------------------


def _decisions(cycle: Cycle, known: Known) -> Iterator[Card]:
    for each in [each for each in cycle.state.open_decisions if each.id][:_MOST]:
        facts = Facts(cycle, known=known)
        blocker = next((b for b in cycle.state.blockers if b.id and b.id == each.blocker), None)
        agent = _asker(each, blocker)
        claim = safe(each.description)
        about_result = each.kind in ("limit", "gate", "unproven") or cycle.status == "completed"
        sections = [facts.blocker(blocker, claim, agent)]
        if agent:
            sections.append(facts.reported(agent, claim))
        if agent and each.kind == "agent":
            sections += [facts.errors(agent, claim), facts.waiting(agent)]
        if about_result:
            sections += [facts.tests(), facts.tasks(), facts.issues(), facts.changed()]
            sections.append(facts.read("vas", "cd"))
        elif agent:
            sections += [facts.changed(), facts.read(agent)]
        yield facts.card(
            f"{cycle.id}:decision:{each.id}",
            _asks(each, agent, cycle),
            sections,
            tuple(_options(each)),
            claim=claim,
            by=agent if each.kind != "agent" or _has_failed(cycle, agent) else "",
            since=cycle.since(each.asked_at),
        )


def _asker(decision: Decision, blocker: Blocker | None) -> str:
    """The agent that a decision concerns; "" for none."""
    names = (decision.agent.lower(), blocker.reported_by.lower() if blocker else "")
    return next((each for each in names if each in AGENTS), "")


def _asks(decision: Decision, agent: str, cycle: Cycle) -> str:
    titles = {
        "limit": _at_limit(cycle),
        "gate": "The first phase ends, but no test passes",
        "unproven": f"{agent or 'vas'} reported no tests that ran",
        "agent": f"{agent} failed" if _has_failed(cycle, agent) else _about(agent),
        "partial": f"{agent} has not finished",
    }
    usual = f"{agent or 'The cycle'} asks for your decision"
    return f"{titles.get(decision.kind, usual)} ({decision.id})"


def _has_failed(cycle: Cycle, agent: str) -> bool:
    return bool(agent) and state.agent_status(cycle, agent) == "failed"


def _about(agent: str) -> str:
    return f"The cycle asks how to proceed with {agent or 'an agent'}"


def _options(decision: Decision) -> Iterator[CardVerdict]:
    """Each option, and the answer in words where that is taken."""
    which = ("decision", decision.id)  # as it stands in the state, and as needs name it
    for number, option in enumerate(decision.options, 1):
        yield CardVerdict(safe(option), DECIDE_ACT, (which, ("choice", str(number))))
    if decision.kind not in _STRICT or not decision.options:
        label = "Something else" if decision.options else "Answer"
        yield CardVerdict(label, DECIDE_ACT, (which,), ("choice",))


# --- what keeps an agent from its work --------------------------------------------------------


def _blockers(cycle: Cycle, known: Known) -> Iterator[Card]:
    for each in [each for each in state.for_a_person(cycle) if each.id][:_MOST]:
        facts, which = Facts(cycle, known=known), ("blocker", each.id)
        agent, claim = each.reported_by.lower(), safe(each.description)
        agent = agent if agent in AGENTS else ""
        sections = [facts.blocker(each, claim, agent)]
        if agent:
            sections += [facts.reported(agent, claim), facts.waiting(agent), facts.read(agent)]
        yield facts.card(
            f"{cycle.id}:blocker:{each.id}",
            f"{agent or 'The cycle'} is blocked ({each.id})",
            sections,
            (
                CardVerdict("Resolved", RESOLVE_ACT, (which,), ("resolution",)),
                CardVerdict(
                    "Only worked around",
                    RESOLVE_ACT,
                    (which, ("workaround", "true")),
                    ("resolution",),
                ),
            ),
            claim=claim,
            by=agent,
            since=cycle.since(each.reported_at),
        )


def _failed(cycle: Cycle, known: Known) -> Iterator[Card]:
    """Agents whose run came to nothing, where nobody was asked what to do."""
    asked = {each.agent for each in cycle.state.open_decisions}
    for name in AGENTS:
        if state.agent_status(cycle, name) != "failed" or name in asked:
            continue
        facts, claim = Facts(cycle, known=known), safe(cycle.agent(name).error)
        yield facts.card(
            f"{cycle.id}:failed:{name}:{cycle.iteration}",
            f"{name} failed",
            (
                facts.reported(name, claim),
                facts.errors(name, claim),
                facts.waiting(name),
                facts.changed(),
                facts.read(name),
            ),
            _again(cycle, name),
            claim=claim,
            by=name,
            since=cycle.since(_failed_at(cycle, name)),
        )


def _failed_at(cycle: Cycle, name: str) -> datetime | None:
    told = [e.timestamp for e in cycle.state.phase_errors if e.phase.lower() == name]
    return next((each for each in reversed(told) if each), cycle.agent(name).completed_at)


def _again(cycle: Cycle, name: str) -> tuple[CardVerdict, ...]:
    """How an agent can be run again, as the cycle stands."""
    if cycle.status in ("created", "failed") and not cycle.state.open_decisions:
        return (CardVerdict(f"Resume and restart {name}", RESUME_ACT),)
    below = AGENTS[AGENTS.index(name) :]
    if cycle.status not in ("running", "paused") or set(below) & set(state.running(cycle)):
        return ()
    which = (("agent", name),)
    return (
        CardVerdict(f"Rerun {name}", RERUN_ACT, which),
        CardVerdict("Rerun with instructions", RERUN_ACT, which, ("reason",)),
    )


# --- a result that is not good ----------------------------------------------------------------


def _results(cycle: Cycle, known: Known) -> Iterator[Card]:
    """It is completed, and its tests or its plan show otherwise."""
    found = state.tests(cycle)
    unproven = state.verdict(cycle) == state.UNPROVEN
    if cycle.status != "completed" or not (found.failed or unproven):
        return
    if cycle.state.open_decisions or state.accepted(cycle):
        return
    told = _failing(cycle) if found.failed else state.unproven(cycle)
    verdicts = [CardVerdict("Accept it as it is", ACCEPT_ACT)] if cycle.iteration else []
    yield _result_card(
        cycle,
        known,
        f"result:{cycle.iteration}",
        f"The cycle is completed, but {told}",
        [*verdicts, _extension(cycle, "Start another iteration")],
        cycle.state.completed_at,
    )


def _limits(cycle: Cycle, known: Known) -> Iterator[Card]:
    """The last iteration that is allowed ended with failing tests, and nobody was asked."""
    limit = cycle.state.max_iterations
    if cycle.status not in ("running", "paused") or limit is None or not state.is_at_limit(cycle):
        return
    if cycle.now - cycle.last_write < _SETTLED:
        return
    verdicts = (
        CardVerdict("Allow another iteration", LIMIT_ACT, (("iterations", str(limit + 1)),)),
        CardVerdict("Accept it as it is", ACCEPT_ACT),
        _extension(cycle, "Extend the cycle with a new task"),
    )
    title = f"{_at_limit(cycle)}, and {_failing(cycle)}"
    yield _result_card(cycle, known, f"limit:{cycle.iteration}", title, verdicts, cycle.last_write)


def _at_limit(cycle: Cycle) -> str:
    allowed = cycle.state.max_iterations or cycle.iteration
    return f"The cycle reached its limit of {count(allowed, 'iteration')}"


def _failing(cycle: Cycle) -> str:
    failed = state.tests(cycle).failed or 0
    return f"{count(failed, 'test')} {'fails' if failed == 1 else 'fail'}"


def _extension(cycle: Cycle, label: str) -> CardVerdict:
    limit = cycle.state.max_iterations
    above = limit is not None and cycle.iteration >= limit
    given = (("limit", str(cycle.iteration + 1)),) if above else ()
    return CardVerdict(label, EXTEND_ACT, given, ("text",))


def _result_card(
    cycle: Cycle,
    known: Known,
    id: str,
    title: str,
    verdicts: Sequence[CardVerdict],
    since: datetime | None,
) -> Card:
    facts = Facts(cycle, known=known)
    claim = facts.summary("vas")
    sections = (
        facts.tests(),
        facts.tasks(),
        facts.issues(),
        facts.reported("cd"),
        facts.changed(),
        facts.read("vas", "cd"),
    )
    id, since = f"{cycle.id}:{id}", cycle.since(since)
    return facts.card(id, title, sections, verdicts, claim=claim, by="vas", since=since)


# --- what agents ask and do not answer --------------------------------------------------------


def _waiting(cycle: Cycle, known: Known) -> Iterator[Card]:
    """An agent waits, nobody is at work, and nobody was asked what it waits for."""
    if cycle.status != "running" or state.running(cycle) or cycle.state.open_decisions:
        return
    unsent = any(each.waits for each in cycle.state.feedback)
    if state.for_a_person(cycle) or unsent or cycle.now - cycle.last_write < _SETTLED:
        return
    for name in AGENTS:
        if state.agent_status(cycle, name) != "waiting":
            continue
        facts, agent = Facts(cycle, known=known), cycle.agent(name)
        claim = safe(agent.last_message or agent.message)
        questions = (facts.questions(),) if name == "cd" else ()
        yield facts.card(
            f"{cycle.id}:waiting:{name}:{cycle.iteration}",
            f"{name} is waiting for an answer",
            (*questions, facts.reported(name, claim), facts.waiting(name), facts.read(name)),
            (
                CardVerdict("Answer", FEEDBACK_ACT, (("agent", name),), ("text",)),
                *_again(cycle, name)[:1],
            ),
            claim=claim,
            by=name,
            since=cycle.since(cycle.last_write),
        )


def _unanswered(cycle: Cycle, known: Known) -> Iterator[Card]:
    """An agent was told something, and has not run since."""
    if cycle.status not in schema.OPEN:
        return
    late = [each for each in cycle.state.feedback if state.is_late(cycle, each)]
    for name in dict.fromkeys(each.target.lower() for each in late):
        own = [each for each in late if each.target.lower() == name]
        facts = Facts(cycle, known=known)
        told = [f"{each.source or 'unknown'}: {each.content}" for each in own[1:_MOST]]
        yield facts.card(
            f"{cycle.id}:unanswered:{name}:{own[0].id or own[0].timestamp}",
            f"{name} has not answered the feedback of {safe(own[0].source) or 'an agent'}",
            (texts("Other feedback", told), facts.reported(name), facts.read(name)),
            (
                *_again(cycle, name)[:1],
                CardVerdict("Send more feedback", FEEDBACK_ACT, (("agent", name),), ("text",)),
            ),
            claim=own[0].content,
            by=own[0].source.lower() if own[0].source.lower() in AGENTS else "",
            since=cycle.since(own[0].reached),
        )
