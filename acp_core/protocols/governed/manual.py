"""Examples and exit codes of `acp governed`."""

from __future__ import annotations

from acp_core.protocols.kit.manual import Manual, Page

MANUAL: Manual = {
    "governed": Page(
        (
            "acp governed status",
            "acp governed step --help",
        ),
    ),
    "governed init": Page(
        ('acp governed init . --goal "Light the hall" --agent "dev=claude -p"',),
    ),
    "governed step": Page(
        (
            "acp governed step",
            "acp governed step --role qa --dry-run",
        ),
        (),
    ),
    "governed stop": Page(
        ("acp governed stop",),
    ),
    "governed status": Page(
        (
            "acp governed status",
            "acp governed status ~/work/hall --json",
        ),
    ),
    "governed check": Page(
        ("acp governed check",),
        (),
    ),
    "governed correct": Page(
        ("acp governed correct --dry-run",),
    ),
    "governed accept-turn": Page(
        (
            "acp governed accept-turn",
            "acp governed accept-turn --exclude build/log.txt",
        ),
    ),
    "governed reject-turn": Page(
        ('acp governed reject-turn --reason "No test of the dimmer"',),
    ),
    "governed approve-transition": Page(
        ('acp governed approve-transition --comment "Agreed"',),
    ),
    "governed approve-completion": Page(
        ('acp governed approve-completion --comment "Ship it"',),
    ),
    "governed reject": Page(
        ('acp governed reject --comment "The plan leaves out the stairs"',),
    ),
    "governed escalate": Page(
        ('acp governed escalate --reason "Two roles contradict each other"',),
    ),
    "governed unblock": Page(
        ('acp governed unblock --comment "The supplier has answered"',),
    ),
    "governed objection": Page(
        ("acp governed objection --help",),
    ),
    "governed talk": Page(
        ('acp governed talk --text "Mind the fuse box"',),
    ),
    "governed recover": Page(
        ("acp governed recover --dry-run",),
    ),
    "governed trust": Page(
        ("acp governed trust",),
    ),
    "governed migrate": Page(
        ("acp governed migrate --dry-run",),
    ),
    "governed coordinator": Page(
        (
            "acp governed coordinator status",
            "acp governed coordinator step",
        ),
    ),
    "governed coordinator init": Page(
        ('acp governed coordinator init --agent "dev=claude -p"',),
    ),
    "governed coordinator status": Page(
        ("acp governed coordinator status --json",),
    ),
    "governed coordinator step": Page(
        ("acp governed coordinator step --dry-run",),
    ),
    "governed coordinator poll": Page(
        ("acp governed coordinator poll --every 10",),
    ),
    "governed coordinator approve-barrier": Page(
        ('acp governed coordinator approve-barrier --comment "One token format"',),
    ),
    "governed coordinator reject-barrier": Page(
        (
            (
                "acp governed coordinator reject-barrier --workstream web \\\n"
                '    --comment "No test of the expiry"'
            ),
        ),
    ),
    "governed coordinator resync": Page(
        ("acp governed coordinator resync",),
    ),
    "governed coordinator mend": Page(
        ("acp governed coordinator mend --workstream web",),
    ),
    "governed coordinator trust": Page(
        ("acp governed coordinator trust",),
    ),
}
