"""A verb on a run that the existing program made: handed to that program, where it is there."""

from __future__ import annotations

import argparse
import shlex

from acp_core.protocols.governed.commands.line import (
    say_json,
)
from acp_core.protocols.governed.conduct import existing_program
from acp_core.protocols.governed.write import Refused
from acp_core.protocols.governed.write.opened import look
from acp_core.protocols.kit.command_line import say


def handed(
    verb: str, options: argparse.Namespace, *, turn: str = "", role: str = "", reason: str = ""
) -> int | None:
    """Have the existing program do it; None where acp does it itself.

    Raises:
        Refused: there is no run, or the program refused.
    """
    run = look(options.folder).run
    if existing_program.program(run) is None:
        return None
    arguments = existing_program.words(run, verb, turn=turn, role=role, reason=reason)
    if not arguments:
        raise Refused(
            f"{existing_program.NAME} made this run, and has no command for {verb}; see its own help"
        )
    command = [existing_program.NAME, *arguments]
    if options.dry_run:
        if options.json:
            say_json(verb, folder=options.folder, dry_run=True, runs=command)
        else:
            say(f"runs: {shlex.join(command)}")
        return 0
    ran = existing_program.hand_over(run.root, arguments)
    if not ran.ok:
        raise Refused(f"{existing_program.NAME}: {ran.said}")
    if options.json:
        say_json(verb, folder=options.folder, ran=command, said=ran.said)
    else:
        say(f"{existing_program.NAME}: {ran.said}")
    return 0
