"""``acp completion SHELL``: the script that makes a shell complete acp's commands and options."""

from __future__ import annotations

import os
from itertools import pairwise

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
    shell_complete,
    split_arg_string,
)

from acp_core.cli.context import COMPLETE
from acp_core.model.errors import CommandError
from acp_core.protocols.kit.values import Values

PROGRAM = "acp"
BREAKS = ("=", ":")
"""Signs at which bash takes a word apart before it asks."""


class Bash(BashComplete):
    """Answers bash, which sends `reviewer=cl` as three words and replaces only the last of them."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the one that is typed, and that one, as a person typed them."""
        words = split_arg_string(os.environ["COMP_WORDS"])
        at = int(os.environ["COMP_CWORD"])
        words = [*words[:at], words[at] if at < len(words) else ""]
        self._kept, whole = "", words[:1]
        for before, word in pairwise(words):
            if word in BREAKS or (before in BREAKS and len(whole) > 1):
                whole[-1] += word
            else:
                whole.append(word)
        if words[-1] in BREAKS:
            self._kept = whole[-1]
        elif words[-2:-1] and words[-2] in BREAKS:
            self._kept = whole[-1].removesuffix(words[-1])
        return whole[1:-1], whole[-1]

    def format_completion(self, item: CompletionItem) -> str:
        """One answer, without the words that bash keeps."""
        return f"{item.type},{item.value.removeprefix(self._kept)}"


add_completion_class(Bash)


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
