"""The commands that a shell command runs, also through programs that run others, and their words.

Which shell a program hands its command to is not known. `plain_words` reads a command that means the
same in every shell, and nothing else: for what is allowed. `read` takes apart a longer one, with its
lists, brackets, substitutions and redirections: for what is forbidden or asked about. It stops at
what it cannot read for certain. A command is looked through where a program takes another one as
text or as words: ``sh -c``, ``env``, ``timeout``, ``xargs``, ``find -exec``, ``ssh``, ``git -C`` and
an alias of git. A script, a program file and a build tool are judged by their own name: nobody
reads what they do. Standard library only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_WORD = r"[A-Za-z0-9_@%+:,./=-]+"

_QUOTED = r"'[^'\\]*'"

_DOUBLE = r'"[^"\\$`!]*"'

_PART = re.compile(f"{_WORD}|{_QUOTED}|{_DOUBLE}")

_GAP = re.compile(r" +")

UNKNOWN = "\0"
"""Stands for a word that only the shell knows: what it expands, or what another program appends."""

_DEEPEST = 8

_OPERATOR = re.compile(r"&&|\|\||\|&|;;|[;&|\n]")

_REDIRECTION = re.compile(r"(?:\d+|&)?(?:>>|>\||>&|<&|<>|>|<)&?(?:\d+(?=[\s;&|)]|$)|-(?=\s|$))?")

_EXPANSION = re.compile(r"\$(?:\{[A-Za-z0-9_]+(?::?[-+?][^}$`'\"\\]*|[#%/^,:][^}$`'\"\\@]*)?\}|\{#[A-Za-z0-9_]+\}|[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]|\(\([0-9 +*/%-]*\)\))")  # fmt: skip

ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\+?=")
"""How a word begins that assigns a variable."""

_FISH_ESCAPES = "xXuUc01234567"

_KEYWORDS = frozenset(
    {"if", "then", "elif", "else", "fi", "while", "until", "do", "done", "!", "{", "}", "coproc",
     "begin", "end", "and", "or", "not"}
)  # fmt: skip


def plain_words(command: str) -> tuple[str, ...] | None:
    """The words of a command; None where a shell could do more than run them.

    Only ASCII letters, digits and ``_@%+:,./=-`` stand outside of quotes. No backslash and no
    character that cannot be printed stands anywhere, nor an expansion within double quotes: shells
    differ in what they make of those. The first word assigns no variable, and none begins with
    ``=``, which one shell expands.
    """
    if not command.isprintable():
        return None
    words: list[str] = []
    text = command.strip(" ")
    place = 0
    while place < len(text):
        word, start = "", place
        while part := _PART.match(text, place):
            quoted = part[0][0] in "'\""
            word += part[0][1:-1] if quoted else part[0]
            place = part.end()
        if place == start or text[start] == "=":
            return None
        words.append(word)
        if place < len(text):
            gap = _GAP.match(text, place)
            if gap is None:
                return None
            place = gap.end()
    if not words or not words[0] or "=" in words[0]:
        return None
    return tuple(words)


class _Unclear(Exception):
    """Something cannot be read; its text says what."""


def read(text: str, take: Callable[[list[str], int], None], depth: int = 0) -> str:
    """Hand over the words of each command that a shell runs in a text, those of substitutions too.

    Args:
        text: what the shell gets.
        take: gets the words of a command, and how deep it stands.
        depth: how deep the text itself stands.

    Returns:
        What of it cannot be read for certain, though what stands before that was handed over; ""
        where all was read.
    """
    try:
        _read(text, take, depth)
    except _Unclear as why:
        return str(why)
    return ""


def _read(text: str, take: Callable[[list[str], int], None], depth: int) -> None:
    if depth > _DEEPEST:
        raise _Unclear("commands within commands go too deep")
    if not text.replace("\n", "").replace("\t", "").isprintable():
        raise _Unclear("it holds characters that cannot be shown")
    _Text(take, text, depth).commands("")


class _Text:
    """A text that a shell reads, at some place in it."""

    def __init__(
        self, take: Callable[[list[str], int], None], text: str, depth: int, place: int = 0
    ) -> None:
        self.take, self.text, self.depth, self.place = take, text, depth, place

    def commands(self, end: str) -> None:
        """Take in commands until a closing bracket, or the text's end."""
        words: list[str] = []
        while True:
            self._skip_blanks()
            sign = self.text[self.place : self.place + 1]
            operator = _OPERATOR.match(self.text, self.place)
            redirection = _REDIRECTION.match(self.text, self.place)
            if sign == "" or (sign == ")" and end == ")"):
                if sign != end:
                    raise _Unclear("a bracket is not closed")
                self._command(words)
                self.place += len(end)
                return
            if sign == "#":
                self._comment()
            elif operator and self.text[self.place : self.place + 2] != "&>":
                self._command(words)
                words, self.place = [], operator.end()
            elif sign == "(" and not words:
                self.place += 1
                self.commands(")")
            elif sign in "()":
                if not re.match(r"\(\s*\)", self.text[self.place :]) or len(words) != 1:
                    raise _Unclear("a bracket stands where it cannot be read")
                words, self.place = [], self.text.index(")", self.place) + 1  # begins a function
            elif redirection:
                self._redirect(redirection)
            else:
                word = self._word()
                if words or word not in _KEYWORDS:
                    words.append(word)

    def _command(self, words: list[str]) -> None:
        if words[:1] in (["for"], ["select"]):
            return  # its words are data; what follows `do` is a command of its own
        words = words[2:] if words[:1] == ["function"] else words
        while words and words[0] in _KEYWORDS:
            words = words[1:]
        if words:
            self.take(words, self.depth)

    def _skip_blanks(self) -> None:
        while (blank := self.text[self.place : self.place + 2]) and (blank[0] in " \t" or blank == "\\\n"):  # fmt: skip
            self.place += 2 if blank == "\\\n" else 1

    def _comment(self) -> None:
        end = self.text.find("\n", self.place)
        comment = self.text[self.place : end if end >= 0 else len(self.text)]
        if re.search(r"[;&|$`()<>]", comment):  # not every shell takes it for a comment
            raise _Unclear("a comment may be read as commands")
        self.place += len(comment)

    def _redirect(self, found: re.Match[str]) -> None:
        sign, self.place = found[0], found.end()
        if sign.endswith("<") and self.text[self.place : self.place + 1] == "<":
            raise _Unclear("it holds a here-document")
        if self.text[self.place : self.place + 1] == "(":
            raise _Unclear("it holds a process substitution")
        if not sign[-1].isdigit() and sign[-1] != "-":
            self._skip_blanks()
            self._word()

    def _word(self) -> str:
        """The next word: what it says where it stands there, `UNKNOWN` in what is expanded."""
        start, word = self.place, ""
        while (sign := self.text[self.place : self.place + 1]) and sign not in " \t\n;&|()<>":
            if sign == "'":
                end = self.text.find("'", self.place + 1)
                if end < 0 or self.text[end - 1] == "\\":
                    raise _Unclear("a quote is not closed")
                word, self.place = word + self.text[self.place + 1 : end], end + 1
            elif sign == '"':
                word += self._double()
            elif sign in "$`":
                word += self._expand()
            elif sign == "\\":
                word += self._escaped()
            else:
                expands = sign in "*?" or (sign == "[" and not self._is_test()) or self._is_brace()
                word += UNKNOWN if expands else sign
                self.place += 1
        if self.place == start:
            raise _Unclear("a sign stands where it cannot be read")
        return word

    def _is_test(self) -> bool:
        """Whether a bracket stands here that is the name of a command."""
        return re.compile(r"(?<![^\s;&|(\[])\[{1,2}(?=\s)").match(self.text, self.place) is not None

    def _is_brace(self) -> bool:
        """Whether a bracket stands here that may expand to several words."""
        return re.compile(r"\{(?![\s}]|$)").match(self.text, self.place) is not None

    def _escaped(self) -> str:
        sign = self.text[self.place + 1 : self.place + 2]
        if sign == "" or sign in _FISH_ESCAPES:
            raise _Unclear("shells differ in what a backslash means here")
        self.place += 2
        return "" if sign == "\n" else sign

    def _double(self) -> str:
        word = ""
        self.place += 1
        while (sign := self.text[self.place : self.place + 1]) != '"':
            if sign == "":
                raise _Unclear("a quote is not closed")
            if sign in "$`":
                word += self._expand(quoted=True)
                continue
            if sign == "\\" and self.text[self.place + 1 : self.place + 2] in ('"', "\\", "$", "`", "\n"):  # fmt: skip
                self.place += 1
                sign = self.text[self.place]
            word, self.place = word + sign, self.place + 1
        self.place += 1
        return word

    def _expand(self, quoted: bool = False) -> str:
        """Take in what is substituted here."""
        text, place = self.text, self.place
        if found := _EXPANSION.match(text, place):
            self.place = found.end()
            return UNKNOWN
        if text.startswith("$(", place) and not text.startswith("$((", place):
            if self.depth >= _DEEPEST:
                raise _Unclear("commands within commands go too deep")
            inner = _Text(self.take, text, self.depth + 1, place + 2)
            inner.commands(")")
            self.place = inner.place
            return UNKNOWN
        if text[place] == "`":
            end = text.find("`", place + 1)
            if end < 0 or "\\" in text[place:end]:
                raise _Unclear("a quote is not closed")
            _read(text[place + 1 : end], self.take, self.depth + 1)
            self.place = end + 1
            return UNKNOWN
        if re.compile(r"\$(?=[\s\"/.,|)])" if quoted else r"\$(?=[\s;|)]|$)").match(text, place):
            self.place += 1
            return "$"
        raise _Unclear("an expansion cannot be read")


