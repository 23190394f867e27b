"""Which program acts for a participant, and how it is started, watched and ended.

A program is started alone in its own process group (`start_program`) and watched until it has ended
(`Attempt`, which never waits by itself). Nothing ever goes through a shell: a prompt is one argument,
or a file that is the program's standard input or is named to it. Programs get no terminal, and no
standard input that stays open. One whose end must be known whoever is gone by then runs in a folder of its own
(`start_shielded`) under `acp_core.agents.shim`, which holds the folder's lock as long as it runs: so
the folder tells whoever comes later whether it runs, and how it ended. `Program` is what acts for a
participant: its preset, where it is, where it runs, and what it trusts. Gemini CLI starts no MCP
server in a folder that its person has not trusted, and says nothing about it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, Protocol

from acp_core.agents import shim
from acp_core.agents.permissions import NO_TOOLS, Scope, ToolServer, asking, grant
from acp_core.agents.presets import Preset
from acp_core.agents.processes import GRACE, Identity, identify
from acp_core.agents.progress import string, table
from acp_core.files import atomic, git
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import NotStarted

QUIET = {"NO_COLOR": "1", "TERM": "dumb"}

_UNSET = ("FORCE_COLOR", "CLICOLOR_FORCE")

_ARGUMENT = 120_000  # bytes of one argument; Linux refuses 128 KiB

_DECLINED = "n\n" * 1_000  # at the end of its input a program would take its own default

_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+\-]*")

_PLACE = re.compile(r"\{(prompt|prompt_file|folder|workdir|drafts|model|tool|document)\}")


class SpawnError(NotStarted):
    """The program cannot be started; the message is one line that says why."""


@dataclass(frozen=True, slots=True)
class Values:
    """What the places in a preset's arguments stand for (see ``presets.toml``).

    ``own`` is the only folder, beside the drafts, below which the program may change files; "" where
    it may below the working folder and the collaboration.
    """

    folder: str
    workdir: str
    drafts: str
    prompt: str = ""
    prompt_file: str = ""
    model: str = ""
    tool: str = "acp"
    commands: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    server: ToolServer = NO_TOOLS
    own: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """A program, ready to be started.

    Attributes:
        argv, cwd, env: how.
        stdin: the file that it reads; None for nothing.
        files: what it must find in which files.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str] = field(repr=False)
    stdin: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Exit:
    """How a program ended: with an exit code, by a signal, or (both None) unseen."""

    code: int | None = None
    signal: int | None = None

    def __str__(self) -> str:
        if self.signal is not None:
            with contextlib.suppress(ValueError):
                return f"killed by {signal.Signals(self.signal).name}"
            return f"killed by signal {self.signal}"
        return "ended unseen" if self.code is None else f"exit code {self.code}"


def resolve(program: str, cwd: str | None = None) -> str:
    """The absolute path of a program.

    Raises:
        SpawnError: there is none, or it cannot be run.
    """
    if os.sep in program:
        path = os.path.abspath(os.path.join(cwd or ".", os.path.expanduser(program)))
        if not os.path.isfile(path):
            raise SpawnError(f"{program}: no such program")
        if not os.access(path, os.X_OK):
            raise SpawnError(f"{program}: is not executable")
        return path
    found = shutil.which(program) if program else None
    if not found:
        raise SpawnError(f"{program or 'no program'}: not found on PATH")
    return os.path.abspath(found)


def version(program: str, arguments: Sequence[str] = ("--version",), timeout: float = 20.0) -> str:
    """What the program says its version is: "" where it says none.

    Args:
        program: its absolute path.
        arguments: what makes it print its version; none where it is not to be run for that.
        timeout: seconds after which it is stopped.
    """
    if not arguments:
        return ""
    try:
        process = subprocess.Popen(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            start_new_session=True,
        )
    except (OSError, ValueError):
        return ""
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        output = b""
    finally:
        with contextlib.suppress(OSError):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout:
            process.stdout.close()
    text = output[:4096].decode(errors="replace")
    found = _VERSION.search(text)
    return found[0] if found else " ".join(text.split())[:40]


