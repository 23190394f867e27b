"""Commands with which a person acts or notes something, and those about acp itself."""

from __future__ import annotations

from acp_core.cli.specs.fields import FOLDER, PATHS, command_of
from acp_core.diagnosis import personal_table
from acp_core.model.action_spec import Field, Kind, QuerySpec

ACT_LIST = QuerySpec(
    "act",
    "List the actions that are possible in the collaboration in FOLDER, or run one.",
    fields=(FOLDER, Field("action", help=("Action to run: acp shows what it would do, asks, and "
                                          "does it. Its options follow; `--help` lists them."), position=True, listed=False)),
    command="act",
    help="Run `acp act FOLDER ACTION --help` to see the options of an action.",
    examples=(
        "acp act checkout",
        "acp act checkout block --help",
        'acp act checkout block --reason "No access" --dry-run',
    ),
    exits=(
        (0, "success, or queued for the process that runs the collaboration"),
        (1, "the result is unknown"),
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
        "Check versions, folders, the terminal and optional parts.",
        fields=(PATHS._replace(help=("Folder whose file system is checked for working locks and "
                                     "change notifications (default: here), or the address of a "
                                     "PostgreSQL store.")),),
        command="doctor",
        examples=("acp doctor", "acp doctor ~/work --json",
                  "acp doctor postgresql://anna@db.example.org/team"),
        exits=(
            (0, "all is well"),
            (1, "a required part is missing"),
            (2, "refused, or invalid input"),
        ),
        run="acp_core.cli.doctor:doctor",
    )
)  # fmt: skip
COMPLETION = command_of(
    QuerySpec(
        "completion",
        "Print the completion script for SHELL.",
        fields=(
            Field("shell", help="Shell to complete for.", kind=Kind.CHOICE,
                  choices=("bash", "zsh", "fish"), position=True, required=True),
        ),
        command="completion",
        help=("Save the script as ~/.local/share/bash-completion/completions/acp (bash 4.4 or "
              'newer), "${fpath[1]}/_acp" (zsh) or ~/.config/fish/completions/acp.fish (fish). '
              "The script asks acp for completions, so it never goes out of date."),
        examples=("acp completion bash",),
        run="acp_core.cli.completion:completion",
        json=False,
    )
)  # fmt: skip
