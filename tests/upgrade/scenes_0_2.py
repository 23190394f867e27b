"""What acp keeps and runs since 0.2, beyond `tests.upgrade.scenes`; brought about by its commands alone, too."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import psutil

from tests.support import postgres
from tests.support.terminal import Terminal
from tests.upgrade.scenes import PATIENCE, WAITS, Failed, House, begin, wait_for
from tests.upgrade.scenes import SETTINGS as OLD_SETTINGS

ROOT = Path(__file__).resolve().parents[2]
HOST, ACCOUNT, SHARED_AS = "workstation", "me", "laptop"
PARKED = "acp-parked"
SERVICE = "acp-sample"
DUMP = "store.sql"
DATABASE = f"postgresql:///?service={SERVICE}"
LIMIT = "Usage limit reached. Try again in 1 hour."
CLAUDE = """#!/bin/sh
# Stands in for Claude Code: it prints what one attempt took, and takes no turn.
cat <<'END'
{"type": "system", "subtype": "init", "model": "stand-in-1", "session_id": "s"}
{"type": "result", "is_error": false, "result": "Not yet.", "total_cost_usd": 0.75, "usage": {"input_tokens": 4000, "output_tokens": 1000}}
END
"""
LIVE = """#!/bin/sh
# Stands in for a program that holds a live session: tests/agents/live_agent.py of this repository.
PYTHONPATH=$STAND_IN_ROOT exec "$STAND_IN_PYTHON" -m tests.agents.live_agent "$@"
"""
CRONTAB = """#!/bin/sh
# Stands in for cron's table.
case "$1" in
    -l) cat "$HOME/crontab" 2>/dev/null || { echo "no crontab for me" >&2; exit 1; } ;;
    *) cat >"$HOME/crontab" ;;
esac
"""
DIES = """\
# Ends a program between the files of one write: when it puts the second one into its place.
import os, signal, sys

left = [1]


def look(event, given):
    if event in ("os.rename", "os.link") and os.path.exists({journal!r}):
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1


sys.addaudithook(look)
"""


NAMES = f"""\
# What the recorded program takes for the names of its machine and of its account.
import os, platform, pwd, socket

machine = os.uname_result((os.uname()[0], {HOST!r}, *os.uname()[2:]))
account = pwd.getpwuid(os.getuid())
account = pwd.struct_passwd(({ACCOUNT!r}, *account[1:]))
os.uname = lambda: machine
platform.node = socket.gethostname = lambda: {HOST!r}
pwd.getpwuid = lambda number: account
"""


def settings(house: House) -> str:
    """The person's settings."""
    live = house.work / "live.sh"
    return (
        OLD_SETTINGS
        + f"""
[presets.standin]
title = "A live session"
program = "{house.agent}"
args = ["hold"]
live = ["{live}", "--home", "{house.work / "held"}", "--behaviour", "{house.work / "behaviour"}"]
ask_mode = "default"

[presets.paid]
title = "A program that is paid for"
program = "{house.work / "claude.sh"}"
stream = "claude"
tells_cost = "end"
tells_tokens = "end"

[presets.limited]
title = "A program without quota"
program = "sh"
args = ["-c", "echo '{LIMIT}'; exit 1"]

[budgets]
day = "20usd"

[permissions]
policy = "edits"

[[permissions.rules]]
verdict = "reject"
command = "git push *"

[[permissions.rules]]
verdict = "allow"
path = "{house.work / "site"}"

[share]
host = "{SHARED_AS}"
accept = ["stop", "nudge"]

[fleet.views.triage]
group = "folder"
sort = "name"
columns = ["phase", "findings"]
filter = "Decide on"
"""
    )


def environment(acp: str, folder: Path) -> Mapping[str, str]:
    """All that the recorded program is told of this machine."""
    return {
        "PATH": os.pathsep.join((str(folder / "bin"), os.path.dirname(os.path.abspath(acp)), os.defpath)),
        "LANG": "C.UTF-8", "LOGNAME": ACCOUNT, "USER": ACCOUNT, "PYTHONPATH": str(folder / "names"),
        **stand_ins(folder),
    }  # fmt: skip