def environment(preset: Preset | None = None) -> dict[str, str]:
    """The variables that a program gets: ours without colours, and what its preset says."""
    env = {name: text for name, text in os.environ.items() if name not in _UNSET} | QUIET
    if preset:
        for name in preset.unset:
            env.pop(name, None)
        env |= preset.env
    return env


def build(preset: Preset, values: Values, program: str | None = None) -> Command:
    """The command that runs a preset's program for one turn.

    Args:
        preset: how it is run.
        values: what the places in its arguments stand for.
        program: its absolute path, where it was resolved already.

    Raises:
        SpawnError: the program is not there, or the prompt is too long for an argument.
    """
    if values.own and preset.sandboxed:
        values = replace(values, folder=values.own, workdir=values.own)
    asked = "{permissions}" in preset.args  # own arguments bring permissions of their own
    granted = grant(preset.permissions if asked else "", _scope(preset, values))
    found = program or resolve(preset.program, values.workdir)
    argv = _words(found, preset.args, preset, values, granted.args)
    if any(len(word.encode(errors="surrogateescape")) > _ARGUMENT for word in argv):
        raise SpawnError("the prompt is too long for an argument; set prompt to 'stdin' or 'file'")
    stdin = values.prompt_file if preset.prompt == "stdin" and values.prompt_file else None
    files = granted.files
    if "{confirmation}" in preset.args and preset.declined_args and values.documents:
        stdin = f"{os.path.splitext(values.prompt_file)[0]}.declined"
        files = {**files, stdin: _DECLINED}
    env = {**environment(preset), **granted.env}
    return Command(tuple(argv), values.workdir, env, stdin, files)


def build_live(preset: Preset, values: Values) -> Command:
    """The command that holds a live session with a preset's program.

    Args:
        preset: how it is run.
        values: what the places in its arguments stand for; a prompt is not among them.

    Raises:
        SpawnError: the program is not there.
    """
    program = live_program(preset, values.workdir)
    argv = _words(program, preset.live[1:], preset, values)
    env = environment(preset) | dict(preset.live_env) | dict(asking(preset.permissions))
    return Command(tuple(argv), values.workdir, env)


def live_program(preset: Preset, workdir: str) -> str:
    """The absolute path of the program that holds a preset's live session.

    Raises:
        SpawnError: it is not there.
    """
    name = preset.program if preset.live[0] == "{program}" else preset.live[0]
    try:
        return resolve(name, workdir)
    except SpawnError as error:
        hint = f" (install it: {preset.live_install})" if preset.live_install else ""
        raise SpawnError(f"{error}{hint}") from None


def _words(
    program: str,
    args: Sequence[str],
    preset: Preset,
    values: Values,
    permissions: Sequence[str] = (),
) -> list[str]:
    argv = [program]
    for arg in args:
        if arg == "{model_args}":
            argv += [_fill(each, values) for each in preset.model_args if values.model]
        elif arg == "{documents}":
            argv += _each(preset.document_args, values.documents)
        elif arg == "{reads}":
            argv += _each(preset.read_args, values.reads)
        elif arg == "{permissions}":
            argv += permissions
        elif arg == "{confirmation}":
            argv += preset.declined_args if values.documents else preset.confirmed_args
        else:
            argv.append(_fill(arg, values))
    return argv


def _scope(preset: Preset, values: Values) -> Scope:
    named = (values.own,) if values.own else (values.workdir, values.folder)
    folders = [each for each in (*named, values.drafts) if os.path.isabs(each)]
    policy = os.path.splitext(values.prompt_file)[0] + ".toml"
    server = values.server if preset.tools else NO_TOOLS
    commands = (*values.commands, *preset.allow)
    own, top = bool(values.own), (git.top(values.workdir) or "/") if values.own else "/"
    return Scope(commands, tuple(dict.fromkeys(folders)), policy, server, own, top)


def _each(args: Sequence[str], documents: Sequence[str]) -> list[str]:
    return [arg.replace("{document}", document) for document in documents for arg in args]


