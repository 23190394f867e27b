"""The protocol once more, small and in another way, for tests to compare with."""

from __future__ import annotations

from acp_core.protocols.folder.schema import documents, records

GATE = "The contract is agreed"
OWNERS = {
    "proposal_submitted": {"drafting", "revising"},
    "proposal_revised": {"revising"},
    "decision_proposed": {"revising", "decision_review"},
    "question_classified": {"decision_review"},
    "readiness_passed": {"readiness_check"},
    "completed": {"readiness_check"},
    "deliverable_drafted": {"drafting", "revising", "decision_review"},
    "deliverable_revised": {"revising", "decision_review"},
    "deliverable_frozen": {"readiness_check"},
}


class Model:
    """What the protocol's table says, kept as the list of what happened."""

    def __init__(self, people: tuple[str, ...], v2: bool) -> None:
        self.people, self.v2 = people, v2
        self.past: list[
            tuple[str, str]
        ] = []  # event and author, deliverables beside the state left out
        self.count = 0
        self.phase, self.waiting, self.owner = "", [], None
        self.to_review: set[str] = set()
        self.to_accept: set[str] = set()

    def did(self, event: str) -> bool:
        return any(name == event for name, _ in self.past)

    def classified(self) -> bool:
        """Whether a classification came after the latest proposal or decision."""
        for event, _ in reversed(self.past):
            if event == "question_classified":
                return True
            if event in ("proposal_submitted", "proposal_revised", "decision_proposed"):
                return False
        return False

    def beside(self, event: str, role: str | None) -> bool:
        known = records.events_of(records.V2 if self.v2 else records.V1)
        return event not in known or (event.startswith("deliverable_") and role == "supporting")

    def legal(self, event: str, who: str, role: str | None, doc: str | None) -> bool:
        if event == "initialized":
            return self.count == 0 and who in self.people
        if self.count == 0:
            return False
        if self.beside(event, role) or event == "blocked":
            return True
        if event == "review_submitted":
            return self.phase == "reviewing" and who in self.to_review
        if event == "decision_accepted":
            return self.phase == "decision_review" and self.classified() and who in self.to_accept
        if who != self.owner or self.phase not in OWNERS[event]:
            return False
        others = [name for name in self.people if name != self.owner]
        return {
            "proposal_submitted": bool(others) and (not self.v2 or self.did("deliverable_drafted")),
            "readiness_passed": not self.v2 or self.did("deliverable_frozen"),
            "completed": self.did("readiness_passed") and doc == "conclusion.md",
            "deliverable_revised": not self.did("deliverable_frozen"),
            "deliverable_frozen": not self.did("deliverable_frozen"),
        }.get(event, True)

    def take(self, event: str, who: str, role: str | None) -> None:
        self.count += 1
        if self.beside(event, role):
            return
        self.past.append((event, who))
        if event.startswith("deliverable_"):
            return
        if event == "review_submitted":
            self.to_review -= {who}
            left, here, then = self.to_review, "reviewing", "revising"
        elif event == "decision_accepted":
            self.to_accept -= {who}
            left, here, then = self.to_accept, "decision_review", "readiness_check"
        else:
            self.enter(event, who)
            return
        self.phase, self.waiting = (here, sorted(left)) if left else (then, self.owners())
        if not left:
            self.to_review = set()

    def owners(self) -> list[str]:
        return [self.owner] if self.owner else []

    def enter(self, event: str, who: str) -> None:
        if event == "initialized" or (event == "proposal_submitted" and who in self.people):
            self.owner = who
        others = {name for name in self.people if name != self.owner}
        self.to_review = others if event == "proposal_submitted" else set()
        if event in ("proposal_submitted", "proposal_revised", "decision_proposed"):
            self.to_accept = set()
        if event == "question_classified":
            self.to_accept = set(self.people)
        waiting = {
            "proposal_submitted": sorted(others),
            "question_classified": sorted(self.people),
            "completed": [],
            "blocked": [],
        }
        self.waiting = waiting.get(event, self.owners())
        self.phase = {
            "initialized": "drafting",
            "proposal_submitted": "reviewing",
            "readiness_passed": "readiness_check",
            "completed": "completed",
            "blocked": "blocked",
        }.get(event, "decision_review")


class Texts:
    """The documents as a few switches, and what the protocol says of them."""

    def __init__(self) -> None:
        self.items: list[str] = []
        self.ready = self.gate = False
        self.outcomes: list[str] = []
        self.whole = self.placeholder = False

    def readiness(self) -> str:
        lines = [f"- {item}" for item in self.items]
        lines.append(f"- [{'x' if self.gate else ' '}] {GATE}")
        lines.append(f"- [{'x' if self.ready else ' '}] Ready to implement")
        return "\n".join(lines) + "\n"

    def conclusion(self, dialect: str) -> str:
        sections = documents.conclusion_sections(dialect)[: None if self.whole else 3]
        body = "".join(
            f"## {name}\n\nIt is {'TODO' if self.placeholder else 'so'}.\n" for name in sections
        )
        return body + "".join(f"- [{outcome}] Because.\n" for outcome in self.outcomes)

    def wrong(self, accepted: bool, passed: bool, completed: bool) -> set[str]:
        """The codes of what is wrong, given what has happened."""
        blocking = any(item.startswith("[blocking]") for item in self.items)
        open_ = any("TBD" in item or item.startswith("[unresolved]") for item in self.items)
        bare = any(
            item.startswith("[deferred_nonblocking]") and "reason:" not in item.lower()
            for item in self.items
        )
        found = set()
        if accepted or passed or completed:
            found |= {"ACP310"} if blocking else set()
            found |= {"ACP311"} if open_ else set()
            found |= {"ACP312"} if bare else set()
        if (passed or completed) and not self.ready:
            found.add("ACP313")
        if completed:
            found |= set() if self.gate else {"ACP314"}
            found |= set() if self.whole else {"ACP320"}
            found |= {"ACP323"} if self.placeholder else set()
            if len(self.outcomes) != 1:
                found.add("ACP321")
            elif self.outcomes == ["blocked"]:
                found.add("ACP322")
        elif bare:
            found.add("ACP315")
        return found
