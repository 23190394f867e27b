"""What the validator says, by document; the selected finding says why, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from textual.binding import BindingType
from textual.message import Message
from textual.reactive import var

from acp_core.cli.signs import SEVERITY
from acp_core.model import Finding, Severity, Snapshot, Target, Verdict
from acp_core.model.format import count, grouped
from acp_tui import keys
from acp_tui.widgets.pane import PaneData
from acp_tui.widgets.row_list import Item, RowList

ABOVE, BELOW = "see the red line at the top", "see Next"
ORDER = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.ADVICE: 2}


class Findings(RowList):
    """The findings, those of each document together, the worst first."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.FINDINGS]

    @dataclass
    class FixWanted(Message):
        """The user wants to run the action that a finding names."""

        action: str
        given: tuple[tuple[str, str], ...] = ()

    @dataclass
    class CopyWanted(Message):
        """The user wants a finding in the clipboard."""

        what = "the finding"

        text: str

    data: var[PaneData | None] = var(None, always_update=True)
    """What to show."""
    called: var[Callable[[str], str]] = var(lambda: str, init=False, always_update=True)
    """What an action is called, by its name; set again where that is another name now."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(wrapped=True, id=id)
        self._findings: dict[str, Finding] = {}

    def watch_data(self, before: PaneData | None, data: PaneData | None) -> None:
        """Show the findings of a Snapshot, where they are other ones."""
        if data is not None and (before is None or _parts(before) != _parts(data)):
            self._draw(data)

    def watch_called(self) -> None:
        """Show what actions are called."""
        if self.data is not None:
            self._draw(self.data)

    def _draw(self, data: PaneData) -> None:
        snapshot = data.snapshot
        self._findings = {key(finding): finding for finding in snapshot.findings}
        titles = {document.id: document.title for document in snapshot.documents}
        self.empty = empty(snapshot.verdict)
        self.items = tuple(items(snapshot.findings, titles, self.called, _said_elsewhere(data)))

    @property
    def finding(self) -> Finding | None:
        """The selected finding."""
        item = self.selected
        return None if item is None else self._findings.get(item.key)

    def go_to(self, finding: Finding) -> None:
        """Select a finding."""
        wanted = key(finding)
        for index, item in enumerate(self.items):
            if item.key == wanted:
                self.select(index)
                return

    def action_fix(self) -> None:
        """Run the action that the selected finding names."""
        finding = self.finding
        if finding is not None and finding.action:
            self.post_message(self.FixWanted(finding.action, finding.given))

    def action_copy(self) -> None:
        """Copy the selected finding."""
        finding = self.finding
        if finding is not None:
            self.post_message(self.CopyWanted(as_text(finding)))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer a fix only where the finding has one; elsewhere the key is that of the screen."""
        if action == "fix":
            finding = self.finding
            return finding is not None and bool(finding.action)
        return True


def _parts(data: PaneData) -> tuple[object, ...]:
    """What shows of a Snapshot, to be compared."""
    snapshot = data.snapshot
    titles = [document.title for document in snapshot.documents]
    return snapshot.findings, snapshot.verdict, _said_elsewhere(data), titles


def _said_elsewhere(data: PaneData) -> dict[str, str]:
    """By the message of a finding that is a need, too: where the screen says it."""
    messages = {finding.message for finding in data.snapshot.findings}
    return {
        need.sentence: ABOVE if need == data.need else BELOW
        for need in reversed(data.snapshot.needs)
        if need.sentence in messages
    }


def title(snapshot: Snapshot | None) -> str:
    """What the pane is called: with how many there are of each severity."""
    if snapshot is None or not snapshot.findings:
        return "Findings"
    counts = ((severity, snapshot.count(severity)) for severity in ORDER)
    words = [
        f"{grouped(n)} {s.value}" if s is Severity.ADVICE else count(n, s.value)
        for s, n in counts
        if n
    ]
    return f"Findings · {', '.join(words)}"


def empty(verdict: Verdict) -> str:
    """What to say where there is no finding."""
    if verdict is Verdict.UNKNOWN:
        return "Not validated yet."
    return "No findings."


def items(
    findings: Sequence[Finding],
    titles: dict[str, str],
    called: Callable[[str], str] = str,
    elsewhere: Mapping[str, str] = MappingProxyType({}),
) -> list[Item]:
    """The findings under the documents that they speak of, the worst document first.

    Args:
        findings: What the validator says.
        titles: The documents' titles, by id.
        called: What an action is called, by its name.
        elsewhere: Where the screen says a message already: of such a finding only its code shows.
    """
    groups: dict[str | None, list[int]] = {}
    for number, finding in enumerate(findings):
        groups.setdefault(finding.document, []).append(number)

    def worst(numbers: list[int]) -> int:
        return min(ORDER[findings[number].severity] for number in numbers)

    rows: list[Item] = []
    ordered = sorted(groups.items(), key=lambda group: (worst(group[1]), group[1][0]))
    for document, numbers in ordered:
        name = "the collaboration" if document is None else document
        title = titles.get(document or "", name)
        if not name.endswith(title):  # else the path says it
            name = f"{title} ({name})"
        rows.append(Item(((name, "muted"),), heading=True, path=True))
        numbers.sort(key=lambda n: (ORDER[findings[n].severity], findings[n].line or 0, n))
        rows += [_item(findings[number], called, elsewhere) for number in numbers]
    return rows


def as_text(finding: Finding) -> str:
    """A finding as one line: what a compiler would print, and the remedy."""
    where = finding.document or ""
    if finding.line:
        where += f":{finding.line}"
    parts = [where, finding.severity.value, finding.code, finding.message]
    return ": ".join(part for part in parts if part)


def key(finding: Finding) -> str:
    """What tells a finding from others, also when others come and go."""
    return f"{finding.code} {finding.document} {finding.line} {finding.event} {finding.message}"


SEVERITY_COLOURS: Mapping[Severity, str] = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.ADVICE: "muted",
}


def _item(finding: Finding, called: Callable[[str], str], elsewhere: Mapping[str, str]) -> Item:
    colour = SEVERITY_COLOURS[finding.severity]
    place = f"{finding.line} " if finding.line else ""
    details = []
    if finding.explanation:
        details.append((finding.explanation, "muted"))
    if finding.remedy and finding.message not in elsewhere:  # else Next and Why say it
        details.append((f"→ {finding.remedy}", "primary"))
    if finding.action:
        details.append((f"f: {called(finding.action)}", "accent"))
    target = Target(document=finding.document, line=finding.line)
    if finding.document is None and finding.event is not None:
        target = Target(event=finding.event)
    return Item(
        (
            (f"{SEVERITY[finding.severity]} ", colour),
            (f"{finding.code} ", colour),
            (place, "muted"),
            (elsewhere[finding.message], "muted")
            if finding.message in elsewhere
            else (finding.message, ""),
        ),
        tuple(details),
        target,
        key=key(finding),
        full=finding.message,
    )
