"""``acp completion SHELL``: the script that makes a shell complete acp's commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class, shell_complete

from acp_core.cli.context import COMPLETE
from acp_core.model.errors import CommandError

PROGRAM = "acp"
SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> int:
    """Print the completion script for SHELL.

    \b
    bash   acp completion bash > ~/.local/share/bash-completion/completions/acp
    zsh    acp completion zsh > "${fpath[1]}/_acp"
    fish   acp completion fish > ~/.config/fish/completions/acp.fish

    The script asks acp itself, so it never goes out of date. (bash: 4.4 or newer.)
    """
    from acp_core.cli.group import group

    kind = get_completion_class(shell)
    if kind is None:
        raise CommandError(f"this click cannot complete for {shell}")
    # not the class's own `source`: bash's would start a bash to look at its version
    script = kind(group(), {}, PROGRAM, COMPLETE)
    click.echo(kind.source_template % script.source_vars())
    return 0


def complete(instruction: str) -> int:
    """Answer a completion script; ``instruction`` is what it put into the environment."""
    from acp_core.cli.group import group

    return shell_complete(group(), {}, PROGRAM, COMPLETE, instruction)
