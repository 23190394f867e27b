"""What an initiative tells: hooks, context documents, and what its repositories are."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from acp_core.protocols.governed.write import initiative_opened
from tests.protocols.governed import making, multi, test_run_hooks
from tests.protocols.governed.acting import acted, refused, reject_barrier, step
from tests.protocols.governed.multi import NAMES, approve, asks, begin, ledger, state

HOOK = """#!/bin/sh
cat "$AGENTXCHAIN_PAYLOAD_FILE" > "$AGENTXCHAIN_PROJECT_ROOT/seen-$AGENTXCHAIN_EVENT.json"
echo "$AGENTXCHAIN_EVENT $AGENTXCHAIN_RUN_ID $AGENTXCHAIN_PHASE token=sk-ant-api03-0123456789abcdef"
"""


def script(root: Path, name: str, body: str = HOOK) -> str:
    path = root / "coordinator-hooks" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(body)
    path.chmod(0o755)
    return f"./coordinator-hooks/{name}"


def hooked(root: Path, names: tuple[str, ...] = ("auth", "web"), **hooks: object) -> Path:
    return begin(root, names, hooks=hooks)


def ended(root: Path) -> list[tuple[str, str]]:
    return [(line["hook"], line["outcome"]) for line in ledger(root) if line["type"] == "hook"]


def test_a_failure_names_the_next_barrier_where_its_own_phase_ends_at_none(tmp_path: Path) -> None:
    begin(tmp_path, ("auth", "web"))
    multi.all_ask(tmp_path, ("auth", "web"))
    approve(tmp_path)
    run = state(tmp_path, "web")
    assert run["phase"] == "implementation"  # plan-sync is behind it, ship-sync ends a later phase
    failed = {"status": "blocked", "blocked_on": "human:no bulb", "blocked_reason": {}}
    making.write(tmp_path / "web/.agentxchain/state.json", run | failed)
    step(tmp_path)
    (line,) = [each for each in ledger(tmp_path) if each["type"] == "workstream_failed"]
    assert (line["workstream"], line["barrier"]) == ("web", "ship-sync")


def test_each_hook_runs_once_with_its_payload(tmp_path: Path) -> None:
    hooks = {
        f"on_{name}": script(tmp_path, f"{name}.sh")
        for name in ("barrier_reached", "barrier_approved", "super_run_completed",
                     "workstream_failed")
    }  # fmt: skip
    hooked(tmp_path, **hooks)
    run = state(tmp_path, "web")
    failed = {"status": "blocked", "blocked_on": "human:no bulb", "blocked_reason": {}}
    making.write(tmp_path / "web/.agentxchain/state.json", run | failed)
    step(tmp_path)
    making.write(tmp_path / "web/.agentxchain/state.json", run)
    multi.all_ask(tmp_path, ("auth", "web"))
    approve(tmp_path)
    for name in ("auth", "web"):
        at_last = state(tmp_path, name) | {"phase": "verification"}
        making.write(tmp_path / name / ".agentxchain/state.json", at_last)
    multi.all_ask(tmp_path, ("auth", "web"))
    approve(tmp_path)
    step(tmp_path)
    assert ended(tmp_path) == [
        ("on_workstream_failed", "ok"), ("on_barrier_reached", "ok"),
        ("on_barrier_approved", "ok"), ("on_barrier_reached", "ok"),
        ("on_barrier_approved", "ok"), ("on_super_run_completed", "ok"),
    ]  # fmt: skip
    seen = {name: json.loads((tmp_path / f"seen-{name}.json").read_text()) for name in hooks}
    reached = seen["on_barrier_reached"]
    assert (reached["barrier"], reached["phase"]) == ("ship-sync", "verification")
    assert reached["workstreams"]["web"]["status"] == "blocked:barrier"
    assert seen["on_barrier_approved"]["comment"] == "All agreed."
    assert seen["on_workstream_failed"]["error"] == "its run is blocked by human:no bulb"
    assert seen["on_workstream_failed"]["barrier"] == "plan-sync"
    whole = seen["on_super_run_completed"]
    assert {each["workstream"] for each in whole["decisions"]} == {"auth", "web"}
    assert {each["id"] for each in whole["objections"]} == {"OBJ-001"}
    lines = [line for line in ledger(tmp_path) if line["type"] == "hook"]
    assert "on_workstream_failed super_run_lamp planning" in lines[0]["detail"]
    assert "0123456789abcdef" not in lines[0]["detail"]
    assert not list((tmp_path / ".coordinator/hooks").iterdir())


@pytest.mark.slow
def test_a_hook_that_fails_or_hangs_is_noted_and_stops_nothing(tmp_path: Path) -> None:
    bad = script(tmp_path, "bad.sh", "#!/bin/sh\necho cannot >&2\nexit 3\n")
    slow = script(tmp_path, "slow.sh", "#!/bin/sh\ntrap '' TERM\nsleep 600 & wait\n")
    hooked(tmp_path, on_barrier_reached=bad,
           on_barrier_approved={"path": slow, "timeout_ms": 100})  # fmt: skip
    multi.all_ask(tmp_path, ("auth", "web"))
    done = approve(tmp_path)
    assert not done.failed and state(tmp_path, "web")["phase"] == "implementation"
    assert ended(tmp_path) == [("on_barrier_reached", "failed"), ("on_barrier_approved", "timeout")]
    lines = [line for line in ledger(tmp_path) if line["type"] == "hook"]
    assert (lines[0]["exit_code"], lines[0]["detail"]) == (3, "cannot")
    assert any("on_barrier_reached: failed: cannot" in told for told in done.warnings)


def test_a_script_that_changed_since_it_was_seen_does_not_run(tmp_path: Path) -> None:
    path = script(tmp_path, "reached.sh")
    hooked(tmp_path, on_barrier_reached=path)
    script(tmp_path, "reached.sh", HOOK + "rm -rf /nowhere\n")
    multi.all_ask(tmp_path, ("auth", "web"))
    done = step(tmp_path)
    assert ended(tmp_path) == [("on_barrier_reached", "not run")]
    assert "not allowed yet" in done.warnings[0]
    assert not (tmp_path / "seen-on_barrier_reached.json").exists()
    refused("coordinator", "trust", tmp_path)  # nobody says who decides
    assert "1 of 1 scripts are allowed" in acted(
        "coordinator", "trust", tmp_path, "--as", "Ann", "--yes"
    )
    reject_barrier(tmp_path, "Again.")
    multi.all_ask(tmp_path, ("auth", "web"))
    step(tmp_path)
    assert ended(tmp_path)[-1] == ("on_barrier_reached", "ok")


def test_every_agent_is_told_of_the_others(tmp_path: Path) -> None:
    begin(tmp_path)
    asks(tmp_path, "auth", files_changed=["src/token.py", "src/|x\n# Heading"])
    step(tmp_path)
    told = (tmp_path / ".coordinator/context/web/CROSS_REPO_CONTEXT.md").read_text()
    headings = [line[3:] for line in told.splitlines() if line.startswith("## ")]
    assert headings == [
        "Workstream summary", "Decisions", "Open objections", "File summaries", "Barrier history"
    ]  # fmt: skip
    assert "| auth | ./auth | planning | blocked:barrier | pm: planning of auth done |" in told
    assert "| web (this one) |" in told
    assert "### Architecture" in told
    assert "- **auth DEC-001** (pm, planning): auth uses tokens Why: Safe." in told
    assert "- **auth OBJ-001** (high, raised, raised by pm): No switch." in told
    assert "- src/token.py (pm): planning of auth done" in told
    assert "\n# Heading" not in told
    assert "## Barrier history\n\nNone yet." in told
    asks(tmp_path, "gateway")
    asks(tmp_path, "web")
    approve(tmp_path)
    told = (tmp_path / ".coordinator/context/web/CROSS_REPO_CONTEXT.md").read_text()
    assert "plan-sync: approved by Ann: All agreed." in told
    assert told.rstrip().endswith("plan-sync: crossed by all")
    assert initiative_opened.context_of_run(tmp_path / "web") == told.encode()
    assert initiative_opened.context_of_run(tmp_path) is None


def test_the_switches_of_the_context_are_heeded(tmp_path: Path) -> None:
    rules = {"include_decisions": False, "include_objections": False,
             "include_file_summaries": False, "output_dir": "told"}  # fmt: skip
    begin(tmp_path, ("auth",), context_generation=rules)
    told = (tmp_path / "told/auth/CROSS_REPO_CONTEXT.md").read_text()
    assert [line[3:] for line in told.splitlines() if line.startswith("## ")] == [
        "Workstream summary", "Barrier history"
    ]  # fmt: skip
    off = multi.configuration(("auth",), context_generation={"enabled": False})
    making.write(tmp_path / "agentxchain-multi.json", off)
    assert initiative_opened.context_of_run(tmp_path / "auth") is None


def test_a_named_repository_is_cloned_on_its_branch(tmp_path: Path) -> None:
    origin = multi.repository(tmp_path / "origin", "lamp")
    multi.git(origin, "switch", "-q", "-c", "other")
    root = tmp_path / "house"
    root.mkdir()
    described = multi.configuration(("auth",))
    described["workstreams"][0]["repo"] = origin.as_uri()
    making.write(root / "agentxchain-multi.json", described)
    acted("coordinator", "init", root, "--as", "Ann", "--yes")
    assert multi.git(root / "auth", "branch", "--show-current") == "lamp"
    assert state(root, "auth")["super_run_id"] == multi.SUPER
    assert sorted(p.name for p in root.iterdir()) == [
        ".coordinator",
        "agentxchain-multi.json",
        "auth",
    ]


@pytest.mark.parametrize(
    "repo", ["ext::sh -c touch% here", "-oProxyCommand=x", "fd::17", "ftp://x/y", "../nowhere", ""]
)
def test_an_address_that_could_run_something_is_refused(tmp_path: Path, repo: str) -> None:
    described = multi.configuration(("auth",))
    described["workstreams"][0]["repo"] = repo
    making.write(tmp_path / "agentxchain-multi.json", described)
    assert refused("coordinator", "init", tmp_path, "--as", "Ann", "--yes").startswith(
        "error: workstream auth: "
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["agentxchain-multi.json"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"workstreams": []}, "needs 1 to"),
        ({"workstreams": {"a": {}}}, "must be a list"),
        ({"workstreams": [7]}, "workstream 1 is not an object"),
        ({"workstreams": [{"name": "../out"}]}, "needs a name of letters"),
        ({"workstreams": [{"name": "a"}, {"name": "A"}]}, "named twice"),
        ({"workstreams": [{"name": "a", "config_path": "../x.json"}]}, "stay inside"),
        ({"workstreams": [{"name": "a", "branch": "--upload-pack=x"}]}, "not a valid branch name"),
        ({"barriers": [{"name": "x"}]}, "names no phase"),
        ({"barriers": [{"name": "x", "phase": "p"}, {"name": "y", "phase": "p"}]}, "named twice"),
        ({"hooks": {"on_barrier_reached": "../../x.sh"}}, "inside the initiative"),
        ({"hooks": {"on_lunch": "x.sh"}}, "unknown hook on_lunch"),
        ({"context_generation": {"output_dir": "/tmp"}}, "inside the initiative"),
        ({"super_run_id": "\u001b[31m"}, "must be letters"),
        ({"barriers": [{"name": "x", "phase": "dreaming"}]}, "has no phase dreaming"),
    ],
)
def test_a_configuration_that_must_not_be_acted_on_is_refused_in_one_line(
    tmp_path: Path, change: making.Object, said: str
) -> None:
    for name in NAMES:
        multi.repository(tmp_path / name)
    making.write(tmp_path / "agentxchain-multi.json", multi.configuration() | change)
    told = refused("coordinator", "init", tmp_path, "--as", "Ann", "--yes")
    assert said in told and told.count("\n") == 1 and "\x1b" not in told
    assert not (tmp_path / ".coordinator").exists()


def test_a_repository_on_another_branch_is_refused(tmp_path: Path) -> None:
    multi.repository(tmp_path / "auth", "main")
    making.write(tmp_path / "agentxchain-multi.json", multi.configuration(("auth",)))
    assert "auth is on branch main instead of lamp: git -C auth switch lamp" in refused(
        "coordinator", "init", tmp_path, "--as", "Ann", "--yes"
    )


def test_links_that_lead_out_are_not_followed(tmp_path: Path) -> None:
    multi.repository(tmp_path / "elsewhere")
    root = tmp_path / "house"
    root.mkdir()
    os.symlink(tmp_path / "elsewhere", root / "auth")
    making.write(root / "agentxchain-multi.json", multi.configuration(("auth",)))
    assert "leads out of the initiative" in refused(
        "coordinator", "init", root, "--as", "Ann", "--yes"
    )
    assert not (tmp_path / "elsewhere/.agentxchain").exists()


def test_to_wait_at_a_barrier_is_no_escalation_for_a_run_s_own_hooks(tmp_path: Path) -> None:
    log = tmp_path / "log"
    hook = test_run_hooks.process(log)
    phases = ("after_acceptance", "before_gate", "on_escalation")
    root = test_run_hooks.start(tmp_path / "house/auth", {phase: [hook] for phase in phases})
    described = multi.configuration(("auth",))
    described["workstreams"][0]["branch"] = "main"
    making.write(tmp_path / "house/agentxchain-multi.json", described)
    acted("coordinator", "init", tmp_path / "house", "--as", "Ann", "--yes")
    acted("trust", root, "--as", "Ann", "--yes")
    acted("step", root)
    acted("accept-turn", root)
    assert state(tmp_path / "house", "auth")["blocked_on"] == "barrier:plan-sync"
    assert state(tmp_path / "house")["barriers"]["plan-sync"]["status"] == "reached"
    assert [each["hook_phase"] for each in test_run_hooks.lines(log)] == ["after_acceptance"]
