"""What is done with a request for permission: it is allowed, rejected, or a person decides.

Decided by what would be done (the real paths of all that would change, the words of the command),
never by what the program calls it: a title or a kind allows nothing, and neither does an
"always" that a program offers. What is not understood for certain is asked.

`decide` reads where paths lead, and changes nothing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType, SimpleNamespace
from typing import NamedTuple

from acp_core.agents.live.requests import ALLOW_ONCE, PermissionRequest
from acp_core.agents.live.shell import Commands, commands_in, concerns, plain_words
from acp_core.person.permissions import ANY, Permissions, Policy, Rule, Verdict

_SETTINGS = frozenset(
    {"agents.md", "claude.md", "gemini.md", "qwen.md", "opencode.json", "opencode.jsonc"}
)
"""Files by which programs are told what they may do; like all dotted names, they are asked about."""
_CHANGES = frozenset({"edit", "delete", "move"})
"""What programs call a change; a change that is called otherwise is seen by its differences."""


class Decision(NamedTuple):
    """What is done, and why: a sentence for people."""

    verdict: Verdict
    why: str


@dataclass(frozen=True, slots=True)
class OwnCommand:
    """A command of acp that a participant may run for itself.

    Attributes:
        read: makes values of the words after the command's name; None where they are not plain.
        files: names of the values that are paths of files which the command reads.
    """

    read: Callable[[Sequence[str]], SimpleNamespace | None]
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scope:
    """What a participant's turn is about.

    Attributes:
        folder: the collaboration's; its real path.
        participant: whose turn it is.
        documents: paths of the files that this turn may change.
        drafts: the participant's folder of drafts.
        folders: more folders below which this turn may change files.
        kept: paths below those that are asked about nevertheless.
        confined: what would change files anywhere else is rejected, whatever the policy.
        program: the words by which acp is run, the first one an absolute path.
        commands: acp's commands that the participant may run, by name.
        server: the MCP server that we handed to the program; "" for none.
        tools: that server's tools.
    """

    folder: str = ""
    participant: str = ""
    documents: tuple[str, ...] = ()
    drafts: str = ""
    folders: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    confined: bool = False
    program: tuple[str, ...] = ()
    commands: Mapping[str, OwnCommand] = field(default_factory=lambda: MappingProxyType({}))
    server: str = ""
    tools: frozenset[str] = frozenset()


def decide(request: PermissionRequest, scope: Scope, permissions: Permissions) -> Decision:
    """What is done with a request.

    Args:
        request: what the program wants to do.
        scope: what its turn is about.
        permissions: what the person lets programs do.
    """
    if permissions.policy is Policy.NONE:
        return Decision(Verdict.REJECT, "the policy rejects everything")
    if request.questions:
        return _ask("it is a question to a person")
    made = (
        _by_rule(request, permissions.rules)
        or _beyond(request, scope)
        or _by_policy(request, scope, permissions.policy)
    )
    if made.verdict is Verdict.ALLOW and request.option(ALLOW_ONCE) is None:
        return _ask("the program offers no way to allow it once")
    return made


def _ask(why: str) -> Decision:
    return Decision(Verdict.ASK, why)


def _beyond(request: PermissionRequest, scope: Scope) -> Decision | None:
    """What is done with a change outside of the folders to which a participant is confined."""
    if not scope.confined or not (request.diffs or request.kind in _CHANGES):
        return None
    if not request.locations or any(not each.path for each in request.diffs):
        return _ask("it does not name the file that changes")
    for path in request.locations:
        real = _real(path, request.workdir)
        if not real:
            return _ask("it names a path in an unknown folder")
        if all(_below(real, root) is None for root in (scope.drafts, *scope.folders) if root):
            return Decision(Verdict.REJECT, "it may change files only in its own folder")
        if not _is_single(real):
            return _ask("what it changes has other names too, or is not a file")
    return None


def _by_policy(request: PermissionRequest, scope: Scope, policy: Policy) -> Decision:
    if policy is Policy.ALL:
        return Decision(Verdict.ALLOW, "the policy allows everything")
    if policy is Policy.ASK:
        return _ask("the policy is to ask about everything")
    if request.doubts:
        return _ask(f"it cannot be read for certain: {request.doubts[0]}")
    if request.server or request.tool:
        if scope.server and request.server == scope.server and request.tool in scope.tools:
            return Decision(Verdict.ALLOW, "it is a tool of acp's own server")
        return _ask("it is a tool of another MCP server")
    if request.command is not None:
        why, what = _foreign_command(request, scope), "it is one of acp's own commands"
    else:
        why, what = (
            _foreign_change(request, scope),
            "it changes only the turn's documents and drafts",
        )
    return _ask(why) if why else Decision(Verdict.ALLOW, what)


def _foreign_command(request: PermissionRequest, scope: Scope) -> str:
    """Why a command is not one that the participant may run for itself; "" where it is."""
    words = plain_words(request.command or "")
    if words is None:
        return "a shell could do more than the command's words say"
    size = len(scope.program)
    if not size or not os.path.isabs(scope.program[0]) or words[:size] != scope.program:
        is_acp = bool(words) and os.path.basename(words[0]) == "acp"
        return "it does not run acp by its full path" if is_acp else "it is no command of acp"
    name = words[size] if len(words) > size else ""
    own = scope.commands.get(name)
    if own is None:
        return "it is not a command of acp that is a participant's own"
    values = own.read(words[size + 1 :])
    if values is None:
        return "its options are not plainly those of acp's command"
    if _real(values.folder, request.workdir) != os.path.realpath(scope.folder):
        return "it is about another folder"
    if getattr(values, "participant", scope.participant) != scope.participant:
        return "it acts as another participant"
    for file in own.files:
        path = getattr(values, file)
        real = _real(path, request.workdir) if path else ""
        if path and not (_is_inside(real, (scope.folder, scope.drafts)) and _is_single(real)):
            return "it reads a file outside the collaboration and the drafts"
    return ""


def _foreign_change(request: PermissionRequest, scope: Scope) -> str:
    """Why a change is not one of the turn's documents or drafts; "" where it is."""
    if not request.diffs:
        return "it names neither a command nor a change"
    if any(not each.path for each in request.diffs):
        return "it does not name the file that changes"
    documents = {_in_its_folder(each) for each in scope.documents}
    for path in request.locations:
        real = _real(path, request.workdir)
        if not real:
            return "it names a path in an unknown folder"
        own = real in documents or _is_inside(real, (scope.drafts, *scope.folders))
        guarded = _is_guarded(os.path.basename(real)) or _is_inside(real, scope.kept)
        if guarded or not own:
            return "it changes something other than the turn's documents and drafts"
        if not _is_single(real):
            return "what it changes has other names too, or is not a file"
    return ""


