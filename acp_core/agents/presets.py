"""How a program is run for one turn: presets, as data; and which of their programs this machine has.

A search goes through every folder of ``PATH``, so that its outcome holds for a moment.
"""

from __future__ import annotations

import os
import shlex
import shutil
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache, lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from acp_core.agents import permissions, streams
from acp_core.model.errors import Refused

PROMPTS = ("stdin", "argv", "file")

TELLS = ("", "running", "end", "never")

COMMANDS = "acp {command}"
"""How a prompt names a command: ``{command}`` is acp's name for it ("append"), ``{script}`` the
file name of the bundled script ("append_event.py")."""

ANY = "command"


class PresetError(Refused):
    """A preset is not what it should be; the message is one line that says where and what."""


@dataclass(frozen=True, slots=True)
class Preset:
    """How one program is run.

    Attributes:
        name: by which it is chosen.
        title: for people.
        program: the program, found on the PATH, or a path.
        args: what follows it, with the places that ``presets.toml`` explains.
        model_args: what chooses a model; stands for ``{model_args}``.
        document_args, read_args: what names one document that the turn changes, or one that it
            is about; stand for ``{documents}`` and ``{reads}``, once for each.
        confirmed_args, declined_args: what makes it do all that it would ask about, or ask; the
            first stands for ``{confirmation}`` where a turn names no documents. Elsewhere it is
            the second, and its input declines each question: it changes these documents alone.
        prompt: how the prompt reaches it: one of `PROMPTS`.
        stream: what it prints: one of `streams.NAMES`.
        permissions: whose permissions it understands: one of `permissions.NAMES`; what they say
            stands for ``{permissions}``.
        allow: beginnings of commands that it may run beside those that its prompt names.
        commands: how its prompts name the protocol's commands, see `COMMANDS`.
        append_after_change: it cannot run commands: the loop appends its events.
        version_args: what makes it print its version.
        env: variables that it gets; unset: variables that it must not see.
        exits: what its exit codes mean.
        tested: the version that these arguments were tried with; "" where none was.
        install, login: commands for people.
        tells_cost, tells_tokens: when it says what it takes: one of `TELLS` ("" where not known).
        live_tells_tokens: when it says its tokens in a live session; its cost it says at the end of
            a turn there, if at all.
        login_files, login_env: files, and variables, of which one is there where it is logged in,
            as a rule; a ``$NAME`` in a path is a variable.
        may: what it may do without asking, where ``permissions`` do not say so, or beside that.
        caution: what a person should know before it is started; "" where nothing.
        live: the program and its arguments that hold a live session, by the Agent Client
            Protocol; empty where it cannot.
        live_install: a command for people, where that is another program than ``program``.
        ask_mode: the permission mode of such a session in which the program asks before it acts;
            "" where it asks anyway.
        none_mode: the mode of such a session for the policy that rejects everything; "" for
            ``ask_mode``. A program that is ``sandboxed`` needs one: it can change nothing in it.
        asks_not: what it does in such a session without asking; "" where nothing is known.
        live_env: variables that only such a session gets.
        sandboxed: its own sandbox opens the folders that its arguments name, and no others.
        rejection_ends_turn: it ends its turn in such a session when a request is rejected.
        tools: it gets the tools of its participant in an attempt, too, and may use each (a live
            session always has them).
        price_in, price_out: US dollars per million tokens, for estimates where the program names
            no cost; None where not known.
    """

    name: str
    title: str = ""
    program: str = ""
    args: tuple[str, ...] = ()
    model_args: tuple[str, ...] = ()
    document_args: tuple[str, ...] = ()
    read_args: tuple[str, ...] = ()
    confirmed_args: tuple[str, ...] = ()
    declined_args: tuple[str, ...] = ()
    prompt: str = "stdin"
    stream: str = "text"
    permissions: str = ""
    allow: tuple[str, ...] = ()
    commands: str = COMMANDS
    append_after_change: bool = False
    version_args: tuple[str, ...] = ("--version",)
    env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    unset: tuple[str, ...] = ()
    exits: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    tested: str = ""
    install: str = ""
    login: str = ""
    login_files: tuple[str, ...] = ()
    login_env: tuple[str, ...] = ()
    may: str = ""
    caution: str = ""
    tells_cost: str = ""
    tells_tokens: str = ""
    live_tells_tokens: str = "end"
    live: tuple[str, ...] = ()
    live_install: str = ""
    ask_mode: str = ""
    none_mode: str = ""
    asks_not: str = ""
    live_env: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    rejection_ends_turn: bool = False
    sandboxed: bool = False
    tools: bool = False
    price_in: float | None = None
    price_out: float | None = None

    def as_table(self) -> dict[str, Any]:
        """The preset as `parse` reads it, ready for JSON."""
        table: dict[str, Any] = {}
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name == "name" or value is None:
                continue
            if isinstance(value, tuple):
                value = list(value)
            elif isinstance(value, Mapping):
                value = {str(key): text for key, text in value.items()}
            table[each.name] = value
        return table


