"""What is allowed without asking: by what would be done, and by nothing that a program says of it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.agents.live.policy import Decision, Scope, decide
from acp_core.agents.live.requests import parse
from acp_core.agents.live.shell import plain_words
from acp_core.person.permissions import Permissions, Policy, Rule, Verdict
from acp_core.person.permissions import parse as parse_permissions
from acp_core.protocols.folder.acts.offered import own_commands
from tests.agents.live import messages

ACP = "/opt/acp/bin/acp"
EDITS = Permissions(Policy.EDITS)
ALLOW, REJECT, ASK = Verdict.ALLOW, Verdict.REJECT, Verdict.ASK
APPEND = (
    "append --folder {folder} --participant server --event proposal_submitted "
    "--summary 'First draft; $5 & more' --doc proposal.md --reply-to 1"
)


@pytest.fixture
def scope(tmp_path: Path) -> Scope:
    """The turn of ``server``, who writes the proposal, in a real folder."""
    folder, drafts = tmp_path / "checkout", tmp_path / "state" / "drafts"
    for made in (folder / ".acp", folder / ".git" / "hooks", drafts / ".hidden", tmp_path / "home"):
        made.mkdir(parents=True)
    for name in ("proposal.md", "review.md", "events.jsonl", "protocol.json"):
        (folder / name).write_text("x", encoding="utf-8")
    (drafts / "review.txt").write_text("x", encoding="utf-8")
    (tmp_path / "home" / "id_rsa").write_text("secret", encoding="utf-8")
    return Scope(
        folder=str(folder),
        participant="server",
        documents=(str(folder / "proposal.md"),),
        drafts=str(drafts),
        program=(ACP,),
        commands=own_commands(),
        server="acp",
        tools=frozenset({"next_action", "append_event"}),
    )


def run(command: str, scope: Scope, program: str = "claude", **fields: Any) -> Decision:
    """What becomes of a shell command; ``{folder}`` and ``{drafts}`` are the scope's."""
    told = command.replace("{folder}", scope.folder).replace("{drafts}", scope.drafts)
    request = replace(parse(messages.shell(program, told)), **fields)
    return decide(request, scope, EDITS)


@pytest.mark.parametrize("program", ["claude", "codex", "opencode", "qwen"])
@pytest.mark.parametrize(
    "command",
    [
        f"{ACP} {APPEND}",
        f"  {ACP}   {APPEND} --json",
        f'{ACP} {APPEND} --key "a b" --expect-seq 3 --dry-run',
        f"{ACP} {APPEND} --review-file {{drafts}}/review.txt",
        f"{ACP} {APPEND} --review-file {{folder}}/proposal.md",
        f"{ACP} next --folder {{folder}} --participant server --json",
        f"{ACP} wait --folder {{folder}} --participant server --timeout 60",
        f"{ACP} validate --folder {{folder}} --strict",
        f"{ACP} append --folder '{{folder}}' --participant \"server\" --event blocked --summary 'don'\"'\"'t'",
    ],
)
def test_a_participants_own_command_is_allowed(command: str, program: str, scope: Scope) -> None:
    assert run(command, scope, program).verdict is ALLOW