def stand_ins(folder: Path) -> Mapping[str, str]:
    """What the stand-ins of a house are found by."""
    return {
        "STAND_IN_ROOT": str(ROOT), "STAND_IN_PYTHON": sys.executable,
        "PGSERVICEFILE": str(folder / "pg_service.conf"),
    }  # fmt: skip


def prepare(house: House) -> None:
    """The stand-ins, and the person's settings."""
    (house.folder / "bin").mkdir(exist_ok=True)
    for path, text in (
        (house.work / "claude.sh", CLAUDE), (house.work / "live.sh", LIVE), (house.folder / "bin/crontab", CRONTAB)
    ):  # fmt: skip
        path.write_text(text)
        path.chmod(0o755)
    names = house.folder / "names"
    names.mkdir(exist_ok=True)
    (names / "sitecustomize.py").write_text(NAMES)
    (house.work / "behaviour").write_text("both")
    (house.config / "config.toml").write_text(settings(house))


def git_store(house: House) -> Path:
    """A collaboration shared over a repository, which lies beside it, and its loop that waits."""
    store = house.folder / "store.git"
    subprocess.run(["git", "init", "-q", "--bare", "--template=", store], check=True)
    folder = _share(house, "prices", str(store))
    house.run("launch", folder, "reader", "--", house.agent, WAITS)
    wait_for(lambda: any(line[-1:] == [str(folder)] for line in lines(house)), "its process")
    return folder


def database(house: House) -> Path:
    """A collaboration shared over a database, of which a dump lies beside it."""
    with postgres.running() as server:
        server.sql("create database acp")
        told_where(house.folder, server)
        house.run("store", "init", DATABASE)
        folder = _share(house, "orders", DATABASE)
        (house.folder / DUMP).write_text(_dump(server), encoding="utf-8")
    return folder


def told_where(folder: Path, server: postgres.Server | None) -> None:
    """Say where the database is; without a server, where none is."""
    host = server.place / "socket" if server else folder / "nowhere"
    lines = (f"[{SERVICE}]", f"host={host}", "dbname=acp", f"user={postgres.ADMIN}", "")
    (folder / "pg_service.conf").write_text("\n".join(lines))


def _share(house: House, name: str, store: str) -> Path:
    folder = begin(house, name)
    house.run("share", folder, store, "--yes")
    review = house.work / "review.txt"
    review.write_text(
        "Position:\n- In favour.\n\nRequired Changes:\n- Say who empties the cache.\n"
    )
    house.run("append", "--folder", folder, "--participant", "reader", "--event", "review_submitted",
              "--summary", "One change", "--reply-to", "2", "--review-file", review)  # fmt: skip
    review.unlink()
    house.run("sync", folder, "--once")
    return folder


def _dump(server: postgres.Server) -> str:
    """The database, as `restored` takes it."""
    words = [server.bin / "pg_dump", "--inserts", "--no-owner", server.url("acp")]
    dumped = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    roles = server.sql("select rolname from pg_roles where rolname like 'acp%' order by 1")
    lines = [f"create role {name};" for (name,) in roles]
    lines += [each for each in dumped.splitlines() if each and not each.startswith(("\\", "--"))]
    return "\n".join([*lines, ""])


def interrupted(house: House) -> Path:
    """A dispatch that was killed between the files that it writes."""
    folder = house.work / "survey"
    house.run("workspaces", "init", folder, "--task", "a survey", "-a", "ann=Ask about cost.", "-a",
              "ben=Ask about speed.")  # fmt: skip
    journal = folder / "agent-workspaces/.coord/acp-journal.json"
    with tempfile.TemporaryDirectory() as place:
        Path(place, "sitecustomize.py").write_text(NAMES + DIES.format(journal=str(journal)))
        dies = house.with_variables(PYTHONPATH=place)
        dies.result("workspaces", "dispatch", folder, "--limit", "1", "--", house.agent, WAITS)
    if not journal.exists():
        raise Failed("the dispatch was not killed between its files")
    return folder


