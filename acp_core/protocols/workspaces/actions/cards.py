"""What a person decides in a run, as cards: agents' results, conflicts, the draft, the final output.

Source: agent workspaces specification, "Integration Step Protocol" and "Conflict Resolution Protocol".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from acp_core.files.decode import moment
from acp_core.model import Finding
from acp_core.model.card import Card, CardSection, CardVerdict
from acp_core.model.errors import Refused
from acp_core.model.format import count
from acp_core.model.snapshot import Document, Row
from acp_core.protocols.kit.binding import Location
from acp_core.protocols.kit.cards import texts
from acp_core.protocols.kit.wording import safe
from acp_core.protocols.workspaces import matters, rules, schema, state
from acp_core.protocols.workspaces.actions import programs
from acp_core.protocols.workspaces.actions.card_facts import Facts
from acp_core.protocols.workspaces.actions.common import OpenRun, display_name, open_run
from acp_core.protocols.workspaces.actions.table_integration import ALONE, PROGRAM
from acp_core.protocols.workspaces.conduct import team as teams
from acp_core.protocols.workspaces.read.manifest import read_bytes
from acp_core.protocols.workspaces.schema import (
    DISMISS_ACT,
    FINISH_ACT,
    ORCHESTRATOR,
    ORDER_ACT,
    RERUN_ACT,
    RESOLVE_ACT,
    SYNTHESISE_ACT,
    TRIAGE_ACT,
    Agent,
    Conflict,
)
from acp_core.protocols.workspaces.write import integration

_MOST = 50  # cards of a kind
_SIDES = 5  # versions of which one can be kept
_LABELS = {
    "accept": "Accept the result as it is",
    "rerun": "Rerun",
    "skip": "Skip",
    "orchestrator-does": "Do the task yourself",
    "gap": "Note a gap",
}
_RULES = {
    "factual": "one version is kept, never an average of both",
    "coverage": "both are merged, and the more detailed version is kept",
    "format": "both are converted to the form of the final output",
}


def run_cards(folder: str, known: Sequence[Document], now: datetime) -> tuple[Card, ...]:
    """What waits for a person's decision in a run now.

    Args:
        folder: the run.
        known: the documents of its latest Snapshot, to which rows may point.
        now: the time as of which it is read.
    """
    try:
        run = open_run(Location(folder), now)
    except (Refused, OSError):  # nothing can be decided before that is repaired
        return ()
    if run.is_integrated:
        return ()
    by_id = {each.id: each for each in known}
    findings = rules.check(run.run)
    return (
        *_agents(run, by_id, findings),
        *_conflicts(run, by_id, state.open_conflicts(run.run)),
        *_synthesis(run, by_id, findings),
        *_draft(run, by_id, findings),
        *_conflicts(run, by_id, state.open_hints(run.run) if state.steps(run.run)[1] else []),
    )


Known = dict[str, Document]
Findings = tuple[Finding, ...]


# --- what an agent returned -------------------------------------------------------------------


def _agents(run: OpenRun, known: Known, findings: Findings) -> Iterator[Card]:
    """Results in doubt first, then what is not decided, then agents that are silent."""
    how = {each.name: state.of_agent(each, run.run, findings) for each in run.run.agents}
    doubtful, undecided, silent = [], [], []
    for each in run.run.agents:
        if how[each.name] in state.DOUBTFUL and not each.decision:
            doubtful.append(each)
        elif state.undecided(each, run.run):
            undecided.append(each)
        elif how[each.name] == "stalled" and each.active and not each.decision:
            silent.append(each)
    for agent in (*doubtful, *undecided, *silent)[:_MOST]:
        facts = Facts(run, known=known)
        yield facts.card(
            f"agent:{agent.name}:{agent.attempt}",
            _ended(agent, run, how[agent.name]),
            (
                facts.errors(agent),
                facts.disagreement(agent, findings),
                texts("Notes", [facts.says(agent, "notes")]),
                facts.written(agent) if agent in silent else facts.outputs(agent),
                facts.changed(agent),
                facts.waiting(agent),
                facts.task(agent),
            ),
            _judgements(agent, run),
            claim=facts.says(agent, "summary"),
            by=display_name(agent.name),
            since=agent.plan.ended_at or agent.active,
        )


def _ended(agent: Agent, run: OpenRun, how: str) -> str:
    """How an agent ended, in a line."""
    name = display_name(agent.name)
    if how == state.OVERWRITTEN:
        who = state.trespassers(state.trespasses_on(agent, run.run.trespasses))
        return f"{who} wrote into the workspace of {name}"
    told = {
        "inconsistent": f"{name}'s status and files disagree",
        "stalled": f"{name} is silent and has returned nothing",
        schema.PARTIAL: f"{name} returned a partial result",
        schema.FAILURE: f"{name} failed",
    }
    again = f" (attempt {agent.attempt})" if agent.attempt > 1 else ""
    ending = how if how in told else state.ending(agent, run.run)
    return f"{told.get(ending, f'{name} ended without a result')}{again}"


def _judgements(agent: Agent, run: OpenRun) -> Iterator[CardVerdict]:
    """What can become of a result, each with its reason; feedback is what the next attempt reads."""
    who = ("agent", display_name(agent.name))
    for word in state.choices(agent, run.run):
        label = _LABELS.get(word, word)
        if word == "rerun" and agent.name in run.manifest.tasks:
            yield CardVerdict(f"{label}, with feedback", RERUN_ACT, (who,), ("feedback",))
        else:
            yield CardVerdict(label, TRIAGE_ACT, (who, ("decision", word)), ("reason",))


# --- where outputs contradict each other ------------------------------------------------------


def _conflicts(run: OpenRun, known: Known, waiting: Sequence[Conflict]) -> Iterator[Card]:
    for each in [each for each in waiting if each.id][:_MOST]:
        facts = Facts(run, known=known)
        claim = "" if each.why.startswith(f"{each.topic}: ") else each.why
        by = "" if each.found_by == "acp" else each.found_by
        category = (safe(each.category), _RULES.get(each.category, "unknown category"))
        alike = sum(o.topic.lower() == each.topic.lower() for o in waiting if o is not each)
        more = f"{count(alike, 'other conflict')} on the same topic" if alike else ""
        yield facts.card(
            f"conflict:{each.id}",
            f"{each.between} {'may contradict' if each.is_hint else 'contradict'} each other "
            f"on {each.topic or 'something'} ({each.id})",
            (
                facts.versions(each),
                facts.compared(each),
                CardSection("Kind", (Row(category),)),
                texts("Found by", [by]),
                texts("Also", [more]),
            ),
            _settlements(each),
            claim=claim,
            since=moment(each.raw.get("at")),
        )


def _settlements(conflict: Conflict) -> Iterator[CardVerdict]:
    """How a conflict can be settled, by the rule of its category."""
    which, category = ("conflict", display_name(conflict.id)), conflict.category
    sides = [(which, ("keep", display_name(each))) for each in conflict.agents[:_SIDES]]
    if len(conflict.agents) < 2:
        sides = []
    elif category == "factual":
        for given in sides:
            yield CardVerdict(f"{given[1][1]}'s version holds", RESOLVE_ACT, given, ("because",))
    elif category == "coverage":
        yield CardVerdict("Merge both", RESOLVE_ACT, (which,))
        for given in sides:
            yield CardVerdict(f"Merge, {given[1][1]}'s is more detailed", RESOLVE_ACT, given)
    elif category == "format":
        yield CardVerdict("Convert both to the final form", RESOLVE_ACT, (which,))
    else:
        yield CardVerdict("Resolve", RESOLVE_ACT, (which,), ("category", "keep", "because"))
    yield CardVerdict("Not a conflict", DISMISS_ACT, (which,), ("reason",))


# --- the final output -------------------------------------------------------------------------


def _synthesis(run: OpenRun, known: Known, findings: Findings) -> Iterator[Card]:
    """The outputs were compared, and nothing holds the draft up: who writes it, in which order."""
    passed = state.steps(run.run)
    if state.of_run(run.run) != "ready to integrate" or not all(passed[:4]):
        return
    if state.open_conflicts(run.run) or run.run.writing:
        return
    facts = Facts(run, known=known)
    team = teams.load(run.place.root)
    before = team.choice(ORCHESTRATOR) if team else None
    usual = programs.narrowed(before)["program"]["default"]
    asks = ("program", "command") if usual == programs.COMMAND else ("program",)
    yield facts.card(
        "synthesis",
        "The outputs are ready to be synthesised",
        (
            facts.order(),
            facts.notes(),
            facts.gaps(),
            facts.unsettled(),
            facts.decided(),
            facts.problems(findings),
        ),
        (
            CardVerdict("Let a program write the draft", SYNTHESISE_ACT, (("how", PROGRAM),), asks),
            CardVerdict("Write it yourself", SYNTHESISE_ACT, (("how", ALONE),)),
            CardVerdict("Change the order", ORDER_ACT, (), ("order",)),
        ),
        since=run.run.recorded.looked_at,
    )


def _draft(run: OpenRun, known: Known, findings: Findings) -> Iterator[Card]:
    """A draft that can become the final output."""
    passed = state.steps(run.run)
    if state.of_run(run.run) != "integrating" or not run.run.drafts or not all(passed[:5]):
        return
    try:
        draft = integration.draft_file(run.place)
    except (Refused, OSError):
        return
    if matters.draft_problem(read_bytes(draft), run.manifest.form):
        return
    facts = Facts(run, known=known)
    yield facts.card(
        "draft",
        "The draft of the final output is ready",
        (
            facts.drafts(),
            facts.gaps(),
            facts.unsettled(),
            facts.decided(),
            facts.notes(),
            facts.order(),
            facts.problems(findings),
        ),
        (
            CardVerdict("Approve", FINISH_ACT),
            CardVerdict("Approve, and note gaps", FINISH_ACT, (), ("gaps",)),
        ),
        since=run.run.drafts[0].changed,
    )
