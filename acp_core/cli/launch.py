"""``acp launch`` and ``acp loop``: loops of participants, started in the background or run in this terminal.

With ``--at-boot``, interrupted loops go on after the machine was restarted.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any, cast

from acp_core.agents import presets
from acp_core.cli.output import dump, say, warn
from acp_core.loops import boot, process
from acp_core.loops import launch as loop_launch
from acp_core.loops.acts.about import About
from acp_core.loops.acts.programs import Chosen, all_presets, spec_of
from acp_core.loops.acts.starting import bind_launch
from acp_core.loops.acts.table import LAUNCH
from acp_core.loops.boot import Entry
from acp_core.loops.launch import LaunchError
from acp_core.model import Preview
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError, Refused
from acp_core.model.text import clean, clean_line
from acp_core.person.paths import key_of
from acp_core.protocols.kit.binding import located
from acp_core.protocols.kit.command import note
from acp_core.protocols.kit.parser import confirmed
from acp_core.protocols.kit.values import Values

BOOT_SCHEMA = "acp.boot/1"


def at_boot(given: Values) -> int:
    """Show what the system would be given to start at boot, and write it or remove it.

    Raises:
        Refused: it cannot be written, or nobody confirmed it.
    """
    found = boot.entry(given.boot_manager or "")
    has_changed = found.is_ours if given.remove else not found.is_written
    if not given.json:
        _show_entry(found, removes=given.remove)
    if given.dry_run or not has_changed:
        return _report_entry(found, "unchanged" if not has_changed else "shown", given)
    verb = "Removes" if given.remove else "Writes"
    preview = Preview(
        f"{verb} this from {found.place}." if given.remove else f"{verb} this to {found.place}."
    )
    if not confirmed(preview, given):
        raise Refused("nothing was changed")
    if given.remove:
        boot.remove(found)
        return _report_entry(found, "removed", given)
    boot.write(found)
    return _report_entry(found, "written", given)


def _show_entry(found: Entry, *, removes: bool) -> None:
    text = found.before if removes else found.text
    say(f"{found.manager}: {clean_line(found.place, 4_096)}")
    for line in clean(text).splitlines():
        say(f"    {line}".rstrip())
    for remark in () if removes else found.notes:
        say(f"note: {remark}")


def _report_entry(found: Entry, state: str, given: Values) -> int:
    if given.json:
        facts = {"manager": found.manager, "place": found.place, "text": found.text}
        say(dump({"schema": BOOT_SCHEMA, "state": state, **facts, "notes": list(found.notes)}))
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

LAUNCH_SCHEMA = "acp.launch/1"


def launch(given: Values) -> int:
    """Start loops in the background.

    Raises:
        CommandError: it is not clear whose, or with which programs.
    """
    if given.at_boot:
        return at_boot(given)
    if not given.folder:
        raise CommandError("name a FOLDER, or use --at-boot")
    if given.words:
        given.command = shlex.join(given.words)
    about = About(located(LAUNCH, given.folder).key)
    action = bind_launch(about, utc_now())
    _refuse_unnamed_programs(about, given)
    if given.dry_run:
        preview = action.preview(given)
        data, why = preview.data, preview.refused
    else:
        outcome = action.perform(given)
        data, why = outcome.done.data if outcome.done else {}, outcome.sentence
        note(about.key, LAUNCH, given, outcome)
    if "loops" not in data:
        raise CommandError(why)
    loops = cast("list[dict[str, Any]]", data["loops"])
    if given.json:
        say(dump({"schema": LAUNCH_SCHEMA, "collaboration": key_of(given.folder), "loops": loops}))
    elif not loops:
        say("every participant already has a loop (see `acp ps`)")
    else:
        for each in loops:
            _show_loop(each)
    return 2 if any(each["problem"] for each in loops) else 0


def _refuse_unnamed_programs(about: About, given: Values) -> None:
    """A command starts no program that nobody named: here, or when the participant had a loop.

    Raises:
        CommandError: a participant is named whose program is not known.
    """
    if given.command or any("=" not in each for each in given.agent):
        return
    for name in given.participant:
        if "=" not in name and about.programs.before(name) is None:
            raise CommandError(
                f"{name} never had a loop here: give {name}=PRESET, --agent PRESET, or a command "
                "after --"
            )


def _show_loop(loop: dict[str, Any]) -> None:
    if loop["problem"]:
        say(f"{loop['participant']}: not started: {loop['problem']}")
        return
    program = " ".join(filter(None, (loop["preset"], loop["version"], loop["model"])))
    pid = f", process {loop['pid']}" if loop["pid"] else " (not started)"
    say(f"{loop['participant']}: {program}{pid}")
    say(f"    program   {loop['program']}")
    say(f"    runs in   {loop['workdir']}")
    redirected = " < <prompt>" if loop["prompt_on_stdin"] else ""
    say(f"    command   {shlex.join(loop['command'])}{redirected}")
    if loop["live"]:
        say(f"    live      {loop['live']}")
    for warning in loop["warnings"]:
        say(f"    warning   {warning}")


def loop(given: Values) -> int:
    """Take a participant's turns here, until it is over.

    Raises:
        CommandError: it is not clear with which program, or it cannot run.
    """
    chosen, command = Chosen.of(given), given.words
    if bool(given.agent) == bool(command):
        raise CommandError("give either --agent PRESET or a command after --")
    if given.agent:
        chosen_preset = presets.named(given.agent, all_presets())
    else:
        chosen_preset = presets.command_here(command)
    spec, chosen_preset = spec_of(given.folder, given.participant, chosen_preset, chosen)
    plan = loop_launch.plan(spec, chosen_preset)
    if plan.refused:
        raise CommandError(plan.refused)
    for warning in plan.warnings:
        warn(warning)
    try:
        asked = replace(plan.spec, interval=max(0.01, given.interval), leave=given.leave)
        return process.run(asked, echo=lambda text: say(text, now=True))
    except LaunchError as error:
        raise CommandError(str(error)) from None
