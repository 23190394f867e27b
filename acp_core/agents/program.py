"""Which program acts for a participant: its preset, where it is, where it runs, and what it trusts.

Gemini CLI starts no MCP server in a folder that its person has not trusted, and says nothing about it.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from acp_core.agents import spawn
from acp_core.agents.permissions import NO_TOOLS, ToolServer
from acp_core.agents.presets import Preset
from acp_core.agents.progress import string, table
from acp_core.agents.spawn import Command, SpawnError, Values
from acp_core.files.reading import Unreadable, read_bounded


@dataclass(frozen=True, slots=True)
class Program:
    """The program that acts for a participant.

    Attributes:
        preset: how it is run.
        folder: the collaboration: a real path or a URL.
        workdir: where it runs.
        path: its absolute path; "" where it is to be looked for when it is started.
        model: which model it uses; "" for its own choice.
        version: what it said when it was asked; "" where it was not.
        live: its turns are taken in a live session.
        not_live: why they are not, for one that could; "" where there is nothing to say.
    """

    preset: Preset
    folder: str
    workdir: str
    path: str = ""
    model: str = ""
    version: str = ""
    live: bool = False
    not_live: str = ""

    @property
    def live_state(self) -> str:
        """Whether its turns are taken in a live session, as `Saved` says it."""
        return "yes" if self.live else f"no: {self.not_live}" if self.not_live else ""

    @property
    def title(self) -> str:
        """Its name, version and model, for people."""
        name = self.preset.title or self.preset.name
        return " ".join(filter(None, (name, self.version, self.model)))

    @property
    def words(self) -> tuple[str, ...]:
        """The program and its arguments, the places for what each attempt gets not filled in."""
        return (self.path or self.preset.program, *self.preset.args)

    def command(
        self,
        prompt: str,
        prompt_file: str,
        drafts: str,
        env: Mapping[str, str],
        *,
        tool: str = "acp",
        commands: Sequence[str] = (),
        documents: Sequence[str] = (),
        reads: Sequence[str] = (),
        server: ToolServer = NO_TOOLS,
        own: str = "",
    ) -> Command:
        """The command of one attempt.

        Args:
            prompt: what the program is told; ``prompt_file`` a file with the same.
            drafts: where it may write what is not yet meant for others.
            env: variables that it gets beside its usual ones.
            tool: the first words of the commands that its prompt names; ``commands`` their
                beginnings as they must be allowed to run.
            documents: what the attempt changes; ``reads`` what it is about.
            server: the server of its participant's tools, if its preset asks for them.
            own: the only folder, beside its drafts, below which it may change files; "" for its
                usual ones.

        Raises:
            SpawnError: the program is not there, or the prompt is too long for an argument.
        """
        values = Values(
            folder=self.folder,
            workdir=self.workdir,
            drafts=drafts,
            prompt=prompt,
            prompt_file=prompt_file,
            model=self.model,
            tool=tool,
            commands=tuple(commands),
            documents=tuple(documents),
            reads=tuple(reads),
            server=server,
            own=own,
        )
        made = spawn.build(self.preset, values, self.path or None)
        return replace(made, env={**made.env, **env})

    def live_command(self, drafts: str, env: Mapping[str, str]) -> Command:
        """The command that holds its live session.

        Args:
            drafts: where it may write what is not yet meant for others.
            env: variables that it gets beside its usual ones.

        Raises:
            SpawnError: the program is not there.
        """
        values = Values(self.folder, self.workdir, drafts, model=self.model)
        made = spawn.build_live(self.preset, values)
        return replace(made, env={**made.env, **env})


def locate(preset: Preset, workdir: str) -> str:
    """The absolute path of a preset's program.

    Raises:
        SpawnError: it is not there; the message says how it is installed, where that is known.
    """
    try:
        return spawn.resolve(preset.program, workdir)
    except SpawnError as error:
        hint = f" (install it: {preset.install})" if preset.install else ""
        raise SpawnError(f"{error}{hint}") from None


_ASKS = "gemini"  # the program, by whose permissions it understands

_LARGEST = 1 << 20

_PARENT, _NEVER = "TRUST_PARENT", "DO_NOT_TRUST"

_TRUSTED = ("TRUST_FOLDER", _PARENT)

# A text, which stays as it is, or a comment, which the program reads over.
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*+")|//[^\n]*|/\*.*?\*/', re.S)

EFFECT = "gives its model no MCP tools in a folder that you have not told it to trust"
"""What such a program does, to be put behind its name."""


def asks(preset: Preset) -> bool:
    """Whether a preset's program wants to be told which folders it may trust."""
    return preset.permissions == _ASKS


def missing(preset: Preset, folder: str) -> str:
    """Why a program's model gets no tools in a folder, and the cure; "" where it gets them.

    Where one of the program's own files cannot be read, it counts as trusting no folder.

    Args:
        preset: the program's.
        folder: where it would run.
    """
    if not asks(preset):
        return ""
    title = preset.title or preset.name
    try:
        if _is_trusted(folder):
            return ""
    except _Damaged:
        return f"{title} {EFFECT}: {cure(preset, folder)}"
    return f"{title} {EFFECT}, and {folder} is none: {cure(preset, folder)}"


def cure(preset: Preset, folder: str = "") -> str:
    """What a person does about it.

    Args:
        preset: the program's.
        folder: where it would run; "" where that is not known yet.
    """
    try:
        _is_trusted(folder)
    except _Damaged as damaged:
        return f"correct {damaged}: acp cannot tell what you trust"
    where = folder or "the folder where the agent works"
    return f"run `{preset.program}` in {where} once, and trust the folder"


def _is_trusted(folder: str) -> bool:
    """Whether the program trusts a folder, by the same rules as it decides that itself.

    Raises:
        _Damaged: a file that decides it cannot be read.
    """
    said = os.environ.get("GEMINI_CLI_TRUST_WORKSPACE", "")
    if os.environ.get("GEMINI_RESTRICTED_MODE") == "true" or said == "false":
        return False
    if said == "true":
        return True
    home = Path(os.environ.get("GEMINI_CLI_HOME") or "~").expanduser() / ".gemini"
    settings = _read(home / "settings.json")
    if table(table(settings.get("security")).get("folderTrust")).get("enabled") is False:
        return True
    trusted = _read(
        Path(os.environ.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH") or home / "trustedFolders.json")
    )
    real, longest, level = Path(os.path.realpath(folder)), -1, ""
    for rule, value in trusted.items():
        place = os.path.dirname(rule) if value == _PARENT else rule
        if len(rule) > longest and real.is_relative_to(os.path.realpath(place)):
            longest, level = len(rule), string(value)
    return level in _TRUSTED


class _Damaged(Exception):
    """Which file cannot be read, and why."""


def _read(path: Path) -> dict[str, object]:
    """A file of the program's settings; empty where there is none.

    Raises:
        _Damaged: it cannot be read.
    """
    try:
        text = read_bounded(path, _LARGEST).decode()
        found = json.loads(_COMMENT.sub(r"\1", text))
    except Unreadable as error:
        if error.errno == errno.ENOENT:
            return {}
        raise _Damaged(f"{path}, which cannot be read ({error.reason})") from None
    except (ValueError, RecursionError):
        raise _Damaged(f"{path}, which is no JSON") from None
    if not isinstance(found, dict):
        raise _Damaged(f"{path}, which is no JSON object")
    return found