@pytest.mark.parametrize(
    "command",
    [
        f"{ACP} {APPEND}; rm -rf ~",
        f"{ACP} {APPEND} ;rm -rf /",
        f"{ACP} {APPEND} && curl example.org",
        f"{ACP} {APPEND} || true",
        f"{ACP} {APPEND} | tee /tmp/x",
        f"{ACP} {APPEND} &",
        f"{ACP} {APPEND} > {{folder}}/events.jsonl",
        f"{ACP} {APPEND} < /etc/passwd",
        f"{ACP} {APPEND}\nrm -rf ~",
        f"{ACP} {APPEND}\rrm -rf ~",
        f"{ACP} {APPEND} $(rm -rf ~)",
        f'{ACP} {APPEND} --key "$(rm -rf ~)"',
        f'{ACP} {APPEND} --key "`id`"',
        f"{ACP} {APPEND} --key `id`",
        f"{ACP} {APPEND} --key $HOME",
        f"{ACP} {APPEND} --key a{{b,c}}",
        f"{ACP} {APPEND} --key *",
        f"{ACP} {APPEND} --key a\\ b",
        f"{ACP} {APPEND} --key '\\'; rm -rf ~; '",
        f"{ACP} {APPEND} --key 'not closed",
        f"{ACP} {APPEND} # rest",
        f"{ACP} {APPEND} --key =ls",
        f"{ACP} {APPEND} --key !!",
        f"{ACP} {APPEND} --key \N{NO-BREAK SPACE}x",
        f"PATH=x {ACP} {APPEND}",
        f"PATH=/tmp/evil acp {APPEND}",
        f"env {ACP} {APPEND}",
        f"acp {APPEND}",
        f"./acp {APPEND}",
        f"/tmp/evil/acp {APPEND}",
        f"{ACP}2 {APPEND}",
        f"/opt/acp/bin/../bin/acp {APPEND}",
        f"{ACP} {APPEND} --review-file ~/.ssh/id_rsa",
        f"{ACP} {APPEND} --review-file {{folder}}/../home/id_rsa",
        f"{ACP} {APPEND} --review-file /etc/passwd",
        f"{ACP} {APPEND} --review-file {{folder}}/.git/config",
        f"{ACP} {APPEND} --review-file -",
        f"{ACP} {APPEND} --review-file draft.txt",
        f"{ACP} {APPEND} --unlocked",
        f"{ACP} {APPEND} --force",
        f"{ACP} {APPEND} --unknown",
        f"{ACP} {APPEND} extra",
        f"{ACP} {APPEND} --part owner",
        f"{ACP} {APPEND} --participant=reviewer",
        f"{ACP} {APPEND} --participant reviewer",
        f"{ACP} {APPEND} --folder /tmp",
        f"{ACP} {APPEND} --folder checkout",
        f"{ACP} next --folder {{folder}} --participant reviewer",
        f"{ACP} answer {{folder}} q1 yes",
        f"{ACP} act {{folder}} accept --yes",
        f"{ACP} launch x y -- sh -c 'rm -rf ~'",
        f"{ACP} stop {{folder}}",
        f"{ACP} repair {{folder}}",
        ACP,
        "",
        "ls",
    ],
)
def test_every_other_command_is_asked(command: str, scope: Scope) -> None:
    assert run(command, scope).verdict is ASK


def test_a_path_below_the_folder_in_which_the_command_runs_counts_where_it_is_known(
    scope: Scope,
) -> None:
    command = f"{ACP} {APPEND} --review-file review.txt"
    assert run(command, scope, workdir=scope.drafts).verdict is ALLOW
    assert run(command, scope, workdir="drafts").verdict is ASK


def test_a_file_that_a_link_leads_out_of_is_not_read(scope: Scope) -> None:
    secret = os.path.join(os.path.dirname(scope.folder), "home", "id_rsa")
    for name, link in (("soft.txt", os.symlink), ("hard.txt", os.link)):
        link(secret, os.path.join(scope.drafts, name))
        command = f"{ACP} {APPEND} --review-file {{drafts}}/{name}"
        assert run(command, scope).verdict is ASK, name


def test_without_a_program_of_our_own_no_command_is_ours(scope: Scope) -> None:
    for program in ((), ("acp",)):
        assert run(f"{ACP} {APPEND}", replace(scope, program=program)).verdict is ASK
    module = ("/usr/bin/python3", "-P", "-m", "acp_core")
    assert run(f"{' '.join(module)} {APPEND}", replace(scope, program=module)).verdict is ALLOW


def test_why_a_command_is_asked_about_says_what_it_is(scope: Scope) -> None:
    assert run("touch made.txt", scope).why == "it is no command of acp"
    assert run(f"acp {APPEND}", scope).why == "it does not run acp by its full path"


def test_a_command_that_stands_in_the_title_alone_is_asked(scope: Scope) -> None:
    assert run(f"{ACP} {APPEND}", scope, "gemini").verdict is ASK


@given(
    st.text(
        st.sampled_from(";&|<>$`\\\n\r\t(){}[]*?~#!^\0\x1b\u2028\u202e"), min_size=1, max_size=3
    ),
    st.integers(min_value=0),
)
def test_no_command_with_a_metacharacter_outside_of_quotes_is_ever_ours(
    signs: str, place: int
) -> None:
    command = f"{ACP} next --folder /checkout --participant server"
    place %= len(command) + 1
    made = command[:place] + signs + command[place:]
    own = Scope("/checkout", "server", program=(ACP,), commands=own_commands())
    assert decide(parse(messages.shell("claude", made)), own, EDITS).verdict is ASK


@given(st.text())
def test_words_that_count_are_read_alike_by_a_real_shell(text: str) -> None:
    words = plain_words(text)
    if words is not None:
        import shlex

        assert tuple(shlex.split(text)) == words


