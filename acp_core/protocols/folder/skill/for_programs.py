"""``acp skill install`` and ``acp skill remove``: the skill in a folder, or skill and tools where a program looks.

Where known programs look for skills and for tools (MCP servers) is a table; an entry in a program's
settings is put in as text, so that all else stays as it is.

What was put there is recorded with digests, so that exactly that is taken out again; what a person
changed since stays, and is named.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from acp_core.agents import permissions, presets
from acp_core.agents import program as agents_program
from acp_core.files import atomic
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.action import Change, Outcome, OutcomeState, Preview
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.person.paths import state_folder
from acp_core.protocols.folder.skill import install as installing
from acp_core.protocols.folder.skill.install import NAME, Incomplete, Plan, carry_out, plan
from acp_core.protocols.kit import parser
from acp_core.protocols.kit.command_line import say
from acp_core.protocols.kit.parser import agreed
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
        return parser.show(SCHEMA, verb, work.preview, as_json=given.json)
    if not given.json:
        parser.say_preview(work.preview)
    if not given.yes and (given.json or not _agreed()):
        if given.json:
            raise Refused("--json needs --yes or --dry-run")
        say("not done")
        return 1
    sentence = work.do()
    if given.json:
        done = Outcome(OutcomeState.DONE, sentence, done=work.preview)
        parser.say_object(SCHEMA, verb, done=True, **parser.ended(done))
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
    skill = installing.plan(place.skill, force=given.force)
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
        installing.carry_out(skill)
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


def _inserted(place: Target, text: str, command: tuple[str, ...], env: dict[str, str]) -> Insertion:
    value = entry(place.program, command, env)
    section, toml = place.places.section, place.places.toml
    try:
        return insert(text, section, SERVER, value, toml=toml)
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


def _files(plan: installing.Plan) -> Change:
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
    ours, edited = installing.removable(before.skill) if before.skill else ((), ())
    if ours:
        changes.append(Change(safe(before.skill), "remove", _listed(ours)))
    notes += [f"{safe(os.path.join(before.skill, each))} stays: changed since" for each in edited]

    def do() -> str:
        if left is not None and _content(settings) == now:
            if before.made and not left.strip():
                os.unlink(settings)
            else:
                atomic.replace(settings, left.encode())
        installing.remove(before.skill, ours)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_path(place))
        return f"Removed what acp had installed for {title}."

    return Work(
        Preview(f"Remove what acp installed for {title}.", tuple(changes), notes=tuple(notes)), do
    )


def _left(place: Target, before: Installed, text: str) -> str | None:
    section, toml = place.places.section, place.places.toml
    return take_out(text, before.added, section, SERVER, toml=toml)


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
    atomic.private_folder(path.parent)
    atomic.replace(path, json.dumps(asdict(record)).encode(), private=True)


SERVER = "acp"
"""What programs call the server of the tools."""


class Places(NamedTuple):
    """Where one program looks.

    Attributes:
        title: the program, for people.
        variable, home: the variable that names the program's own folder, and that folder without it.
        settings: the file of its servers below that folder.
        project: its folder of skills in a project; ``project_settings`` its file of servers there.
        section: the table of the servers in its settings.
        toml: whether its settings are TOML, not JSON.
        beside: where the settings stand while the variable is not set, if not in the folder.
    """

    title: str
    variable: str
    home: str
    settings: str
    project: str
    project_settings: str
    section: str = "mcpServers"
    toml: bool = False
    beside: str = ""


PROGRAMS = {
    "claude": Places(
        "Claude Code", "CLAUDE_CONFIG_DIR", "~/.claude", ".claude.json", ".claude/skills", ".mcp.json",
        beside="~/.claude.json",
    ),
    "codex": Places(
        "Codex", "CODEX_HOME", "~/.codex", "config.toml", ".agents/skills", ".codex/config.toml",
        "mcp_servers", toml=True,
    ),
    "opencode": Places(
        "opencode", "", "$XDG_CONFIG_HOME/opencode", "opencode.json", ".opencode/skills",
        "opencode.json", "mcp",
    ),
    "gemini": Places(
        "Gemini CLI", "", "~/.gemini", "settings.json", ".gemini/skills", ".gemini/settings.json"
    ),
    "qwen": Places(
        "Qwen Code", "QWEN_HOME", "~/.qwen", "settings.json", ".qwen/skills", ".qwen/settings.json"
    ),
}  # fmt: skip


class Target(NamedTuple):
    """The files of one program, for a person or for one project: all absolute."""

    program: str
    skill: str
    settings: str

    @property
    def places(self) -> Places:
        """The row of the table."""
        return PROGRAMS[self.program]


def target(program: str, project: str = "") -> Target:
    """Where a program looks.

    Args:
        program: one of `PROGRAMS`.
        project: a project's folder; "" for all that the person does.

    Raises:
        Refused: the project is no folder.
    """
    places = PROGRAMS[program]
    if project:
        folder = os.path.abspath(os.path.expanduser(project))
        if not os.path.isdir(folder):
            raise Refused(f"{project} is not a folder")
        skill = os.path.join(folder, places.project, NAME)
        return Target(program, skill, os.path.join(folder, places.project_settings))
    chosen = os.environ.get(places.variable, "") if places.variable else ""
    home = os.path.abspath(chosen or _expanded(places.home))
    beside = "" if chosen else places.beside
    settings = os.path.expanduser(beside) if beside else os.path.join(home, places.settings)
    return Target(program, os.path.join(home, "skills", NAME), settings)


def _expanded(path: str) -> str:
    """A path below the home folder, or below the folder of settings."""
    settings = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return os.path.expanduser(path.replace("$XDG_CONFIG_HOME", settings))


def entry(program: str, command: tuple[str, ...], env: dict[str, str]) -> dict[str, Any]:
    """A server as a program's settings name one.

    Args:
        program: one of `PROGRAMS`.
        command: what starts it.
        env: variables that it needs.
    """
    if program == "opencode":
        local = {"type": "local", "command": list(command), "enabled": True}
        return local | ({"environment": env} if env else {})
    kind = {"type": "stdio"} if program == "claude" else {}
    made = {**kind, "command": command[0], "args": list(command[1:])}
    return made | ({"env": env} if env else {})


class Insertion(NamedTuple):
    """The settings with the entry, and the piece of text that was added."""

    text: str
    added: str


def insert(
    text: str, section: str, name: str, value: Mapping[str, Any], *, toml: bool
) -> Insertion:
    """Put an entry into settings.

    Args:
        text: the settings; "" where there are none.
        section: the table that gets it, made where it is missing.
        name: the entry's.
        value: what it holds.
        toml: whether the settings are TOML, not JSON.

    Raises:
        Refused: the settings cannot be read, or have another entry of that name.
    """
    known = _read(text, toml)
    table = known.get(section, {})
    if not isinstance(table, dict):
        raise Refused(f"{section} is not a table there")
    if name in table:
        raise Refused(
            f"they have an entry {section}.{name} that acp did not write: remove it first"
        )
    made = (
        _in_toml(text, section, name, value)
        if toml
        else _in_json(text, known, section, name, value)
    )
    try:
        right = _read(made.text, toml).get(section, {}).get(name) == value
    except Refused:
        right = False
    if not right:
        raise Refused(f"acp cannot add {section}.{name} to them: add it by hand")
    return made


def take_out(text: str, added: str, section: str, name: str, *, toml: bool) -> str | None:
    """The settings without the piece that was added; None where somebody changed that since.

    Args:
        text: the settings now.
        added: what `insert` added.
        section, name, toml: as those of `insert`.
    """
    if text.count(added) != 1:
        return None
    left = text.replace(added, "", 1)
    try:
        table = _read(left, toml).get(section, {})
    except Refused:
        return None
    return None if name in table else left


def _read(text: str, toml: bool) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        value = tomllib.loads(text) if toml else json.loads(text)
    except (ValueError, RecursionError) as error:
        kind = "TOML" if toml else "JSON without comments"
        raise Refused(f"they are not {kind} ({error}): add the server by hand") from None
    if not isinstance(value, dict):
        raise Refused("they hold no table: add the server by hand")
    return value


def _in_toml(text: str, section: str, name: str, value: Mapping[str, Any]) -> Insertion:
    lines = [f"[{section}.{name}]"]
    for key, each in value.items():
        if isinstance(each, dict):
            inner = ", ".join(f"{json.dumps(k)} = {_quoted(v)}" for k, v in each.items())
            lines.append(f"{key} = {{ {inner} }}")
        else:
            lines.append(f"{key} = {_quoted(each)}")
    before = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    added = before + "\n".join(lines) + "\n"
    return Insertion(text + added, added)


def _quoted(value: Any) -> str:
    """A text, or a list of texts, which TOML writes as JSON does where nothing is beyond ASCII."""
    return json.dumps(value, ensure_ascii=False)


def _in_json(
    text: str, known: dict[str, Any], section: str, name: str, value: Mapping[str, Any]
) -> Insertion:
    if not text.strip():
        made = json.dumps({section: {name: value}}, indent=2, ensure_ascii=False) + "\n"
        return Insertion(made, made)
    shown = json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n    ")
    entry = f'\n    "{name}": {shown}'
    if section in known:
        at, more = _opening(text, section), bool(known[section])
    else:
        at, more = text.index("{") + 1, bool(known)
        entry = f'\n  "{section}": {{{entry}\n  }}'
    comma = "," if text[at : at + 1] in "\r\n" else ", "
    added = entry + (comma if more else "\n  " if section in known else "\n")
    return Insertion(text[:at] + added + text[at:], added)


def _opening(text: str, section: str) -> int:
    """Where the table of a section begins: after its brace, at the top level of an object."""
    decoder, at = json.JSONDecoder(), text.index("{") + 1
    while True:
        at = _after(text, at, ", \t\r\n")
        key, at = decoder.raw_decode(text, at)
        at = _after(text, at, ": \t\r\n")
        if key == section:
            return at + 1
        _, at = decoder.raw_decode(text, at)


def _after(text: str, at: int, signs: str) -> int:
    while text[at] in signs:
        at += 1
    return at


WOULD = {
    "create": "would install {n} files in {folder}",
    "upgrade": "would update {folder} from {previous} to {version}",
    "nothing": "{folder} is up to date ({version})",
}
DID = {
    "create": "installed the skill in {folder} ({version}, {n} files)",
    "upgrade": "updated {folder} from {previous} to {version}",
    "nothing": "{folder} is up to date ({version})",
}


def install(given: Values) -> int:
    """Write the skill into a folder, or where a program looks; the exit code.

    Raises:
        Refused: it cannot be installed there; nothing was changed.
    """
    if given.program:
        if given.folder:
            raise Refused("give either DIR or --for")

        return install_for(given)
    if not given.folder:
        raise Refused("give DIR, the skill's own folder, or --for with a program")
    if given.project or given.collaboration or given.participant:
        raise Refused("--project, --collaboration and --participant need --for")
    try:
        planned = plan(given.folder, force=given.force)
        left = "" if given.dry_run else carry_out(planned)
    except Incomplete as error:
        raise Refused(str(error)) from None
    if given.json:
        print(json.dumps(_fields(planned, given.dry_run)))
    else:
        _print(planned, given.dry_run)
    if left:
        print(
            f"note: {clean_line(left, 2000)} contains files that acp did not install",
            file=sys.stderr,
        )
    return 0


def _print(planned: Plan, dry_run: bool) -> None:
    sentence = (WOULD if dry_run else DID)[planned.verb]
    values = {
        "folder": planned.folder,
        "n": len(planned.files),
        "previous": planned.previous,
        "version": planned.version,
    }
    print(clean_line(sentence.format(**values), 2000))
    if dry_run and planned.verb != "nothing":
        for path in sorted(planned.files):
            print(f"  {path}")


def _fields(planned: Plan, dry_run: bool) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "folder": str(planned.folder),
        "verb": planned.verb,
        "done": not dry_run,
        "version": planned.version,
        "previous": planned.previous,
        "files": sorted(planned.files),
    }
