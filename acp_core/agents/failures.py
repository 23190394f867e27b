"""Why a program could not take its turn, as one of a few classes: one table for all programs.

What a program says in fields goes before what it prints for people: the name of an error, then
its message, then a status. A message is more exact than a status: services answer 500 for a model
that they do not know. What only stands in printed lines is inferred, and marked as such. Where these
are the work of an agent, only lines that are errors as a whole count (`acp_core.agents.error_lines`).

Pure: nothing is read here, and the time is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from enum import Enum
from typing import Any, NamedTuple

from acp_core.agents import error_lines
from acp_core.agents.limits import Reset, is_near, reset_at
from acp_core.agents.state import Run

_LINE = 2_000  # characters of a line that are read


class FailureClass(str, Enum):
    """What kind of failure it is, which decides what helps.

    ``LOGIN``: the program is not logged in. ``LIMIT``: a usage limit, which is reset by itself.
    ``SERVICE``: the model service, or the way to it, is in trouble. ``MODEL``: the service does
    not know the model. ``CONTEXT``: the session has grown too large. ``CREDIT``: the account has
    no credit left. ``AGENT``: none of these: the agent's own fault, or not known.
    """

    LOGIN = "login"
    LIMIT = "limit"
    SERVICE = "service"
    MODEL = "model"
    CONTEXT = "context"
    CREDIT = "credit"
    AGENT = "agent"

    @property
    def passes(self) -> bool:
        """Whether it ends by itself: then waiting helps, and no attempt is lost."""
        return self in (FailureClass.LIMIT, FailureClass.SERVICE)

    @property
    def lasts(self) -> bool:
        """Whether another attempt fails likewise until a person has changed something."""
        return self in (FailureClass.LOGIN, FailureClass.MODEL, FailureClass.CREDIT)


@dataclass(frozen=True, slots=True)
class Report:
    """What a program said when it failed.

    Attributes:
        name: the error's name, as the program has it ("rate_limit", "ContextOverflowError").
        status: a status of HTTP, or a code of JSON-RPC; 0 where there is none.
        resets_at: when the limit is reset, where the program says so in a field.
        messages: its error messages, the most exact first.
        logged: what a program that acp knows printed beside its records, the most telling first.
        printed: what a program printed that prints text for people: only whole errors count.
    """

    name: str = ""
    status: int = 0
    resets_at: datetime | None = None
    messages: tuple[str, ...] = ()
    logged: tuple[str, ...] = ()
    printed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a program failed.

    Attributes:
        kind: the class.
        until: when the limit is reset, or the service wants to be asked again, where known. It may
            have just passed.
        reason: the words that tell it, as they came; "" where there are none.
        certain: whether the program said so itself, or it was inferred from what it printed.
        reset: ``until`` as precisely as it is known, with everything else that it may mean.
        printed: when the program said so.
    """

    kind: FailureClass
    until: datetime | None = None
    reason: str = ""
    certain: bool = True
    reset: Reset | None = None
    printed: datetime | None = None

    @property
    def is_dated(self) -> bool:
        """Whether it is known for certain until when it lasts: a field said so."""
        return self.reset is not None and self.reset.is_field


class _Row(NamedTuple):
    kind: FailureClass
    names: frozenset[str]
    statuses: frozenset[int]
    words: re.Pattern[str]


def _row(kind: FailureClass, names: str, statuses: Iterable[int], *words: str) -> _Row:
    pattern = re.compile("|".join(words), re.IGNORECASE)
    return _Row(kind, frozenset(names.split()), frozenset(statuses), pattern)


