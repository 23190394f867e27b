"""``acp completion SHELL``: the script that makes a shell complete acp's commands and options."""

from __future__ import annotations

from click.shell_completion import get_completion_class, shell_complete

from acp_core.cli.context import COMPLETE
from acp_core.model.errors import CommandError
from acp_core.protocols.kit.values import Values

PROGRAM = "acp"


def completion(given: Values) -> int:
    """Print the script.

    Raises:
        CommandError: the installed click knows no such shell.
    """
    from acp_core.cli.group import group

    kind = get_completion_class(given.shell)
    if kind is None:
        raise CommandError(f"the installed version of click cannot complete for {given.shell}")
    # not the class's own `source`: bash's would start a bash to look at its version
    script = kind(group(), {}, PROGRAM, COMPLETE)
    print(kind.source_template % script.source_vars())
    return 0


def complete(instruction: str) -> int:
    """Answer a completion script; ``instruction`` is what it put into the environment."""
    from acp_core.cli.group import group

    return shell_complete(group(), {}, PROGRAM, COMPLETE, instruction)
