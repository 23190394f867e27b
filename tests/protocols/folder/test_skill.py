"""Somebody installs the skill, and agents that have nothing but a bare Python work with it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import acp_core
from acp_core.protocols.folder.acts.table import COMMANDS, SKILL
from acp_core.protocols.folder.rehearsal.scenario import PlayedScenario, Scenario, load
from acp_core.protocols.folder.schema.deliverables import TYPES
from acp_core.protocols.folder.schema.documents import (
    CONCLUSION_SECTIONS_V1,
    CONCLUSION_SECTIONS_V2,
)
from acp_core.protocols.folder.schema.records import EVENTS_V2, PHASES, SCRIPTS, V2
from acp_core.protocols.folder.skill import install
from acp_core.protocols.folder.skill.install import MANIFEST, Incomplete, closure

skill = SKILL.main
ROOT = Path(acp_core.__file__).parent.parent
BARE = (sys.executable, "-I", "-S")  # no installed package, no PYTHON... variable, no own folder


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A skill that the tests of this module only read."""
    folder = tmp_path_factory.mktemp("skills") / "acp"
    assert skill(["install", str(folder)]) == 0
    return folder


def run(script: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a script as an agent without any package would."""
    environment = {name: value for name, value in os.environ.items() if "PYTHON" not in name}
    return subprocess.run(
        [*BARE, str(script), *arguments],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


class Agents:
    """Agents that play a scenario with the installed scripts alone."""

    def __init__(self, scripts: Path, scenario: Scenario, folder: Path) -> None:
        self._scripts = scripts
        self._scenario = scenario
        self._folder = folder
        self._played = PlayedScenario(scenario, folder)
        self.first = scenario.participants[0]

    def script(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        options = ("--folder", str(self._folder), *arguments)
        return run(self._scripts / name, *options, cwd=self._folder.parent)

    def init(self) -> None:
        options = ["--objective", self._scenario.objective]
        for participant in self._scenario.participants:
            options += ["--participant", participant]
        for gate in self._scenario.gates:
            options += ["--completion", gate]
        if self._scenario.deliverable:
            options += ["--primary-deliverable-type", self._scenario.deliverable.type]
            options += ["--primary-deliverable-file", self._scenario.deliverable.file]
        ended = self.script("init_collaboration.py", *options)
        assert ended.returncode == 0, ended.stderr

    def play(self) -> None:
        for seq, step in enumerate(self._scenario.steps, 2):
            me = ("--participant", step.by)
            waited = self.script("wait_for_turn.py", *me, "--timeout", "5")
            assert waited.returncode == 0, waited.stderr
            assert f"ready: {step.by} is listed in waitingFor" in waited.stdout
            reply_to = self._played.latest(step.reply_to)
            options = [*me, "--event", step.event, "--summary", step.summary, "--doc", step.doc]
            options += ["--reply-to", str(reply_to)]
            for write in step.writes:
                path, _, text = self._played.edit(write, reply_to)
                path.write_text(text, encoding="utf-8")
            if step.review:
                draft = self._folder.parent / "draft.md"
                draft.write_text(self._played.fill(step.review, reply_to), encoding="utf-8")
                options += ["--review-file", str(draft)]
            if step.role:
                options += ["--role", step.role]
            if step.freeze:
                options += ["--sha256", self._played.sha256()]
            ended = self.script("append_event.py", *options)
            assert ended.returncode == 0, ended.stderr
            assert ended.stdout == f"appended seq {seq}: {step.event}\n"


IMPORTED = """
import importlib, pathlib, sys
scripts = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(scripts))
for path in sorted((scripts / "acp_core").rglob("*.py")):
    parts = path.relative_to(scripts).with_suffix("").parts
    importlib.import_module(".".join(parts).removesuffix(".__init__"))
