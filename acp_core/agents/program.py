"""Which program acts for a participant: its preset, where it is, and where it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from acp_core.agents import spawn
from acp_core.agents.presets import Preset
from acp_core.agents.spawn import Command, SpawnError, Values
from acp_core.agents.tool_servers import NO_TOOLS, ToolServer


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
