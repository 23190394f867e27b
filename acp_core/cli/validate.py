"""`acp validate` on a collaboration of any protocol but the folder protocol.

That one's own command checks its folders, and whatever is no collaboration: agents run it at
every turn. Here nothing is imported before the folder is known to be of another protocol.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from acp_core.model.light import TYPE_CHECKING
from acp_core.protocols import registry

if TYPE_CHECKING:
    from acp_core.model import Snapshot
    from acp_core.protocols.discovery import DiscoveredCollaboration

_VERDICTS = {
    0: ("valid", "ACP validation passed"),
    1: ("warnings", "ACP validation passed with warnings"),
    2: ("invalid", "ACP validation failed"),
}
_UNKNOWN = (
    "unknown",
    "ACP validation: nothing to check; this protocol has no rules",
)


def of_another(arguments: Sequence[str], owner: registry.Protocol) -> int | None:
    """Check the folder that the arguments name, where it belongs to another protocol.

    Args:
        arguments: those after the command's name.
        owner: the protocol whose command `acp validate` is.

    Returns:
        0 valid, 1 valid with warnings, 2 invalid or not known; None where the owner's command has to answer.
    """
    folder = _folder(arguments)
    if "://" in folder:
        return _check(_elsewhere(folder), arguments)
    names = _names(folder) if folder else frozenset()
    if not names or not names.isdisjoint(owner.markers):
        return None
    others = [
        each
        for each in registry.installed()
        if each.name != owner.name and names.intersection(each.markers)
    ]
    if not others:
        return None
    from pathlib import Path

    from acp_core.protocols.discovery import identify

    found = identify(Path(folder), others)
    return _check(found, arguments) if found else None


def _folder(arguments: Sequence[str]) -> str:
    """The folder among the arguments, "" where there is not exactly one."""
    named: list[str] = []
    left = iter(arguments)
    for word in left:
        if word == "--folder":
            named.append(next(left, ""))
        elif word.startswith("--folder="):
            named.append(word.removeprefix("--folder="))
        elif word not in ("--strict", "--json"):
            named.append("" if word.startswith("-") else word)
    return named[0] if len(named) == 1 else ""


def _elsewhere(link: str) -> DiscoveredCollaboration:
    """What a link leads to.

    Raises:
        CommandError: it leads nowhere.
    """
    from acp_core.model.errors import CommandError
    from acp_core.protocols import locations

    try:
        found = locations.find(locations.resolve(link))
    except locations.BadLocation as error:
        raise CommandError(str(error)) from None
    if found is None:
        raise CommandError("this link leads to no collaboration")
    return found


def _names(folder: str) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder))
    except (OSError, ValueError):
        return frozenset()


def _check(found: DiscoveredCollaboration, arguments: Sequence[str]) -> int:
    from acp_core.cli.output import dump, say
    from acp_core.model.clock import utc_now
    from acp_core.protocols.kit.findings import lines_of

    opened = found.open()
    try:
        snapshot = opened.refresh(utc_now())
    finally:
        opened.close()
    _require_read(snapshot)
    code = _exit_code(snapshot, "--strict" in arguments)
    verdict, sentence = _UNKNOWN if _unknown(snapshot) else _VERDICTS[code]
    if "--json" in arguments:
        say(dump(_as_json(snapshot, verdict), indent=None))
        return code
    say(sentence)
    for line in lines_of(snapshot.findings):
        say(line)
    return code


def _require_read(snapshot: Snapshot) -> None:
    """See to it that there was something to check.

    Raises:
        CommandError: it could not be read, or does not answer.
    """
    from acp_core.model import SourceState
    from acp_core.model.errors import CommandError
    from acp_core.protocols.kit.guard import refusal
    from acp_core.protocols.kit.wording import without_retry

    if snapshot.source.state is SourceState.UNREACHABLE:
        reason = refusal(snapshot.obstacles) if snapshot.obstacles else snapshot.source.note
        raise CommandError(without_retry(reason) or "cannot reach the agent")


def _exit_code(snapshot: Snapshot, strict: bool) -> int:
    from acp_core.model import Severity

    if snapshot.count(Severity.ERROR) or _unknown(snapshot):
        return 2
    return 1 if snapshot.count(Severity.WARNING) or (strict and snapshot.findings) else 0


def _unknown(snapshot: Snapshot) -> bool:
    """Whether nobody looked: "passed" would claim more than is known."""
    from acp_core.model import Verdict

    return snapshot.verdict is Verdict.UNKNOWN and not snapshot.findings


def _as_json(snapshot: Snapshot, verdict: str) -> dict[str, object]:
    findings = [
        {
            "code": each.code,
            "severity": each.severity.value,
            "message": each.message,
            "file": each.document,
            "line": each.line,
            "seq": None,
        }
        for each in snapshot.findings
    ]
    return {"schema": "acp.validate/1", "verdict": verdict, "findings": findings}