named = {name.partition(".")[0] for name in sys.modules}
print(*sorted(named - {"acp_core", "__main__", *sys.stdlib_module_names}))
"""
"""Imports all that was copied, also what the scripts import late; prints what Python does not bring."""


class TestWithABarePython:
    def test_the_scripts_take_a_turn(self, installed: Path, tmp_path: Path) -> None:
        agents = Agents(installed / "scripts", load("order-retries"), tmp_path / "run")
        agents.init()
        writer = ("--participant", agents.first)
        assert "next action: " in agents.script("next_action.py", *writer).stdout
        assert "ready: " in agents.script("wait_for_turn.py", *writer, "--timeout", "5").stdout
        options = (*writer, "--event", "proposal_submitted", "--summary", "Done.")
        ended = agents.script("append_event.py", *options, "--reply-to", "1")
        assert ended.stdout == "appended seq 2: proposal_submitted\n"
        validated = agents.script("validate_collaboration.py")
        assert validated.stdout.startswith("ACP validation passed\n")

    def test_nothing_that_is_copied_imports_a_package(
        self, installed: Path, tmp_path: Path
    ) -> None:
        ran = subprocess.run(
            [*BARE, "-c", IMPORTED, str(installed / "scripts")],
            cwd=tmp_path, capture_output=True, encoding="utf-8", check=False,
        )  # fmt: skip
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, "\n", "")

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["order-retries", "page-cursors"])
    def test_agents_complete_a_collaboration(
        self, installed: Path, tmp_path: Path, name: str
    ) -> None:
        scenario = load(name)
        agents = Agents(installed / "scripts", scenario, tmp_path / name)
        agents.init()
        agents.play()

        validated = agents.script("validate_collaboration.py")
        assert (validated.returncode, validated.stdout) == (0, "ACP validation passed\n")
        for participant in scenario.participants:
            told = agents.script("next_action.py", "--participant", participant)
            assert "phase: completed" in told.stdout
            assert "next action: stop; collaboration is complete." in told.stdout
        protocol = json.loads((tmp_path / name / "protocol.json").read_text())
        assert (protocol.get("schemaVersion") == 2) is (scenario.dialect == V2)

    def test_a_refusal_is_one_line(self, installed: Path, tmp_path: Path) -> None:
        agents = Agents(installed / "scripts", load("order-retries"), tmp_path / "run")
        agents.init()
        options = ("--participant", "client", "--event", "completed", "--summary", "Done.")
        ended = agents.script("append_event.py", *options, "--reply-to", "1")
        assert ended.returncode == 2
        assert ended.stderr.startswith("error: ")
        assert ended.stderr.count("\n") == 1

    @pytest.mark.parametrize("script", [script.name for script in SCRIPTS])
    def test_every_script_explains_itself(
        self, installed: Path, tmp_path: Path, script: str
    ) -> None:
        ended = run(installed / "scripts" / script, "--help", cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout.startswith(f"Usage: {script}")
        assert "--folder" in ended.stdout

    def test_a_script_works_through_a_link(self, installed: Path, tmp_path: Path) -> None:
        link = tmp_path / "next.py"
        link.symlink_to(installed / "scripts" / "next_action.py")
        assert run(link, "--help", cwd=tmp_path).returncode == 0

    @pytest.mark.parametrize("script", [script.name for script in SCRIPTS])
    def test_an_old_python_is_told_so_in_one_line(
        self, installed: Path, tmp_path: Path, script: str
    ) -> None:
        old = tmp_path / "old.py"
        old.write_text(
            "import runpy, sys\n"
            "sys.version_info = (3, 9, 2, 'final', 0)\n"
            "runpy.run_path(sys.argv[1], run_name='__main__')\n"
        )
        ended = run(old, str(installed / "scripts" / script), cwd=tmp_path)
        assert ended.returncode == 2
        assert ended.stderr.startswith(f"error: {script} needs Python 3.11 or newer; this is 3.9 (")
        assert ended.stderr.count("\n") == 1


class TestWhatIsInstalled:
    def test_it_is_small(self, installed: Path) -> None:
        """Its folder lies in people's projects, and is reviewed there."""
        sizes = [
            path.stat().st_size
            for path in installed.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        ]
        assert len(sizes) <= 60
        assert sum(sizes) <= 600_000

    def test_it_has_the_name_of_its_folder(self, installed: Path) -> None:
        lines = (installed / "SKILL.md").read_text(encoding="utf-8").splitlines()
        assert lines[:2] == ["---", "name: acp"]
        assert lines[2].startswith("description: ")
        assert lines[3] == "---"
        assert len(lines[2]) < 1024

    def test_a_folder_whose_name_is_no_skill_name_gets_another(self, tmp_path: Path) -> None:
        assert skill(["install", str(tmp_path / "My Skill")]) == 0
        text = (tmp_path / "My Skill" / "SKILL.md").read_text(encoding="utf-8")
        assert text.startswith("---\nname: agent-collaboration\n")

    def test_the_instructions_speak_of_what_there_is(self, installed: Path) -> None:
        """Flags, events, phases and headings: a word that no code knows would mislead agents."""
        text = (installed / "SKILL.md").read_text(encoding="utf-8")
        parsers = [each.find("") for each in COMMANDS[: len(SCRIPTS)]]
        flags = {flag for each in parsers if each for flag in each._option_string_actions}
        assert set(re.findall(r"--[a-z][a-z0-9-]+", text)) - flags == set()
        words = set(re.findall(r"`([a-z]+_[a-z_]+)`", text))
        assert words - {*EVENTS_V2, *PHASES} - {"acp_core"} == set()
        assert {*EVENTS_V2} - {"initialized"} <= {*words, "completed", "blocked"}
        assert ", ".join(TYPES) in " ".join(text.split())
        for heading in (*CONCLUSION_SECTIONS_V1, *CONCLUSION_SECTIONS_V2):
            assert heading in text
        for script in SCRIPTS:
            assert script.name in text

    def test_no_gap_in_a_text_is_left_open(self, installed: Path) -> None:
        texts = [installed / "SKILL.md", installed / "README.md"]
        texts += [installed / "scripts" / script.name for script in SCRIPTS]
        assert not any("{{" in path.read_text(encoding="utf-8") for path in texts)

    def test_the_modules_are_those_that_acp_runs_on(self, installed: Path) -> None:
        copied = sorted((installed / "scripts" / "acp_core").rglob("*.py"))
        assert len(copied) > 10
        for path in copied:
            original = ROOT / path.relative_to(installed / "scripts")
            assert path.read_bytes() == original.read_bytes()

    def test_nothing_that_draws_or_needs_a_package_is_copied(self, installed: Path) -> None:
        names = {
            path.relative_to(installed / "scripts").as_posix()
            for path in (installed / "scripts").rglob("*.py")
        }
        assert not any(name.startswith(("acp_core/cli", "acp_tui")) for name in names)
        assert "acp_core/protocols/folder/acts/offered.py" not in names

    def test_scripts_can_be_run(self, installed: Path) -> None:
        for script in SCRIPTS:
            assert os.access(installed / "scripts" / script.name, os.X_OK)

    def test_the_manifest_names_every_file(self, installed: Path) -> None:
        manifest = json.loads((installed / MANIFEST).read_text())
        assert manifest["version"] == acp_core.__version__
        there = {
            path.relative_to(installed).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in installed.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
        del there[MANIFEST]
        assert manifest["files"] == there


Refusal = Callable[..., str]


@pytest.fixture
def refusal(capsys: pytest.CaptureFixture[str]) -> Refusal:
    """Installs, expects exit code 2, and returns the one line that says why."""

    def install_and_read(folder: Path, *options: str) -> str:
        capsys.readouterr()
        assert skill(["install", str(folder), *options]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith("error: ")
        assert printed.err.count("\n") == 1
        return printed.err

    return install_and_read


def listing(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def age(folder: Path) -> None:
    """Make an installed skill look like one that an older acp installed."""
    manifest = json.loads((folder / MANIFEST).read_text())
    gone = ("scripts/gone.py", "scripts/acp_core/gone/__init__.py")
    (folder / gone[1]).parent.mkdir()
    for name in gone:
        (folder / name).write_text("old = True\n")
    (folder / "SKILL.md").write_text("old\n")
    for name in (*gone, "SKILL.md"):
        manifest["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    manifest["version"] = "0.0.1"
    (folder / MANIFEST).write_text(json.dumps(manifest))


class TestAFolderThatIsThereAlready:
    def test_an_empty_one_is_used(self, tmp_path: Path) -> None:
        (tmp_path / "skill").mkdir()
        assert skill(["install", str(tmp_path / "skill")]) == 0
        assert (tmp_path / "skill" / "SKILL.md").is_file()

    @pytest.mark.parametrize("name", ["notes.md", "SKILL.md", MANIFEST])
    def test_one_with_somebodys_files_is_left_alone(
        self, tmp_path: Path, refusal: Refusal, name: str
    ) -> None:
        (tmp_path / "skill").mkdir()
        (tmp_path / "skill" / name).write_text('{"made_by": "somebody"}')
        before = listing(tmp_path)
        assert f"contains files that acp did not install ({name})" in refusal(tmp_path / "skill")
        assert "did not install" in refusal(tmp_path / "skill", "--force")
        assert listing(tmp_path) == before

    def test_a_file_is_no_folder(self, tmp_path: Path, refusal: Refusal) -> None:
        (tmp_path / "skill").write_text("mine")
        assert "is a file" in refusal(tmp_path / "skill")
        assert (tmp_path / "skill").read_text() == "mine"

    def test_an_older_skill_is_brought_up_to_date(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = tmp_path / "skill"
        skill(["install", str(folder)])
        fresh = listing(folder)
        age(folder)
        (folder / "scripts" / "__pycache__").mkdir()
        (folder / "scripts" / "__pycache__" / "x.pyc").write_bytes(b"")
        capsys.readouterr()
        assert skill(["install", str(folder)]) == 0
        assert f"from 0.0.1 to {acp_core.__version__}" in capsys.readouterr().out
        assert listing(folder) == fresh
        assert os.listdir(tmp_path) == ["skill"]

    def test_one_that_is_up_to_date_stays_as_it_is(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        skill(["install", str(tmp_path / "skill")])
        before = (tmp_path / "skill").stat().st_ino
        capsys.readouterr()
        assert skill(["install", str(tmp_path / "skill")]) == 0
        assert "is up to date" in capsys.readouterr().out
        assert (tmp_path / "skill").stat().st_ino == before

    def test_an_edited_file_is_replaced_only_when_asked_to(
        self, tmp_path: Path, refusal: Refusal
    ) -> None:
        folder = tmp_path / "skill"
        skill(["install", str(folder)])
        fresh = listing(folder)
        (folder / "SKILL.md").write_text("my own words")
        assert "changed since it was installed (SKILL.md)" in refusal(folder)
        assert (folder / "SKILL.md").read_text() == "my own words"
        assert skill(["install", str(folder), "--force"]) == 0
        assert listing(folder) == fresh

    def test_a_file_put_into_an_installed_skill_stops_the_upgrade(
        self, tmp_path: Path, refusal: Refusal
    ) -> None:
        folder = tmp_path / "skill"
        skill(["install", str(folder)])
        age(folder)
        (folder / "notes.md").write_text("mine")
        before = listing(folder)
        assert "did not install (notes.md)" in refusal(folder)
        assert listing(folder) == before

    def test_a_link_to_a_folder_is_followed(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "skill").symlink_to(tmp_path / "real")
        assert skill(["install", str(tmp_path / "skill")]) == 0
        assert (tmp_path / "skill").is_symlink()
        assert (tmp_path / "real" / "SKILL.md").read_text().startswith("---\nname: skill\n")

    def test_a_forged_manifest_reaches_nothing_outside(self, tmp_path: Path) -> None:
        folder = tmp_path / "skill"
        skill(["install", str(folder)])
        age(folder)
        (tmp_path / "precious").write_text("mine")
        manifest = json.loads((folder / MANIFEST).read_text())
        manifest["files"]["../precious"] = hashlib.sha256(b"mine").hexdigest()
        (folder / MANIFEST).write_text(json.dumps(manifest))
        assert skill(["install", str(folder)]) == 0
        assert (tmp_path / "precious").read_text() == "mine"

    def test_a_swap_that_fails_half_way_is_taken_back(
        self, tmp_path: Path, refusal: Refusal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = tmp_path / "skill"
        skill(["install", str(folder)])
        age(folder)
        before = listing(folder)
        rename, calls = os.rename, iter([True, False, True])

        def failing(old: Path, new: Path) -> None:
            if not next(calls):
                raise PermissionError(13, "Permission denied")
            rename(old, new)

        monkeypatch.setattr("acp_core.protocols.folder.skill.install.os.rename", failing)
        assert "cannot be written: Permission denied" in refusal(folder)
        assert listing(folder) == before


class TestSayingWhatWouldBeDone:
    def test_a_dry_run_writes_nothing(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert skill(["install", str(tmp_path / "skill"), "--dry-run"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0].startswith("would install ")
        assert "  scripts/append_event.py" in lines
        assert os.listdir(tmp_path) == []

    def test_as_json(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert skill(["install", str(tmp_path / "skill"), "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["schema"] == "acp.skill/1"
        assert (told["verb"], told["done"]) == ("create", True)
        assert MANIFEST in told["files"]


class TestClosure:
    """Which modules are copied is worked out, so that none can be forgotten."""

    @pytest.fixture
    def package(self, tmp_path: Path) -> Path:
        files = {
            "__init__.py": "",
            "a.py": "from acp_core.b import x\n\ndef late():\n    import acp_core.c, acp_core.e.f\n",
            "b/__init__.py": "from . import d\nx = 1\n",
            "b/d.py": "import json, os.path\n",
            "e/__init__.py": '"""Only a face."""\n',
            "e/f.py": "",
            "c.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pydantic\n",
            "unused.py": "import click\n",
        }
        for name, text in files.items():
            path = tmp_path / "acp_core" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    def test_imports_are_followed_wherever_they_stand(self, package: Path) -> None:
        found = closure(package, ("acp_core.a",))
        assert list(found.files) == [
            "acp_core/__init__.py",
            "acp_core/a.py",
            "acp_core/b/__init__.py",
            "acp_core/b/d.py",
            "acp_core/c.py",
            "acp_core/e/f.py",  # its folder is a package without the face that says nothing
        ]
        assert found.foreign == {}

    def test_what_python_does_not_bring_is_found(self, package: Path) -> None:
        (package / "acp_core" / "c.py").write_text("def f():\n    from click import echo\n")
        assert list(closure(package, ("acp_core.a",)).foreign) == ["click"]

    def test_a_missing_module_is_named(self, package: Path) -> None:
        (package / "acp_core" / "c.py").unlink()
        with pytest.raises(ModuleNotFoundError, match=r"acp_core\.c"):
            closure(package, ("acp_core.a",))

    def test_a_skill_that_needs_a_package_is_not_installed(
        self, tmp_path: Path, refusal: Refusal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def needy(*_: object) -> None:
            raise Incomplete("acp_core/x.py needs click, which is not part of Python")

        monkeypatch.setattr(install, "contents", needy)
        assert "needs click" in refusal(tmp_path / "skill")
        assert os.listdir(tmp_path) == []
