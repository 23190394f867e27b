"""``acp skill install --for PROGRAM`` and ``acp skill remove``: skill and tools where a program looks.

What was put there is recorded with digests, so that exactly that is taken out again; what a person
changed since stays, and is named.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from pathlib import Path

from acp_core.agents import permissions, presets
from acp_core.agents import program as agents_program
from acp_core.files import atomic, modes
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.action import Change, Outcome, OutcomeState, Preview
from acp_core.model.errors import Refused
from acp_core.person.paths import state_folder
from acp_core.protocols.folder.skill import install, settings_file
from acp_core.protocols.folder.skill.contents import Incomplete
from acp_core.protocols.folder.skill.programs import SERVER, Target, entry, target
from acp_core.protocols.kit import printing
from acp_core.protocols.kit.command_line import say
from acp_core.protocols.kit.confirmation import agreed
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import difference, safe

SCHEMA = "acp.skill/1"
_LARGEST = 16 << 20  # bytes of settings that are read


@dataclass(frozen=True, slots=True)
class Installed:
    """What acp put where one program looks.

    Attributes:
        skill: the skill's folder; "" for none.
        settings: the file of the program's settings; "" where nothing was added to it.
        added: the piece of text that was added to it.
        made: the file was made for that.
    """

    skill: str = ""
    settings: str = ""
    added: str = ""
    made: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be done, as it is shown before, and the function that does it."""

    preview: Preview
    do: Callable[[], str]


def install_for(given: Values) -> int:
    """Put skill and tools where a program looks; the exit code.

    Raises:
        Refused: something there is a person's, or the tools cannot be served.
    """
    place = target(given.program, given.project)
    try:
        return _carry_out(_installation(place, given), "install", given)
    except Incomplete as error:
        raise Refused(str(error)) from None


def remove_for(given: Values) -> int:
    """Take out what was put where a program looks; the exit code.

    Raises:
        Refused: acp put nothing there.
    """
    return _carry_out(_removal(target(given.program, given.project)), "remove", given)


def _carry_out(work: Work, verb: str, given: Values) -> int:
    if given.dry_run:
        return printing.show(SCHEMA, verb, work.preview, as_json=given.json)
    if not given.json:
        printing.say_preview(work.preview)
    if not given.yes and (given.json or not _agreed()):
        if given.json:
            raise Refused("--json needs --yes or --dry-run")
        say("not done")
        return 1
    sentence = work.do()
    if given.json:
        done = Outcome(OutcomeState.DONE, sentence, done=work.preview)
        printing.say_object(SCHEMA, verb, done=True, **printing.ended(done))
    else:
        say(sentence)
    return 0


def _agreed() -> bool:
    import sys

    if not sys.stdin.isatty():
        raise Refused("no terminal to ask for confirmation: use --yes")
    return agreed()


# --- putting in ------------------------------------------------------------------------------


def _installation(place: Target, given: Values) -> Work:
    before = _recorded(place)
    skill = install.plan(place.skill, force=given.force)
    changes = [_files(skill)] if skill.verb != "nothing" else []
    settings, text, added = os.path.realpath(place.settings), "", ""
    if given.collaboration:
        text = _without(place, before)
        command, env = _server(given)
        made = _inserted(place, text, command, env)
        added = made.added
        now = _content(settings)
        if made.text != now:
            verb = "replace" if os.path.exists(settings) else "create"
            shown = difference(now.encode(), made.text.encode())
            changes.append(Change(safe(settings), verb, shown))
    title = place.places.title
    what = "the skill and the tools" if given.collaboration else "the skill"
    if not changes:
        return Work(Preview(f"Nothing: {title} has them already."), lambda: "Nothing to do.")

    def do() -> str:
        install.carry_out(skill)
        if given.collaboration:
            exists = before.made if before.settings else not os.path.exists(settings)
            record = Installed(place.skill, settings, added, exists)
            _write(settings, text, added, place, given)
        else:
            record = Installed(place.skill, before.settings, before.added, before.made)
        _record(place, record)
        return f"Installed {what} for {title}. Take them out with `acp skill remove --for {place.program}`."

    return Work(
        Preview(f"Install {what} for {title}.", tuple(changes), warnings=_warnings(place, given)),
        do,
    )


def _warnings(place: Target, given: Values) -> tuple[str, ...]:
    if place.program == "claude" and place.settings.endswith(".mcp.json"):
        return ("Claude Code asks you once whether to use the servers of this project",)
    preset = presets.bundled()[place.program]
    if not (given.collaboration and agents_program.asks(preset)):
        return ()
    if given.project:
        why = agents_program.missing(preset, os.path.abspath(os.path.expanduser(given.project)))
        return (why,) if why else ()
    return (f"{place.places.title} {agents_program.EFFECT}: {agents_program.cure(preset)}",)


