"""Examples and exit codes of the commands for agents on the network."""

from __future__ import annotations

from acp_core.protocols.kit.manual import Manual, Page

ASKED = (
    (0, "done"),
    (1, "the agent refused, and says why"),
    (2, "bad input, or the agent cannot be asked: one line says why"),
    (130, "interrupted"),
)

MANUAL: Manual = {
    "agent": Page(
        (
            "acp agent --name A --skills summarize",
            "acp agent --name B --join acp://127.0.0.1:7801/TOKEN",
        ),
    ),
    "bridge": Page(
        (
            "acp bridge checkout",
            "acp bridge checkout --allow block",
        ),
    ),
    "relay": Page(
        (
            "acp relay",
            "acp relay --port 7700 --key-file relay.key",
        ),
    ),
    "wire": Page(
        (
            "acp wire agents",
            "acp wire send --help",
        ),
    ),
    "wire agents": Page(
        ("acp wire agents",),
    ),
    "wire discover": Page(
        ("acp wire discover --seconds 35",),
    ),
    "wire send": Page(
        ('acp wire send A "Summarize the report" --new-task',),
        ASKED,
    ),
    "wire stream": Page(
        ("acp wire stream A",),
        ASKED,
    ),
    "wire tasks": Page(
        ("acp wire tasks A",),
        ASKED,
    ),
    "wire peers": Page(
        ("acp wire peers A",),
        ASKED,
    ),
    "wire connect": Page(
        ("acp wire connect A acp://127.0.0.1:7802/TOKEN",),
        ASKED,
    ),
    "wire card": Page(
        ("acp wire card A",),
        ASKED,
    ),
    "wire skills": Page(
        ("acp wire skills A",),
        ASKED,
    ),
    "wire answer": Page(
        ('acp wire answer A TASK "The one of May"',),
        ASKED,
    ),
    "wire cancel": Page(
        ("acp wire cancel A TASK",),
        ASKED,
    ),
}
