"""What rules make of commands that run others: nothing that a shell runs slips through, and honest work is not asked about."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_core.agents.live.policy import Scope, decide
from acp_core.agents.live.requests import parse
from acp_core.person.permissions import Policy, Verdict
from acp_core.person.permissions import parse as parse_permissions
from tests.agents.live import messages

ALLOW, REJECT, ASK = Verdict.ALLOW, Verdict.REJECT, Verdict.ASK


def verdict(command: str, rule: str, policy: str = "all", kind: str = "reject") -> Verdict:
    """What becomes of a command under a policy and one rule."""
    chosen = parse_permissions({"policy": policy, "rules": [{"verdict": kind, "command": rule}]})
    return decide(parse(messages.shell("claude", command)), Scope(), chosen).verdict


@pytest.mark.parametrize(
    "command",
    [
        "touch",
        "touch x",
        "/usr/bin/touch x",
        "./touch x",
        "../../usr/bin/touch x",
        "\\touch x",
        "t''ouch x",
        '"touch" x',
        "sh -c 'touch x'",
        'bash -lc "touch x"',
        "bash -c -- 'touch x'",
        "zsh -c 'touch x'",
        "sh -c \"sh -c 'touch x'\"",
        "env touch x",
        "env -i A=b touch x",
        "env -S 'touch x'",
        "X=1 touch x",
        "timeout 5 touch x",
        "timeout -k 3 --signal TERM 5 touch x",
        "nice -n 5 touch x",
        "nohup touch x &",
        "setsid touch x",
        "stdbuf -oL touch x",
        "time touch x",
        "exec touch x",
        "command touch x",
        "busybox touch x",
        "eval 'touch x'",
        "eval touch x",
        "trap 'touch x' EXIT",
        "watch touch x",
        "echo x | xargs touch",
        "xargs -n 1 touch < list",
        "find . -exec touch {} \\;",
        "find . -exec sh -c 'touch x' \\;",
        "fd -x touch",
        "sudo touch x",
        "sudo -u me touch x",
        "sudo -i touch x",
        "ssh host touch x",
        "ssh host -p 22 -- touch x",
        "sudo --prompt x touch y",
        "timeout --foreground 5 touch x",
        "env --argv0 x touch y",
        "ssh -p 22 host 'cd y; touch x'",
        "ls; touch x",
        "ls && touch x",
        "ls | touch x",
        "ls\ntouch x",
        "ls $(touch x)",
        'ls "$(touch x)"',
        "ls `touch x`",
        "(touch x)",
        "{ touch x; }",
        "! touch x",
        "if true; then touch x; fi",
        "for f in a b; do touch $f; done",
        "while touch x; do break; done",
        "f() { touch x; }; f",
        "function f { touch x; }; f",
        "2>/dev/null touch x",
        "> y touch x",
        "git -c alias.x='!touch y' x",
        "git bisect run touch x",
        "git rebase -x 'touch x' main",
        "GIT_SSH_COMMAND='touch x' git fetch",
        "PAGER='touch x' git log",
    ],
)
def test_a_command_that_runs_what_a_rule_rejects_is_rejected(command: str) -> None:
    assert verdict(command, "touch *") is REJECT


@pytest.mark.parametrize(
    "command",
    [
        "$X x",
        "${X} x",
        "x=touch; $x y",
        "{touch,x}",
        '{touch,"a b"}',
        "=touch x",
        "t?uch x",
        "$'touch' x",
        '$"touch" x',
        "echo 'a",
        'echo "a',
        "ls )",
        "(ls",
        "sh",
        "bash -s",
        "sh <<< 'touch x'",
        "echo dG91Y2ggeA== | base64 -d | sh",
        "cat <<EOF\ntouch x\nEOF",
        "diff <(touch x) y",
        'sh -c "touch $X"',
        'sh -c "$X"',
        'eval "$X"',
        "xargs -I{} sh -c '{}'",
        "xargs -I% % x",
        "find . -exec {} \\;",
        "ssh host",
        "doas -s",
        "chroot x",
        "flock f -c'touch x'",
        "eval -- touch x",
        "ssh -o ProxyCommand='touch x' host",
        "env -iS 'touch x'",
        "su -",
        "alias t=touch; t x",
        "git p",
        "git config alias.p '!touch x'",
        "git -c core.fsmonitor='touch x' status",
        "git fetch --upload-pack='touch x' .",
        "git filter-branch --tree-filter 'touch x'",
        "LD_PRELOAD=./x.so ls",
        "BASH_ENV=x bash y.sh",
        "case a in a) touch x;; esac",
        "# hi; touch x",
        "ls *(e:'touch x':)",
        "uv run touch x",
        "docker run image touch x",
        "parallel touch ::: x",
        "ls \x1b[A; ls",
        'sh -c \'sh -c "sh -c \\"sh -c ls\\""\'; ' + "env " * 30 + "ls",
        "ls; " * 8_000,
    ],
)
def test_what_cannot_be_read_is_asked_also_where_everything_is_allowed(command: str) -> None:
    assert verdict(command, "touch *") is not ALLOW
    assert verdict(command, "shutdown *") is ASK or "touch" in command


@pytest.mark.parametrize("rule", ["git push *", "git push*"])
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git push", REJECT),
        ("git push origin main", REJECT),
        ("git -C . push", REJECT),
        ("git -c user.name=x push", REJECT),
        ("git --git-dir=x --no-pager push", REJECT),
        ("git -c alias.p=push p", REJECT),
        ("/usr/bin/git push", REJECT),
        ("/usr/lib/git-core/git-push", REJECT),
        ("timeout 5 git push", REJECT),
        ('eval "git push"', REJECT),
        ("cd x && git push", REJECT),
        ("echo push | xargs git", ASK),
        ("git $X", ASK),
        ("git pu*", ASK),
        ("git pus", ASK),
        ("git status", ALLOW),
        ("git log push", ALLOW),
        ("git commit -m push", ALLOW),
        ("git stash push", ALLOW),
    ],
)
def test_options_and_aliases_of_git_hide_nothing(
    rule: str, command: str, expected: Verdict
) -> None:
    assert verdict(command, rule) is expected


@pytest.mark.parametrize(
    ("rule", "command", "expected"),
    [
        ("rm *", "/bin/rm -rf x", REJECT),
        ("rm *", "git rm x", ALLOW),
        ("rm -rf *", "rm -fr x", REJECT),
        ("rm -rf *", "rm -r -f x", REJECT),
        ("rm -rf *", "rm x -rf", REJECT),
        ("rm -rf *", "rm --recursive --force x", ASK),
        ("rm -rf *", "rm x", ALLOW),
        ("git push --force *", "git push origin --force", REJECT),
        ("git push --force *", "git push -f", ASK),
        ("git push --force *", "git push --forc", ASK),
        ("git push --force *", "git push origin main", ALLOW),
        ("npm publish *", "npm --prefix x publish", ASK),
        ("npm publish *", "npm test", ALLOW),
        ("/usr/bin/touch *", "touch x", REJECT),
        ("/usr/bin/touch *", "/opt/touch x", ALLOW),
        ("make deploy", "make deploy", REJECT),
        ("make deploy", "make", ALLOW),
        ("make deploy", "make $X", ASK),
        ("sudo *", "sudo make", REJECT),
    ],
)
def test_options_count_in_every_order(rule: str, command: str, expected: Verdict) -> None:
    assert verdict(command, rule) is expected


HONEST = """
make
make -j4 test
make > log 2>&1
time make
export CI=1; make
cd "$HOME/x" && make -j4
python x.py
python3 -c "print(1)"
python -m pytest -x
pytest
pytest -q tests/x.py::test_a[1]
PYTHONPATH=src pytest
uv run pytest
npm test
npm run build
cargo test 2>&1 | tail -20
go test ./...
bash script.sh
./run.sh --fast
node --version
docker ps
ls
ls -la
ls *.py
ls | grep x
cd x && pytest
cat a.txt | head -3
cat f > g
sed -n 1,20p file
sed -i 's/a/b/' f
awk '{print $1}' f
grep -rn 'git push' docs
grep "foo$" f
rg touch src/
echo "git push"
echo $HOME ${x:-y}
find . -name '*.py'
find . -name '*.py' | xargs grep -n x
find . -type f -exec wc -l {} +
sort f | uniq -c | sort -rn
mkdir -p a/b && cp x a/b/
test -f x && echo yes
[ -f x ] || exit 1
[[ -f x && -d y ]] && make
timeout --foreground 5 make
sudo --login make
for f in *.py; do wc -l $f; done
if [ -d x ]; then ls x; else echo no; fi
sleep 5 && echo done
diff a b || true
tar xzf a.tgz
curl -s http://localhost/x | jq .a
which git
command -v git
env
git status
git diff HEAD~1
git log --oneline | head
git show HEAD@{1}
git add -A && git commit -m 'x'
git commit -m "fix: don't stop"
git -C sub status
GIT_PAGER=cat git log
true # that is all
""".strip().splitlines()


@pytest.mark.parametrize("rule", ["git push *", "rm -rf *", "touch *"])
@pytest.mark.parametrize("command", HONEST)
def test_everyday_commands_are_not_asked_about(command: str, rule: str) -> None:
    assert verdict(command, rule) is ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "git status; rm x",
        "git status && rm x",
        "git status $(rm x)",
        "git status > x",
        "git -c alias.status='!rm x' status",
        "git -c core.pager='rm x' status",
        "git -C .. status",
        "env X=y git status",
        "GIT_SSH_COMMAND='rm x' git status",
        "LD_PRELOAD=x git status",
        "PAGER='rm x' git status",
        "./git status",
        "/usr/bin/git status",
        "sudo git status",
        "xargs git status",
    ],
)
@pytest.mark.parametrize("rule", ["git status", "git status *"])
def test_a_rule_allows_its_own_words_only(command: str, rule: str) -> None:
    assert verdict(command, rule, "ask", "allow") is ASK
    assert verdict("git status", rule, "ask", "allow") is ALLOW


def test_a_rule_with_any_words_does_not_allow_what_those_run() -> None:
    assert verdict("find src -name x", "find src *", "ask", "allow") is ALLOW
    assert verdict("find src -exec rm x +", "find src *", "ask", "allow") is ASK
    assert verdict("timeout 5 make", "timeout 5 *", "ask", "allow") is ASK


@pytest.mark.parametrize("policy", ["all", "edits"])
def test_a_change_that_names_no_file_is_asked_where_a_rule_is_about_files(policy: str) -> None:
    rules = [{"verdict": "reject", "path": "/srv/site"}]
    chosen = parse_permissions({"policy": policy, "rules": rules})
    asked = messages.message({"kind": "edit", "rawInput": {"patch": "x"}})
    assert decide(parse(asked), Scope(), chosen).verdict is ASK
    shell = parse(messages.shell("claude", "make"))
    assert decide(shell, Scope(), chosen).verdict is (ALLOW if policy == "all" else ASK)


PIECES = [
    "touch x", "touch", "tou", "ch", " ", " ", ";", "&&", "|", "&", "'", '"', "$(", ")", "`", "\\", "{", "}", ",",
    "sh -c ", "env ", "eval ", "echo ", "X=touch ", "$X", "${X:-touch}", "#", "\n", "(", "<<", "<<<", "< /dev/null",
    ">/dev/null", "2>&1", "if ", "then ", "fi", "for i in a b; do ", "done", "!", "=", "~", "*", "[", "]", "$((", "))",
    "xargs ", "timeout 5 ", "find . -maxdepth 0 -exec ", " \\;", "-c", "-S", "case a in a) ", "esac", "f() { ", "}; f",
    "$'touch'", '$"touch"', "<(", "command ", "exec ", "X=1", "'touch x'", '"touch x"', "trap ", "EXIT",
]  # fmt: skip


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of programs in which ``touch`` only notes that it was run."""
    folder = tmp_path_factory.mktemp("stubs")
    for name in ("sh", "env", "xargs", "timeout", "find", "cat"):
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    touch = folder / "touch"
    touch.write_text(f"#!/bin/sh\necho run >> {folder / 'ran'}\n")
    touch.chmod(0o755)
    return folder


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=300)
@given(command=st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join))
def test_what_a_shell_really_runs_is_never_allowed(stubs: Path, command: str) -> None:
    if verdict(command, "touch *") is not ALLOW:
        return
    for shell in filter(None, map(shutil.which, ("sh", "bash", "zsh", "fish"))):
        subprocess.run(
            [shell, "-c", command], cwd=stubs, env={"PATH": str(stubs), "HOME": str(stubs)}, stdin=subprocess.DEVNULL,
            capture_output=True, check=False, start_new_session=True,
        )  # fmt: skip
        assert not os.path.exists(stubs / "ran"), shell


def test_the_policy_for_everything_needs_no_rule_to_be_read() -> None:
    chosen = parse_permissions({"policy": Policy.ALL.value})
    asked = parse(messages.shell("claude", "cat <<EOF\nx\nEOF"))
    assert decide(asked, Scope(), chosen).verdict is ALLOW
