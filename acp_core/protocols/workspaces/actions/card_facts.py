"""The facts on the cards of a run: outputs with their differences, versions, gaps, what agents say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from acp_core.files.records import File, read_text
from acp_core.model import Finding, Severity, format
from acp_core.model.card import CardSection
from acp_core.model.snapshot import Row, Target, Tone
from acp_core.protocols.kit.cards import COMPARED, MOST, Evidence, texts
from acp_core.protocols.kit.wording import safe
from acp_core.protocols.workspaces import schema, state
from acp_core.protocols.workspaces.actions.common import OpenRun
from acp_core.protocols.workspaces.read import conflict_hints
from acp_core.protocols.workspaces.schema import Agent, Conflict, Listed
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
        told = (self._returned(agent).get(key), agent.value.get(key))
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
        own = safe(f"{run.base.name}/{agent.name}/")
        back = safe(agent.returned.file.name) if agent.returned else "-"
        for each in findings:
            about = (each.document or "").startswith(own) or each.document == back
            if each.severity is Severity.ERROR and about:
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
        agents = {each.name: each for each in self.run.run.agents}
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
        agents = {each.name: each for each in self.run.run.agents}
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

    def _returned(self, agent: Agent) -> Mapping[str, object]:
        return (agent.returned.value if agent.returned else None) or {}


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