_LONGEST, _DEEPEST_NESTING, _MOST = 20_000, 8, 1_000

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "fish", "ksh", "mksh", "ash", "rbash", "csh", "tcsh"})  # fmt: skip

_UNREADABLE = frozenset({"alias", "let", "complete", "compgen", "enable", "mapfile", "readarray", "bind", "expect", "at", "batch", "case", "abbr"})  # fmt: skip
"""Commands that run what they are given, in ways of their own."""

_TEXTS = re.compile(r"(?:PAGER|EDITOR|VISUAL|BROWSER|ASKPASS|_COMMAND|_SSH|_RSH|_DIFF)$")
"""Names of variables whose value is a command."""

_LOADED = re.compile(r"(?:LD_(?:PRELOAD|AUDIT)|DYLD_.*|BASH_ENV|ENV|PROMPT_COMMAND|PS4|ZDOTDIR|BASH_FUNC_.*|LESS(?:OPEN|CLOSE)|NODE_OPTIONS|PERL5OPT|RUBYOPT|PYTHONSTARTUP|GIT_(?:CONFIG.*|EXEC_PATH|PROXY.*)|SHELLOPTS|BASHOPTS)$")  # fmt: skip
"""Names of variables that have other programs or code loaded."""

_PREFIXES: dict[str, tuple[str, int]] = {
    "nohup": ("", 0), "setsid": ("", 0), "builtin": ("", 0), "command": ("", 0), "exec": ("a", 0),
    "nice": ("n", 0), "ionice": ("cnpPu", 0), "stdbuf": ("ioe", 0), "time": ("fo", 0), "timeout": ("ks", 1),
    "chroot": ("", 1), "taskset": ("", 1), "chrt": ("", 1), "sudo": ("ughpCrtTUDR", 0), "doas": ("uC", 0),
    "strace": ("eosPu", 0), "unbuffer": ("", 0), "noglob": ("", 0), "nocorrect": ("", 0), "caffeinate": ("tw", 0),
    "busybox": ("", 0), "toybox": ("", 0), "xargs": ("InPLdsEaJR", 0), "env": ("uCa", 0), "proot": ("rbwq", 0),
}  # fmt: skip
"""Programs that run the words after theirs: the letters of options that take a value, and how many words come before."""