def _fill(argument: str, values: Values) -> str:
    """Fill in the places, all at once: what is filled in is never looked at for more."""
    return _PLACE.sub(
        lambda place: place[0] if place[1] == "document" else str(getattr(values, place[1])),
        argument,
    )


class Child:
    """A program that was started here, or one that a watcher before us started (`adopt`).

    Attributes:
        identity: the process; it leads its own session and process group.
    """

    def __init__(self, identity: Identity, process: subprocess.Popen[bytes] | None = None) -> None:
        self.identity = identity
        self._process = process
        self._exit: Exit | None = None

    def poll(self) -> Exit | None:
        """How it ended, or None while it runs."""
        if self._exit is None:
            if self._process is None:
                self._exit = None if self.identity.alive() else Exit()
            elif (code := self._process.poll()) is not None:
                self._exit = Exit(signal=-code) if code < 0 else Exit(code=code)
        return self._exit

    def signal(self, number: int) -> None:
        """Send a signal to it and to everything in its process group."""
        if self.poll() is None:
            with contextlib.suppress(OSError):
                os.killpg(self.identity.pid, number)


def adopt_program(identity: Identity) -> Child:
    """A program that somebody else started: how it ends cannot be seen, only that it did."""
    return Child(identity)


def start_program(command: Command, out: Path, err: Path) -> Child:
    """Start a program, alone in a new session, printing into two files.

    Raises:
        SpawnError: it cannot be started.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    with contextlib.ExitStack() as stack:

        def opened(path: str | Path, how: int) -> int:
            fd = os.open(path, how, 0o600)
            stack.callback(os.close, fd)
            return fd

        try:
            for path, content in command.files.items():
                atomic.replace(path, content.encode(), sync=False, private=True)
            process = subprocess.Popen(
                command.argv,
                stdin=opened(command.stdin or os.devnull, os.O_RDONLY | os.O_CLOEXEC),
                stdout=opened(out, flags),
                stderr=opened(err, flags),
                cwd=command.cwd,
                env=dict(command.env),
                start_new_session=True,
                umask=atomic.umask_in(command.cwd),
            )
        except (OSError, ValueError) as error:
            raise SpawnError(_why(command, error)) from None
    return Child(identify(process.pid) or Identity(process.pid, 0.0), process)


def _why(command: Command, error: OSError | ValueError) -> str:
    name = os.path.basename(command.argv[0])
    if not isinstance(error, OSError):
        return f"{name}: {error}"
    if not os.path.isdir(command.cwd):
        return f"{name}: no such working folder: {command.cwd}"
    if error.errno == errno.ENOEXEC:
        return f"{name}: not a program that this machine can run"
    return f"{name}: {error.strerror or error}"


_STEP = 0.05  # seconds between two looks


class Process(Protocol):
    """A program at work, however it was come by."""

    def poll(self) -> Exit | None:
        """How it ended, or None while it runs."""

    def signal(self, number: int) -> None:
        """Send a signal to it and to everything in its process group."""


class Attempt:
    """Watches a program; whoever has it calls `poll` until the program has ended.

    Args:
        process: the program.
        grace: seconds between asking it to end and making it.

    Attributes:
        stopped: why it was asked to end; "" where it was not.
    """

    def __init__(self, process: Process, grace: float = GRACE) -> None:
        self._process = process
        self._grace = grace
        self._kill_at: float | None = None
        self.stopped = ""

    def poll(self) -> Exit | None:
        """How the program ended, or None while it runs.

        One that was asked to end and did not within its time is made to.
        """
        ended = self._process.poll()
        if ended is None and self._kill_at is not None and time.monotonic() > self._kill_at:
            self._process.signal(signal.SIGKILL)
        return ended

    def stop(self, why: str) -> bool:
        """Ask the program to end, once.

        Args:
            why: the reason; with "" nothing is done.

        Returns:
            Whether it was asked now.
        """
        if self.stopped or not why:
            return False
        self.stopped = why
        self._process.signal(signal.SIGTERM)
        self._kill_at = time.monotonic() + self._grace
        return True

    def wait(self, seconds: float | None = None, late: str = "it exceeded its time limit") -> Exit:
        """Wait until the program has ended.

        Args:
            seconds: after which it is stopped; None for never.
            late: the reason that is given then.
        """
        until = None if seconds is None else time.monotonic() + seconds
        while (ended := self.poll()) is None:
            if until is not None and time.monotonic() > until:
                self.stop(late)
            time.sleep(_STEP)
        return ended


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
        made = build(self.preset, values, self.path or None)
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
        made = build_live(self.preset, values)
        return replace(made, env={**made.env, **env})


def locate(preset: Preset, workdir: str) -> str:
    """The absolute path of a preset's program.

    Raises:
        SpawnError: it is not there; the message says how it is installed, where that is known.
    """
    try:
        return resolve(preset.program, workdir)
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


_SHIM = str(Path(shim.__file__).resolve())

_QUICK, _SLOW = 0.02, 0.1  # seconds between two looks, at first and later

_RUNS_FOR = 2.0

OUT, ERR = "out", "err"


class Ended(NamedTuple):
    """How a program ended. ``stopped``: why it was ended from here; "" where it was not."""

    exit: Exit
    stopped: str


class Shielded:
    """The program that runs in a folder, or ran there.

    Args:
        folder: the folder; it keeps what the program prints (`OUT`, `ERR`).
        child: the program's process, where it was started from here.
    """

    def __init__(self, folder: Path, child: Child | None = None) -> None:
        self._folder = folder
        self._child = child

    def poll(self) -> Exit | None:
        """How it ended, or None while it runs."""
        if self._child is not None:
            ended = self._child.poll()
            return ended and (exit_of(self._folder) or ended)
        written = exit_of(self._folder)
        if written is None and _holder(self._folder) is None:
            return exit_of(self._folder) or Exit()
        return written

    def signal(self, number: int) -> None:
        """Send a signal to it and to everything in its process group."""
        if self._child is not None:
            self._child.signal(number)
        elif pid := _holder(self._folder):
            with contextlib.suppress(OSError):
                os.killpg(pid, number)


def start_shielded(folder: Path, command: Command) -> Shielded:
    """Start a program in a folder; one that runs or ran there already is taken over instead.

    Raises:
        SpawnError: it cannot be started.
        OSError: what an earlier one printed cannot be removed.
    """
    if exit_of(folder) is not None or _holder(folder) is not None:
        return Shielded(folder)
    for name in (OUT, ERR):
        (folder / name).unlink(missing_ok=True)
    argv = (sys.executable, "-I", "-S", _SHIM, str(folder), *command.argv)
    shimmed = replace(command, argv=argv)
    return Shielded(folder, start_program(shimmed, folder / OUT, folder / ERR))


async def run_shielded(
    folder: Path, command: Command, seconds: float, grace: float, why: Callable[[], str]
) -> Ended:
    """Run a program in ``folder`` to its end; one that runs there already is watched instead.

    Args:
        folder: where it runs, and what it prints is kept.
        command: the program.
        seconds: after which it is ended.
        grace: seconds between asking it to end and making it.
        why: says why it should be ended now, or "".

    Raises:
        SpawnError: it cannot be started.
        OSError: what an earlier one printed cannot be removed.
    """
    attempt = Attempt(start_shielded(folder, command), grace)
    began = time.monotonic()
    while (ended := attempt.poll()) is None:
        ran = time.monotonic() - began
        attempt.stop(why() or (f"not through after {seconds:g} s" if ran > seconds else ""))
        await asyncio.sleep(_QUICK if ran < _RUNS_FOR or attempt.stopped else _SLOW)
    return Ended(ended, attempt.stopped)


def exit_of(folder: Path) -> Exit | None:
    """How the program in a folder ended; None where it has not, or was never begun."""
    try:
        code = int((folder / shim.EXIT).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return Exit(signal=-code) if code < 0 else Exit(code=code)


def _holder(folder: Path) -> int | None:
    """The process that runs in a folder now, or None."""
    try:
        with open(folder / shim.LOCK, "r+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return int(file.read(20) or b"0")
    except (OSError, ValueError):
        pass
    return None