def _by_rule(request: PermissionRequest, rules: Sequence[Rule]) -> Decision | None:
    """What the first rule that applies says; None where none does."""
    run = commands_in(request.command or "") if any(each.command for each in rules) else Commands()
    for rule in rules:
        if rule.kind and rule.kind != request.kind:
            continue
        if rule.verdict is Verdict.ALLOW:
            if _allows(request, rule, run):
                return Decision(rule.verdict, f"your rule applies: {rule}")
            continue
        applies = _is_run(request, rule, run) if rule.command else True
        if applies is not False and rule.path:
            applies = _both(applies, _is_changed(request, rule.path))
        if applies is None or request.doubts:
            more = f" ({run.unclear})" if rule.command and run.unclear else ""
            return _ask(f"it cannot be said for certain whether your rule applies: {rule}{more}")
        if applies:
            return Decision(rule.verdict, f"your rule applies: {rule}")
    return None


def _allows(request: PermissionRequest, rule: Rule, run: Commands) -> bool:
    """Whether all of a request is what a rule allows."""
    if request.doubts or request.server or request.tool:
        return False
    if rule.command:
        words = plain_words(request.command or "")
        if words is None or not _matches(rule.command, words):
            return False
        return rule.command[-1] != ANY or (not run.unclear and set(run.found) == {words})
    if request.command is not None or not request.diffs or not request.locations:
        return False
    paths = [_real(each, request.workdir) for each in request.locations]
    return all(_is_inside(each, (rule.path,)) and _is_single(each) for each in paths)


def _is_run(request: PermissionRequest, rule: Rule, run: Commands) -> bool | None:
    """Whether a request runs what a rule names; None where that is not certain."""
    if request.command is None:  # one program names its command in the title alone
        return None if request.kind == "execute" and not request.server else False
    found = {concerns(rule.command, each, ANY) for each in run.found}
    return True if True in found else None if None in found or run.unclear else False


def _is_changed(request: PermissionRequest, path: str) -> bool | None:
    """Whether a request names what lies at a path; None where it changes what it does not name."""
    paths = [_real(each, request.workdir) for each in request.locations]
    if any(each and _below(each, path) is not None for each in paths):
        return True
    unnamed = not paths and (request.diffs or request.kind in _CHANGES)
    return None if unnamed or not all(paths) or any(not each.path for each in request.diffs) else False  # fmt: skip


def _both(one: bool | None, other: bool | None) -> bool | None:
    return False if one is False or other is False else None if None in (one, other) else True


def _matches(rule: tuple[str, ...], words: tuple[str, ...]) -> bool:
    if rule[-1] == ANY:
        return words[: len(rule) - 1] == rule[:-1]
    return words == rule


def _real(path: str, workdir: str) -> str:
    """Where a path leads; "" where that depends on a folder that is not known."""
    if "\0" in path or not os.path.isabs(os.path.join(workdir, path)):
        return ""
    return os.path.realpath(os.path.join(workdir, path))


def _in_its_folder(path: str) -> str:
    """A path whose folder's links are resolved; a link in its own place leads nowhere."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


def _below(real: str, root: str) -> str | None:
    """The rest of a real path below a folder, "" for the folder itself; None where it is not below."""
    top = _in_its_folder(root).rstrip("/")
    if real == top:
        return ""
    return real[len(top) + 1 :] if real.startswith(f"{top}/") else None


def _is_inside(real: str, roots: Sequence[str]) -> bool:
    """Whether a real path lies below one of some folders, and no name on the way is guarded."""
    for root in filter(None, roots):
        rest = _below(real, root) if real else None
        if rest is not None and not any(_is_guarded(name) for name in rest.split("/")):
            return True
    return False


def _is_guarded(name: str) -> bool:
    return name.startswith(".") or name.lower() in _SETTINGS


def _is_single(real: str) -> bool:
    """Whether a file does not exist yet, or is a regular file that has no other name."""
    try:
        found = os.lstat(real)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_nlink == 1
