"""Running git for a store: what it is told, what it must not do, and what its refusals mean.

git is given plumbing commands in a bare object store of ours. Nothing that a remote, a repository
or a caller's environment holds is run: no hooks on this side, no helpers of unknown transports, no
questions, no submodules, no signing. How people authenticate (ssh configuration, agents, keys,
credential helpers) stays as they have it. Standard library only.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from acp_core.files import git
from acp_core.model.text import clean_line
from acp_core.stores.address import without_password
from acp_core.stores.engine import InDoubt, SharingError, StoreRefused, StoreUnreachable, TipMoved

SAFE = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", os.devnull),
    ("core.attributesFile", os.devnull),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("fetch.fsckObjects", "true"),
    ("fetch.recurseSubmodules", "false"),
    ("submodule.recurse", "false"),
    ("push.gpgSign", "false"),
    ("push.followTags", "false"),
    ("push.recurseSubmodules", "no"),
    ("commit.gpgSign", "false"),
    ("http.lowSpeedLimit", "1"),
    ("http.lowSpeedTime", "20"),
)  # fmt: skip
"""What is set for each run of git, above what anybody has configured."""

_PROTOCOLS = "file:ssh:https"

_SSH = "-o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=4"  # never a question, and never a wait without an end

_KEPT_OPEN = "-o ControlMaster=auto -o ControlPersist=120 -o ControlPath={}"

_LONGEST_SOCKET = 90  # of about 104 bytes that a socket's path may have: ssh adds to it

_MOVED = re.compile(
    r"\[rejected\] \((stale info|fetch first|non-fast-forward)\)"
    r"|cannot lock ref|failed to (update|lock) ref|reference already exists|incorrect old value"
)

_LOCK_LEFT = re.compile(r"Unable to create '([^']+\.lock)'|(\S+\.lock)': File exists")

_NOT_REACHED = re.compile(
    r"[Cc]ould not resolve host|Name or service not known|Temporary failure in name resolution"
    r"|connect to host .* port .*: |Connection refused|No route to host|Network is unreachable"
    r"|Failed to connect|Couldn't connect|SSL certificate problem|kex_exchange_identification"
    r"|[Rr]epository .*not found|does not appear to be a git repository|does not exist"
)
"""What is said before anything was sent: nothing can have been changed."""

_DENIED = re.compile(
    r"Permission denied \(|Authentication failed|could not read (Username|Password)"
)

_MISSING = re.compile(r"couldn't find remote ref[^\n]*")

_HOST_KEY = re.compile(r"Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED")

NO_SUCH_REF = "couldn't find remote ref"  # what git says of a branch that is not there

_NO_REPOSITORY = re.compile(
    r"[Rr]epository .*not found|does not appear to be a git repository|does not exist"
)

_REJECTED = re.compile(r"^!\t\S*\t(?P<why>.*)$", re.MULTILINE)

_REMOTE = re.compile(r"^remote: ?(.*)$", re.MULTILINE)


def environment(url: str, sockets: Path | None, own_ssh: str = "") -> dict[str, str]:
    """The environment of a run of git that talks to a remote, or to none ("").

    Args:
        url: the remote.
        sockets: a private folder for ssh connections that are kept open; None for none.
        own_ssh: what the person has configured as ``core.sshCommand``.
    """
    said = git.environment() | {
        "GIT_ALLOW_PROTOCOL": _PROTOCOLS,
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "SSH_ASKPASS_REQUIRE": "never",
        "GCM_INTERACTIVE": "never",
    }
    for number, (key, value) in enumerate(SAFE):
        said |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    said["GIT_CONFIG_COUNT"] = str(len(SAFE))
    if is_ssh(url):
        said["GIT_SSH_COMMAND"] = ssh_command(
            os.environ.get("GIT_SSH_COMMAND")
            or own_ssh
            or shlex.quote(os.environ.get("GIT_SSH") or "ssh"),
            sockets,
        )
    return said


def is_ssh(url: str) -> bool:
    """Whether a repository is reached by ssh."""
    return url.startswith("ssh://") or bool(url and "://" not in url)


def ssh_command(own: str, sockets: Path | None) -> str:
    """A person's own ssh command, told to ask nothing and, where it may, to stay connected.

    Commands that are no ssh (wrappers of other names) are taken as they are: they may not know
    the options.
    """
    try:
        words = shlex.split(own)
    except ValueError:
        return own
    if not words or os.path.basename(words[0]) != "ssh":
        return own
    if sockets is None or len(os.fsencode(sockets)) + 42 > _LONGEST_SOCKET or _has_own_sockets(own):
        return f"{own} {_SSH}"
    return f"{own} {_SSH} {_KEPT_OPEN.format(shlex.quote(f'{sockets}/%C'))}"


def _has_own_sockets(own: str) -> bool:
    """Whether the person shares connections already: those may hold what ours could not get."""
    if "controlpath" in own.lower():
        return True
    try:
        with open(os.path.expanduser("~/.ssh/config"), encoding="utf-8", errors="replace") as file:
            return "controlpath" in file.read(1 << 20).lower()
    except OSError:
        return False


def refusal(url: str, printed: str, said: str, *, pushing: bool) -> SharingError:
    """What a failed run of git means.

    Args:
        url: the remote.
        printed: its standard output; of a push, ``--porcelain`` lines.
        said: its standard error.
        pushing: whether it may have changed the remote.
    """
    both = f"{printed}\n{said}"
    remote = _words(said)
    rejected = _REJECTED.search(printed)
    if "dubious ownership" in both:
        return StoreRefused(_dubious(url))
    if left := _LOCK_LEFT.search(both):
        return TipMoved(
            f"a lock was left in the store ({clean_line(left[1] or left[2], 300)}): its owner must remove it"
        )
    if _MOVED.search(both):
        return TipMoved("the store has moved on")
    if rejected or "remote rejected" in both:
        why = rejected["why"].removeprefix("[remote rejected] ") if rejected else "rejected"
        why = clean_line(why.strip("()"), 200)
        words = ": ".join(each for each in (why, remote) if each)
        return StoreRefused(
            f"the store refused it: {words} (a protected branch? acp writes to refs/heads/acp/)"
        )
    if not pushing and (missing := _MISSING.search(said)):
        # Over ssh, git adds that the other side hung up: what it looked for is what counts.
        return StoreUnreachable(unreachable(url, clean_line(missing[0], 300)))
    if _HOST_KEY.search(said):
        return StoreUnreachable(
            unreachable(url, "the host's key is not known here: connect to it by ssh once")
        )
    if _DENIED.search(said):
        return StoreUnreachable(
            unreachable(url, "it does not accept this account's key or password")
        )
    if found := _NOT_REACHED.search(said):
        line = next(each for each in said.splitlines() if found[0] in each)
        known = "there is no such repository" if _NO_REPOSITORY.search(said) else ""
        return StoreUnreachable(unreachable(url, known or _plain(line)))
    lines = [each for each in said.splitlines() if each.strip()]
    last = _plain(lines[-1]) if lines else ""
    if pushing:
        return InDoubt(
            f"the connection to {name(url)} was lost ({last or 'git gives no reason'}): it is not "
            "known whether the store has it; run the same command again"
        )
    return StoreUnreachable(unreachable(url, last or "git gives no reason"))


def unreachable(url: str, reason: str) -> str:
    """The sentence for a store that does not answer."""
    return f"the store {name(url)} cannot be reached ({reason})"


def name(url: str) -> str:
    """A remote's address within a sentence."""
    return clean_line(without_password(url), 300)


def _plain(line: str) -> str:
    return clean_line(
        without_password(re.sub(r"^(fatal|error|warning|ssh|remote): ", "", line.strip())), 200
    )


def _words(said: str) -> str:
    """What the other side says, in a line."""
    lines = (each.strip() for each in _REMOTE.findall(said))
    return clean_line(without_password(" / ".join(each for each in lines if each)), 300)


def _dubious(url: str) -> str:
    owner = ""
    if url.startswith("file://"):
        from acp_core.files import claims

        try:
            owner = claims.account(os.stat(url.removeprefix("file://")).st_uid)
        except OSError:
            owner = ""
    return (
        f"the repository belongs to {clean_line(owner, 80) or 'another account'}: git does not trust it, and its hooks "
        "would run as you; reach it by ssh as that account, or add it to safe.directory"
    )


def quoted(path: str) -> str:
    """A path as `git fast-import` reads it."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