_LONG_VALUES = frozenset({"--signal", "--kill-after", "--adjustment", "--max-args", "--max-procs", "--delimiter", "--arg-file", "--unset", "--chdir", "--user", "--group", "--input", "--output", "--error", "--max-lines", "--max-chars", "--replace", "--format"})  # fmt: skip

_SSH_VALUES = "BbcDEeFIiJLlmOopQRSWw"

_GIT_VALUES = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--attr-source"})  # fmt: skip

_GIT_COMMANDS = frozenset({
    "add", "am", "annotate", "apply", "archive", "bisect", "blame", "branch", "bundle", "cat-file", "check-attr",
    "check-ignore", "check-ref-format", "checkout", "checkout-index", "cherry", "cherry-pick", "clean", "clone",
    "column", "commit", "commit-graph", "commit-tree", "config", "count-objects", "credential", "describe", "diff",
    "diff-files", "diff-index", "diff-tree", "difftool", "fast-export", "fast-import", "fetch", "filter-branch",
    "for-each-ref", "format-patch", "fsck", "gc", "grep", "gui", "hash-object", "help", "init", "instaweb",
    "interpret-trailers", "lfs", "log", "ls-files", "ls-remote", "ls-tree", "maintenance", "merge", "merge-base",
    "merge-file", "merge-tree", "mergetool", "mktag", "mktree", "mv", "name-rev", "notes", "pack-refs", "prune",
    "pull", "push", "range-diff", "read-tree", "rebase", "reflog", "remote", "repack", "replace", "request-pull",
    "rerere", "reset", "restore", "rev-list", "rev-parse", "revert", "rm", "send-email", "send-pack", "shortlog",
    "show", "show-branch", "show-ref", "sparse-checkout", "stage", "stash", "status", "stripspace", "submodule",
    "switch", "symbolic-ref", "tag", "update-index", "update-ref", "update-server-info", "var", "verify-commit",
    "verify-tag", "version", "whatchanged", "worktree", "write-tree",
})  # fmt: skip
"""What an alias cannot replace; any other word may be one, and run anything."""

