"""The start of `acp`: decides what runs, and keeps every failure to one clear line.

What agents run at every turn must start fast: a command of a bundled protocol is
called before anything else is imported, click included.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Callable, Sequence

from acp_core.cli.context import COMPLETE, Dashboard, hand_in
from acp_core.files import interrupts
from acp_core.model.errors import CommandError, Refused
from acp_core.protocols import registry

DEBUG = "ACP_DEBUG"
OWN_OPTIONS = ("-h", "--help", "--version")
HELP = ("-h", "--help")


def run(argv: Sequence[str], dashboard: Dashboard) -> int:
    """Run `acp` with the arguments after its name and return the exit code.

    Args:
        argv: The arguments, without the program's name.
        dashboard: What draws the dashboard (the core knows none).
    """
    _print_what_can_be_shown(argv)
    hand_in(dashboard)
    registry.hand_in(registry.WATCH, "acp_core.fleet.live:watch")
    registry.hand_in(registry.START, "acp_core.loops.acts.starting:NEW_FOLDER_STARTER")
    arguments = list(argv)
    if any("://" in each for each in arguments):
        from acp_core.cli.hidden import hiding

        with hiding(arguments):
            return _run_all(arguments, dashboard)
    return _run_all(arguments, dashboard)


def _run_all(arguments: list[str], dashboard: Dashboard) -> int:
    """Carry the arguments out; every failure becomes one line, and an exit code."""
    try:
        code = _end(lambda: _dispatch(arguments, dashboard))
        if code == 0 and any(word in arguments for word in HELP):
            _add_manual(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _close_broken_output()
        return 141  # what a shell reports for a program that SIGPIPE ended
    except Refused as error:
        return _complain(arguments, str(error), error.code)
    except OSError as error:  # a full disk, a folder without rights: no fault of ours
        if os.environ.get(DEBUG):
            raise
        said = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return _complain(arguments, said, 2)
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        hint = f"this is a bug in acp; set {DEBUG}=1 to see where"
        return _complain(arguments, f"{reason} ({hint})", 2)
    return code


def _add_manual(arguments: list[str]) -> None:
    """Below a command's help: its examples and exit codes."""
    from acp_core.cli import table as cli_table

    found = cli_table.manual_page(arguments) if cli_table.asks_for_help(arguments) else None
    if found is not None:
        print(found.text())


def _end(command: Callable[[], int]) -> int:
    """What the command returns, or the exit code that argparse wanted to leave with."""
    try:
        return command()
    except SystemExit as end:
        if end.code is None:
            return 0
        return end.code if isinstance(end.code, int) else 2


def _dispatch(arguments: list[str], dashboard: Dashboard) -> int:
    if COMPLETE in os.environ:
        from acp_core.cli.group import complete

        return complete(os.environ[COMPLETE])
    first = arguments[0] if arguments else ""
    known = ((p, c) for p in registry.bundled() for c in p.commands if c.name == first)
    for owner, command in known:
        other = _validate(arguments[1:], owner) if first == "validate" else None
        if other is not None:
            return other
        return _run(command, arguments[1:])
    gc.enable()
    from acp_core.cli import table  # late, here and below: what agents run never needs it

    if first == "--":
        return _open(arguments[1:], dashboard)
    if first == "help":
        arguments[:] = [*arguments[1:], "--help"]  # the same for a command of a protocol
        return _dispatch(arguments, dashboard)
    if (entry := table.entry_named(first)) is not None:
        return _run(entry, arguments[1:])
    if first in OWN_OPTIONS or _added_by_others(first):
        return _invoke(arguments)
    if first and not first.startswith("-") and not _is_path(first):
        raise CommandError(_unknown(first))
    return _open(arguments, dashboard)


def _validate(arguments: list[str], owner: registry.Protocol) -> int | None:
    from acp_core.cli.validate import of_another

    return of_another(arguments, owner)


def _run(command: registry.Command, arguments: list[str]) -> int:
    target = registry.load(command.target)
    gc.enable()  # off until here in a process of its own: what is imported stays
    return interrupts.heeding(lambda: target(arguments))


def _invoke(arguments: list[str]) -> int:
    """Leave the rest to click."""
    from acp_core.cli.group import invoke

    interrupts.leave_to_others()
    return invoke(arguments)


def _open(paths: list[str], dashboard: Dashboard) -> int:
    if any(path.startswith("-") for path in paths):
        return _dispatch(["dashboard", *paths], dashboard)
    from acp_core.cli.start import open_dashboard

    return open_dashboard(paths, dashboard)


def _is_path(word: str) -> bool:
    return os.path.lexists(word) or os.sep in word or word in (".", "..") or word.startswith("~")


def _added_by_others(name: str) -> bool:
    """Whether another distribution's protocol has the command (a look-up that takes time)."""
    if not name or name.startswith("-") or _is_path(name):
        return False
    return any(c.name == name for p in registry.installed() for c in p.commands)


def _unknown(word: str) -> str:
    import difflib

    from acp_core.cli import table

    if word in table.GONE:
        return f"{word}: {table.GONE[word]}"
    commands = [entry.name for entry in table.ENTRIES]
    commands += [command.name for p in registry.installed() for command in p.commands]
    near = difflib.get_close_matches(word, [*commands, *_names_here()], n=1)
    hint = f"did you mean {near[0]!r}?" if near else "see `acp --help`"
    return f"unknown command or path: {word!r} ({hint})"


def _names_here() -> list[str]:
    try:
        return os.listdir()
    except OSError:
        return []


def _complain(arguments: list[str], message: str, code: int) -> int:
    """Say on one line why nothing, or no more, was done; where JSON was asked for, as JSON too."""
    from acp_core.protocols.kit import command_line, parser

    with contextlib.suppress(OSError):
        command_line.complain(message)
        if command_line.asks_for_json(arguments):
            parser.say_error(message, code)
    return code


def _close_broken_output() -> None:
    """Whoever read our output is gone: let the interpreter flush into nothing at its end."""
    with contextlib.suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())


_EXACT = frozenset({"agent", "completion", "export", "mcp", "report"})
"""Commands whose output is data for a program, or a file."""


def _print_what_can_be_shown(argv: Sequence[str]) -> None:
    """Where the terminal or its encoding has no ● or ─, print a plain sign rather than fail.

    Where the person asked for words instead of signs, that holds for pipes, too, but not for data.
    """
    import codecs

    def plain(error: UnicodeError) -> tuple[str, int]:
        from acp_core.cli.plain_signs import ASCII, table

        if not isinstance(error, UnicodeEncodeError):
            raise error
        return error.object[error.start : error.end].translate(table(ASCII)), error.end

    codecs.register_error("acp.plain", plain)
    asked = "ACP_SIGNS" in os.environ and "--json" not in argv and not {*argv[:1]} & _EXACT
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # whoever started us closed it: print into nothing
            stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, stream)
        reconfigure = getattr(stream, "reconfigure", None)
        if not reconfigure:
            continue
        reconfigure(errors="acp.plain")
        shown = stream.isatty()
        if shown or asked:
            from acp_core.cli import plain_signs

            signs = plain_signs.printed(os.environ) if asked else plain_signs.wanted(os.environ)
            if signs != plain_signs.ALL and (shown or signs == plain_signs.WORDS):
                setattr(sys, name, plain_signs.written(stream, signs))
