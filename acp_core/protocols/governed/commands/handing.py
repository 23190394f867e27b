"""A verb on a run that the existing program made: handed to that program, where it is there."""

from __future__ import annotations

import argparse
import shlex

from acp_core.command_line import say
from acp_core.protocols.governed import existing
from acp_core.protocols.governed.act import Refused
from acp_core.protocols.governed.act.opened import look
from acp_core.protocols.governed.commands.line import (
    say_json,
)


def handed(
    verb: str, options: argparse.Namespace, *, turn: str = "", role: str = "", reason: str = ""
) -> int | None:
    """Have the existing program do it; None where acp does it itself.

    Raises:
        Refused: there is no run, or the program refused.
    """
    run = look(options.folder).run
    if existing.program(run) is None:
        return None
    arguments = existing.words(run, verb, turn=turn, role=role, reason=reason)
    if not arguments:
        raise Refused(
            f"{existing.NAME} made this run, and has no command for {verb}; see its own help"
        )
    command = [existing.NAME, *arguments]
    if options.dry_run:
        if options.json:
            say_json(verb, folder=options.folder, dry_run=True, runs=command)
        else:
            say(f"runs: {shlex.join(command)}")
        return 0
    ran = existing.hand_over(run.root, arguments)
    if not ran.ok:
        raise Refused(f"{existing.NAME}: {ran.said}")
    if options.json:
        say_json(verb, folder=options.folder, ran=command, said=ran.said)
    else:
        say(f"{existing.NAME}: {ran.said}")
    return 0