_TEXTS = (
    "title",
    "program",
    "prompt",
    "stream",
    "permissions",
    "commands",
    "tested",
    "install",
    "login",
    "caution",
    "may",
    "tells_cost",
    "tells_tokens",
    "live_tells_tokens",
    "ask_mode",
    "none_mode",
    "asks_not",
    "live_install",
)

_LISTS = ("args", "model_args", "document_args", "read_args", "version_args", "unset", "allow",
          "login_files", "login_env", "live", "confirmed_args", "declined_args")  # fmt: skip

_PRICES = ("price_in", "price_out")


def parse(name: str, table: Mapping[str, object], base: Preset | None = None) -> Preset:
    """A preset from a table of ``presets.toml`` or ``config.toml``.

    Args:
        name: the table's name.
        table: what stands in it; ``extends`` names the preset that it changes.
        base: that preset.

    Raises:
        PresetError: something in it is not what it should be.
    """
    where = f"presets.{name}"
    if not isinstance(table, Mapping):
        raise PresetError(f"{where}: must be a table")
    known = {each.name for each in fields(Preset)} - {"name"} | {"extends"}
    unknown = sorted(str(key) for key in table if key not in known)
    if unknown:
        raise PresetError(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(sorted(known))}")
    changes: dict[str, Any] = {}
    for key, value in table.items():
        if key != "extends":
            changes[key] = _value(f"{where}.{key}", key, value)
    preset = replace(base or Preset(name), name=name, **changes)
    _check(where, preset)
    return preset


def _value(where: str, key: str, value: object) -> object:
    if key in _TEXTS:
        if not isinstance(value, str) or "\0" in value:
            raise PresetError(f"{where}: must be a text")
        return value
    if key in _LISTS:
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise PresetError(f"{where}: must be a list of texts")
        if not all(isinstance(item, str) and "\0" not in item for item in value):
            raise PresetError(f"{where}: must be a list of texts")
        return tuple(value)
    if key in _PRICES:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e6:
            raise PresetError(f"{where}: must be a number of dollars per million tokens")
        return float(value)
    if key in ("append_after_change", "rejection_ends_turn", "sandboxed", "tools"):
        if not isinstance(value, bool):
            raise PresetError(f"{where}: must be true or false")
        return value
    if not isinstance(value, Mapping) or not all(isinstance(v, str) for v in value.values()):
        raise PresetError(f"{where}: must be a table of texts")
    if key in ("env", "live_env"):
        if any(not name or "=" in name or "\0" in name + text for name, text in value.items()):
            raise PresetError(f"{where}: contains an invalid environment variable")
        return MappingProxyType(dict(value))
    try:
        return MappingProxyType({int(code): text for code, text in value.items()})
    except ValueError:
        raise PresetError(f"{where}: the names must be exit codes") from None


def _check(where: str, preset: Preset) -> None:
    if preset.prompt not in PROMPTS:
        raise PresetError(f"{where}.prompt: must be one of {', '.join(PROMPTS)}")
    if preset.stream not in streams.NAMES:
        raise PresetError(f"{where}.stream: must be one of {', '.join(streams.NAMES)}")
    for name in ("tells_cost", "tells_tokens", "live_tells_tokens"):
        if getattr(preset, name) not in TELLS:
            raise PresetError(f"{where}.{name}: must be one of {', '.join(TELLS[1:])}")
    if preset.permissions not in permissions.NAMES:
        names = ", ".join(filter(None, permissions.NAMES))
        raise PresetError(f"{where}.permissions: must be one of {names}")
    if preset.allow and not preset.permissions:
        raise PresetError(f"{where}.allow: acp cannot pass permissions on to this program")
    if preset.tools and preset.permissions not in permissions.TOOLS:
        raise PresetError(f"{where}.tools: acp cannot pass tools on to an attempt of this program")
    if any(not words.strip() or "*" in words for words in preset.allow):
        raise PresetError(f"{where}.allow: must name beginnings of commands, without '*'")
    if "{command}" not in preset.commands and "{script}" not in preset.commands:
        raise PresetError(f"{where}.commands: must name {{command}} or {{script}}")
    if not preset.args:
        return  # any command: its words come later
    if preset.prompt == "argv" and not any("{prompt}" in arg for arg in preset.args):
        raise PresetError(f"{where}.args: must name {{prompt}}, as prompt is 'argv'")
    if preset.prompt == "file" and not any("{prompt_file}" in arg for arg in preset.args):
        raise PresetError(f"{where}.args: must name {{prompt_file}}, as prompt is 'file'")


