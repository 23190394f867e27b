"""Examples and exit codes of the commands of `acp_core.cli.table`, and the look-up of all others."""

from __future__ import annotations

from collections.abc import Sequence

from acp_core.protocols import registry
from acp_core.protocols.kit.manual import Manual, Page, page_of

HELP = ("-h", "--help")

MANUAL: Manual = {
    "dashboard": Page(
        (
            "acp ~/work",
            "acp dashboard ~/work ~/other --theme ansi-dark --utc",
        ),
    ),
    "serve": Page(
        (
            "acp serve ~/work",
            "acp serve ~/work --port 9000",
        ),
    ),
    "demo": Page(
        (
            "acp demo",
            "acp demo --headless --speed 100",
            "acp demo --stuck idle",
        ),
        (
            (0, "completed, and valid; or the dashboard was left"),
            (1, "--headless: it did not complete; says why"),
            (2, "refused, or bad input: one line says why"),
            (130, "interrupted"),
        ),
    ),
    "status": Page(
        (
            "acp status ~/work",
            "acp status --json --all",
        ),
    ),
    "watch": Page(
        (
            "acp watch ~/work",
            "acp watch checkout --json",
            "acp watch checkout --once",
        ),
        (
            (0, "completed; of several collaborations the worst counts"),
            (1, "still running (only with --once)"),
            (2, "unreadable, or no collaboration, or bad input"),
            (5, "blocked"),
            (130, "interrupted"),
        ),
    ),
    "show": Page(
        (
            "acp show checkout",
            "acp show checkout --json --all",
        ),
    ),
    "why": Page(
        (
            "acp why checkout",
            "acp why ~/work --json",
        ),
        (),
    ),
    "find": Page(
        (
            "acp find rate limit",
            "acp find retry --json",
        ),
        (),
    ),
    "record": Page(
        (
            "acp record ~/work",
            "acp record --once checkout",
        ),
        (),
    ),
    "recordings": Page(
        (
            "acp recordings",
            "acp recordings --forget checkout",
        ),
    ),
    "replay": Page(
        (
            "acp replay checkout",
            "acp replay checkout --at 12 --json",
        ),
    ),
    "diff": Page(
        (
            "acp diff checkout proposal.md",
            "acp diff checkout proposal.md --from 2 --to 7",
        ),
        (),
    ),
    "stats": Page(
        (
            "acp stats checkout",
            "acp stats checkout checkout-2 --json",
        ),
    ),
    "chart": Page(
        (
            "acp chart checkout",
            "acp chart checkout -o chart.svg",
        ),
    ),
    "report": Page(
        (
            "acp report checkout -o report.html",
            "acp report checkout -o report.json",
        ),
    ),
    "export": Page(
        (
            "acp export checkout",
            "acp export checkout -o /tmp/checkout.acp.zip",
        ),
    ),
    "import": Page(
        ("acp import checkout.acp.zip",),
    ),
    "loop": Page(
        ("acp loop --folder checkout --participant reviewer -- my-agent --task {prompt}",),
        (),
    ),
    "launch": Page(
        (
            "acp launch checkout reviewer=claude server=codex",
            "acp launch checkout reviewer -- my-agent --task {prompt}",
        ),
        (
            (0, "all run"),
            (2, "one does not run; why is said"),
        ),
    ),
    "ps": Page(
        (
            "acp ps",
            "acp ps checkout --all --json",
        ),
    ),
    "logs": Page(
        (
            "acp logs checkout",
            "acp logs -f checkout reviewer",
            "acp logs --raw -n 200 checkout reviewer",
        ),
    ),
    "stop": Page(
        (
            "acp stop checkout",
            "acp stop checkout reviewer",
            "acp stop --all",
        ),
        (
            (0, "stopped"),
            (1, "one still runs"),
            (2, "refused, or bad input: one line says why"),
        ),
    ),
    "nudge": Page(
        ('acp nudge checkout reviewer "Look at question 3"',),
    ),
    "act": Page(
        (
            "acp act checkout",
            'acp act checkout block --reason "No access" --dry-run',
        ),
        (),
    ),
    "ack": Page(
        (
            'acp ack checkout --note "waiting for legal"',
            "acp ack checkout --all",
        ),
    ),
    "archive": Page(
        ("acp archive checkout",),
    ),
    "unarchive": Page(
        ("acp unarchive checkout",),
    ),
    "doctor": Page(
        (
            "acp doctor",
            "acp doctor ~/work --json",
        ),
        (
            (0, "all is well"),
            (1, "something needed is missing"),
            (2, "refused, or bad input: one line says why"),
        ),
    ),
    "completion": Page(
        ("acp completion bash",),
    ),
}


def asked(arguments: Sequence[str]) -> bool:
    """Whether the arguments of `acp` ask for help."""
    before = list(arguments)[: arguments.index("--")] if "--" in arguments else list(arguments)
    return any(word in HELP for word in before)


def page(arguments: Sequence[str]) -> Page | None:
    """The page of the command that these arguments of `acp` begin with."""
    words: list[str] = []
    for word in arguments:
        if word.startswith("-"):
            break
        words.append(word)
    if not words:
        return None
    for protocol in registry.installed():
        if protocol.manual and any(each.name == words[0] for each in protocol.commands):
            return page_of(tuple(words), registry.load(protocol.manual))
    return page_of(tuple(words), MANUAL)
