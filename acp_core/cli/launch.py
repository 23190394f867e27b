"""``acp launch``: start participants' loops in the background."""

from __future__ import annotations

import shlex
from typing import Any, cast

from acp_core.cli.at_boot import at_boot
from acp_core.cli.output import dump, say
from acp_core.loops.acts.about import About
from acp_core.loops.acts.starting import bind_launch
from acp_core.loops.acts.table import LAUNCH
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError
from acp_core.person.paths import key_of
from acp_core.protocols.kit.binding import located
from acp_core.protocols.kit.command import note
from acp_core.protocols.kit.values import Values

SCHEMA = "acp.launch/1"


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
        say(dump({"schema": SCHEMA, "collaboration": key_of(given.folder), "loops": loops}))
    elif not loops:
        say("every participant already has a loop (see `acp ps`)")
    else:
        for each in loops:
            _show(each)
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


def _show(loop: dict[str, Any]) -> None:
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
