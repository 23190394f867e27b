"""Somebody runs `acp demo`: real processes settle a question, and nothing stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.cli.support import Acp
from tests.support.terminal import Terminal
from tests.support.waiting import until

PLENTY = 60.0  # seconds after which something is taken to never happen
PARTICIPANTS = ("client", "oncall", "server")


@pytest.fixture
def acp(tmp_path: Path) -> Acp:
    return Acp(tmp_path)


def events(folder: Path) -> list[str]:
    try:
        lines = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    return [json.loads(line)["event"] for line in lines]


def command_line(process: psutil.Process) -> list[str]:
    """The words that a process was started with; none where it has just ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def all_gone(processes: list[psutil.Process]) -> bool:
    """Whether none of them runs any more (what nobody has waited for yet counts as gone)."""

    def gone(process: psutil.Process) -> bool:
        try:
            return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    return all(map(gone, processes))


class Running:
    """A demo that runs, in a folder of its own."""

    def __init__(self, acp: Acp, folder: Path, speed: str) -> None:
        self.acp = acp
        self.folder = folder
        self._output = (acp.home / "output").open("w+")
        self.process = subprocess.Popen(
            acp.command("demo", "--headless", "--folder", str(folder), "--speed", speed),
            cwd=acp.home,
            env=acp.env,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
        )

    def company(self) -> dict[str, psutil.Process]:
        """The participants' processes, once all of them run."""
        found: dict[str, psutil.Process] = {}

        def complete() -> bool:
            for process in psutil.Process(self.process.pid).children():
                words = command_line(process)
                if "--participant" in words:
                    found[words[words.index("--participant") + 1]] = process
            return len(found) == len(PARTICIPANTS)

        until(complete, "three participants")
        assert tuple(sorted(found)) == PARTICIPANTS
        return found

    def everybody(self) -> list[psutil.Process]:
        """Every process that the demo started, at work in the folder, with what those started."""
        company = self.company().values()
        until(lambda: all(each.children() for each in company), "a command of each participant")
        return psutil.Process(self.process.pid).children(recursive=True)

    @contextmanager
    def paused(self, name: str) -> Iterator[None]:
        """One participant stands still meanwhile."""
        process = self.company()[name]
        process.suspend()
        yield
        process.resume()

    def wait(self) -> tuple[int, str]:
        """Its exit code, and what it printed."""
        code = self.process.wait(PLENTY)
        self._output.seek(0)
        return code, self._output.read()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._output.close()


@pytest.fixture
def start(acp: Acp, tmp_path: Path) -> Iterator[Callable[..., Running]]:
    demos: list[Running] = []

    def begin(speed: str = "1") -> Running:
        demos.append(Running(acp, tmp_path / "run", speed))
        return demos[-1]

    yield begin
    for demo in demos:
        demo.close()


class TestHeadless:
    @pytest.fixture(scope="class")
    def ran(self, tmp_path_factory: pytest.TempPathFactory) -> tuple[Acp, list[str]]:
        """Whoever ran a demo without saying where, and the lines that it printed."""
        acp = Acp(tmp_path_factory.mktemp("demo"))
        (acp.home / "tmp").mkdir()
        environment = {"TMPDIR": str(acp.home / "tmp")}
        ended = acp("demo", "--headless", "--speed", "500", env=environment)
        assert ended.returncode == 0, ended.stderr
        return acp, ended.stdout.splitlines()

    def test_it_comes_to_its_end(self, ran: tuple[Acp, list[str]]) -> None:
        acp, lines = ran
        is_whole(acp, folder_of(lines), lines, 15)

    @pytest.mark.slow
    def test_another_one_comes_to_its_end(self, acp: Acp, tmp_path: Path) -> None:
        folder = tmp_path / "run"
        options = ("--headless", "--speed", "500", "--folder", str(folder))
        ended = acp("demo", *options, "--scenario", "page-cursors")
        assert ended.returncode == 0, ended.stderr
        lines = ended.stdout.splitlines()
        assert folder_of(lines) == folder
        is_whole(acp, folder, lines, 17)

    def test_it_chooses_a_folder_and_keeps_it(self, ran: tuple[Acp, list[str]]) -> None:
        acp, lines = ran
        assert folder_of(lines).is_relative_to(acp.home / "tmp")
        assert events(folder_of(lines))[-1] == "completed"

    def test_each_participant_keeps_a_log(self, ran: tuple[Acp, list[str]]) -> None:
        acp, _ = ran
        logs = {path.stem: path.read_text() for path in (acp.home / "state").rglob("*.log")}
        assert tuple(sorted(logs)) == PARTICIPANTS
        assert "$ acp wait --folder" in logs["client"]
        assert "appended seq " in logs["client"]
        assert logs["client"].endswith("over\n")