_GIT_TEXTS = re.compile(r"(?:pager(?:\.\w+)?|editor|sshcommand|askpass|browser)$")

_GIT_LOADED = re.compile(r"command|external|helper|program|hook|fsmonitor|textconv|driver|clean|smudge|process|proxy|cmd|pack$|include|path$")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Commands:
    """What a command text runs.

    Attributes:
        found: the words of each command, `UNKNOWN` for those that only the shell knows.
        unclear: what of it cannot be read; "" where all is.
    """

    found: tuple[tuple[str, ...], ...] = ()
    unclear: str = ""


def commands_in(text: str) -> Commands:
    """Every command that a shell command runs, as far as its words say."""
    if len(text) > _LONGEST:
        return Commands((), "it is very long")
    reader = _Reader()
    try:
        reader.read(text, 0)
    except _TooMany:
        return Commands(tuple(dict.fromkeys(reader.found)), "it runs too many commands")
    return Commands(tuple(dict.fromkeys(reader.found)), reader.unclear)


class _TooMany(Exception):
    """There is no end of commands."""


class _Reader:
    """Collects the commands of a text, and of the texts and words in them."""

    def __init__(self) -> None:
        self.found: list[tuple[str, ...]] = []
        self.unclear = ""

    def read(self, text: str, depth: int) -> None:
        """Take in a text that a shell would run."""
        why = read(text, self.take, depth)
        self.unclear = self.unclear or why

    def take(self, words: Sequence[str], depth: int) -> None:
        """Take in the words of a command, and look through those that run others."""
        if len(self.found) > _MOST:
            raise _TooMany
        try:
            self._take(list(words), depth)
        except _Unclear as why:
            self.unclear = self.unclear or str(why)

    def _take(self, words: list[str], depth: int) -> None:
        if depth > _DEEPEST_NESTING:
            raise _Unclear("commands within commands go too deep")
        while words and words[0] != UNKNOWN and (assigned := ASSIGNED.match(words[0])):
            self._assign(assigned[1], words[0][assigned.end() :], depth)
            del words[0]
        if not words:
            return
        if UNKNOWN in words[0] or words[0][:1] in ("=", ""):
            raise _Unclear("the name of a program is not certain")
        if words[0].startswith("-") and words[-1] != "]]":
            raise _Unclear("an option stands where a program should")
        name = os.path.basename(words[0])
        if name.startswith("git-"):
            words, name = ["git", name[4:], *words[1:]], "git"
        self.found.append(tuple(words))
        if name == "git":
            words = self._git(words, depth)
            self.found.append(tuple(words))
        self._look_through(name, words[1:], depth + 1)

    def _assign(self, name: str, value: str, depth: int) -> None:
        if _LOADED.match(name) or "$(" in value or "`" in value:
            raise _Unclear(f"the variable {name} can run commands")
        if _TEXTS.search(name):
            if UNKNOWN in value:
                raise _Unclear(f"the variable {name} can run commands")
            self.read(value, depth + 1)

    def _look_through(self, name: str, rest: list[str], depth: int) -> None:
        """Take in what a program runs of the words after its own."""
        if name in _UNREADABLE:
            raise _Unclear(f"what {name} runs cannot be read")
        if name in _SHELLS:
            self._shell(rest, depth)
        elif name in ("eval", "trap", "watch"):
            if name != "eval":
                rest = _after_options(rest, "n" if name == "watch" else "", 0)
            self._text(" ".join(rest[:1] if name == "trap" else rest), depth)
        elif name in ("export", "declare", "typeset", "local", "readonly", "set"):
            for word in rest:
                if assigned := ASSIGNED.match(word):
                    self._assign(assigned[1], word[assigned.end() :], depth)
        elif name in ("su", "runuser", "script", "flock"):
            self._by_option(name, rest, depth)
        elif name == "ssh":
            self._ssh(rest, depth)
        elif name in ("find", "fd", "fdfind"):
            self._find(rest, depth)
        elif name == "parallel":
            raise _Unclear("what parallel runs cannot be read")
        elif name in _PREFIXES:
            self._prefix(name, rest, depth)

    def _text(self, text: str, depth: int) -> None:
        """Take in words that become a shell's text."""
        if UNKNOWN in text:
            raise _Unclear("a text that a shell runs is not certain")
        self.read(text, depth)

    def _shell(self, rest: list[str], depth: int) -> None:
        for place, word in enumerate(rest):
            if word == "--version":
                return
            if re.fullmatch(r"[-+][A-Za-z]*", word) and word != "-":
                if "c" in word and word[0] == "-":
                    texts = [each for each in rest[place + 1 :] if not re.match(r"[-+].", each)]
                    self._text(texts[0] if texts else UNKNOWN, depth)
                    return
                if "s" in word or "o" in word or "O" in word:
                    break
            elif word in ("--login", "--norc", "--noprofile", "--posix"):
                continue
            elif word[:1] in ("-", "+"):
                break
            else:
                self.take(rest[place:], depth)  # a script: judged by its own name
                return
        raise _Unclear("a shell reads its commands from elsewhere")

    def _by_option(self, name: str, rest: list[str], depth: int) -> None:
        """Of programs that run a text after ``-c``; one also runs words."""
        for place, word in enumerate(rest):
            if word in ("-c", "--command") and place + 1 < len(rest):
                self._text(rest[place + 1], depth)
                return
            if word.startswith("--command="):
                self._text(word.partition("=")[2], depth)
                return
        if name == "flock":
            inner = _after_options(rest, "wE", 1)
            if inner:
                self.take(inner, depth)
            return
        raise _Unclear(f"{name} starts a shell")

    def _ssh(self, rest: list[str], depth: int) -> None:
        if any(re.search(r"command|proxy|exec", each, re.I) for each in rest if "=" in each):
            raise _Unclear("an option of ssh can run commands")
        inner = _after_options(rest, _SSH_VALUES, 1)
        if not inner:
            raise _Unclear("ssh starts a shell")
        self._text(" ".join(_after_options(inner, _SSH_VALUES, 0)), depth)

    def _find(self, rest: list[str], depth: int) -> None:
        begins = [n for n, each in enumerate(rest) if re.fullmatch(r"-(?:exec|execdir|ok|okdir|x|X)|--exec(?:-batch)?", each)]  # fmt: skip
        for start in begins:
            inner = rest[start + 1 :]
            ends = [n for n, each in enumerate(inner) if each in (";", "+")]
            inner = inner[: ends[0]] if ends else inner
            self.take([UNKNOWN if "{" in each else each for each in inner] or [UNKNOWN], depth)

    def _prefix(self, name: str, rest: list[str], depth: int) -> None:
        letters, before = _PREFIXES[name]
        if name == "command" and rest[:1] in (["-v"], ["-V"]):
            return
        if name == "env":
            for place, word in enumerate(rest):
                if re.match(r"-[A-Za-z]*S|--split", word):
                    if word[:2] not in ("-S", "--"):
                        raise _Unclear("an option of env runs a text")
                    text = word[2:] if word[1] == "S" else word.partition("=")[2]
                    self._text(" ".join([text, *rest[place + 1 :]]), depth)
                    return
                if not word.startswith("-") and not ASSIGNED.match(word):
                    break
        inner = _after_options(rest, letters, before)
        other = _after_options(rest, letters, before, long_values=True)
        if other and other != inner:  # an option whose value is a word of its own, or none
            self.take(other, depth)
        if not inner and name in ("doas", "chroot", "proot"):
            raise _Unclear(f"{name} starts a shell")
        if name == "sudo" and not inner and rest:
            if any(re.fullmatch(r"-[A-Za-z]*[is][A-Za-z]*|--shell|--login", each) for each in rest):
                raise _Unclear("sudo starts a shell")
            return
        if name == "xargs" and inner:
            marks = {"{}"} | {rest[n + 1] for n, each in enumerate(rest[:-1]) if each == "-I"}
            marks |= {each[2:] for each in rest if each.startswith("-I") and each != "-I"}
            inner = [UNKNOWN if any(mark in each for mark in marks) else each for each in inner]
            inner.append(UNKNOWN)
        self.take(inner, depth)

    def _git(self, words: list[str], depth: int) -> list[str]:
        """The words of git without the options before its command."""
        rest = words[1:]
        while rest and rest[0].startswith("-"):
            option, _, joined = rest.pop(0).partition("=")
            if option in ("--exec-path", "--config-env") and joined:
                raise _Unclear(f"the option {option} of git can run commands")
            if option in ("--version", "--help", "-h", "-v", "--html-path", "--man-path"):
                return ["git", option, *rest]
            if option in _GIT_VALUES and not joined:
                if not rest:
                    break
                joined = rest.pop(0)
            if option == "-c":
                self._git_setting(joined, depth + 1)
        if not rest:
            return ["git"]
        if rest[0] not in _GIT_COMMANDS:
            raise _Unclear(f"git {rest[0]} may be an alias" if rest[0].isprintable() else "the command of git is not certain")  # fmt: skip
        self._git_runs(rest, depth + 1)
        return ["git", *rest]

    def _git_setting(self, setting: str, depth: int) -> None:
        key, _, value = setting.partition("=")
        key = key.lower()
        if UNKNOWN in key or (key.startswith("alias.") and UNKNOWN in value):
            raise _Unclear("a setting of git is not certain")
        if key.startswith("alias."):
            self.read(value[1:] if value.startswith("!") else f"git {value}", depth)
        elif _GIT_TEXTS.search(key):
            self._text(value, depth)
        elif _GIT_LOADED.search(key):
            raise _Unclear(f"the setting {key} of git can run commands")

    def _git_runs(self, rest: list[str], depth: int) -> None:
        """Take in what some of git's commands run."""
        name, after = rest[0], rest[1:]
        if name == "filter-branch":
            raise _Unclear("what git filter-branch runs cannot be read")
        if name == "bisect" and after[:1] == ["run"]:
            self.take(after[1:], depth)
        if name == "submodule" and "foreach" in after:
            inner = after[after.index("foreach") + 1 :]
            self._text(" ".join(each for each in inner if each != "--recursive"), depth)
        for place, word in enumerate(after):
            if name in ("rebase", "difftool") and word in ("-x", "--exec", "--extcmd"):
                self._text(" ".join(after[place + 1 : place + 2]), depth)
            if name in ("rebase", "difftool") and re.match(r"--(?:exec|extcmd)=|-x.", word):
                self._text(word.partition("=")[2] if word[1] == "-" else word[2:], depth)
            if re.match(r"--(?:upload-pack|receive-pack|exec|open-files-in-pager)\b", word):
                raise _Unclear(f"the option {word.partition('=')[0]} of git can run commands")
            if name == "config" and re.match(r"alias\.", word, re.I):
                raise _Unclear("it defines an alias of git")


