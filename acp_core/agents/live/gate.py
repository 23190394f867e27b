"""Answers what an agent asks: by the policy, or by a person who is asked and waited for.

Where a turn's protocol says beforehand what it may do, that is read anew at each request, so that
an answer needs nobody who watches the turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from acp_core.agents.live import answers, policy
from acp_core.agents.live.answers import ACP, Answer, OpenRequest, is_attended
from acp_core.agents.live.binding import in_force
from acp_core.agents.live.policy import Decision
from acp_core.agents.live.requests import (
    ALLOW_ONCE,
    CANCELLED,
    NOT_ALLOWED,
    REJECT_ONCE,
    PermissionRequest,
    one_by_one,
    parse,
    permitted,
    read_form,
)
from acp_core.agents.live.state import Files, Order
from acp_core.agents.loop_directory import LoopDirectory
from acp_core.agents.permissions import NAME
from acp_core.agents.progress import short
from acp_core.model.clock import utc_now
from acp_core.model.errors import AcpError
from acp_core.person.permissions import Verdict

_LOOK = 0.25  # seconds between two looks whether somebody answered


class Judged(NamedTuple):
    """What the policy makes of a request; ``turn`` says what the turn is about, for the person."""

    decision: Decision
    turn: str = ""


Judge = Callable[[PermissionRequest], Judged]
"""Decides a request; may read files, and is called in a thread."""


class Gate:
    """Takes an agent's requests for permission, and its questions.

    Args:
        order: What the runner was asked for.
        judge: The policy.
        note: Is told what was asked and answered, for the journal.
    """

    def __init__(self, order: Order, judge: Judge, note: Callable[..., None]) -> None:
        self._order = order
        self._judge = judge
        self._note = note
        self._open: dict[str, asyncio.Event] = {}

    async def answer(
        self, message: Mapping[str, Any], announced: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """The answer to a request, once there is one.

        Args:
            message: the request as it came.
            announced: the tool call as it was announced before, if it was.
        """
        request = parse(message, announced)
        if request.questions:
            said = await self._answers(request)
            return NOT_ALLOWED if said is None else permitted(request, said)
        withdrawn = self._open[request.id] = asyncio.Event()
        try:
            judged = await asyncio.to_thread(self._judge, request)
            if judged.decision.verdict is not Verdict.ASK:
                self._record(request, judged.decision)
                return self._answered(request, judged.decision.verdict, ACP, judged.decision.why)
            given = await self._ask(request, judged, withdrawn)
        finally:
            del self._open[request.id]
        if given is None:
            return NOT_ALLOWED
        return self._answered(request, given.verdict, given.by, given.message)

    async def fill_in(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a form, once there is one.

        Args:
            message: the form as it came.
        """
        form = read_form(message)
        said = await self._answers(form.request)
        return CANCELLED if said is None else form.filled_in(said)

    async def _answers(self, request: PermissionRequest) -> list[str] | None:
        """What a person answers to each question, "" for nothing; None where nobody waits for it."""
        said: list[str] = []
        withdrawn = self._open[request.id] = asyncio.Event()
        try:
            judged = await asyncio.to_thread(self._judge, request)
            if judged.decision.verdict is not Verdict.ASK:
                self._record(request, judged.decision)
                self._unanswered(request, ACP, judged.decision.why)
                return said
            for each in one_by_one(request):
                given = await self._ask(each, judged, withdrawn)
                if given is None:
                    return None
                if given.by == ACP:  # nobody came: nor would anybody for the others
                    self._unanswered(each, ACP, given.message)
                    break
                if given.message:
                    told = {"request": subject(each), "verdict": "answer", "by": given.by, "why": given.message}  # fmt: skip
                    self._note(permission=told, note=f"{given.by} answered: {given.message}")
                else:
                    self._unanswered(each, given.by, "no answer was given")
                said.append(given.message)
            return said
        finally:
            del self._open[request.id]

    def _unanswered(self, request: PermissionRequest, by: str, why: str) -> None:
        what = subject(request)
        told = {"request": what, "verdict": Verdict.REJECT.value, "by": by, "why": why}
        self._note(permission=told, refused=f"{what} ({why})")

    async def _ask(
        self, request: PermissionRequest, judged: Judged, withdrawn: asyncio.Event
    ) -> Answer | None:
        """Have a person decide, and wait for that; None where the agent does not wait for it."""
        order = self._order
        attended = await asyncio.to_thread(is_attended, utc_now())
        opened = answers.publish(
            order.folder,
            order.participant,
            request,
            attended=attended,
            turn=judged.turn,
            program=order.title,
            ends_turn=order.rejection_ends_turn,
            why=judged.decision.why,
        )
        what = "answer" if request.questions else "permission"
        self._note(note=f"waits for a person's {what}")
        given: Answer | None = None
        try:
            given = await _given(opened, withdrawn)
        finally:
            answers.close(opened, given)
        return given

    def _answered(
        self, request: PermissionRequest, verdict: Verdict, by: str, why: str
    ) -> dict[str, Any]:
        allowed = verdict is Verdict.ALLOW
        what = subject(request)
        told = {"request": what, "verdict": verdict.value, "by": by, "why": why}
        if not allowed:
            self._note(permission=told, refused=f"{what} ({why})" if why else what)
        elif by == ACP:
            self._note(permission=told)
        else:
            self._note(permission=told, note=f"{by} allowed it: {what}")
        option = request.option(ALLOW_ONCE if allowed else REJECT_ONCE)
        if option is None:
            return NOT_ALLOWED
        return {"outcome": {"outcome": "selected", "optionId": option.id}}

    def _record(self, request: PermissionRequest, decision: Decision) -> None:
        order, state = self._order, decision.verdict.value
        answers.record(
            order.folder, order.participant, request, state, ACP, utc_now(), decision.why
        )

    def withdraw(self, request: str | None = None) -> None:
        """Take back open requests: the agent does not wait for them any more.

        Args:
            request: the id of one; None for all.
        """
        for name, withdrawn in self._open.items():
            if request in (None, name):
                withdrawn.set()


