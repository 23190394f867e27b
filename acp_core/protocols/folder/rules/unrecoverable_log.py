"""A log that can never become valid again, and what leads on from there.

Source: folder protocol specification, "Events" (earlier events are never rewritten) and "Phases"
(no event leads out of ``blocked``). Standard library only, and imported only where something is wrong.
"""

from __future__ import annotations

import shlex

from acp_core.model.matter import NOBODY, OWNER, Matter, damage
from acp_core.model.text import clean_line
from acp_core.protocols.folder.read.log import History
from acp_core.protocols.folder.schema import records
from acp_core.protocols.kit import guard

ENDING = frozenset({"blocked", "block", "continue", "repair"})
"""The acts that a log beyond mending allows: they end it, or mend other files."""

ANSWER = "The log cannot be repaired: continue in a new folder."

_CODES = {
    **dict.fromkeys(("ACP201", "ACP202", "ACP203", "ACP204"), "A2"),
    "ACP215": "A3",
    "ACP217": "A6",
}

_OTHERWISE = "A7"

_SENTENCE = 300  # characters of what the validator says


TOO_LARGE = (
    f"events.jsonl has reached acp's limit ({records.MAX_LINES:,} lines or {records.MAX_LOG >> 20} MB): "
    "no event can be appended"
)


def full(folder: str, history: History, continued: str = "") -> Matter | None:
    """A log that is so large that no event can follow (see `acp_core.protocols.folder.read.log.is_full`).

    Args:
        folder: the collaboration's.
        history: its log, as far as it is read.
        continued: the folder in which it goes on already, "" for none.

    Returns:
        What stands in the way; None where the collaboration is complete, and nothing has to follow.
    """
    if history.machine.ending == "completed":
        return None
    act = "" if continued else remedy(history, takes_no_more=True)
    return damage(
        "A9",
        TOO_LARGE,
        _out_of_full(folder, history, continued),
        frozenset({"continue"}),
        remedy=act,
        document=records.LOG_FILE,
        key=f"full:{act}",
        move=NOBODY if continued else OWNER,
    )


def _out_of_full(folder: str, history: History, continued: str) -> str:
    """What leads on where no event can follow."""
    if continued:
        return f"the collaboration continues in {clean_line(continued, 4_096)}"
    if not history.machine.participants or history.machine.ending:
        return way_out(folder, history)
    name = shlex.quote(clean_line(folder, 4_096))
    return (
        "find the program that writes so much to it, and stop it; "
        f"then run `acp continue {name}` to continue in a new folder"
    )


def code_of(finding: str) -> str:
    """The code of the cause that a finding about the log's lines belongs to."""
    return _CODES.get(finding, _OTHERWISE)


def hopeless(folder: str, history: History) -> Matter | None:
    """A log that can never become valid again, since earlier events are never rewritten.

    Args:
        folder: the collaboration's.
        history: its log, without a last line that lacks its newline.
    """
    broken = history.broken
    if broken is None:
        return None
    act = remedy(history)
    return damage(
        code_of(broken.code),
        clean_line(broken.message, _SENTENCE),
        way_out(folder, history),
        ENDING,
        remedy=act,
        given=(("reason", ANSWER),) if act == "block" else (),
        evidence=(f"{broken.code} {clean_line(broken.message, _SENTENCE)}",),
        document=records.LOG_FILE,
        line=broken.line,
        key=f"log:{broken.code}:{broken.line}:{act}",
    )


def remedy(history: History, *, takes_no_more: bool = False) -> str:
    """The act that leads out of a log beyond mending; "" where only a new start does."""
    machine = history.machine
    if not machine.participants:
        return ""
    return "continue" if machine.ending or takes_no_more else "block" if machine.count else ""


def way_out(folder: str, history: History) -> str:
    """What leads on where a log can never become valid again."""
    ending, name = history.machine.ending, shlex.quote(clean_line(folder, 4_096))
    if ending and not history.machine.participants:
        return "history is never rewritten; after you add participants, continue in a new folder"
    if ending == "completed":
        return f"history is never rewritten; run `acp continue {name}` to continue in a new folder"
    answered = f"run `acp continue {name} --answer TEXT` to continue in a new folder"
    if ending == "blocked":
        return f"history is never rewritten; {answered} (TEXT answers the blocker)"
    if remedy(history):
        return f"history is never rewritten: append blocked, then {answered}"
    return "history is never rewritten, and no event can follow: run `acp init` in a new folder"


def check(folder: str, history: History, act: str, *, full_log: bool = False) -> None:
    """Let an act pass, or refuse it because the log is beyond mending.

    Args:
        folder: the collaboration's.
        history: its log, read under the lock.
        act: the name of the act, or of the event that is to be appended.
        full_log: whether the log is so large that no event can follow.

    Raises:
        Refused: the log can never become valid again, and the act does not lead out of that.
    """
    found = full(folder, history) if full_log else hopeless(folder, history)
    guard.check((found,) if found else (), act)