def _after_options(
    rest: list[str], letters: str, before: int, *, long_values: bool = False
) -> list[str]:
    """The words after options, and after so many more.

    Args:
        rest: the words; ``letters`` those of the options that take a value.
        before: how many words stand between options and command.
        long_values: every long option takes one, too.
    """
    place = 0
    while place < len(rest):
        word = rest[place]
        if word == "--":
            place += 1
            break
        if not word.startswith("-") or word == "-":
            break
        if UNKNOWN in word:
            raise _Unclear("an option is not certain")
        place += 1
        if word.startswith("--"):
            place += "=" not in word and (long_values or word in _LONG_VALUES)
        elif (taken := next((n for n, each in enumerate(word[1:], 1) if each in letters), 0)) > 0:
            place += taken == len(word) - 1
    return rest[place + before :]


_RUNNERS = frozenset({
    "uv", "uvx", "poetry", "pdm", "hatch", "pipx", "npx", "npm", "pnpm", "yarn", "bun", "bundle", "direnv", "mise",
    "asdf", "nix", "nix-shell", "docker", "podman", "kubectl", "unshare", "nsenter", "bwrap", "firejail",
    "fakeroot", "systemd-run", "pkexec", "runcon", "valgrind", "gdb", "perf", "ltrace", "rlwrap", "entr",
    "watchexec", "tmux", "screen", "xvfb-run", "dbus-run-session",
})  # fmt: skip
"""Programs that may run others in ways of their own: the name of a rule's program in their words is a doubt."""


