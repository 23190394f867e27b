"""``acp launch --at-boot``: have interrupted loops go on after the machine was restarted."""

from __future__ import annotations

from acp_core.cli.output import dump, say
from acp_core.loops import boot
from acp_core.loops.boot import Entry
from acp_core.model import Preview
from acp_core.model.errors import Refused
from acp_core.model.text import clean, clean_line
from acp_core.protocols.kit.parser import confirmed
from acp_core.protocols.kit.values import Values

SCHEMA = "acp.boot/1"


def at_boot(given: Values) -> int:
    """Show what the system would be given to start at boot, and write it or remove it.

    Raises:
        Refused: it cannot be written, or nobody confirmed it.
    """
    found = boot.entry(given.boot_manager or "")
    has_changed = found.is_ours if given.remove else not found.is_written
    if not given.json:
        _show(found, removes=given.remove)
    if given.dry_run or not has_changed:
        return _report(found, "unchanged" if not has_changed else "shown", given)
    verb = "Removes" if given.remove else "Writes"
    preview = Preview(
        f"{verb} this from {found.place}." if given.remove else f"{verb} this to {found.place}."
    )
    if not confirmed(preview, given):
        raise Refused("nothing was changed")
    if given.remove:
        boot.remove(found)
        return _report(found, "removed", given)
    boot.write(found)
    return _report(found, "written", given)


def _show(found: Entry, *, removes: bool) -> None:
    text = found.before if removes else found.text
    say(f"{found.manager}: {clean_line(found.place, 4_096)}")
    for line in clean(text).splitlines():
        say(f"    {line}".rstrip())
    for note in () if removes else found.notes:
        say(f"note: {note}")


def _report(found: Entry, state: str, given: Values) -> int:
    if given.json:
        facts = {"manager": found.manager, "place": found.place, "text": found.text}
        say(dump({"schema": SCHEMA, "state": state, **facts, "notes": list(found.notes)}))
    else:
        say(_SENTENCES[state, bool(given.remove)])
    return 0


_SENTENCES = {
    ("shown", False): "Nothing was written.",
    ("shown", True): "Nothing was removed.",
    ("unchanged", False): "It is there already.",
    ("unchanged", True): "There is nothing to remove.",
    ("written", False): "Written. Interrupted loops resume when the machine has restarted.",
    ("removed", True): "Removed. Running loops continue.",
}
