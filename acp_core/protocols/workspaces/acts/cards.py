"""What a person decides in a run, as cards: results in doubt, conflicts, the draft, with their facts.

Facts are outputs with their differences, versions of a statement, gaps, and what agents say. Source:
agent workspaces specification, "Integration Step Protocol", steps 1 to 6, and "Conflict Resolution
Protocol".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from acp_core.files.decode import moment
from acp_core.files.records import File, read_text
from acp_core.model import Finding, Severity, format
from acp_core.model.card import Card, CardSection, CardVerdict
from acp_core.model.errors import Refused
from acp_core.model.format import count
from acp_core.model.snapshot import Document, Row, Target, Tone
from acp_core.protocols.kit.binding import Location
from acp_core.protocols.kit.documents import COMPARED, MOST, Evidence, texts
from acp_core.protocols.kit.wording import safe
from acp_core.protocols.workspaces import matters, rules, schema, state
from acp_core.protocols.workspaces.acts import binding
from acp_core.protocols.workspaces.acts.binding import OpenRun, open_run, shown_name
from acp_core.protocols.workspaces.acts.table import ALONE, PROGRAM
from acp_core.protocols.workspaces.conduct import team as teams
from acp_core.protocols.workspaces.read import conflict_hints
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
    Listed,
)
from acp_core.protocols.workspaces.write import integration

_PLACES = 3  # lines of one output that speak of a topic


@dataclass
class Facts(Evidence):
    """The rows of one card of a run.

    Attributes:
        run: the run, read just now.
    """

    run: OpenRun

    # --- one agent ---------------------------------------------------------------------------

    def task(self, agent: Agent) -> CardSection:
        """What the agent was to do; its prompt is one key away."""
        task = self.run.manifest.tasks.get(agent.name)
        said = safe(task.task) if task and "task" in agent.plan.raw else ""
        cells = (safe(agent.task_id), said)
        target = self.target(agent.prompt.file.name) if agent.prompt else Target()
        return CardSection("Task", (Row(cells, target=target),) if any(cells) else ())

    def says(self, agent: Agent, key: str) -> str:
        """A text of the agent's return or of its status file."""
        told = (schema.value_of(agent.returned).get(key), agent.value.get(key))
        return next((safe(each) for each in told if isinstance(each, str) and each.strip()), "")

    def errors(self, agent: Agent) -> CardSection:
        """What the agent says went wrong, and how its program ended."""
        rows = [Row((safe(each),), tone=Tone.REVISE) for each in agent.errors[:MOST]]
        if state.ending(agent, self.run.run) == schema.MISSING and agent.plan.exit:
            rows.append(Row((safe(f"its program: {agent.plan.exit}"),), tone=Tone.REVISE))
        return CardSection("Errors", tuple(rows))

    def disagreement(self, agent: Agent, findings: Iterable[Finding]) -> CardSection:
        """Where the agent's status, its return and its files do not agree, or were written over."""
        run = self.run.run
        done = state.trespasses_on(agent, run.trespasses)
        rows = [
            Row((safe(e.how),), checked=False, tone=Tone.REVISE, target=self.target(e.file.name))
            for e in done
        ]
        for each in findings:
            if each.severity is Severity.ERROR and rules.is_about(each, agent, run):
                target = self.target(each.document or "", each.line)
                rows.append(Row((each.message,), checked=False, tone=Tone.REVISE, target=target))
        return CardSection("Disagrees", tuple(rows[:MOST]))

    def outputs(self, agent: Agent) -> CardSection:
        """What the agent says that it wrote: whether it is there, how large, what it holds."""
        rows = []
        for each in agent.results[:MOST]:
            about = safe(each.item.description)
            if each.file is None:
                cells = (safe(each.written.rpartition("/")[2]), "is missing", about)
                rows.append(Row(cells, checked=False, tone=Tone.REVISE))
            else:
                cells = (_inside(each.file, agent), format.size(each.file.size), about)
                rows.append(Row(cells, checked=True, target=self.target(each.file.name)))
        return CardSection("Outputs", tuple(rows))

    def written(self, agent: Agent) -> CardSection:
        """What an agent that returned nothing wrote into its workspace, the newest first."""
        newest = sorted(agent.files, key=lambda file: file.changed, reverse=True)
        rows = [
            Row(
                (_inside(each, agent), format.size(each.size), format.exact(each.changed)),
                target=self.target(each.name),
            )
            for each in newest[:MOST]
        ]
        return CardSection("Written", tuple(rows) or (Row(("nothing",)),))

    def changed(self, agent: Agent) -> CardSection:
        """What became of each output since the attempt before."""
        rows: list[Row] = []
        for each in agent.results[:MOST]:
            before = _earlier(agent, each)
            if before is not None and each.file is not None:
                names = (_inside(before, agent), _inside(each.file, agent))
                rows += self.differs(before, each.file, names, names[1], f"since {names[0]}")
        return CardSection("Changed", tuple(rows))

    def waiting(self, agent: Agent) -> CardSection:
        """The agents that are dispatched only when this one is through."""
        run = self.run.run
        behind = [
            safe(each.name)
            for each in run.agents
            if agent.name in each.plan.after and state.of_agent(each, run) == "not dispatched"
        ]
        return CardSection("Waiting", (Row((", ".join(behind),)),) if behind else ())

    # --- a conflict --------------------------------------------------------------------------

    def versions(self, conflict: Conflict) -> CardSection:
        """What each agent states on the topic, one below the other, with its line."""
        rows = []
        for agent, file in self._sides(conflict):
            text, problem = read_text(file, COMPARED)
            where = conflict_hints.places(text, conflict.topic) if conflict.topic.strip() else []
            if problem:
                rows.append(Row((safe(agent.name), f"{_inside(file, agent)} {problem}")))
            for number, line in where[:_PLACES]:
                stated = safe(line.strip(" \t-*+|"))  # without the sign of a list or a table
                cells = (safe(agent.name), stated, f"line {number}")
                rows.append(Row(cells, tone=Tone.DECIDE, target=self.target(file.name, number)))
            if not where and not problem:
                told = "" if file.path.name == conflict.topic else "does not mention it"
                cells = (safe(agent.name), _inside(file, agent), told)
                rows.append(Row(cells, target=self.target(file.name)))
        return CardSection("Versions", tuple(rows[:MOST]))

    def compared(self, conflict: Conflict) -> CardSection:
        """How the outputs of the first agent differ from those of the others."""
        sides, rows = self._sides(conflict), list[Row]()
        for each in sides[1:]:
            first = sides[0]
            if each[0] is first[0]:
                continue
            both = f"{safe(first[0].name)} and {safe(each[0].name)}"
            names = (
                f"{first[0].name}: {first[1].path.name}",
                f"{each[0].name}: {each[1].path.name}",
            )
            rows += self.differs(first[1], each[1], names, both)
        return CardSection("Compared", tuple(rows[:MOST]))

    def _sides(self, conflict: Conflict) -> list[tuple[Agent, File]]:
        """The outputs that a conflict is between: a file of its topic's name, else all texts."""
        agents = self.run.run.by_name
        found = []
        for name in conflict.agents:
            agent = agents.get(name)
            files = [each.file for each in agent.results if each.file] if agent else []
            same = [each for each in files if each.path.name == conflict.topic]
            found += [(agent, each) for each in (same or files)[:_PLACES] if agent]
        return found

    # --- the whole ---------------------------------------------------------------------------

    def order(self) -> CardSection:
        """The outputs that go into the final one, in the order in which they are read."""
        agents = self.run.run.by_name
        files = {str(each.path): each for each in self.run.run.files}
        rows = []
        for number, (name, path, size) in enumerate(
            integration.reading(self.run.run, self.run.manifest), 1
        ):
            file = files.get(str(path))
            how = agents[name].decision or state.ending(agents[name], self.run.run)
            cells = (f"{number}. {safe(name)}", safe(path.name), format.size(size), safe(how))
            rows.append(Row(cells, target=self.target(file.name) if file else Target()))
        return CardSection("Order", tuple(rows[:MOST]))

    def notes(self) -> CardSection:
        """What agents want to be known before their outputs are used."""
        told = [(safe(e.name), self.says(e, "notes")) for e in conflict_hints.used(self.run.run)]
        return CardSection("Notes", tuple(Row(each) for each in told if each[1])[:MOST])

    def gaps(self) -> CardSection:
        """What the final output will lack."""
        told = [*integration.gaps(self.run.run), *integration.added_gaps(self.run.run)]
        return texts("Gaps", told, Tone.REVIEW)

    def decided(self) -> CardSection:
        """What was decided on agents and conflicts, and by whom."""
        settled = [each.sentence for each in integration.resolved(self.run.run)]
        return texts("Decided", [*integration.decisions(self.run.run), *settled])

    def unsettled(self) -> CardSection:
        """Where outputs may contradict each other, and nobody said whether they do."""
        hints = state.open_hints(self.run.run)
        return texts("Open", [f"{each.id}: {each.question}" for each in hints], Tone.REVIEW)

    def problems(self, findings: Iterable[Finding]) -> CardSection:
        """What the validator calls wrong."""
        rows = [
            Row((each.message,), checked=False, tone=Tone.REVISE,
                target=self.target(each.document or "", each.line))
            for each in findings
            if each.severity is Severity.ERROR
        ]  # fmt: skip
        return CardSection("Errors", tuple(rows[:MOST]))

    def drafts(self) -> CardSection:
        """The draft, and how it differs from the final output that is there."""
        run = self.run.run
        rows = [
            Row((safe(each.path.name), format.size(each.size)), target=self.target(each.name))
            for each in run.drafts
        ]
        for draft in run.drafts:
            for final in (each for each in run.finals if each.path.name == draft.path.name):
                names = ("final output", "draft")
                rows += self.differs(final, draft, names, "changes", "since the final output")
        return CardSection("Draft", tuple(rows))