@pytest.mark.parametrize("program", ["claude", "opencode", "gemini", "qwen"])
@pytest.mark.parametrize(
    ("path", "verdict"),
    [
        ("{folder}/proposal.md", ALLOW),
        ("{drafts}/review.txt", ALLOW),
        ("{drafts}/new/notes.md", ALLOW),
        ("{folder}/sub/../proposal.md", ALLOW),
        ("{folder}/review.md", ASK),
        ("{folder}/events.jsonl", ASK),
        ("{folder}/protocol.json", ASK),
        ("{folder}/.acp/run/x", ASK),
        ("{folder}/.git/hooks/post-commit", ASK),
        ("{drafts}/.hidden/x", ASK),
        ("{drafts}/.claude/settings.json", ASK),
        ("{drafts}/CLAUDE.md", ASK),
        ("{drafts}/../loop.json", ASK),
        ("{drafts}", ASK),
        ("{drafts}2/x", ASK),
        ("{home}/.bashrc", ASK),
        ("{home}/id_rsa", ASK),
        ("proposal.md", ASK),
        ("", ASK),
    ],
)
def test_a_change_is_allowed_by_the_real_path_of_what_it_changes(
    path: str, verdict: Verdict, program: str, scope: Scope
) -> None:
    home = os.path.join(os.path.dirname(scope.folder), "home")
    told = path.format(folder=scope.folder, drafts=scope.drafts, home=home)
    request = parse(messages.edit(program, told, "x", "y"))
    assert decide(request, scope, EDITS).verdict is verdict


def test_one_path_outside_is_enough_to_ask(scope: Scope) -> None:
    document = scope.documents[0]
    for place in ("locations", "content"):
        asked = messages.edit("qwen", document, "x", "y")
        call = asked["params"]["toolCall"]
        call[place].append(dict(call[place][0], path=f"{scope.folder}/review.md"))
        assert decide(parse(asked), scope, EDITS).verdict is ASK, place
    asked = messages.edit("qwen", document, "x", "y")
    asked["params"]["toolCall"]["rawInput"]["file_path"] = "/etc/passwd"
    assert decide(parse(asked), scope, EDITS).verdict is ASK


def test_links_do_not_lead_a_change_out(scope: Scope) -> None:
    home = os.path.join(os.path.dirname(scope.folder), "home")
    os.symlink(home, os.path.join(scope.drafts, "away"))
    os.link(os.path.join(home, "id_rsa"), os.path.join(scope.drafts, "hard.md"))
    os.remove(scope.documents[0])
    os.symlink(os.path.join(home, "id_rsa"), scope.documents[0])
    for path in (f"{scope.drafts}/away/x", f"{scope.drafts}/hard.md", scope.documents[0]):
        request = parse(messages.edit("claude", path, "x", "y"))
        assert decide(request, scope, EDITS).verdict is ASK, path


@pytest.mark.parametrize("kind", ["read", "edit", "execute", "delete", "think", "other", "fetch"])
def test_a_kind_and_a_title_allow_nothing(kind: str, scope: Scope) -> None:
    title = f"{ACP} {APPEND.format(folder=scope.folder)}"
    for call in (
        {"title": title, "kind": kind},
        {"title": title, "kind": kind, "locations": [{"path": scope.documents[0]}]},
    ):
        assert decide(parse(messages.message(call)), scope, EDITS).verdict is ASK


@pytest.mark.parametrize("program", ["claude", "codex", "qwen"])
def test_tools_of_acps_own_server_are_allowed_and_others_asked(program: str, scope: Scope) -> None:
    def verdict(server: str, tool: str, own: Scope = scope) -> Verdict:
        return decide(parse(*messages.tool(program, server, tool)), own, EDITS).verdict

    assert verdict("acp", "append_event") is ALLOW
    assert verdict("acp", "launch") is ASK
    assert verdict("mail", "append_event") is ASK
    assert verdict("acp", "append_event", replace(scope, server="", tools=frozenset())) is ASK


def test_a_tool_of_another_server_is_asked_whatever_else_it_names(scope: Scope) -> None:
    asked = messages.edit("claude", scope.documents[0], "x", "y")
    asked["params"]["toolCall"]["_meta"] = {"claudeCode": {"toolName": "mcp__mail__send"}}
    assert decide(parse(asked), scope, EDITS).verdict is ASK


def test_what_cannot_be_read_for_certain_is_asked(scope: Scope) -> None:
    asked = messages.edit("claude", scope.documents[0], "x", "y")
    asked["params"]["toolCall"]["locations"].append({"path": None, "line": "x"})
    asked["params"]["toolCall"]["locations"].append("somewhere")
    assert decide(parse(asked), scope, EDITS).verdict is ASK


def test_each_policy_decides_in_its_way(scope: Scope) -> None:
    change = parse(messages.edit("claude", scope.documents[0], "x", "y"))
    other = parse(messages.shell("claude", "rm -rf ~"))
    question = parse(messages.question())
    verdicts = {
        policy: [
            decide(each, scope, Permissions(policy)).verdict for each in (change, other, question)
        ]
        for policy in Policy
    }
    assert verdicts == {
        Policy.ASK: [ASK, ASK, ASK],
        Policy.EDITS: [ALLOW, ASK, ASK],
        Policy.ALL: [ALLOW, ALLOW, ASK],
        Policy.NONE: [REJECT, REJECT, REJECT],
    }


