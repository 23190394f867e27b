"""Where promises are kept: the files that are changed, and the guards that are always taken away."""

from __future__ import annotations

ROOMS = (
    "acp_core/files/*.py",
    "acp_core/protocols/*/state.py", "acp_core/protocols/*/state/**/*.py",
    "acp_core/protocols/*/write/**/*.py", "acp_core/protocols/kit/guard.py",
    "acp_core/protocols/wire/network/http/guard.py", "acp_core/protocols/wire/network/links.py",
    "acp_core/protocols/wire/network/secrets.py", "acp_core/protocols/wire/network/trust.py",
)  # fmt: skip
"""The files of which a sample of changes is made."""

GUARDS = (
    "acp_core/files/atomic.py", "acp_core/files/claims.py", "acp_core/files/locked.py",
    "acp_core/files/run_folder.py", "acp_core/files/sync.py",
    "acp_core/protocols/cycle/write/guard.py", "acp_core/protocols/cycle/write/ownership.py",
    "acp_core/protocols/folder/write/guard.py", "acp_core/protocols/folder/write/hopeless.py",
    "acp_core/protocols/governed/write/guard.py", "acp_core/protocols/governed/write/seals.py",
    "acp_core/protocols/kit/guard.py",
    "acp_core/protocols/wire/network/http/guard.py", "acp_core/protocols/wire/write/guard.py",
    "acp_core/protocols/workspaces/write/guard.py",
)  # fmt: skip
"""The files of which every guard is taken away in every run: what stands before each write, who
conducts and who asks, and the syncs and locks that writes rely on."""


def is_guard(path: str, kind: str) -> bool:
    """Whether a change is made in every run."""
    return path in GUARDS and (kind == "guard" or (path.endswith("/sync.py") and kind == "call"))
