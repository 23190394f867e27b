"""What is done with a request of an agent: it is allowed, rejected, or a person is asked and waited for.

Decided by what would be done (the real paths of all that would change, the words of the command),
never by what the program calls it: a title or a kind allows nothing, and neither does an "always"
that a program offers. What is not understood for certain is asked. `decide` reads where paths lead,
and changes nothing; a `Gate` answers by it. Where a turn's protocol says beforehand what it may do,
that is read anew at each request, so that an answer needs nobody who watches the turn.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from acp_core.agents.live import answers
from acp_core.agents.live.answers import ACP, Answer, OpenRequest, is_attended
from acp_core.agents.live.binding import in_force
from acp_core.agents.live.requests import (
    ALLOW_ONCE,
    CANCELLED,
    NOT_ALLOWED,
    REJECT_ONCE,
    OwnCommand,
    PermissionRequest,
    one_by_one,
    parse,
    permitted,
    read_form,
)
from acp_core.agents.live.shell import Commands, commands_in, concerns, plain_words
from acp_core.agents.live.turn import Files, Order
from acp_core.agents.loop_directory import LoopDirectory
from acp_core.agents.permissions import NAME
from acp_core.agents.progress import short
from acp_core.model.clock import utc_now
from acp_core.model.errors import AcpError
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


_LOOK = 0.25  # seconds between two looks whether somebody answered


class Judged(NamedTuple):
    """What the policy makes of a request; ``turn`` says what the turn is about, for the person."""

    decision: Decision
    turn: str = ""


Judge = Callable[[PermissionRequest], Judged]

"""Decides a request; may read files, and is called in a thread."""


class Gate:
    """Takes an agent's requests for permission, and its questions.

    Args:
        order: What the runner was asked for.
        judge: The policy.
        note: Is told what was asked and answered, for the journal.
    """

    def __init__(self, order: Order, judge: Judge, note: Callable[..., None]) -> None:
        self._order = order
        self._judge = judge
        self._note = note
        self._open: dict[str, asyncio.Event] = {}

    async def answer(
        self, message: Mapping[str, Any], announced: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """The answer to a request, once there is one.

        Args:
            message: the request as it came.
            announced: the tool call as it was announced before, if it was.
        """
        request = parse(message, announced)
        if request.questions:
            said = await self._answers(request)
            return NOT_ALLOWED if said is None else permitted(request, said)
        withdrawn = self._open[request.id] = asyncio.Event()
        try:
            judged = await asyncio.to_thread(self._judge, request)
            if judged.decision.verdict is not Verdict.ASK:
                self._record(request, judged.decision)
                return self._answered(request, judged.decision.verdict, ACP, judged.decision.why)
            given = await self._ask(request, judged, withdrawn)
        finally:
            del self._open[request.id]
        if given is None:
            return NOT_ALLOWED
        return self._answered(request, given.verdict, given.by, given.message)

    async def fill_in(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a form, once there is one.

        Args:
            message: the form as it came.
        """
        form = read_form(message)
        said = await self._answers(form.request)
        return CANCELLED if said is None else form.filled_in(said)

    async def _answers(self, request: PermissionRequest) -> list[str] | None:
        """What a person answers to each question, "" for nothing; None where nobody waits for it."""
        said: list[str] = []
        withdrawn = self._open[request.id] = asyncio.Event()
        try:
            judged = await asyncio.to_thread(self._judge, request)
            if judged.decision.verdict is not Verdict.ASK:
                self._record(request, judged.decision)
                self._unanswered(request, ACP, judged.decision.why)
                return said
            for each in one_by_one(request):
                given = await self._ask(each, judged, withdrawn)
                if given is None:
                    return None
                if given.by == ACP:  # nobody came: nor would anybody for the others
                    self._unanswered(each, ACP, given.message)
                    break
                if given.message:
                    told = {"request": subject(each), "verdict": "answer", "by": given.by, "why": given.message}  # fmt: skip
                    self._note(permission=told, note=f"{given.by} answered: {given.message}")
                else:
                    self._unanswered(each, given.by, "no answer was given")
                said.append(given.message)
            return said
        finally:
            del self._open[request.id]

    def _unanswered(self, request: PermissionRequest, by: str, why: str) -> None:
        what = subject(request)
        told = {"request": what, "verdict": Verdict.REJECT.value, "by": by, "why": why}
        self._note(permission=told, refused=f"{what} ({why})")

    async def _ask(
        self, request: PermissionRequest, judged: Judged, withdrawn: asyncio.Event
    ) -> Answer | None:
        """Have a person decide, and wait for that; None where the agent does not wait for it."""
        order = self._order
        attended = await asyncio.to_thread(is_attended, utc_now())
        opened = answers.publish(
            order.folder,
            order.participant,
            request,
            attended=attended,
            turn=judged.turn,
            program=order.title,
            ends_turn=order.rejection_ends_turn,
            why=judged.decision.why,
        )
        what = "answer" if request.questions else "permission"
        self._note(note=f"waits for a person's {what}")
        given: Answer | None = None
        try:
            given = await _given(opened, withdrawn)
        finally:
            answers.close(opened, given)
        return given

    def _answered(
        self, request: PermissionRequest, verdict: Verdict, by: str, why: str
    ) -> dict[str, Any]:
        allowed = verdict is Verdict.ALLOW
        what = subject(request)
        told = {"request": what, "verdict": verdict.value, "by": by, "why": why}
        if not allowed:
            self._note(permission=told, refused=f"{what} ({why})" if why else what)
        elif by == ACP:
            self._note(permission=told)
        else:
            self._note(permission=told, note=f"{by} allowed it: {what}")
        option = request.option(ALLOW_ONCE if allowed else REJECT_ONCE)
        if option is None:
            return NOT_ALLOWED
        return {"outcome": {"outcome": "selected", "optionId": option.id}}

    def _record(self, request: PermissionRequest, decision: Decision) -> None:
        order, state = self._order, decision.verdict.value
        answers.record(
            order.folder, order.participant, request, state, ACP, utc_now(), decision.why
        )

    def withdraw(self, request: str | None = None) -> None:
        """Take back open requests: the agent does not wait for them any more.

        Args:
            request: the id of one; None for all.
        """
        for name, withdrawn in self._open.items():
            if request in (None, name):
                withdrawn.set()


