"""Commands with which a person acts or notes something, and those about acp itself."""

from __future__ import annotations

from acp_core.cli.specs.fields import FOLDER, PATHS, command_of
from acp_core.diagnosis import personal_table
from acp_core.model.action_spec import Field, Kind, QuerySpec

ACT_LIST = QuerySpec(
    "act",
    "List what you can do in the collaboration in FOLDER now, or do it.",
    fields=(FOLDER, Field("action", help="Show what this act would do, ask, and do it; what it "
                          "takes follows, and `--help` there lists that.", position=True, listed=False)),
    command="act",
    help="`acp act FOLDER ACTION --help` says what an act takes.",
    examples=(
        "acp act checkout",
        "acp act checkout block --help",
        'acp act checkout block --reason "No access" --dry-run',
    ),
    exits=(
        (0, "listed, done, or handed to whoever must pick it up"),
        (1, "it is not known how it ended"),
        (2, "refused, nothing done"),
        (130, "interrupted"),
    ),
)  # fmt: skip
"""`acp act` as far as it does not depend on the collaboration; its module does the rest."""
ACK = command_of(personal_table.ACK)
UNACK = command_of(personal_table.UNACK)
ARCHIVE = command_of(personal_table.ARCHIVE)
UNARCHIVE = command_of(personal_table.UNARCHIVE)
DOCTOR = command_of(
    QuerySpec(
        "doctor",
        "Print versions, folders, the terminal's abilities, and what is missing.",
        fields=(PATHS._replace(help="Say which file system this folder is on, and whether locks "
                               "and changes can be trusted there (default: here)."),),
        command="doctor",
        examples=("acp doctor", "acp doctor ~/work --json"),
        exits=(
            (0, "all is well"),
            (1, "something needed is missing"),
            (2, "refused, or bad input: one line says why"),
        ),
        run="acp_core.cli.doctor:doctor",
    )
)  # fmt: skip
COMPLETION = command_of(
    QuerySpec(
        "completion",
        "Print the completion script for SHELL.",
        fields=(
            Field("shell", help="Name the shell.", kind=Kind.CHOICE,
                  choices=("bash", "zsh", "fish"), position=True, required=True),
        ),
        command="completion",
        help="Write it to ~/.local/share/bash-completion/completions/acp (bash 4.4 or newer), to "
        '"${fpath[1]}/_acp" (zsh) or to ~/.config/fish/completions/acp.fish (fish). The script '
        "asks acp itself, so it never goes out of date.",
        examples=("acp completion bash",),
        run="acp_core.cli.completion:completion",
        json=False,
    )
)  # fmt: skip