def folder_of(lines: list[str]) -> Path:
    """The folder that a demo named first of all."""
    return Path(lines[0].removeprefix("collaboration: "))


def is_whole(acp: Acp, folder: Path, lines: list[str], count: int) -> None:
    """Everything was said as it happened, to a valid end."""
    assert lines[-1] == f"completed and valid: {count} events"
    assert [line.split()[3] for line in lines[1:-1]] == events(folder)
    assert events(folder).count("review_submitted") == 4
    assert acp("validate", "--folder", str(folder)).stdout == "ACP validation passed\n"


class TestAWrongStart:
    def test_a_folder_that_is_in_use(self, acp: Acp, tmp_path: Path) -> None:
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "notes.md").write_text("mine")
        ended = acp("demo", "--headless", "--folder", str(tmp_path / "mine"))
        assert ended.returncode == 2
        assert "is not empty" in ended.stderr
        assert os.listdir(tmp_path / "mine") == ["notes.md"]

    def test_an_unknown_scenario(self, acp: Acp) -> None:
        ended = acp("demo", "--headless", "--scenario", "../x")
        assert ended.returncode == 2
        assert ended.stderr.count("\n") == 1
        assert "scenarios: order-retries, page-cursors" in ended.stderr

    def test_a_folder_that_cannot_be_made(self, acp: Acp, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        ended = acp("demo", "--headless", "--folder", str(tmp_path / "file" / "run"))
        assert ended.returncode == 2
        assert ended.stderr.count("\n") == 1

    def test_a_state_folder_that_cannot_be_made(self, acp: Acp, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        options = ("--headless", "--folder", str(tmp_path / "run"))
        ended = acp("demo", *options, env={"ACP_STATE": str(tmp_path / "file" / "state")})
        assert ended.returncode == 2
        assert "no folder for a rehearsal" in ended.stderr
        assert ended.stderr.count("\n") == 1
        assert not (tmp_path / "run").exists()

    def test_the_dashboard_without_a_terminal(self, acp: Acp, tmp_path: Path) -> None:
        ended = acp("demo", "--folder", str(tmp_path / "run"))
        assert ended.returncode == 2
        assert "needs a terminal" in ended.stderr


class TestNothingStaysBehind:
    @pytest.mark.parametrize(
        "number",
        [
            signal.SIGKILL,
            pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
            pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
        ],
    )
    def test_when_the_demo_is_killed(
        self, start: Callable[..., Running], number: signal.Signals
    ) -> None:
        demo = start()
        processes = demo.everybody()
        demo.process.send_signal(number)
        demo.wait()
        until(lambda: all_gone(processes), "the end of every participant")

    def test_when_the_person_interrupts_it(self, start: Callable[..., Running]) -> None:
        demo = start()
        processes = demo.everybody()
        demo.process.send_signal(signal.SIGINT)
        code, _ = demo.wait()
        assert code == 130
        assert all_gone(processes)


class TestTrouble:
    @pytest.mark.slow
    def test_a_participant_that_dies_is_named(self, start: Callable[..., Running]) -> None:
        demo = start()
        processes = demo.everybody()
        demo.company()["oncall"].kill()
        code, output = demo.wait()
        assert code == 1
        assert "oncall's process ended by SIGKILL" in output
        assert all_gone(processes)

    @pytest.mark.slow
    def test_a_participant_that_cannot_go_on_says_so_in_the_collaboration(
        self, start: Callable[..., Running]
    ) -> None:
        demo = start("40")
        with demo.paused("server"):
            (demo.folder / "decisions.md").unlink()
            (demo.folder / "decisions.md").mkdir()
        code, output = demo.wait()
        assert code == 1
        assert "server's process ended with exit 1" in output
        last = json.loads((demo.folder / "events.jsonl").read_text().splitlines()[-1])
        assert (last["from"], last["event"]) == ("server", "blocked")
        assert last["summary"].startswith("server cannot continue: ")

    def test_a_person_who_blocks_it_is_obeyed(self, start: Callable[..., Running]) -> None:
        demo = start("40")
        options = ("--participant", "client", "--event", "blocked", "--reply-to", "1")
        with demo.paused("server"):
            demo.acp("append", "--folder", str(demo.folder), *options, "--summary", "Stop here.")
        code, output = demo.wait()
        assert code == 1
        assert "error: not completed: " in output
        assert events(demo.folder).count("blocked") == 1

    @pytest.mark.slow
    def test_a_person_may_take_a_turn(self, start: Callable[..., Running]) -> None:
        demo = start("40")
        review = demo.acp.home / "review.md"
        review.write_text("Context:\n- Read `proposal.md`.\n\nRequired Changes:\n- None.\n")
        options = ["--participant", "oncall", "--event", "review_submitted", "--reply-to", "2"]
        options += ["--summary", "A person was faster.", "--review-file", str(review)]
        with demo.paused("oncall"):
            until(lambda: "proposal_submitted" in events(demo.folder), "a proposal")
            took = demo.acp("append", "--folder", str(demo.folder), *options, "--doc", "review.md")
        assert took.returncode == 0, took.stderr
        code, output = demo.wait()
        assert code == 0, output
        assert "A person was faster." in output
        assert events(demo.folder)[-1] == "completed"


class TestOnTheDashboard:
    @pytest.mark.slow
    def test_it_is_seen_to_its_end_and_leaves_nothing(self, acp: Acp, tmp_path: Path) -> None:
        folder = tmp_path / "run"
        command = acp.command("demo", "--speed", "25", "--folder", str(folder))
        with Terminal(command, env=acp.env, cwd=tmp_path) as terminal:
            terminal.wait_for("review_submitted", PLENTY)
            terminal.wait_for("completed", PLENTY)
            until(lambda: events(folder)[-1:] == ["completed"], "the last event")
            children = psutil.Process(terminal.pid).children(recursive=True)
            terminal.send("\x11")
            assert terminal.wait_for_end(PLENTY) == 0
        assert all_gone(children)
        assert f"The collaboration is in {folder}".encode() in bytes(terminal.raw)

    @pytest.mark.slow
    def test_participants_end_when_it_is_left_early(self, acp: Acp, tmp_path: Path) -> None:
        folder = tmp_path / "run"
        command = acp.command("demo", "--folder", str(folder))
        with Terminal(command, env=acp.env, cwd=tmp_path) as terminal:
            terminal.wait_for("initialized", PLENTY)
            children = psutil.Process(terminal.pid).children(recursive=True)
            assert len(children) >= len(PARTICIPANTS)
            terminal.send("\x11")
            assert terminal.wait_for_end(PLENTY) == 0
        assert all_gone(children)
        assert events(folder)[-1] != "completed"


@pytest.mark.slow
def test_the_demo_needs_no_installed_acp(tmp_path: Path) -> None:
    """Its participants find the very modules that it runs on, wherever it was started."""
    root = Path(__file__).resolve().parents[2]
    environment = {name: value for name, value in os.environ.items() if "PYTHON" not in name}
    environment |= {"ACP_STATE": str(tmp_path / "state"), "ACP_CONFIG": str(tmp_path / "config")}
    program = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); "
        "from acp_core.__main__ import no_dashboard, run; sys.exit(run(sys.argv[1:], no_dashboard))"
    )
    options = ["demo", "--headless", "--speed", "500", "--folder", str(tmp_path / "run")]
    ended = subprocess.run(
        [sys.executable, "-c", program, str(root), *options],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
