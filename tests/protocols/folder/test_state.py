"""The state machine against a small model that was written for itself, and its sentences."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from acp_core.protocols.folder.read.facts import Pairing
from acp_core.protocols.folder.read.log import History
from acp_core.protocols.folder.rules import checks
from acp_core.protocols.folder.schema import documents, records
from acp_core.protocols.folder.schema.records import Entry
from acp_core.protocols.folder.state import Machine, derive
from tests.protocols.folder.small_model import GATE, Model, Texts

PEOPLE = ("ann", "ben", "cy")
EVENTS = (*records.EVENTS_V2, "abandoned")


ITEMS = (
    "[resolved] Who starts?",
    "[resolved] Fixed the TBD wording",
    "[deferred_nonblocking] Metrics",
    "[deferred_nonblocking] Metrics. REASON: later",
    "[blocking] No access",
    "[unresolved] Which port?",
    "[open] Which colour?",
)


def entry(seq: int, who: str, event: str, role: str | None = None, doc: str | None = None) -> Entry:
    at = f"2026-01-02T03:{seq // 60 % 60:02}:{seq % 60:02}Z"
    return Entry(seq, seq, who, event, at, "Said so.", doc, seq - 1 or None, role, None, None)


class Protocol(RuleBasedStateMachine):
    """Any events by anybody, legal ones more often, while the documents change."""

    @initialize(v2=st.booleans(), people=st.sampled_from([PEOPLE, PEOPLE[:2], PEOPLE[:1]]))
    def begin(self, v2: bool, people: tuple[str, ...]) -> None:
        self.dialect = records.V2 if v2 else records.V1
        self.model = Model(people, v2)
        self.history = History(people, self.dialect)
        self.texts = Texts()
        self.seen: set[str] = set()
        self.illegal = 0

    def append(self, event: str, who: str, role: str | None, doc: str | None) -> None:
        made = entry(self.model.count + 1, who, event, role, doc)
        expected = self.model.legal(event, who, role, doc)
        machine = self.history.machine
        assert (machine.problems(made) == []) is expected, machine.problems(made)
        untouched = machine.copy()
        self.history.feed([made])
        assert (untouched.phase, untouched.waiting) == (self.model.phase, self.model.waiting)
        self.model.take(event, who, role)
        self.seen.add(event)
        self.illegal += not expected

    @rule(data=st.data())
    def somebody_keeps_to_the_rules(self, data: st.DataObject) -> None:
        moves = [
            (event, who, role, doc)
            for event in EVENTS
            for who in self.model.people
            for role in (("primary", "supporting") if event.startswith("deliv") else (None,))
            for doc in (("conclusion.md",) if event == "completed" else (None,))
            if event != "blocked" and self.model.legal(event, who, role, doc)
        ]
        if moves:
            self.append(*data.draw(st.sampled_from(moves)))

    @rule(
        event=st.sampled_from(EVENTS),
        who=st.sampled_from((*PEOPLE, "ghost")),
        role=st.sampled_from(("primary", "supporting", None)),
        doc=st.sampled_from(("conclusion.md", None)),
    )
    def somebody_does_anything(
        self, event: str, who: str, role: str | None, doc: str | None
    ) -> None:
        self.append(event, who, role, doc)

    @rule(
        items=st.lists(st.sampled_from(ITEMS), max_size=3),
        switches=st.tuples(*[st.booleans()] * 4),
        outcomes=st.lists(st.sampled_from(documents.OUTCOMES), max_size=2),
    )
    def somebody_edits(
        self, items: list[str], switches: tuple[bool, ...], outcomes: list[str]
    ) -> None:
        texts = self.texts
        texts.items, texts.outcomes = items, outcomes
        texts.ready, texts.gate, texts.whole, texts.placeholder = switches

    @invariant()
    def the_state_is_that_of_the_model(self) -> None:
        if not hasattr(self, "model"):
            return
        machine = self.history.machine
        assert machine.phase == self.model.phase
        assert machine.owner == self.model.owner
        assert machine.waiting == self.model.waiting == list(machine.waits)
        assert machine.classified is self.model.classified()
        assert len(machine.illegal) == self.illegal
        if machine.phase in ("completed", "blocked"):
            assert machine.waiting == []

    @invariant()
    def the_documents_are_judged_as_the_model_says(self) -> None:
        if not hasattr(self, "model"):
            return
        facts: Any = SimpleNamespace(
            history=self.history,
            dialect=self.dialect,
            protocol={"completionGates": [GATE]},
            readiness=documents.scan_readiness(self.texts.readiness()),
            conclusion=documents.scan_conclusion(self.texts.conclusion(self.dialect)),
            review=None,
            pairing=Pairing(),
        )
        found = {f.code for check in checks.DOCUMENT_RULES for f in check(facts)}
        expected = self.texts.wrong(
            "decision_accepted" in self.seen,
            "readiness_passed" in self.seen,
            "completed" in self.seen,
        )
        assert found == expected


PATIENT = settings(
    stateful_step_count=14, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


class TestProtocol(Protocol.TestCase):
    settings = settings(PATIENT, max_examples=80)


@pytest.mark.slow
class TestProtocolForLong(Protocol.TestCase):
    settings = settings(PATIENT, max_examples=1_000)


@settings(max_examples=400, deadline=None)
@given(
    st.booleans(),
    st.lists(
        st.tuples(
            st.sampled_from(EVENTS),
            st.sampled_from((*PEOPLE, "ghost")),
            st.sampled_from(("primary", "supporting", None)),
        ),
        max_size=25,
    ),
)
def test_whatever_a_log_holds_the_state_follows_from_it_as_in_the_model(
    v2: bool, steps: list[tuple[str, str, str | None]]
) -> None:
    dialect = records.V2 if v2 else records.V1
    model = Model(PEOPLE, v2)
    log, illegal = [], []
    for number, (event, who, role) in enumerate(steps, 1):
        log.append(entry(number, who, event, role))
        if not model.legal(event, who, role, None):
            illegal.append(str(number))
        model.take(event, who, role)
    machine, problems = derive(log, PEOPLE, dialect)
    assert (machine.phase, machine.owner, machine.waiting) == (
        model.phase,
        model.owner,
        model.waiting,
    )
    assert machine.illegal == illegal
    assert list(dict.fromkeys(e.name for e, _ in problems)) == illegal
    stays = machine.stays
    assert all(a.left_seq == b.seq and a.phase != b.phase for a, b in pairwise(stays))
    assert machine.phase == (stays[-1].phase if stays else "")


# --- the sentences, which callers match ----------------------------------------------------


def after(
    *steps: tuple[str, str], people: tuple[str, ...] = PEOPLE, dialect: str = "v1"
) -> Machine:
    machine = Machine(people, dialect)
    for number, (who, event) in enumerate(steps, 1):
        machine.feed(entry(number, who, event, "primary" if "deliv" in event else None))
    return machine


START = (("ann", "initialized"),)
SUBMITTED = (*START, ("ann", "proposal_submitted"))
REVIEWED = (*SUBMITTED, ("ben", "review_submitted"), ("cy", "review_submitted"))


@pytest.mark.parametrize("dialect", ["v1", "v2"])
def test_nothing_is_allowed_before_the_first_event(dialect: str) -> None:
    for event in EVENTS:
        if event != "initialized":
            found = Machine(PEOPLE, dialect).problems(entry(1, "ann", event, "supporting"))
            assert [(each.code, each.text) for each in found] == [
                ("ACP401", f"seq 1: {event} is not allowed from phase none")
            ]


def test_another_round_of_review_begins_from_revising() -> None:
    machine = after(*REVIEWED, ("ann", "proposal_submitted"))
    assert (machine.phase, machine.round, machine.waiting) == ("reviewing", 2, ["ben", "cy"])
    assert [(stay.phase, stay.round) for stay in machine.stays] == [
        ("drafting", 1),
        ("reviewing", 1),
        ("revising", 1),
        ("reviewing", 2),
    ]


def test_since_when_somebody_is_waited_for() -> None:
    machine = after(*SUBMITTED, ("ben", "review_submitted"))
    assert machine.waits["cy"].seq == 2
