"""What a person lets programs do without asking: a policy, and rules that stand above it.

They stand in ``[permissions]`` of ``config.toml``. What they mean for one request is decided in
`acp_core.agents.live.policy`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from acp_core.person.kinds import (
    WrongValue,
    check_below,
    check_fields,
    check_list,
    check_one_of,
    check_that,
)


class Verdict(str, Enum):
    """What is done with a request: it is answered, or a person is asked."""

    ALLOW = "allow"
    REJECT = "reject"
    ASK = "ask"


class Policy(str, Enum):
    """What is done with requests that no rule decides.

    ``ASK``: a person decides each. ``EDITS``: changes of the documents of the turn and of drafts,
    and acp's own commands for the participant are allowed. ``ALL``: everything is allowed.
    ``NONE``: everything is rejected.
    """

    ASK = "ask"
    EDITS = "edits"
    ALL = "all"
    NONE = "none"


ANY = "*"
"""As the last word of a rule's command: whatever follows."""
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "fish", "ksh", "env", "sudo", "xargs", "eval"})


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. All that it names must apply.

    Attributes:
        verdict: what is done.
        kind: the program's word for what it does ("edit", "execute", ...); "" for any.
        path: the real path of a file, or of a folder with all in it; "" for any.
        command: the words of a command, the last one perhaps `ANY`; empty for any.
    """

    verdict: Verdict
    kind: str = ""
    path: str = ""
    command: tuple[str, ...] = ()

    def __str__(self) -> str:
        named = {"kind": self.kind, "path": self.path, "command": " ".join(self.command)}
        told = ", ".join(f"{name} {value}" for name, value in named.items() if value)
        return f"{self.verdict.value} {told}"


@dataclass(frozen=True, slots=True)
class Permissions:
    """A policy and the rules above it; the first rule that applies decides."""

    policy: Policy = Policy.ASK
    rules: tuple[Rule, ...] = ()


def parse(table: Mapping[str, Any]) -> Permissions:
    """What ``[permissions]`` says, which `CHECK` found right.

    Raises:
        WrongValue: there is no such policy.
    """
    policy = policy_of(table.get("policy", Policy.ASK.value))
    return Permissions(policy, tuple(map(_rule, table.get("rules", []))))


def policy_of(value: object) -> Policy:
    """The policy of a name.

    Raises:
        WrongValue: there is none.
    """
    check_below(_POLICY, value, ".policy")
    return Policy(value)


def _rule(value: Mapping[str, str]) -> Rule:
    path = os.path.expanduser(value.get("path", ""))
    words = tuple(value.get("command", "").split())
    real = path and os.path.realpath(path)
    return Rule(Verdict(value["verdict"]), value.get("kind", ""), real, words)


def _check_rule(value: Any) -> None:
    check_fields(dict.fromkeys(("verdict", "kind", "path", "command"), _WORDS))(value)
    check_below(_VERDICT, value.get("verdict"), ".verdict")
    if path := os.path.expanduser(value.get("path", "")):
        check_below(_PATH, path, ".path")
    if len(value) < 2:
        raise WrongValue("", "kind, path or command besides the verdict")
    if value["verdict"] == Verdict.ALLOW.value:
        _check_allowing(_rule(value))


def _check_allowing(rule: Rule) -> None:
    """What is allowed for ever must be narrow: a kind is what a program calls it, not what it does."""
    if bool(rule.path) == bool(rule.command):
        raise WrongValue("", "either path or command, to allow it")
    if not rule.command or rule.command[-1] != ANY:
        return
    if len(rule.command) < 3 or os.path.basename(rule.command[0]) in _SHELLS:
        raise WrongValue(".command", f"more words of the command before {ANY}, to allow it")


_WORDS = check_that(lambda value: isinstance(value, str) and value.strip(), "a text in quotes")
_PATH = check_that(
    lambda path: os.path.isabs(path) and "\0" not in path,
    "an absolute path, or one that begins with ~/",
)
_POLICY = check_one_of(each.value for each in Policy)
_VERDICT = check_one_of(each.value for each in Verdict)
CHECK = check_fields({"policy": _POLICY, "rules": check_list(_check_rule, "a list of tables")})
"""Of the table ``[permissions]``."""