@cache
def bundled() -> Mapping[str, Preset]:
    """The presets that come with acp, by name, in order."""
    text = files(__package__).joinpath("presets.toml").read_text(encoding="utf-8")
    return MappingProxyType(
        {name: parse(name, table) for name, table in tomllib.loads(text).items()}
    )


def load(own: Mapping[str, Mapping[str, object]] | None = None) -> dict[str, Preset]:
    """Every preset by name: the bundled ones, changed and added to by a person's own.

    Args:
        own: the tables of ``config.toml``: one that has the name of a bundled preset changes
            that one, one that names another in ``extends`` starts from it.

    Raises:
        PresetError: an own preset is not what it should be.
    """
    presets = dict(bundled())
    for name, table in (own or {}).items():
        if not name or any(
            sign.isspace() or sign in "={}" or not sign.isprintable() for sign in name
        ):
            raise PresetError(f"presets.{name!r}: a name has no spaces, braces or '='")
        base_name = table.get("extends", name) if isinstance(table, Mapping) else name
        base = presets.get(base_name) if isinstance(base_name, str) else None
        if base is None and base_name != name:
            raise PresetError(f"presets.{name}.extends: unknown preset {base_name!r}")
        presets[name] = parse(name, table, base)
    return presets


def named(name: str, known: Mapping[str, Preset]) -> Preset:
    """The preset that a person named.

    Args:
        name: what was typed.
        known: the presets to choose from, by name.

    Raises:
        PresetError: there is none, or it is the one for any command, which needs words.
    """
    if name not in known or name == ANY:
        names = ", ".join(each for each in known if each != ANY)
        raise PresetError(f"unknown preset {name!r} (available: {names})")
    return known[name]


def typed_command(text: str, base: Preset | None = None) -> Preset:
    """The preset for a command that a person typed as one text; no shell takes part.

    Raises:
        PresetError: there are no words, or its quotes do not match.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise PresetError(f"the command cannot be read: {error}") from None
    return command_here(words, base)


def command_here(argv: Sequence[str], base: Preset | None = None) -> Preset:
    """As `any_command`, for words that a person typed: ``./agent`` is a file of their shell's folder.

    What is not there is looked for in the working folder once it is started.

    Raises:
        PresetError: there are no words, or one holds a NUL character.
    """
    preset = any_command(argv, base)
    path = os.path.abspath(os.path.expanduser(argv[0]))
    return replace(preset, program=path) if os.sep in argv[0] and os.path.isfile(path) else preset


def any_command(argv: Sequence[str], base: Preset | None = None) -> Preset:
    """The preset for a command that a person gave word by word.

    The prompt goes where the words say ``{prompt}`` or ``{prompt_file}``, else to its standard
    input.

    Raises:
        PresetError: there are no words, or one holds a NUL character.
    """
    base = base or bundled()[ANY]
    if not argv or not argv[0]:
        raise PresetError("the command is empty")
    if any("\0" in word for word in argv):
        raise PresetError("a command cannot contain a NUL character")
    prompt = "stdin"
    if any("{prompt_file}" in word for word in argv):
        prompt = "file"
    elif any("{prompt}" in word for word in argv):
        prompt = "argv"
    return replace(base, program=argv[0], args=tuple(argv[1:]), prompt=prompt)


_HOLDS = 1.0  # s


def is_installed(program: str) -> bool:
    """Whether a program is on ``PATH``, as it was at most a second ago; False for no program."""
    path = os.environ.get("PATH", os.defpath)
    return bool(program) and _is_on(path, program, time.monotonic() // _HOLDS)


@lru_cache(maxsize=256)
def _is_on(path: str, program: str, moment: float) -> bool:
    return shutil.which(program, path=path) is not None