_TABLE = (
    _row(
        FailureClass.CONTEXT,
        "contextoverflowerror contextwindowexceeded context_length_exceeded prompt_too_long request_too_large",
        (413,),
        r"prompt is too long",
        r"context (?:length|window)[^.]{0,30}(?:exceed|full|too)",
        r"maximum context length",
        r"(?:exceed\w*|beyond) (?:the |this |its )?(?:model'?s )?(?:maximum |max )?(?:context|(?:number of |input )tokens)",
        r"context exceeds model limit|out of room in the (?:model's )?context",
        r"input token count\D{0,5}\d+\)? exceeds",
    ),
    _row(
        FailureClass.CREDIT,
        "billing_error insufficient_quota payment_required",
        (402,),
        r"credit balance is too low",
        r"insufficient[ _](?:quota|credits?|funds|balance)",
        r"(?:out of|no|not enough) credits?\b",
        r"quota exceeded\. check your plan",
        r"check your plan and billing",
        r"payment required",
    ),
    _row(
        FailureClass.MODEL,
        "model_not_found providermodelnotfounderror modelnotfounderror not_found_error",
        (),
        r"\bmodel\b[^.]{0,80}(?:does not exist|not found|not supported|is not available)",
        r"models?/\S{1,80} is not found",
        r"issue with the selected model",
        r"(?:unknown|invalid|unsupported) model\b",
    ),
    _row(
        FailureClass.LOGIN,
        "authentication_failed authentication_error unauthorized providerautherror auth_required oauth_org_not_allowed",
        (401, -32000),
        r"not logged in",
        r"please (?:run|use) [`'\"/]{0,2}\w* ?(?:auth )?login",
        r"\bunauthori[sz]ed\b",
        r"(?<!\w:)\b401\b",  # no line of a stack trace
        r"invalid (?:x-)?api[ _-]?key",
        r"(?:missing|no|incorrect) (?:x-)?api[ _-]?key",
        r"api[ _-]?key (?:is )?(?:missing|not configured|invalid|expired|not valid)",
        r"authentication (?:failed|required|error)",
        r"oauth token (?:has )?expired",
        r"the model service answered 401",
    ),
    _row(
        FailureClass.LIMIT,
        "rate_limit rate_limit_error usagelimitexceeded resource_exhausted",
        (429,),
        r"(?:usage|weekly|daily|monthly|session|hour|opus|spending) limit",
        r"\bhit your limit\b",
        r"\bquota\b",
        r"rate[ _-]?limit",
        r"(?<!\w:)\b429\b",
        r"too many requests",
        r"limit (?:will )?resets? (?:at|in)\b",
    ),
    _row(
        FailureClass.SERVICE,
        "server_error overloaded overloaded_error internalservererror serveroverloaded httpconnectionfailed responsestreamdisconnected responsestreamconnectionfailed responsetoomanyfailedattempts",
        (408, 500, 502, 503, 504, 520, 522, 524, 529),
        r"overloaded",
        r"high demand",
        r"(?<!\w:)\b(?:500|502|503|504|529)\b",
        r"internal server error|bad gateway|service unavailable|gateway time-?out",
        r"\b(?:ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|ENETUNREACH|EPIPE)\b",
        r"fetch failed|connection (?:error|refused|reset|timed out)|network (?:error|is unreachable)",
        r"stream disconnected|exceeded retry limit|could not resolve host|request timed out",
    ),
)
_NOT_FOUND, _UNAVAILABLE = 404, 503
_NO_ANSWER = "its model service did not answer"
_LASTING = re.compile(
    r"(?:usage|weekly|daily|monthly|session|hour|opus|spending|your) limit|\bquota\b", re.I
)


def classify(report: Report, printed: datetime, zone: tzinfo | None = None) -> Failure:
    """The class of a failure, and until when it lasts.

    Args:
        report: What the program said.
        printed: When it said so (aware).
        zone: Of a time of day that names none; by default this machine's.
    """
    kind, reason, certain = _class_of(report)
    reset = None
    if kind is FailureClass.LIMIT and report.resets_at and is_near(report.resets_at, printed):
        reset = Reset(report.resets_at, 0.0, (report.resets_at,), True)
    elif kind.passes:
        reset = reset_at(_dated(report, reason), printed, zone)
    if kind is FailureClass.LIMIT and reset is None and not _LASTING.search(reason):
        kind = FailureClass.SERVICE  # it is busy: nobody knows until when
    return Failure(kind, reset.at if reset else None, reason, certain, reset, printed)


def _dated(report: Report, reason: str) -> tuple[str, ...]:
    """The texts that may say until when: of an agent's work, only those that say nothing else."""
    lines = tuple(each for each in report.printed if error_lines.says_when(each))
    return (*report.messages, *report.logged, reason, *lines)


def _class_of(report: Report) -> tuple[FailureClass, str, bool]:
    """The class, the words that tell it, and whether the program said so itself."""
    first = next(iter(report.messages), "")
    named = _named(report.name)
    if named and named is not FailureClass.LIMIT:  # a limit's name is that of an empty account, too
        return named, first or report.name, True
    for text in report.messages:
        if found := _worded((text,)):
            return *found, True
    if kind := named or _of_status(report.status):
        return kind, first or report.name or str(report.status), True
    if found := _worded(report.logged):
        return *found, False
    for text in report.printed:
        if printed := _of_line(text):
            return printed, text, False
    return FailureClass.AGENT, first, True