def _inside(file: File, agent: Agent) -> str:
    """A file's name in its agent's workspace."""
    return safe(file.name.rpartition(f"/{agent.name}/")[2])


def _earlier(agent: Agent, listed: Listed) -> File | None:
    """The same output of the attempt before: its name without agent and stamp is the same."""
    if listed.file is None:
        return None
    new = listed.file
    others = [
        each
        for each in agent.files
        if each is not new
        and each.changed <= new.changed
        and each.path.parent == new.path.parent
        and _plain(each, agent) == _plain(new, agent)
    ]
    return max(others, key=lambda each: each.changed, default=None)


def _plain(file: File, agent: Agent) -> str:
    name = file.path.name.removeprefix(f"{agent.name}-")
    for each in agent.attempts:
        name = name.replace(f"-{each}", "")
    return name


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
            by=agent.shown,
            since=agent.plan.ended_at or agent.active,
        )


def _ended(agent: Agent, run: OpenRun, how: str) -> str:
    """How an agent ended, in a line."""
    name = agent.shown
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
    who = ("agent", agent.shown)
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
    which, category = ("conflict", shown_name(conflict.id)), conflict.category
    sides = [(which, ("keep", shown_name(each))) for each in conflict.agents[:_SIDES]]
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
    team = teams.load_team(run.place.root)
    before = team.choice(ORCHESTRATOR) if team else None
    usual = binding.program_choices(before)["program"]["default"]
    asks = ("program", "command") if usual == binding.COMMAND else ("program",)
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