async def _given(opened: OpenRequest, withdrawn: asyncio.Event) -> Answer | None:
    """The answer of a person; None where the request is withdrawn before."""
    while not withdrawn.is_set():
        found = await asyncio.to_thread(answers.taken, opened, utc_now())
        if found is not None:
            return found
        try:
            await asyncio.wait_for(withdrawn.wait(), _LOOK)
        except TimeoutError:
            continue
    return None


def subject(request: PermissionRequest) -> str:
    """What a request is about, in one line."""
    if request.questions:
        return short(request.questions[0].text)
    if request.command is not None:
        return short(request.command)
    if request.tool:
        return short(f"{request.server}: {request.tool}")
    what = ", ".join(request.locations) or request.title
    return short(f"{request.kind}: {what}" if request.kind else what)


def judge_of(order: Order) -> Judge:
    """The policy for the turns of a participant."""
    files = Files(LoopDirectory(Path(order.place)))

    def judge(request: PermissionRequest) -> Judged:
        scope = files.load_scope()
        if scope is None:
            return Judged(Decision(Verdict.ASK, "no policy applies here"))
        within = Scope(
            folder=order.folder,
            participant=order.participant,
            documents=scope.documents,
            drafts=str(LoopDirectory(Path(order.place)).drafts),
            folders=scope.folders,
            kept=scope.kept,
            confined=scope.confined,
            server=NAME if scope.tools else "",
            tools=frozenset(scope.tools),
        )
        try:
            allowed = in_force(scope.permissions)
            return Judged(decide(request, within, allowed), scope.what)
        except (AcpError, OSError) as error:
            why = f"the policy cannot decide: {error}"
            return Judged(Decision(Verdict.ASK, why), scope.what)

    return judge