def _of_line(text: str) -> FailureClass | None:
    """The class of an error that makes up a whole line; None for any other line."""
    answer = error_lines.answer_in(text)
    if kind := error_lines.kind_of(answer.message if answer else text):
        return FailureClass(kind)
    if answer is None:
        return None
    named = next(filter(None, map(_named, answer.names)), None)
    if named or not answer.status:
        return named
    found = _worded((text,))
    return found[0] if found else _of_status(answer.status)


def _named(name: str) -> FailureClass | None:
    return next((row.kind for row in _TABLE if name.lower() in row.names), None)


def _of_status(status: int) -> FailureClass | None:
    if status == _NOT_FOUND:
        return FailureClass.MODEL
    return next((row.kind for row in _TABLE if status in row.statuses), None)


def _worded(texts: Iterable[str]) -> tuple[FailureClass, str] | None:
    """The first class of the table that any of the texts tells, and that text."""
    read = [text[:_LINE] for text in texts]
    return next(
        ((row.kind, text) for row in _TABLE for text in read if row.words.search(text)), None
    )


# --- what programs say, in each form ----------------------------------------------------------


def of_run(run: Run, exits: Mapping[int, str]) -> Report | None:
    """What a program said that was run once; None where it does not claim to have failed.

    Args:
        run: How it ended.
        exits: What its exit codes mean (see `acp_core.agents.presets.Preset`).
    """
    if not (run.exit_code or run.is_error or run.unanswered):
        return None
    meaning = exits.get(run.exit_code or 0, "")
    unanswered = (run.retry_reason or _NO_ANSWER) if run.unanswered else ""
    messages = (run.error, unanswered, meaning)
    return Report(
        name=run.error_name,
        status=run.error_status or (_UNAVAILABLE if run.unanswered else 0),
        resets_at=run.resets_at,
        messages=tuple(filter(None, messages)),
        logged=() if run.error_lines is not None else tuple(reversed(run.complaints)),
        printed=tuple(reversed(run.error_lines or ())),
    )


def failure_of(run: Run, exits: Mapping[int, str], now: datetime) -> Failure:
    """Why a run ended without what was asked of it; the agent's own fault where nothing tells.

    Args:
        run: How it ended.
        exits: What its exit codes mean.
        now: The present time (aware), where it is not known when the run ended.
    """
    report = of_run(run, exits)
    return classify(report, _printed(run, now)) if report else Failure(FailureClass.AGENT)


def _printed(run: Run, now: datetime) -> datetime:
    """When a run said why it failed: its record's own time, else when the run ended.

    Where nobody saw it end, it had by the time of its last output.
    """
    end = run.ended or now
    if run.told_at is not None and run.started <= run.told_at <= end:
        return run.told_at
    unseen = run.exit_code is None and run.signal is None
    if unseen and run.last_output is not None and run.started <= run.last_output <= end:
        return run.last_output
    return end


def of_json_rpc(error: Mapping[str, Any]) -> Report:
    """What a JSON-RPC error says: its code, its message and what programs put into its data.

    Args:
        error: The ``error`` of an answer; any shape.
    """
    code, given = error.get("code"), error.get("data")
    data: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    info = data.get("codexErrorInfo")
    name, status = "", code if isinstance(code, int) else 0
    if isinstance(info, Mapping):  # {"httpConnectionFailed": {"httpStatusCode": 503}}
        name = next((key for key in info if isinstance(key, str)), "")
        inner = info.get(name)
        http = inner.get("httpStatusCode") if isinstance(inner, Mapping) else None
        status = http if isinstance(http, int) else status
    names = (info, name, data.get("errorKind"), data.get("errorName"))
    texts = (data.get("details"), data.get("message"), error.get("message"), given)
    return Report(
        name=next((each for each in names if isinstance(each, str) and each), ""),
        status=status,
        resets_at=moment(resets_in(data)),
        messages=tuple(each for each in texts if isinstance(each, str) and each),
    )


def resets_in(fields: object, depth: int = 4) -> float | None:
    """When a limit is reset, in seconds since 1970, by a field of an error; None where none says so.

    Args:
        fields: of the error; any shape.
        depth: how deep it is looked for.
    """
    if not isinstance(fields, Mapping) or depth < 0:
        return None
    for name in ("resetsAt", "resets_at"):
        at = fields.get(name)
        if isinstance(at, int | float) and not isinstance(at, bool) and 0 < at < 1e14:
            return at / 1000 if at > 1e11 else float(at)
    found = (resets_in(each, depth - 1) for each in fields.values())
    return next((each for each in found if each is not None), None)


def moment(seconds: float | None) -> datetime | None:
    """A time that a field gives in seconds since 1970; None where it is none."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
