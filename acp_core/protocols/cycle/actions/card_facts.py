"""The facts on a cycle's cards: what agents say, tests, tasks, what to read and what changed in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from acp_core.files.records import File, read_text
from acp_core.model.action import Change
from acp_core.model.card import CardDocument, CardSection
from acp_core.model.snapshot import Document, Row, Target, Tone
from acp_core.protocols.cycle import state
from acp_core.protocols.cycle.schema import AGENTS, DEPENDS, Cycle, issues, phase_result, written
from acp_core.protocols.cycle.schema.state_file import Blocker
from acp_core.protocols.cycle.view import documents
from acp_core.protocols.kit.wording import difference, safe

MOST = 20
"""Rows of a section: a person reads no more, and the documents hold the rest."""
_COMPARED = 1 << 18  # bytes of a document of which the difference is shown


@dataclass
class Facts:
    """The rows of one card, and what they point to.

    Attributes:
        cycle: the cycle, read just now.
        known: the documents of its Snapshot, by id.
        judged: the documents that rows point to.
        changes: the differences that rows point to.
    """

    cycle: Cycle
    known: Mapping[str, Document]
    judged: dict[str, CardDocument] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)

    # --- what agents say ---------------------------------------------------------------------

    def summary(self, name: str) -> str:
        """What an agent reported of its last run, in a line; "" where it reported nothing."""
        text = self.cycle.results.get(self._report(name), "")
        found = phase_result.parse(text) if text else None
        return safe(found.summary if found else "")

    def said(self, name: str, besides: str = "") -> CardSection:
        """What an agent says last: the summary of its run, and its message."""
        agent = self.cycle.agent(name)
        told = (self.summary(name), safe(agent.last_message or agent.message), safe(agent.error))
        texts = [each for each in dict.fromkeys(told) if each and each != besides]
        target = self._target(self._report(name))
        return CardSection(f"{name} says", tuple(Row((each,), target=target) for each in texts))

    def blocker(self, each: Blocker | None, besides: str = "", by: str = "") -> CardSection:
        """A blocker: what it is, who reported it and who was asked, as far as no title says so."""
        if each is None:
            return CardSection("Blocker", ())
        what = safe(each.description)
        reporter = each.reported_by.lower()
        told = f"reported by {safe(each.reported_by)}" if reporter not in ("", by) else ""
        asked = f"{safe(each.routed_to)} was asked" if each.routed_to else ""
        cells = ("" if what == besides else what, told, asked)
        row = Row((safe(each.id), *cells), tone=Tone.BLOCKED)
        return CardSection("Blocker", (row,) if any(cells) else ())

    def errors(self, name: str, besides: str = "") -> CardSection:
        """How an agent's runs came to nothing, the last one first."""
        told = [safe(e.error) for e in self.cycle.state.phase_errors if e.phase.lower() == name]
        texts = [each for each in dict.fromkeys(reversed(told)) if each and each != besides]
        rows = tuple(Row((each,), tone=Tone.REVISE) for each in texts[:MOST])
        return CardSection("Errors", rows)

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
        found = issues.read(self.cycle.head("cd/issues.md")).questions
        name = f"{self.cycle.progress}cd/issues.md"
        rows = tuple(Row((safe(e.text),), target=self._target(name, e.line)) for e in found[:MOST])
        return CardSection("Questions", rows)

    # --- how good it is ----------------------------------------------------------------------

    def tests(self) -> CardSection:
        """The latest test results, then each test that failed."""
        cycle = self.cycle
        if not cycle.state.test_results and cycle.tests_file is None:
            return CardSection("Tests", ())
        found = state.tests(cycle)
        good = None if not found.proven else not found.failed
        target = self._target(f"{cycle.progress}vas/test-results.json")
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
        texts = [safe(issue) for each in last for issue in each.issues_found]
        rows = tuple(Row((each,), tone=Tone.REVIEW) for each in dict.fromkeys(texts) if each)
        return CardSection("Issues", rows[:MOST])

    # --- what there is to read ---------------------------------------------------------------

    def read(self, *agents: str) -> CardSection:
        """The documents of these agents."""
        rows = []
        for name in agents:
            start = f"{self.cycle.progress}{name}/"
            own = [file.name for file in self.cycle.files if file.name.startswith(start)]
            inside = sorted(n.removeprefix(self.cycle.progress) for n in own)
            for each in sorted(inside, key=documents.order):
                target = self._target(f"{self.cycle.progress}{each}")
                if each.count("/") == 1 and target.document:
                    rows.append(Row((safe(each),), target=target))
        return CardSection("Read", tuple(rows[:MOST]))

    def changed(self) -> CardSection:
        """The documents of which an earlier version is kept, with lines added and removed."""
        rows = []
        for each in list(documents.compared(self.cycle))[:MOST]:
            old, new = self._text(each.old), self._text(each.new)
            diff = difference(old, new, f"v{written(each.version)}", "now") if old and new else ""
            if not diff:
                continue
            path = safe(each.inside)
            self.changes.append(Change(path, "change", diff))
            self._target(each.new.name)
            since = f"since v{written(each.version)}"
            rows.append(Row((path, _counted(diff), since), target=Target(change=path)))
        return CardSection("Changed", tuple(rows))

    def _text(self, file: File) -> bytes:
        text, problem = read_text(file, _COMPARED)
        return b"" if problem else text.encode(errors="replace")

    def _report(self, name: str) -> str:
        """The file in which an agent's last run is reported."""
        run = self.cycle.agent(name).run
        return f"{self.cycle.progress}coordination/phase-results/{run}.txt" if run else ""

    def _target(self, name: str, line: int | None = None) -> Target:
        """Where a file can be read; nowhere where the Snapshot does not have it."""
        document = self.known.get(safe(name))
        if document is None:
            return Target()
        self.judged[document.id] = CardDocument(document.id, document.version)
        return Target(document=document.id, line=line)


def filled(sections: Iterable[CardSection]) -> tuple[CardSection, ...]:
    """The sections that say something."""
    return tuple(each for each in sections if each.rows)


def _counted(diff: str) -> str:
    """Lines added and removed by a difference."""
    lines = [each for each in diff.splitlines() if not each.startswith(("+++", "---"))]
    added = sum(each.startswith("+") for each in lines)
    removed = sum(each.startswith("-") for each in lines)
    return " ".join(filter(None, (f"+{added}" if added else "", f"−{removed}" if removed else "")))
