"""Hosts: each with a home of its own, and its own folder of one shared collaboration."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support import forked

ROOT = Path(__file__).resolve().parents[2]
ID = "checkout"


class Host:
    """A host: what it has in its home is nobody else's."""

    def __init__(self, name: str, place: Path) -> None:
        self.name = name
        self.home = place / name
        self.folder = self.home / "c"
        config = self.home / "config"
        config.mkdir(parents=True)
        (config / "config.toml").write_text(f'[share]\nhost = "{name}"\n', encoding="utf-8")
        (self.home / "tmp").mkdir()
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("ACP_", "GIT_", "XDG_"))}
        self.env = kept | {
            "HOME": str(self.home),
            "ACP_CONFIG": str(config),
            "ACP_STATE": str(self.home / "state"),
            "ACP_CACHE": str(self.home / "cache"),
            "TMPDIR": str(self.home / "tmp"),
        }

    def acp(self, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return forked.run(words, self.home, self.env, typed)

    def done(self, *words: str) -> str:
        """Run a command that must end well; what it prints."""
        ran = self.acp(*words)
        assert ran.returncode == 0, (self.name, words, ran.stdout, ran.stderr)
        return ran.stdout

    def acp_here(self, command: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command on the folder."""
        return self.acp(command, str(self.folder), *words)

    def done_here(self, command: str, *words: str) -> str:
        """Run a command on the folder that must end well; what it prints."""
        return self.done(command, str(self.folder), *words)

    def at(self, step: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to a named step; see `process`."""
        return subprocess.run(
            [sys.executable, "-m", "tests.stores.process", step, *words], cwd=ROOT, text=True,
            env=self.env | {"PYTHONPATH": str(ROOT)}, capture_output=True, check=False, timeout=120,
        )  # fmt: skip

    def event(self, who: str, event: str, *words: str) -> tuple[str, ...]:
        """The words of a command that appends an event."""
        summary = () if "--summary" in words else ("--summary", f"{event} by {who}")
        return (
            "append",
            "--folder",
            str(self.folder),
            "--participant",
            who,
            "--event",
            event,
            *summary,
            *words,
        )

    def append(self, who: str, event: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Append an event."""
        return self.acp(*self.event(who, event, *words))

    def appended(self, who: str, event: str, *words: str) -> int:
        """Append an event, which must work; its seq."""
        return int(json.loads(self.done(*self.event(who, event, *words, "--json")))["seq"])

    def sync(self, *words: str) -> str:
        """Look at the store once; what is printed."""
        return self.done_here("sync", *(words or ("--once",)))

    def read(self, name: str) -> bytes:
        """A file of the folder."""
        return (self.folder / name).read_bytes()

    def write(self, name: str, text: str) -> None:
        """Change a document, as an agent does."""
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text, encoding="utf-8")

    def log(self) -> list[dict[str, Any]]:
        """The events."""
        return [json.loads(line) for line in self.read("events.jsonl").splitlines()]

    def files(self) -> dict[str, str]:
        """Every file but those in ``.acp``, by digest."""
        return {
            str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and ".acp" not in path.parts
        }


def repository(place: Path) -> Path:
    """A new bare repository at a path."""
    made = place / "store.git"
    git("init", "-q", "--bare", str(made))
    return made


def git(*words: str, given: bytes = b"", cwd: Path | None = None) -> str:
    """Run git as whoever owns a repository does."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    kept |= {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    ran = subprocess.run(
        ["git", *words], input=given, capture_output=True, check=False, cwd=cwd, env=kept
    )
    assert ran.returncode == 0, (words, ran.stderr)
    return ran.stdout.decode().strip()


def started(host: Host, *readers: str) -> None:
    """A new collaboration of a writer and readers in a host's folder."""
    people = [
        word for each in ("writer", *(readers or ("reader",))) for word in ("--participant", each)
    ]
    host.done(
        "init",
        "--folder",
        str(host.folder),
        *people,
        "--objective",
        "Choose",
        "--completion",
        "Chosen",
    )


def shared(place: Path, *names: str, readers: tuple[str, ...] = ()) -> tuple[Path, list[Host]]:
    """A repository, and hosts that share one collaboration in it; the first one has begun it."""
    store = repository(place)
    hosts = [Host(name, place) for name in names]
    first, *others = hosts
    started(first, *readers)
    first.done_here("share", str(store), "--id", ID, "--yes")
    for each in others:
        each.done("join", f"{store}#{ID}", str(each.folder))
    return store, hosts
