"""What a person lets programs do without asking: a policy, and rules that stand above it.

They stand in ``[permissions]`` of ``config.toml``. What they mean for one request is decided in
`acp_core.agents.live.policy`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from acp_core.model.errors import InvalidInput


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


class WrongRule(InvalidInput):
    """A rule cannot be used: ``where`` below ``[permissions]``, and what is ``needed`` there."""

    def __init__(self, where: str, needed: str) -> None:
        super().__init__(f"{where}: {needed}")
        self.where = where
        self.needed = needed


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


def parse(table: Mapping[str, object]) -> Permissions:
    """What ``[permissions]`` says.

    Raises:
        WrongRule: something in it is not what it should be.
    """
    unknown = sorted(set(table) - {"policy", "rules"})
    if unknown:
        raise WrongRule(f".{unknown[0]}", "one of policy, rules")
    rules = table.get("rules", [])
    if not isinstance(rules, list):
        raise WrongRule(".rules", "a list of tables")
    return Permissions(
        policy_of(table.get("policy", Policy.ASK.value)),
        tuple(_rule(f".rules[{number}]", each) for number, each in enumerate(rules)),
    )


def policy_of(value: object) -> Policy:
    """The policy of a name.

    Raises:
        WrongRule: there is none.
    """
    try:
        return Policy(value)
    except ValueError:
        raise WrongRule(".policy", f"one of {', '.join(Policy)}") from None


def _rule(where: str, value: object) -> Rule:
    if not isinstance(value, dict):
        raise WrongRule(where, "a table")
    for name, text in value.items():
        if name not in ("verdict", "kind", "path", "command"):
            raise WrongRule(f"{where}.{name}", "one of verdict, kind, path, command")
        if not isinstance(text, str) or not text.strip():
            raise WrongRule(f"{where}.{name}", "a text in quotes")
    try:
        verdict = Verdict(value.get("verdict"))
    except ValueError:
        raise WrongRule(f"{where}.verdict", f"one of {', '.join(Verdict)}") from None
    path = os.path.expanduser(value.get("path", ""))
    if path and (not os.path.isabs(path) or "\0" in path):
        raise WrongRule(f"{where}.path", "an absolute path, or one that begins with ~/")
    words = tuple(value.get("command", "").split())
    rule = Rule(verdict, value.get("kind", ""), path and os.path.realpath(path), words)
    if len(value) < 2:
        raise WrongRule(where, "kind, path or command besides the verdict")
    if verdict is Verdict.ALLOW:
        _check_allowing(where, rule)
    return rule


def _check_allowing(where: str, rule: Rule) -> None:
    """What is allowed for ever must be narrow: a kind is what a program calls it, not what it does."""
    if bool(rule.path) == bool(rule.command):
        raise WrongRule(where, "either path or command, to allow it")
    if not rule.command or rule.command[-1] != ANY:
        return
    if len(rule.command) < 3 or os.path.basename(rule.command[0]) in _SHELLS:
        raise WrongRule(f"{where}.command", f"more words of the command before {ANY}, to allow it")
