"""Examples and exit codes of `acp workspaces`."""

from __future__ import annotations

from acp_core.protocols.kit.manual import Manual, Page

LEFT = (
    (0, "done, or nothing is left to decide"),
    (1, "listed: something is left to decide"),
    (2, "refused, nothing written: one line says why"),
)
MANUAL: Manual = {
    "workspaces": Page(
        (
            "acp workspaces status queues",
            "acp workspaces dispatch --help",
        ),
        (),
    ),
    "workspaces init": Page(
        (
            (
                'acp workspaces init queues --task "a comparison of queues" --after cat=ann \\\n'
                '    -a "ann=Compare what they cost." -a "cat=Write it up."'
            ),
        ),
    ),
    "workspaces add": Page(
        ("acp workspaces add --help",),
    ),
    "workspaces dispatch": Page(
        (
            "acp workspaces dispatch queues --program claude",
            'acp workspaces dispatch queues --again ben --feedback "Name the sources"',
        ),
        (),
    ),
    "workspaces status": Page(
        ("acp workspaces status queues --json",),
    ),
    "workspaces check-prompt": Page(
        ("acp workspaces check-prompt prompt.md",),
    ),
    "workspaces parse-return": Page(
        ("acp workspaces parse-return returned.md",),
    ),
    "workspaces triage": Page(
        ('acp workspaces triage queues ben accept --reason "enough for the summary"',),
        LEFT,
    ),
    "workspaces conflicts": Page(
        (
            "acp workspaces conflicts queues --find",
            "acp workspaces conflicts queues --resolve c1 --keep ann --because sourced",
        ),
        LEFT,
    ),
    "workspaces integrate": Page(
        (
            "acp workspaces integrate queues --edit",
            "acp workspaces integrate queues --finish",
        ),
        (
            (0, "done"),
            (1, "something is left to do before"),
            (2, "refused, nothing written: one line says why"),
        ),
    ),
}