def concerns(rule: Sequence[str], words: Sequence[str], any_more: str) -> bool | None:
    """Whether a command is one that a rule forbids or asks about; None where that is not certain.

    Options count wherever they stand, and in any bundle (``rm -fr`` is ``rm -rf``).

    Args:
        rule: the rule's words; ``any_more`` is the last one where any words may follow, or the end
            of the last one where any end of it does.
        words: the command's.
    """
    if not _is_program(rule[0], words[0]):
        name = re.compile(rf"(?:^|[\s/;&|]){re.escape(os.path.basename(rule[0]))}(?:$|[\s;&|])")
        is_runner = os.path.basename(words[0]) in _RUNNERS
        return None if is_runner and any(map(name.search, words[1:])) else False
    given = list(words[1:])
    if len(rule) == 1:
        return not given
    if os.path.basename(words[0]) == "git" and given[:1] and given[0][:1] == "-" != rule[1][:1]:
        return False  # it was found without these options, too
    if rule[-1] != any_more and not rule[-1].endswith(any_more):
        same = [*rule[1:]] == given
        return None if not same and any(UNKNOWN in each for each in given) and len(given) <= len(rule) else same  # fmt: skip
    wanted = [each for each in rule[1:] if each != any_more]
    options = [each for each in wanted if each.startswith("-")]
    names = [each for each in wanted if not each.startswith("-")]
    return _both(_has_options(options, given, any_more), _has_names(names, given, any_more))