def test_what_can_be_allowed_only_for_ever_is_asked(scope: Scope) -> None:
    asked = messages.edit("claude", scope.documents[0], "x", "y")
    asked["params"]["options"] = [each for each in messages.ONCE if each["kind"] != "allow_once"]
    assert decide(parse(asked), scope, Permissions(Policy.ALL)).verdict is ASK


def permissions(policy: str, *rules: dict[str, str]) -> Permissions:
    return parse_permissions({"policy": policy, "rules": list(rules)})


def test_the_first_rule_that_applies_stands_above_the_policy(scope: Scope, tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / ".github").mkdir(parents=True)
    chosen = permissions(
        "ask",
        {"verdict": "reject", "path": f"{site}/secret"},
        {"verdict": "allow", "path": str(site)},
        {"verdict": "allow", "path": f"{site}/.github"},
        {"verdict": "reject", "command": "git push *"},
        {"verdict": "allow", "command": "git diff *"},
        {"verdict": "allow", "command": "make test"},
        {"verdict": "reject", "kind": "fetch"},
    )

    def change(path: str) -> Verdict:
        return decide(parse(messages.edit("claude", path, "x", "y")), scope, chosen).verdict

    def command(text: str) -> Verdict:
        return decide(parse(messages.shell("claude", text)), scope, chosen).verdict

    assert change(f"{site}/index.html") is ALLOW
    assert change(f"{site}/.github/ci.yml") is ALLOW
    assert change(f"{site}/.git/config") is ASK
    assert change(f"{site}/secret/key") is REJECT
    assert change(f"{site}/../site2/x") is ASK
    assert command("git diff --stat") is ALLOW
    assert command("git diff | sh") is ASK
    assert command("make test") is ALLOW
    assert command("make test deploy") is ASK
    assert command("git push origin") is REJECT
    assert decide(parse(messages.message({"kind": "fetch"})), scope, chosen).verdict is REJECT
    # a command names no paths: what it changes is not known by the places that come with it
    asked = messages.shell("claude", "sh x")
    asked["params"]["toolCall"]["locations"] = [{"path": f"{site}/index.html"}]
    assert decide(parse(asked), scope, chosen).verdict is ASK


def test_where_a_rule_may_apply_a_policy_does_not_allow_the_rest(scope: Scope) -> None:
    chosen = permissions("all", {"verdict": "reject", "command": "git push *"})
    for command, verdict in (
        ("git push --force", REJECT),
        ("cd x && git push", REJECT),
        ("cd x && $(cat next)", ASK),
        ("git diff", ALLOW),
    ):
        request = parse(messages.shell("claude", command))
        assert decide(request, scope, chosen).verdict is verdict, command
    assert decide(parse(messages.shell("gemini", "git push")), scope, chosen).verdict is ASK


def test_no_rule_opens_the_policy_that_rejects_everything(scope: Scope) -> None:
    chosen = permissions("none", {"verdict": "allow", "command": "git status"})
    request = parse(messages.shell("claude", "git status"))
    assert decide(request, scope, chosen).verdict is REJECT


def test_a_rule_reads_as_it_is_written() -> None:
    rule = Rule(Verdict.ALLOW, command=("git", "diff", "*"))
    assert str(rule) == "allow command git diff *"


@pytest.mark.parametrize("policy", [Policy.ASK, Policy.EDITS, Policy.ALL])
def test_a_confined_participant_changes_files_in_its_own_folder_only(
    tmp_path: Path, policy: Policy
) -> None:
    own, other = tmp_path / "run" / "ann", tmp_path / "run" / "ben"
    for folder in (own, other):
        folder.mkdir(parents=True)
    (other / "output.md").write_text("x")
    (own / "away").symlink_to(other)
    (own / "same.md").hardlink_to(other / "output.md")
    scope = Scope(folder=str(tmp_path / "run"), folders=(str(own),), confined=True)

    def verdict(path: str, rules: tuple[Rule, ...] = ()) -> Verdict:
        asked = parse(messages.edit("claude", path, "x", "y"))
        return decide(asked, scope, Permissions(policy, rules)).verdict

    inside = ASK if policy is Policy.ASK else ALLOW
    assert verdict(f"{own}/output.md") is inside
    for path in (f"{other}/output.md", f"{own}/../ben/new.md", f"{own}/away/output.md", "/etc/x"):
        assert verdict(path) is REJECT, path
    assert verdict(f"{own}/same.md") is ASK
    assert verdict("output.md") is ASK  # whose folder is not known
    assert verdict(f"{other}/new.md", (Rule(ALLOW, path=str(other)),)) is ALLOW
