"""Lines in which a program that prints text for people says that its model service refuses it.

Its output is the work of an agent, which may be about errors, limits and logins. So a line counts
only where it is such an error as a whole: behind a time, a level or the name of an error, it says
nothing else. Words in the middle of a sentence decide nothing.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

_LINE = 2_000  # characters of a line that are read
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
