"""A log that can never become valid again, and what leads on from there.

Source: folder protocol specification, "Events" (earlier events are never rewritten) and "Phases"
(no event leads out of ``blocked``). Standard library only, and imported only where something is wrong.
"""

from __future__ import annotations

import shlex

from acp_core.files.text import clean_line
from acp_core.model.obstacle import Obstacle
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.log import History
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


def code_of(finding: str) -> str:
    """The code of the cause that a finding about the log's lines belongs to."""
    return _CODES.get(finding, _OTHERWISE)


def hopeless(folder: str, history: History) -> Obstacle | None:
    """A log that can never become valid again, since earlier events are never rewritten.

    Args:
        folder: the collaboration's.
        history: its log, without a last line that lacks its newline.
    """
    broken = history.broken
    if broken is None:
        return None
    act = remedy(history)
    return Obstacle(
        code_of(broken.code),
        clean_line(broken.message, _SENTENCE),
        way_out(folder, history),
        ENDING,
        remedy=act,
        given=(("reason", ANSWER),) if act == "block" else (),
        evidence=(f"{broken.code} {clean_line(broken.message, _SENTENCE)}",),
        document=schema.LOG_FILE,
        line=broken.line,
        key=f"log:{broken.code}:{broken.line}:{act}",
    )


def remedy(history: History) -> str:
    """The act that leads out of a log beyond mending; "" where only a new start does."""
    machine = history.machine
    if not machine.participants:
        return ""
    return "continue" if machine.ending else "block" if machine.count else ""


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


def check(folder: str, history: History, act: str) -> None:
    """Let an act pass, or refuse it because the log is beyond mending.

    Args:
        folder: the collaboration's.
        history: its log, read under the lock.
        act: the name of the act, or of the event that is to be appended.

    Raises:
        Refused: the log can never become valid again, and the act does not lead out of that.
    """
    found = hopeless(folder, history)
    guard.check((found,) if found else (), act)
