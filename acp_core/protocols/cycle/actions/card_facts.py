"""The facts on a cycle's cards: what agents say, tests, tasks, what to read and what changed in it."""

from __future__ import annotations

from dataclasses import dataclass

from acp_core.model.card import CardSection
from acp_core.model.snapshot import Row, Tone
from acp_core.protocols.cycle import state
from acp_core.protocols.cycle.read import reports
from acp_core.protocols.cycle.schema import AGENTS, DEPENDS, Blocker, Cycle, written
from acp_core.protocols.cycle.view import documents
from acp_core.protocols.kit.cards import MOST, Evidence, texts
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
        found = reports.parse_result(text) if text else None
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
        rows = (
            (
                Row(
                    (f"{', '.join(behind)}, until {name} has completed",),
                ),
            )
            if behind
            else ()
        )
        return CardSection("Waiting", rows)

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
            for each in sorted(inside, key=documents.order):
                target = self.target(f"{self.cycle.progress}{each}")
                if each.count("/") == 1 and target.document:
                    rows.append(Row((safe(each),), target=target))
        return CardSection("Read", tuple(rows[:MOST]))

    def changed(self) -> CardSection:
        """The documents of which an earlier version is kept, with lines added and removed."""
        rows: list[Row] = []
        for each in list(documents.compared(self.cycle))[:MOST]:
            since = f"v{written(each.version)}"
            names = (f"{each.inside} {since}", each.inside)
            rows += self.differs(each.old, each.new, names, each.inside, f"since {since}")
        return CardSection("Changed", tuple(rows))

    def _report(self, name: str) -> str:
        """The file in which an agent's last run is reported."""
        run = self.cycle.agent(name).run
        return f"{self.cycle.progress}coordination/phase-results/{run}.txt" if run else ""
