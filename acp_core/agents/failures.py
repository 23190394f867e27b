"""Why a program could not take its turn, as one of a few classes: one table for all programs.

What a program says in fields goes before what it prints for people: the name of an error, then
its message, then a status. A message is more exact than a status: services answer 500 for a model
that they do not know. What only stands in printed lines is inferred, and marked as such. Printed
lines are the work of an agent, which may be about errors, limits and logins: a line counts only
where it is such an error as a whole, behind a time, a level or the name of an error.

When a limit is reset, no program promises to print in these words: whatever is not understood gives
no time at all. A time is read relative to the moment when it was printed, and as precisely as it
was printed. Pure: nothing is read here, and the time is given.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from enum import Enum
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from acp_core.agents.state import Run

LONGEST = timedelta(days=32)  # a monthly limit; what lies further ahead was misunderstood

RECENT = timedelta(minutes=15)  # so long after it, a printed time of day is still today's

STALE = timedelta(days=1)  # a whole date that is further past tells nothing

_LINE = 2_000  # characters of a line that are read

_BEFORE = r"(?:resets?|try again|retry(?:ing)?|available(?: again)?|retry[- ]after)"

_FIELD = re.compile(r"\bresets_?at\W{1,3}\s*(\d{10})(?:\d{3})?(?!\d)", re.I)

_FIELD_IN = re.compile(r"\bresets_?in_?seconds\W{1,3}\s*(\d{1,7})(?!\d)", re.I)

_EPOCH = re.compile(r"limit reached\s*\|\s*(\d{10})(?:\d{3})?(?!\d)", re.I)

_SPAN = re.compile(
    rf"(?:{_BEFORE}|\bwait)"
    r"(?: +in| +after|:)? *((?:\d{1,6}(?:\.\d{1,9})? ?[a-z]+,? ?(?:and )?){1,4})",
    re.I,
)

_PIECE = re.compile(
    r"(\d+(?:\.\d+)?) ?(days?|d|hours?|hrs?|hr|h|minutes?|mins?|min|m|seconds?|secs?|sec|s|ms)(?![a-z])",
    re.I,
)

_MINUTES = re.compile(r"m(?:in|$)", re.I)

_SECONDS = re.compile(r"retry[- ]after\"?[:=]? *\"?(\d{1,6})\b(?! ?[a-z:-])", re.I)

_WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b"

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b"
)

_NAMED = f"{_WEEKDAY}|{_MONTH}"

_WORD = (
    rf"(?:{_NAMED}|\d{{4}}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{{1,9}})?)?)?"
    r"|\d{1,2}:\d\d(?::\d\d)?|20\d\d\b|\d{1,2}(?:st|nd|rd|th)?(?!\d)"
    r"|[ap]m\b|at\b|on\b|z\b|[+-]\d\d:?\d\d\b)"
)

_DATE = re.compile(
    rf"{_BEFORE}\W{{0,3}}({_WORD}(?:[ ,]{{0,2}}{_WORD}){{0,8}})"
    r"(?:\s*\(([A-Za-z_/+-]{1,40})\)|\s+((?-i:[A-Z]{2,4})|utc|gmt)\b)?",
    re.I,
)

_EXACT = re.compile(rf"{_NAMED}|:\d\d|[ap]m\b|\d-\d", re.I)

_CLOCK = re.compile(r"(?<![+-])\b\d{1,2}:\d\d(:\d\d(\.\d)?)?")  # no offset of a zone

_UNITS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}

_ZONES = {"UTC": "UTC", "GMT": "UTC", "Z": "UTC"} | {
    name: zone
    for letter, zone in {
        "E": "America/New_York",
        "C": "America/Chicago",
        "M": "America/Denver",
        "P": "America/Los_Angeles",
    }.items()
    for name in (f"{letter}T", f"{letter}ST", f"{letter}DT")
}


class Reset(NamedTuple):
    """When a limit is reset.

    Attributes:
        at: the moment that was printed; it may have just passed.
        width: seconds from there to the end of what was printed: 60 for a minute, 1 for a second;
            0 for a whole hour or a day, which begins then, and for what is exact.
        readings: every moment that the same words may mean, ``at`` among them; none where they count
            from when they were printed ("in 5 minutes").
        is_field: it stood in a field that is made for it, not in a text for people.
    """

    at: datetime
    width: float = 0.0
    readings: tuple[datetime, ...] = ()
    is_field: bool = False


def reset_at(lines: Iterable[str], printed: datetime, zone: tzinfo | None = None) -> Reset | None:
    """When the limit that these lines are about is reset; None where they do not say so.

    Args:
        lines: What a program printed, what is most telling first. Fields in them go before texts.
        printed: When that was printed (aware).
        zone: Of a time of day that names none; by default this machine's.
    """
    read = [line[:_LINE] for line in lines]
    for line in read:
        for reset in _fields_in(line, printed):
            if is_near(reset.at, printed):
                return reset
    for line in read:
        for reset in _texts_in(line, printed, zone):
            if is_near(reset.at, printed):
                return reset
    return None


def is_near(at: datetime, printed: datetime) -> bool:
    """Whether a limit may be reset at this moment, or was a short time ago."""
    return -STALE <= at - printed <= LONGEST


def _fields_in(line: str, printed: datetime) -> Iterator[Reset]:
    if match := _FIELD.search(line):
        at = datetime.fromtimestamp(int(match[1]), UTC)
        yield Reset(at, 0.0, (at,), True)
    if match := _FIELD_IN.search(line):
        yield Reset(printed + timedelta(seconds=int(match[1])), is_field=True)


def _texts_in(line: str, printed: datetime, zone: tzinfo | None) -> Iterator[Reset]:
    if match := _EPOCH.search(line):
        at = datetime.fromtimestamp(int(match[1]), UTC)
        yield Reset(at, 1.0, (at,))
    if match := _DATE.search(line):
        readings = _dates(match, printed, zone)
        if meant := nearest(readings, printed):
            yield Reset(meant, _width(match[1]), readings)
    if match := _SPAN.search(line):
        pieces = _PIECE.findall(match[1])
        if seconds := sum(_length(*piece) for piece in pieces):
            at = printed + timedelta(seconds=seconds)
            yield Reset(at, 60.0 if _MINUTES.match(pieces[-1][1]) else 0.0)
    if match := _SECONDS.search(line):
        yield Reset(printed + timedelta(seconds=int(match[1])))


def _length(number: str, unit: str) -> float:
    return 0.0 if unit.lower() == "ms" else float(number) * _UNITS[unit[0].lower()]


def _width(text: str) -> float:
    """Seconds that the last printed field of a date lasts, where it is a minute or a second."""
    clock = _CLOCK.search(text.upper().replace("T", " "))
    if clock is None or clock[2]:
        return 0.0
    return 1.0 if clock[1] else 60.0


def nearest(readings: Iterable[datetime], printed: datetime) -> datetime | None:
    """The one of several readings that is meant: the next, or one that has just passed."""
    near = [each for each in sorted(readings) if is_near(each, printed)]
    ahead = [each for each in near if each >= printed - RECENT]
    return ahead[0] if ahead else near[-1] if near else None


def _dates(match: re.Match[str], printed: datetime, zone: tzinfo | None) -> tuple[datetime, ...]:
    """The moments that a printed date may be, in order: the day or the year may be missing."""
    from dateutil import parser  # late: only where a limit was reached

    text, name = match[1], match[2] or match[3]
    if not _EXACT.search(text):
        return ()  # a bare number is no date
    if name:
        try:
            zone = ZoneInfo(_ZONES.get(name.upper(), name))
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return ()
    found = set()
    for day in _days(text, printed.astimezone(zone)):
        try:
            read = parser.parse(text, default=day, tzinfos={"Z": UTC})
        except (ValueError, OverflowError):
            continue
        for fold in (0, 1):  # an hour of the night may come twice
            try:
                local = read.replace(fold=fold) if read.tzinfo is None else read
                aware = local.replace(tzinfo=zone) if zone and not local.tzinfo else local
                found.add(aware.astimezone(UTC))
            except (ValueError, OverflowError, OSError):
                continue
    return tuple(sorted(found))


def _days(text: str, printed: datetime) -> Iterator[datetime]:
    """The days from which a date takes the fields that it lacks."""
    today = printed.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    yield today
    if re.search(rf"{_MONTH}|\d-\d", text, re.I):
        for years in (-1, 1):
            yield today.replace(year=today.year + years, day=min(today.day, 28))
        return
    for days in (-1, 1, 7) if re.search(_WEEKDAY, text, re.I) else (-1, 1):
        yield today + timedelta(days=days)


_LEAD = re.compile(
    r"(?:[^\w\[{]+|\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?\s+|\[?(?:ERROR|FATAL|WARN(?:ING)?)\]?:?\s+"
    r"|(?!Assertion)(?:[\w.]{0,80}(?:Error|Exception)|api error|http error|stream error|error|fatal)"
    r"(?: \(?\d{3}\)?)?(?::\s+| - )|\d: )",
    re.I,
)

_MOST_LEADS = 6

_BRACKETS = re.compile(r"\[(api error: .*)\]", re.I)

_OBJECT = re.compile(r"(?:(?:http )?([45]\d\d)\b[^{]{0,60})?(\{.*\})", re.I | re.S)

_END = r"\s*(?:[.!,:;|·(\[{—-].*)?"

_PRODUCT = r"(?:(?:the|your|this) )?(?-i:(?:[A-Z][\w-]* ){0,3})"


def _forms(*forms: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{each})" for each in forms), re.I | re.S)


_FORMS = {
    "context": _forms(
        rf"prompt is too long{_END}",
        r"(?:this|the) model'?s? maximum context length (?:is|of) .*",
        r"(?:your |the )?(?:estimated chat |input |prompt |context )?[\w ]{0,40}exceed\w* (?:the |this )"
        r"(?:[\w,]+ token limit|(?:model'?s? )?(?:maximum |max )?(?:context (?:length|window|limit)"
        r"|number of (?:input )?tokens))\b.*",
        r"your estimated chat context of [\d,]+ tokens exceeds .*",
    ),
    "credit": _forms(
        rf"(?:your )?credit balance (?:is )?too low{_END}",
        rf"insufficient (?:quota|credits?|funds|balance){_END}",
        rf"(?:you are |you're |you have |your \w+ is |your \w+ has )?(?:out of|no|not enough) credits?"
        rf"(?: left| remaining)?{_END}",
        r"quota exceeded\. check your plan.*",
        r"you exceeded your current quota, please check your plan.*",
        rf"(?:402:? )?payment required{_END}",
    ),
    "model": _forms(
        r"(?:the |requested )?model [`'\"]?[\w./:@-]+[`'\"]? (?:does not exist|(?:is |was )?not found"
        rf"|is not supported|is not available)(?: or you do not have access to it| for .*)?{_END}",
        r"models?/\S{1,80} is not found.*",
        r"there's an issue with the selected model.*",
        rf"(?:unknown|invalid|unsupported) model(?:: ?| (?=[`'\"]))[`'\"]?[\w./:@-]+[`'\"]?{_END}",
    ),
    "login": _forms(
        rf"(?:you are |you're )?not logged in{_END}",
        r"please (?:run|use) [`'\"/]{0,2}(?:\w+ )?(?:auth )?login\b.*",
        r"please set an auth method in .*",
        rf"(?:(?:http |status )?401:? )?unauthori[sz]ed{_END}",
        r"unexpected status 401 .*",
        rf"(?:invalid|incorrect|missing|no) (?:x-)?api[ _-]?key(?: provided| found| given)?{_END}",
        rf"(?:\w+ )?api[ _-]?key (?:is )?(?:missing|not configured|invalid|expired|not valid|not found){_END}",
        rf"(?:api )?authentication (?:failed|required){_END}",
        rf"(?:your |the )?(?:oauth |access |api )?token (?:has )?expired{_END}",
        rf"no authentication information found{_END}",
        r"the model service answered 401\b.*",
    ),
    "limit": _forms(
        r"(?:sorry, )?you(?:'|’| ha)ve (?:hit|reached|exceeded|exhausted) (?:a|the|your)"
        r"(?: [\w-]+){0,4} (?:limit|quota|capacity)\b.*",
        r"you exceeded your current quota.*",
        rf"{_PRODUCT}(?:usage|weekly|daily|monthly|session|hourly|rate|request|spending|opus|\d+-hour)"
        rf"[ _-]limit (?:was |has been )?(?:reached|exceeded|hit){_END}",
        rf"{_PRODUCT}(?:(?:request|daily|free|current|api) ){{0,2}}quota (?:exceeded|exhausted){_END}",
        rf"(?:http |status |http/[\d.]+ )?429:? too many requests{_END}",
        rf"too many requests{_END}",
        r"number of (?:request )?tokens has exceeded your .*",
        r"(?:your )?(?:[\w-]+ )?(?:limit|quota) (?:will )?resets? (?:at|in|on) .*",
        rf"\[?resource_exhausted\]?(?: error)?{_END}",
        rf"(?:failed to send the request: )?(?:an unknown error occurred: )?throttlingexception{_END}",
    ),
    "service": _forms(
        r"(?:http |status |http/[\d.]+ )?(?:5\d\d):? (?:internal server error|bad gateway|service unavailable"
        rf"|gateway time-?out|overloaded(?:_error)?){_END}",
        rf"(?:internal server error|bad gateway|service unavailable|gateway time-?out|overloaded){_END}",
        rf"the api provider's servers are down or overloaded{_END}",
        r"(?:we(?:'|’)re|[\w. -]{1,40} is) (?:currently )?(?:experiencing high (?:demand|load)|overloaded)\b.*",
        rf"(?:[\w.-]+ )?model is (?:at capacity|overloaded){_END}",
        rf"(?:connection|network) (?:error|refused|reset(?: by peer)?|timed out){_END}",
        rf"network is unreachable{_END}",
        rf"(?:typeerror: )?fetch failed{_END}",
        rf"request timed out{_END}",
        r"could not resolve host\b.*",
        rf"stream disconnected(?: before completion)?{_END}",
        r"exceeded retry limit, last status.*",
        r"(?:[\w ]{0,40}, reason: )?(?:connect |getaddrinfo |read |write )?"
        r"(?:ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|ENETUNREACH|EPIPE)\b.*",
    ),
}

_AGAIN = re.compile(
    r"\W*(?:please |your [\w-]* ?(?:limit|quota) (?:will )?)?(?:resets?|try again|retry|available)\b.*",
    re.I | re.S,
)


def kind_of(line: str) -> str:
    """The class of failure that a printed line is, as `FailureClass` names it; "" for any other line."""
    body = _without_leads(line)
    for kind, forms in _FORMS.items():
        if forms.fullmatch(body):
            return kind
    return ""


def says_when(line: str) -> bool:
    """Whether a line says nothing but when something is possible again."""
    return _AGAIN.fullmatch(line[:_LINE].strip()) is not None


class Answer(NamedTuple):
    """A service's answer that makes up a whole line.

    Attributes:
        status: that stands before it; 0 where none does.
        names: of its error; ``message`` what it says.
    """

    status: int
    names: tuple[str, ...]
    message: str


def answer_in(line: str) -> Answer | None:
    """The answer of a service that makes up a whole line; None where none does."""
    match = _OBJECT.fullmatch(_without_leads(line))
    if match is None:
        return None
    try:
        answer = json.loads(match[2])
    except (ValueError, RecursionError):
        return None
    inner = answer.get("error")
    error = inner if isinstance(inner, dict) else answer
    if error is answer and not match[1]:
        return None  # any other object
    names = [error.get(each) for each in ("type", "code", "status")]
    message = error.get("message")
    return Answer(
        int(match[1] or 0),
        tuple(each for each in names if isinstance(each, str)),
        message if isinstance(message, str) else "",
    )


def _without_leads(line: str) -> str:
    """What a line says behind its time, its level and the names of errors."""
    body = line[:_LINE].strip()
    if match := _BRACKETS.fullmatch(body):
        body = match[1]
    for _ in range(_MOST_LEADS):
        match = _LEAD.match(body)
        if match is None or not match.end():
            break
        body = body[match.end() :]
    return body.strip()


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
    lines = tuple(each for each in report.printed if says_when(each))
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
    answer = answer_in(text)
    if kind := kind_of(answer.message if answer else text):
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