def _both(one: bool | None, other: bool | None) -> bool | None:
    if one is False or other is False:
        return False
    return None if one is None or other is None else True


def _is_program(named: str, run: str) -> bool:
    """Whether a program is the one that a rule names: a path is compared where both are paths."""
    if named == run or named.rstrip("*") == "":
        return True
    if os.path.isabs(named) and os.path.isabs(run):
        return os.path.normpath(named) == os.path.normpath(run)
    return os.path.basename(named) == os.path.basename(run)


def _has_options(wanted: Sequence[str], given: Sequence[str], any_more: str) -> bool | None:
    flags = [each for each in given if each.startswith("-")]
    bundled = {sign for each in flags if not each.startswith("--") for sign in each[1:]}
    for option in wanted:
        start = option.rstrip(any_more) if option.endswith(any_more) else f"{option}="
        if option in given or any(each.startswith(start) for each in flags):
            continue
        if not option.startswith("--") and set(option[1:]) <= bundled:
            continue
        if any(UNKNOWN in each for each in given) or any(_may_be(each, option) for each in flags):
            return None
        return False
    return True


def _may_be(given: str, option: str) -> bool:
    """Whether an option may be another one in other letters: ``-f`` and ``--forc`` may be ``--force``."""
    if option.startswith("--"):
        return option.startswith(given) if given.startswith("--") else option[2:3] in given[1:]
    return given.startswith("--")


def _has_names(wanted: Sequence[str], given: Sequence[str], any_more: str) -> bool | None:
    if not wanted:
        return True
    plain = [each for each in given if not each.startswith("-")]
    for name, word in zip(wanted, plain, strict=False):
        if UNKNOWN in word:
            return None
        if word != name and not (name.endswith(any_more) and word.startswith(name[:-1])):
            skipped = given[:1] != plain[:1] and wanted[0] in plain  # after an option's value
            return None if skipped else False
    return len(plain) >= len(wanted) or (None if any(UNKNOWN in each for each in given) else False)
