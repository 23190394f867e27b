"""The act by which a person answers a program's request for permission."""

from __future__ import annotations

import os
from datetime import datetime

from acp_core.agents.live import answers
from acp_core.agents.live.answers import OpenRequest
from acp_core.agents.live.inside import refuse_inside_a_session
from acp_core.agents.live.requests import ALLOW_ONCE
from acp_core.files.owners import account
from acp_core.loops.acts.ending import within
from acp_core.loops.acts.table import ANSWER
from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.person.permissions import Verdict
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.diagnosis import safe_id
from acp_core.protocols.kit.values import Values

_PATIENCE = 2.0  # seconds for the session to take the answer


def bind_answer(context: Context, now: datetime) -> Action:
    """Answer a request as it is now: another one in its place is refused."""
    shown = {each.id: each for each in answers.waiting(context.key)}
    labels = {id: f"{safe_id(each.participant)}: {_about(each)}" for id, each in shown.items()}

    def chosen(values: Values) -> OpenRequest:
        opened = shown.get(values.request)
        if opened is None:
            raise Refused("this request is no longer open")
        allows = Verdict(values.verdict) is Verdict.ALLOW
        if allows and (opened.request.questions or opened.request.option(ALLOW_ONCE) is None):
            raise Refused("the agent offers no way to allow this once")
        return opened

    def preview(values: Values) -> Preview:
        opened = chosen(values)
        what = "is allowed, once" if values.verdict == Verdict.ALLOW else "is rejected"
        if opened.request.questions:
            message = clean_line(values.message)
            what = f"is answered with “{message}”" if message else "gets no answer"
        return Preview(f"{safe_id(opened.participant)}'s request {what}: {_about(opened)}")

    def perform(values: Values) -> Outcome:
        refuse_inside_a_session()
        opened, verdict = chosen(values), Verdict(values.verdict)
        answers.answer(opened, verdict, account(os.getuid()), utc_now(), values.message.strip())
        done = "Allowed once." if verdict is Verdict.ALLOW else "Rejected."
        if opened.request.questions:
            done = "Answered." if values.message.strip() else "Not answered."
        if within(lambda: not answers.is_published(opened), _PATIENCE):
            return Outcome(OutcomeState.DONE, done)
        return Outcome(OutcomeState.REQUESTED, f"{done} The agent has not taken the answer yet.")

    return bound(
        ANSWER,
        context,
        preview,
        perform,
        narrowed={
            "request": {
                "choices": tuple(shown),
                "labels": labels,
                "default": next(iter(shown)) if len(shown) == 1 else None,
            }
        },
        offered=bool(shown),
    )


def _about(opened: OpenRequest) -> str:
    request = opened.request
    if request.questions:
        return clean_line(request.questions[0].text, 120)
    paths = ", ".join(request.locations)
    return clean_line(request.command or request.tool or paths or request.title, 120)
