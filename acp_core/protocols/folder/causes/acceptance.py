"""Acceptances, and what follows them, that are certain to be refused for what readiness.md says.

Source: folder protocol specification, "Readiness Gate" ("Blocking readiness items also prevent
``decision_accepted``").
"""

from __future__ import annotations

from collections.abc import Iterator

from acp_core.model import Cause, Status
from acp_core.model.text import clean_name
from acp_core.protocols.folder.causes.gates import (
    blocking,
    unreasoned,
    unresolved,
    was_refused_for,
)
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.kit.diagnosis import Case, mark


def causes(facts: Facts, case: Case) -> Iterator[Cause]:
    """What stops those who are to accept or to go on, as the matter of the one who can mend it.

    Nobody who is waited for can go on, so that it is a cause at once. A person is wanted, unless the
    owner is still to accept and its loop lives: it reads the same in its own turn.
    """
    if case.snapshot.status is not Status.ACTIVE:
        return
    machine, owner = facts.history.machine, clean_name(facts.history.machine.owner or "", 200)
    loop, turns = case.loop(owner), case.snapshot.turns
    alive = loop is not None and loop.alive
    obstacles = [each for test in (unresolved, unreasoned, blocking) for each in test(facts)]
    tried = any(was_refused_for(case, turn, each.refusal) for turn in turns for each in obstacles)
    since = min((turn.since for turn in turns if turn.since), default=None)
    accepting = machine.phase == "decision_review" and machine.classified
    so = "every acceptance is refused" if accepting else "nothing can be passed or completed"
    for each in obstacles:
        yield Cause(
            each.code,
            f"{each.headline}: {so}",
            advice=each.advice,
            evidence=each.evidence,
            wanted=tried or not (alive and machine.owner in machine.waiting),
            remedy=each.remedy,
            others=("nudge",) if alive else (),
            participant=owner or None,
            since=since,
            key=f"{each.code}:{machine.last.get('question_classified')}:{mark(each.evidence)}",
            root=True,
            document=each.document,
            line=each.line,
        )