def _server(given: Values) -> tuple[tuple[str, ...], dict[str, str]]:
    """What starts the server of the tools."""
    from acp_core.agents.background import importable

    if permissions.missing():
        raise Refused(f"the tools need the Python package mcp: {permissions.EXTRA}")
    if not given.participant:
        raise Refused("the tools need --participant: as whom the agent acts")
    folder = os.path.abspath(os.path.expanduser(given.collaboration))
    words = ("mcp", "--folder", folder, "--participant", given.participant)
    program = permissions.program()
    more = importable() if len(program) > 1 else {}
    return (*program, *words), {**permissions.variables(), **more}


def _inserted(
    place: Target, text: str, command: tuple[str, ...], env: dict[str, str]
) -> settings_file.Insertion:
    value = entry(place.program, command, env)
    section, toml = place.places.section, place.places.toml
    try:
        return settings_file.insert(text, section, SERVER, value, toml=toml)
    except Refused as error:
        raise Refused(f"{safe(place.settings)}: {error}") from None


def _write(settings: str, text: str, added: str, place: Target, given: Values) -> None:
    """Write the settings, unless they changed since they were shown."""
    if _without(place, _recorded(place)) != text:
        raise Refused(f"{safe(settings)} changed in the meantime: run the command again")
    command, env = _server(given)
    made = _inserted(place, text, command, env)
    os.makedirs(os.path.dirname(settings), exist_ok=True)
    atomic.replace(settings, made.text.encode())


def _without(place: Target, before: Installed) -> str:
    """The settings without what acp added to them earlier.

    Raises:
        Refused: somebody changed that since, or they cannot be read.
    """
    text = _content(os.path.realpath(place.settings))
    if not before.settings or not text:
        return text
    left = _left(place, before, text)
    if left is None:
        raise Refused(
            f"{safe(place.settings)}: the entry {SERVER} changed since acp wrote it: remove it first"
        )
    return left


def _files(plan: install.Plan) -> Change:
    verb = "create" if plan.verb == "create" else "replace"
    return Change(safe(str(plan.folder)), verb, _listed(plan.files))


def _listed(names: Collection[str]) -> str:
    """The files of a skill: those that people read and run, and how many modules they need."""
    own = sorted(each for each in names if each.count("/") < 2)
    return "\n".join([*own, f"and {len(names) - len(own)} modules that the scripts need"])


# --- taking out ------------------------------------------------------------------------------


def _removal(place: Target) -> Work:
    before, title = _recorded(place), place.places.title
    if before == Installed():
        raise Refused(f"acp installed nothing for {title} there")
    changes, notes = [], []
    settings = before.settings
    now = _content(settings) if settings else ""
    left = _left(place, before, now) if settings else None
    if left is not None:
        verb = "remove" if before.made and not left.strip() else "replace"
        changes.append(Change(safe(settings), verb, difference(now.encode(), left.encode())))
    elif settings and now:
        notes.append(f"{safe(settings)} stays: the entry {SERVER} changed since acp wrote it")
    ours, edited = install.removable(before.skill) if before.skill else ((), ())
    if ours:
        changes.append(Change(safe(before.skill), "remove", _listed(ours)))
    notes += [f"{safe(os.path.join(before.skill, each))} stays: changed since" for each in edited]

    def do() -> str:
        if left is not None and _content(settings) == now:
            if before.made and not left.strip():
                os.unlink(settings)
            else:
                atomic.replace(settings, left.encode())
        install.remove(before.skill, ours)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_path(place))
        return f"Removed what acp had installed for {title}."

    return Work(
        Preview(f"Remove what acp installed for {title}.", tuple(changes), notes=tuple(notes)), do
    )


def _left(place: Target, before: Installed, text: str) -> str | None:
    section, toml = place.places.section, place.places.toml
    return settings_file.take_out(text, before.added, section, SERVER, toml=toml)


# --- files -----------------------------------------------------------------------------------


def _content(path: str) -> str:
    """The text of settings; "" where there are none.

    Raises:
        Refused: they cannot be read.
    """
    if not os.path.lexists(path):
        return ""
    try:
        return read_bounded(Path(path), _LARGEST).decode()
    except Unreadable as error:
        raise Refused(f"{safe(path)} {error}") from None
    except UnicodeDecodeError:
        raise Refused(f"{safe(path)} is not UTF-8") from None


def _path(place: Target) -> Path:
    digest = hashlib.sha256(f"{place.skill}\0{place.settings}".encode(errors="replace")).hexdigest()
    return state_folder() / "installed" / f"{place.program}-{digest[:16]}.json"


def _recorded(place: Target) -> Installed:
    """What acp put there; nothing where no record can be read."""
    try:
        value = json.loads(_path(place).read_bytes())
        return Installed(**value)
    except (OSError, ValueError, TypeError):
        return Installed()


def _record(place: Target, record: Installed) -> None:
    path = _path(place)
    modes.private_folder(path.parent)
    atomic.replace(path, json.dumps(asdict(record)).encode(), private=True)