async def _given(opened: OpenRequest, withdrawn: asyncio.Event) -> Answer | None:
    """The answer of a person; None where the request is withdrawn before."""
    while not withdrawn.is_set():
        found = await asyncio.to_thread(answers.taken, opened, utc_now())
        if found is not None:
            return found
        try:
            await asyncio.wait_for(withdrawn.wait(), _LOOK)
        except TimeoutError:
            continue
    return None


def subject(request: PermissionRequest) -> str:
    """What a request is about, in one line."""
    if request.questions:
        return short(request.questions[0].text)
    if request.command is not None:
        return short(request.command)
    if request.tool:
        return short(f"{request.server}: {request.tool}")
    what = ", ".join(request.locations) or request.title
    return short(f"{request.kind}: {what}" if request.kind else what)


def judge_of(order: Order) -> Judge:
    """The policy for the turns of a participant."""
    files = Files(LoopDirectory(Path(order.place)))

    def judge(request: PermissionRequest) -> Judged:
        scope = files.load_scope()
        if scope is None:
            return Judged(policy.Decision(Verdict.ASK, "no policy applies here"))
        within = policy.Scope(
            folder=order.folder,
            participant=order.participant,
            documents=scope.documents,
            drafts=str(LoopDirectory(Path(order.place)).drafts),
            folders=scope.folders,
            kept=scope.kept,
            confined=scope.confined,
            server=NAME if scope.tools else "",
            tools=frozenset(scope.tools),
        )
        try:
            allowed = in_force(scope.permissions)
            return Judged(policy.decide(request, within, allowed), scope.what)
        except (AcpError, OSError) as error:
            why = f"the policy cannot decide: {error}"
            return Judged(policy.Decision(Verdict.ASK, why), scope.what)

    return judge
