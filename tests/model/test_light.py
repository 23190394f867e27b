"""The light named tuple is what `typing` makes of the same class; a process ends as Python ends it."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import typing
from pathlib import Path

import pytest

from acp_core.model import light

ROOT = Path(__file__).resolve().parents[2]


class Light(light.NamedTuple):
    """Words."""

    first: int
    second: tuple[str, ...] = ()
    third: str | None = None

    @property
    def both(self) -> str:
        return f"{self.first}{self.third}"


class Usual(typing.NamedTuple):
    """Words."""

    first: int
    second: tuple[str, ...] = ()
    third: str | None = None

    @property
    def both(self) -> str:
        return f"{self.first}{self.third}"


def test_it_is_the_same_as_that_of_typing() -> None:
    one, two = Light(1, third="x"), Usual(1, third="x")
    assert tuple(one) == tuple(two) and one.both == two.both == "1x"
    assert repr(one) == repr(two).replace("Usual", "Light")
    assert one._replace(first=5).first == 5 and one._asdict() == two._asdict()
    assert (Light._fields, Light._field_defaults) == (Usual._fields, Usual._field_defaults)
    assert (Light.__doc__, Light.__module__) == (Usual.__doc__, Usual.__module__)
    assert typing.get_type_hints(Light) == typing.get_type_hints(Usual)
    assert pickle.loads(pickle.dumps(one)) == one and type(one) is Light
    for wrong in (Light, Usual):
        with pytest.raises(TypeError):
            wrong()  # type: ignore[call-arg]
        with pytest.raises(AttributeError):
            wrong(1).other = 5  # type: ignore[attr-defined]


def ended(code: str, **streams: typing.Any) -> subprocess.CompletedProcess[str]:
    """A process that is about to end, and does so."""
    text = f"import sys\n{code}\nfrom acp_core.protocols.kit.command_line import end\nend(3)\nsys.exit(4)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONUNBUFFERED", None)
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    return subprocess.run([sys.executable, "-c", text], text=True, env=environment, **given)


def test_a_process_that_leaves_nothing_ends_at_once_with_all_that_it_said() -> None:
    ran = ended("print('said'); print('complained', file=sys.stderr)")
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "said\n", "complained\n")


@pytest.mark.parametrize(
    "code",
    [
        "import atexit; atexit.register(lambda: print('last'))",
        "import threading; threading.Thread(target=lambda: print('last')).start()",
    ],
)
def test_work_that_is_left_for_the_end_is_done(code: str) -> None:
    ran = ended(code)
    assert (ran.returncode, ran.stdout) == (4, "last\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_left_to_python() -> None:
    with open("/dev/full", "w") as full:
        ran = ended("print('said')", stdout=full)
    assert ran.returncode == 120 and "No space left" in ran.stderr


def test_closed_output_is_left_to_python() -> None:
    assert ended("sys.stdout = None").returncode == 4
