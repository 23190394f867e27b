"""What no source file may do, whoever writes it."""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_core.cli import doctor, table
from acp_core.protocols.registry import Command, load
from tests.hygiene.sources import PACKAGES, ROOT, files, tree

LINES = 1_000  # a longer file has more than one subject
TEXTS = (".py", ".md", ".toml", ".tcss", ".txt", ".cfg", "")
MACHINE = [f"{place}/" for place in (Path.home(), ROOT) if len(place.parts) > 2] + ["/root" + "/"]


def names(path: Path, lines: Iterator[int]) -> list[str]:
    return [f"{path.relative_to(ROOT)}:{line}" for line in lines]


def shells(source: ast.Module) -> Iterator[int]:
    """Lines that hand text to a shell, or run text as code."""
    for node in ast.walk(source):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called in ("os.system", "os.popen", "eval", "exec", "subprocess.getoutput"):
            yield node.lineno
        for keyword in node.keywords:
            if keyword.arg == "shell" and ast.unparse(keyword.value) != "False":
                yield node.lineno


def toasts(source: ast.Module) -> Iterator[int]:
    """Lines that notify with text that would be read as markup."""
    for node in ast.walk(source):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            plain = any(
                keyword.arg == "markup" and ast.unparse(keyword.value) == "False"
                for keyword in node.keywords
            )
            if node.func.attr == "notify" and not plain:
                yield node.lineno


_PUT_OFF = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")


def later(text: str) -> Iterator[int]:
    """Lines with a comment that puts work off."""
    if not _PUT_OFF.search(text):
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and _PUT_OFF.search(token.string):
            yield token.start[0]


def test_the_checks_find_what_they_look_for() -> None:
    assert list(shells(ast.parse("subprocess.run(x, shell=True)\nos.system(x)"))) == [1, 2]
    assert list(shells(ast.parse("subprocess.run([x], shell=False)"))) == []
    assert list(toasts(ast.parse("self.notify(x)\nself.app.notify(x, markup=True)"))) == [1, 2]
    assert list(toasts(ast.parse("self.notify(x, markup=False)"))) == []
    assert list(later("x = 1  # TODO: more\ny = 'TODO'")) == [1]


def test_nothing_is_run_by_a_shell() -> None:
    assert [place for path in files() for place in names(path, shells(tree(path)))] == []


def test_no_notification_reads_its_text_as_markup() -> None:
    assert [place for path in files("acp_tui") for place in names(path, toasts(tree(path)))] == []


def test_nothing_is_put_off() -> None:
    found = [
        place
        for path in texts()
        if path.suffix == ".py"
        for place in names(path, later(path.read_text(encoding="utf-8")))
    ]
    assert found == []


def test_every_file_has_one_subject() -> None:
    long = [path for path in files() if len(path.read_text("utf-8").splitlines()) > LINES]
    assert [str(path.relative_to(ROOT)) for path in long] == []


def texts() -> Iterator[Path]:
    for top in (*PACKAGES, "tests", ".ci"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.is_file() and path.suffix in TEXTS and "__pycache__" not in path.parts:
                yield path
    yield from (ROOT / name for name in ("pyproject.toml", "README.md", "CHANGELOG.md"))


def test_no_file_names_a_path_of_somebody_s_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in texts()
        if path.is_file()
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1)
        if any(place in line for place in MACHINE)
    ]
    assert found == []


@pytest.mark.parametrize("row", table.ENTRIES, ids=lambda row: row.name)
def test_every_command_of_the_table_is_there(row: Command) -> None:
    assert callable(load(row.target))
    parser = load(row.parser)()
    assert parser.prog == f"acp {row.name}" and parser.description
    assert row.group in table.HEADINGS


def test_no_two_commands_bear_one_name() -> None:
    from acp_core.protocols.registry import bundled

    names = [row.name for row in table.ENTRIES]
    names += [command.name for protocol in bundled() for command in protocol.commands]
    assert sorted(names) == sorted(set(names))


def test_what_the_doctor_looks_for_is_what_the_package_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    def plain(requirements: list[str]) -> set[str]:
        return {re.split(r"[<>=!~\[ ]", each)[0] for each in requirements}

    needed = plain(project["dependencies"])
    if sys.platform != "linux":
        needed -= {"inotify-simple"}
    assert set(doctor.NEEDED) == needed
    extras = project["optional-dependencies"]
    assert {name: set(parts) for name, parts in doctor.EXTRAS.items()} == {
        name: plain(extras[name]) for name in extras if name != "dev"
    }
    assert set(doctor.ADDS) == set(doctor.EXTRAS)
    oldest = ".".join(map(str, doctor.OLDEST_PYTHON))
    assert project["requires-python"] == f">={oldest}"
