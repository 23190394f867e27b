"""Examples and exit codes of the commands for shared folders."""

from __future__ import annotations

from acp_core.protocols.kit.manual import Manual, Page

MANUAL: Manual = {
    "init": Page(
        (
            (
                "acp init --folder checkout --participant server --participant reviewer \\\n"
                '    --objective "Decide how checkout retries" --completion "Retry policy chosen"'
            ),
        ),
        (),
    ),
    "append": Page(
        (
            (
                "acp append --folder checkout --participant server \\\n"
                '    --event proposal_submitted --summary "First draft" --reply-to 1'
            ),
            (
                "acp append --folder checkout --participant reviewer --reply-to 2 --key r1 \\\n"
                '    --event review_submitted --summary "Two changes" --review-file review.txt'
            ),
        ),
        (),
    ),
    "next": Page(
        (
            "acp next --folder checkout --participant reviewer",
            "acp next --folder checkout --participant reviewer --json",
        ),
        (),
    ),
    "wait": Page(
        ("acp wait --folder checkout --participant reviewer",),
        (),
    ),
    "validate": Page(
        (
            "acp validate checkout",
            "acp validate checkout --strict --json",
        ),
        (),
    ),
    "repair": Page(
        (
            "acp repair checkout --dry-run",
            "acp repair checkout --yes",
        ),
        (),
    ),
    "continue": Page(
        ('acp continue checkout --to checkout-2 --answer "Use the sandbox account"',),
    ),
    "skill": Page(
        ("acp skill install ~/my-agent/skills/agent-collaboration",),
    ),
}