def idle_loop(house: House) -> Path:
    """A loop that waits for its turn: a shell, in whose place the supervisor looks; so do others by now."""
    folder = begin(house, "tokens")
    house.run("launch", folder, "owner", "--", house.agent, WAITS)
    idle = {"checkout-owner", "prices-reader", "search-reader", "tokens-owner"}
    wait_for(lambda: {_place(line) for line in lines(house)} >= idle, "all idle loops to be parked")
    return folder


def _place(line: list[str]) -> str:
    """The loop that a shell stands for, without the digest in its name."""
    return Path(line[-1]).name.rpartition("-")[0] if PARKED in line else ""


def limited_loop(house: House) -> Path:
    """A loop that waits until its program's model service takes requests again."""
    folder = begin(house, "search")
    house.run("launch", folder, "reader=limited")
    wait_for(lambda: LIMIT in house.loops()["search", "reader"]["note"], "the limit")
    return folder


def live_session(house: House) -> Path:
    """A loop with a live session that asks a person: once rejected, and once not answered."""
    folder = begin(house, "login")
    house.run("launch", folder, "reader=standin", "--permissions", "ask")
    first = _request(house)
    house.run("answer", folder, first, "reject", "--message", "Nothing outside the folder")
    wait_for(lambda: _request(house) != first, "another request")
    return folder


def _request(house: House) -> str:
    """The id of the request that waits for a person."""
    found: list[str] = []

    def look() -> bool:
        found[:] = [each.stem for each in house.state.glob("permissions/*.json")]
        return len(found) == 1

    wait_for(look, "a request for permission")
    return found[0]


def spent(house: House) -> Path:
    """A loop that has spent what it may."""
    folder = begin(house, "export")
    house.run("launch", folder, "reader=paid", "--budget", "turn=0.50usd")
    wait_for(lambda: house.loops()["export", "reader"]["phase"] not in ("running", "waiting"), "it")
    return folder


def boot_entries(house: House) -> None:
    """What the system runs at boot: a unit of systemd, and a line of the crontab."""
    for manager in ("systemd", "cron"):
        words = ("launch", "--at-boot", "--boot-manager", manager, "--yes")
        house.with_variables(PYTHONPATH="").run(*words)


def skills(house: House) -> None:
    """The skill in a folder of its own; skill and tools where Claude Code and Codex look."""
    house.run("skill", "install", house.work / "skills/agent-collaboration")
    for program in ("claude", "codex"):
        house.run("skill", "install", "--for", program, "--collaboration", house.work / "prices",
                  "--participant", "reader", "--yes")  # fmt: skip


def capped(house: House) -> Path:
    """A run of sub-agents with a budget of its own, which is used up."""
    folder = house.work / "vendors"
    house.run("workspaces", "init", folder, "--task", "a list of vendors", "-a",
              "ann=List the vendors.", "-a", "ben=List what they sell.")  # fmt: skip
    house.run("workspaces", "dispatch", folder, "--agent", "paid", "--budget", "turn=0.50usd",
              codes=(0, 1))  # fmt: skip
    return folder


def snoozed(house: House) -> Path:
    """A collaboration that a person looked at in the dashboard, and put off."""
    folder = begin(house, "quotas", "me")
    words = [*house.words, "dashboard", str(folder)]
    with Terminal(words, env=house.env, cwd=house.work, columns=120, rows=40) as terminal:
        terminal.wait_for("First draft", PATIENCE)
        for key, shown in (("!", "Inbox"), ("Z", "Snoozed until")):
            terminal.run(1)
            terminal.send(key)
            terminal.wait_for(shown, PATIENCE)
        for _ in range(2):
            terminal.send("q")
            terminal.run(1)
    return folder


def lines(house: House) -> list[list[str]]:
    """The command lines of what runs for a house."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("ACP_STATE") == str(house.state):
                found.append(process.cmdline())
    return found


BEFORE = (
    boot_entries, git_store, database, skills, interrupted, spent, capped, snoozed, limited_loop, live_session,
)  # fmt: skip
LAST = (idle_loop,)
"""What takes long to come about."""
