"""Running git for a store, in our own store of git objects for one remote.

git is given plumbing commands in a bare object store of ours: a cache in the account's cache folder
that can be thrown away at any time, without configuration of anybody else's. It is used under a lock
of ours; what a killed git left locked is swept under that lock. When it has grown, it is made anew
and fetched again. Nothing that a remote, a repository or a caller's environment holds is run: no
hooks on this side, no helpers of unknown transports, no questions, no submodules, no signing. How
people authenticate (ssh configuration, agents, keys, credential helpers) stays as they have it.
Standard library only.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from acp_core.files import atomic, git
from acp_core.files.locked import LogError, locked
from acp_core.model.text import clean_line
from acp_core.person.paths import cache_folder
from acp_core.stores.address import without_password
from acp_core.stores.engine import InDoubt, SharingError, StoreRefused, StoreUnreachable, TipMoved

SAFE = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", os.devnull),
    ("core.attributesFile", os.devnull),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("fetch.fsckObjects", "true"),
    ("fetch.recurseSubmodules", "false"),
    ("submodule.recurse", "false"),
    ("push.gpgSign", "false"),
    ("push.followTags", "false"),
    ("push.recurseSubmodules", "no"),
    ("commit.gpgSign", "false"),
    ("http.lowSpeedLimit", "1"),
    ("http.lowSpeedTime", "20"),
)  # fmt: skip

"""What is set for each run of git, above what anybody has configured."""

_PROTOCOLS = "file:ssh:https"

_SSH = "-o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=5 -o ServerAliveCountMax=4"  # never a question, and never a wait without an end

_KEPT_OPEN = "-o ControlMaster=auto -o ControlPersist=120 -o ControlPath={}"

_LONGEST_SOCKET = 90  # of about 104 bytes that a socket's path may have: ssh adds to it

_MOVED = re.compile(
    r"\[rejected\] \((stale info|fetch first|non-fast-forward)\)"
    r"|cannot lock ref|failed to (update|lock) ref|reference already exists|incorrect old value"
)

_LOCK_LEFT = re.compile(r"Unable to create '([^']+\.lock)'|(\S+\.lock)': File exists")

_NOT_REACHED = re.compile(
    r"[Cc]ould not resolve host|Name or service not known|Temporary failure in name resolution"
    r"|connect to host .* port .*: |Connection refused|No route to host|Network is unreachable"
    r"|Failed to connect|Couldn't connect|SSL certificate problem|kex_exchange_identification"
    r"|[Rr]epository .*not found|does not appear to be a git repository|does not exist"
)

"""What is said before anything was sent: nothing can have been changed."""

_DENIED = re.compile(
    r"Permission denied \(|Authentication failed|could not read (Username|Password)"
)

_MISSING = re.compile(r"couldn't find remote ref[^\n]*")

_HOST_KEY = re.compile(r"Host key verification failed|REMOTE HOST IDENTIFICATION HAS CHANGED")

NO_SUCH_REF = "couldn't find remote ref"  # what git says of a branch that is not there

_NO_REPOSITORY = re.compile(
    r"[Rr]epository .*not found|does not appear to be a git repository|does not exist"
)

_REJECTED = re.compile(r"^!\t\S*\t(?P<why>.*)$", re.MULTILINE)

_REMOTE = re.compile(r"^remote: ?(.*)$", re.MULTILINE)


def git_environment(url: str, sockets: Path | None, own_ssh: str = "") -> dict[str, str]:
    """The environment of a run of git that talks to a remote, or to none ("").

    Args:
        url: the remote.
        sockets: a private folder for ssh connections that are kept open; None for none.
        own_ssh: what the person has configured as ``core.sshCommand``.
    """
    said = git.environment() | {
        "GIT_ALLOW_PROTOCOL": _PROTOCOLS,
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "SSH_ASKPASS_REQUIRE": "never",
        "GCM_INTERACTIVE": "never",
    }
    for number, (key, value) in enumerate(SAFE):
        said |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    said["GIT_CONFIG_COUNT"] = str(len(SAFE))
    if is_ssh(url):
        said["GIT_SSH_COMMAND"] = ssh_command(
            os.environ.get("GIT_SSH_COMMAND")
            or own_ssh
            or shlex.quote(os.environ.get("GIT_SSH") or "ssh"),
            sockets,
        )
    return said


def is_ssh(url: str) -> bool:
    """Whether a repository is reached by ssh."""
    return url.startswith("ssh://") or bool(url and "://" not in url)


def ssh_command(own: str, sockets: Path | None) -> str:
    """A person's own ssh command, told to ask nothing and, where it may, to stay connected.

    Commands that are no ssh (wrappers of other names) are taken as they are: they may not know
    the options.
    """
    try:
        words = shlex.split(own)
    except ValueError:
        return own
    if not words or os.path.basename(words[0]) != "ssh":
        return own
    if sockets is None or len(os.fsencode(sockets)) + 42 > _LONGEST_SOCKET or _has_own_sockets(own):
        return f"{own} {_SSH}"
    return f"{own} {_SSH} {_KEPT_OPEN.format(shlex.quote(f'{sockets}/%C'))}"


def _has_own_sockets(own: str) -> bool:
    """Whether the person shares connections already: those may hold what ours could not get."""
    if "controlpath" in own.lower():
        return True
    try:
        with open(os.path.expanduser("~/.ssh/config"), encoding="utf-8", errors="replace") as file:
            return "controlpath" in file.read(1 << 20).lower()
    except OSError:
        return False


def refusal(url: str, printed: str, said: str, *, pushing: bool) -> SharingError:
    """What a failed run of git means.

    Args:
        url: the remote.
        printed: its standard output; of a push, ``--porcelain`` lines.
        said: its standard error.
        pushing: whether it may have changed the remote.
    """
    both = f"{printed}\n{said}"
    remote = _words(said)
    rejected = _REJECTED.search(printed)
    if "dubious ownership" in both:
        return StoreRefused(_dubious(url))
    if left := _LOCK_LEFT.search(both):
        return TipMoved(
            f"a lock was left in the store ({clean_line(left[1] or left[2], 300)}): its owner must remove it"
        )
    if _MOVED.search(both):
        return TipMoved("the store has moved on")
    if rejected or "remote rejected" in both:
        why = rejected["why"].removeprefix("[remote rejected] ") if rejected else "rejected"
        why = clean_line(why.strip("()"), 200)
        words = ": ".join(each for each in (why, remote) if each)
        return StoreRefused(
            f"the store refused it: {words} (a protected branch? acp writes to refs/heads/acp/)"
        )
    if not pushing and (missing := _MISSING.search(said)):
        # Over ssh, git adds that the other side hung up: what it looked for is what counts.
        return StoreUnreachable(unreachable(url, clean_line(missing[0], 300)))
    if _HOST_KEY.search(said):
        return StoreUnreachable(
            unreachable(url, "the host's key is not known here: connect to it by ssh once")
        )
    if _DENIED.search(said):
        return StoreUnreachable(
            unreachable(url, "it does not accept this account's key or password")
        )
    if found := _NOT_REACHED.search(said):
        line = next(each for each in said.splitlines() if found[0] in each)
        known = "there is no such repository" if _NO_REPOSITORY.search(said) else ""
        return StoreUnreachable(unreachable(url, known or _plain(line)))
    lines = [each for each in said.splitlines() if each.strip()]
    last = _plain(lines[-1]) if lines else ""
    if pushing:
        return InDoubt(
            f"the connection to {name(url)} was lost ({last or 'git gives no reason'}): it is not "
            "known whether the store has it; run the same command again"
        )
    return StoreUnreachable(unreachable(url, last or "git gives no reason"))


def unreachable(url: str, reason: str) -> str:
    """The sentence for a store that does not answer."""
    return f"the store {name(url)} cannot be reached ({reason})"


def name(url: str) -> str:
    """A remote's address within a sentence."""
    return clean_line(without_password(url), 300)


def _plain(line: str) -> str:
    return clean_line(
        without_password(re.sub(r"^(fatal|error|warning|ssh|remote): ", "", line.strip())), 200
    )


def _words(said: str) -> str:
    """What the other side says, in a line."""
    lines = (each.strip() for each in _REMOTE.findall(said))
    return clean_line(without_password(" / ".join(each for each in lines if each)), 300)


def _dubious(url: str) -> str:
    owner = ""
    if url.startswith("file://"):
        from acp_core.files import claims

        try:
            owner = claims.account(os.stat(url.removeprefix("file://")).st_uid)
        except OSError:
            owner = ""
    return (
        f"the repository belongs to {clean_line(owner, 80) or 'another account'}: git does not trust it, and its hooks "
        "would run as you; reach it by ssh as that account, or add it to safe.directory"
    )


def quoted(path: str) -> str:
    """A path as `git fast-import` reads it."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


_PATIENCE = 120.0  # seconds for a run of git that talks to a remote

_LOCAL_PATIENCE = 60.0

_BUSY = 180.0  # seconds that a run waits for the others of this account

_MOST_LOOSE = 8  # files in one of 256 folders: some 2,000 objects in all

_MOST_PACKS = 50

_LARGEST_FILE = 2 << 20  # in blocks of 512 bytes: 1 GiB for one file that a remote sends

_NOT_FOUND = 127  # what a shell says by its exit code of a program that is not there

NO_GIT = "git is not installed on this machine"

_LIMITED = ("/bin/sh", "-c", f'ulimit -f {_LARGEST_FILE}; exec "$@"', "sh")


class ObjectStore:
    """The objects that this account has of one remote."""

    def __init__(self, url: str) -> None:
        self.url = url
        home = cache_folder() / "stores"
        self.folder = home / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.git"
        self._lock = self.folder.with_suffix(".lock")
        self._sockets = home.parent / "ssh"
        self._own_ssh: str | None = None
        self._thread = threading.RLock()
        self._depth = 0

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Hold the store: no other process of this account uses it meanwhile.

        Raises:
            StoreUnreachable: another process has held it for minutes.
            OSError: the cache folder cannot be written.
        """
        with self._thread:
            if self._depth:
                yield
                return
            atomic.private_folder(self._lock.parent)
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self._lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with contextlib.ExitStack() as stack:
                try:
                    stack.enter_context(locked(str(self._lock), timeout=_BUSY))
                except LogError as error:
                    raise StoreUnreachable(f"the cache of {name(self.url)}: {error}") from None
                self._depth += 1
                try:
                    self._ready()
                    yield
                finally:
                    self._depth -= 1

    def _ready(self) -> None:
        """A usable store: made where it is missing, swept, and made anew where it has grown."""
        if self._has_grown():
            self.throw_away()
        if not (self.folder / "HEAD").exists() or not (self.folder / "config").exists():
            shutil.rmtree(self.folder, ignore_errors=True)
            atomic.private_folder(self.folder)
            self._run(["git", "init", "-q", "--bare", "--template=", str(self.folder)], "", b"")
            return
        for place in (self.folder, *(Path(at) for at, _, _ in os.walk(self.folder / "refs"))):
            for left in place.glob("*.lock"):
                with contextlib.suppress(OSError):
                    left.unlink()

    def _has_grown(self) -> bool:
        """Whether many objects lie about, as git itself guesses: by one folder of 256."""
        try:
            loose = len(os.listdir(self.folder / "objects" / "17"))
        except OSError:
            loose = 0
        try:
            packs = sum(name.endswith(".pack") for name in os.listdir(self.folder / "objects/pack"))
        except OSError:
            packs = 0
        return loose > _MOST_LOOSE or packs > _MOST_PACKS

    def throw_away(self) -> None:
        """Forget every object; the next reading fetches what is needed."""
        aside = self.folder.with_name(f"{self.folder.name}.{os.urandom(4).hex()}.old")
        with contextlib.suppress(OSError):
            os.rename(self.folder, aside)
        shutil.rmtree(aside, ignore_errors=True)

    def ref(self, name: str) -> str:
        """The commit that a ref of ours names; "" where there is none."""
        try:
            text = (self.folder / name).read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            return ""
        return text if len(text) in (40, 64) and all(c in "0123456789abcdef" for c in text) else ""

    def has(self, commit: str) -> bool:
        """Whether a commit is here."""
        return bool(commit) and self.local(["cat-file", "-e", f"{commit}^{{commit}}"]) is not None

    def local(self, arguments: Sequence[str], given: bytes = b"") -> bytes | None:
        """What a run of git that needs no remote prints; None where it fails."""
        done = self._run(self._git(arguments), "", given)
        return done.stdout if done.returncode == 0 else None

    def fetch(self, *refspecs: str, depth: int | None = None, prune: bool = False) -> bool:
        """Fetch exactly these refs; False where a pattern among them matches none.

        Args:
            refspecs: what is fetched, and where to.
            depth: how many commits of each history; None for all that are not here.
            prune: remove here what the patterns match here and not there.

        Raises:
            StoreRefused, StoreUnreachable, TipMoved: see `git_words.refusal`.
        """
        options = ["-q", "--no-tags", "--no-write-fetch-head", "--no-auto-gc", "--no-show-forced-updates",
                   "--no-recurse-submodules", "--no-auto-maintenance"]  # fmt: skip
        if depth:
            options.append(f"--depth={depth}")
        if prune:
            options.append("--prune")
        command = [*_LIMITED, *self._git(["fetch", *options, "--", self.url, *refspecs])]
        done = self._run(command, self.url, b"")
        if done.returncode == 1 and not done.stderr.strip() and depth:
            return False  # git says nothing else of it
        if done.returncode:
            raise self._refusal(done, pushing=False)
        return True

    def remote_refs(self, pattern: str) -> dict[str, str]:
        """The branches of the remote that match a pattern, each with its commit; fetches nothing.

        Raises:
            StoreRefused, StoreUnreachable, TipMoved: see `git_words.refusal`.
        """
        words_of = ["ls-remote", "-q", "--heads", "--", self.url, pattern]
        done = self._run(self._git(words_of), self.url, b"")
        if done.returncode:
            raise self._refusal(done, pushing=False)
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        pairs = (line.partition("\t") for line in lines)
        return {name: commit for commit, _, name in pairs}

    def push(self, commit: str, ref: str, expected: str) -> None:
        """Move a ref of the remote from one commit to another; nothing else does.

        A plain push would silently go on upon a remote that was put back.

        Raises:
            TipMoved: the ref is not at ``expected`` ("": it must not exist).
            StoreRefused, StoreUnreachable, InDoubt: see `git_words.refusal`.
        """
        options = ["-q", "--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no",
                   f"--force-with-lease={ref}:{expected}"]  # fmt: skip
        done = self._run(
            self._git(["push", *options, "--", self.url, f"{commit}:{ref}"]), self.url, b""
        )
        if done.returncode:
            raise self._refusal(done, pushing=True)

    def _git(self, arguments: Sequence[str]) -> list[str]:
        return ["git", f"--git-dir={self.folder}", *arguments]

    def _refusal(self, done: subprocess.CompletedProcess[bytes], *, pushing: bool) -> Exception:
        printed, said = (each.decode("utf-8", "replace") for each in (done.stdout, done.stderr))
        return refusal(self.url, printed, said, pushing=pushing)

    def _run(
        self, command: Sequence[str], url: str, given: bytes
    ) -> subprocess.CompletedProcess[bytes]:
        """Run git to its end, or end it and all that it started after its time."""
        sockets = None
        if is_ssh(url) and url:
            sockets = self._sockets
            atomic.private_folder(sockets)
            if self._own_ssh is None:
                self._own_ssh = self._configured_ssh()
        environment = git_environment(url, sockets, self._own_ssh or "")
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=environment, cwd=self._lock.parent, start_new_session=True,
            )  # fmt: skip
        except FileNotFoundError:
            raise StoreRefused(NO_GIT) from None
        try:
            out, said = process.communicate(given, timeout=_PATIENCE if url else _LOCAL_PATIENCE)
        except subprocess.TimeoutExpired:
            _end(process)
            reason = unreachable(url, f"no answer within {_PATIENCE:.0f} s")
            if "push" in command:
                raise InDoubt(f"{reason}; it is not known whether it has the change") from None
            raise StoreUnreachable(reason) from None
        except BaseException:
            _end(process)
            raise
        if process.returncode == _NOT_FOUND and shutil.which("git") is None:
            raise StoreRefused(NO_GIT)
        return subprocess.CompletedProcess(command, process.returncode, out, said)

    def _configured_ssh(self) -> str:
        """What the person has configured git to use for ssh."""
        command = ["git", "config", "--global", "core.sshCommand"]
        done = self._run(command, "", b"")
        return done.stdout.decode("utf-8", "replace").strip() if done.returncode == 0 else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a run of git with what it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        deadline = time.monotonic() + 2
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
    with contextlib.suppress(subprocess.TimeoutExpired, OSError, ValueError):
        process.communicate(timeout=2)


FILE, PROGRAM = "100644", "100755"

_FOLDER = "40000"

_NOTES = "acp-trees"  # in the object store: gone when that is thrown away

_LIMIT = 4 << 20

Listing = dict[str, tuple[str, str]]

"""The files of a whole tree by path: mode and id."""


def note(store: Path, id: str, commit: str, listing: Listing) -> None:
    """Note what the tree of a collaboration's commit holds; without a place for that, nothing is noted."""
    value = {"commit": commit, "files": {path: [*each] for path, each in listing.items()}}
    with contextlib.suppress(OSError):
        place = store / _NOTES
        place.mkdir(exist_ok=True)
        _put(place / f"{id}.json", json.dumps(value).encode())


def noted(store: Path, id: str, commit: str) -> Listing | None:
    """What a commit's tree holds; None where that is not known."""
    try:
        with open(store / _NOTES / f"{id}.json", "rb") as file:
            value = json.loads(file.read(_LIMIT))
        if value["commit"] != commit or len(commit) != 40:
            return None
        return {path: (mode, blob) for path, (mode, blob) in value["files"].items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def commit(
    store: Path,
    parent: str,
    before: Listing,
    files: Mapping[str, bytes | None],
    who: str,
    message: bytes,
) -> tuple[str, Listing]:
    """Write a commit; its id, and what its tree holds.

    Args:
        store: the bare repository.
        parent: the commit before it; "" where it is the first.
        before: what the tree of that holds.
        files: what changes: the new bytes by path, or None for a file that is removed.
        who: author and committer, with an address.
        message: of the commit.

    Raises:
        OSError: an object could not be written.
    """
    after = dict(before)
    for path, data in files.items():
        if data is None:
            after.pop(path, None)
        else:
            after[path] = (after.get(path, (FILE, ""))[0], _write(store, "blob", data))
    old = {id for id, _ in _trees(before)}
    root = ""
    for root, data in _trees(after):  # the last one is the root
        if root not in old:
            _write(store, "tree", data)
    stamp = f"{who} {int(time.time())} +0000"
    head = [
        f"tree {root}",
        *([f"parent {parent}"] if parent else []),
        f"author {stamp}",
        f"committer {stamp}",
    ]
    return _write(store, "commit", "\n".join(head).encode() + b"\n\n" + message), after


def set_ref(store: Path, name: str, commit: str) -> None:
    """Have a ref of our store name a commit.

    Raises:
        OSError: it could not be written.
    """
    path = store / name
    path.parent.mkdir(parents=True, exist_ok=True)
    _put(path, f"{commit}\n".encode())


def _trees(listing: Listing) -> Iterator[tuple[str, bytes]]:
    """The trees of a listing, each after those below it: id and content."""
    below: dict[str, dict[str, tuple[str, str]]] = {"": {}}
    for path, entry in listing.items():
        folder, _, name = path.rpartition("/")
        below.setdefault(folder, {})[name] = entry
        while folder:
            folder = folder.rpartition("/")[0]
            below.setdefault(folder, {})
    for folder in sorted(below, key=lambda each: (-each.count("/") - bool(each), each)):
        data = _tree(below[folder])
        id = _id("tree", data)
        yield id, data
        if folder:
            above, _, name = folder.rpartition("/")
            below[above][name] = (_FOLDER, id)


def _tree(entries: Mapping[str, tuple[str, str]]) -> bytes:
    """A tree as git stores it: in the order of names, a folder's with a slash at its end."""
    named = [
        (name.encode("utf-8", "surrogateescape"), mode, id) for name, (mode, id) in entries.items()
    ]
    named.sort(key=lambda each: each[0] + b"/" if each[1] == _FOLDER else each[0])
    return b"".join(
        mode.encode() + b" " + name + b"\0" + bytes.fromhex(id) for name, mode, id in named
    )


def _id(kind: str, data: bytes) -> str:
    """The name of an object."""
    return hashlib.sha1(
        b"%s %d\0" % (kind.encode(), len(data)) + data, usedforsecurity=False
    ).hexdigest()


def _write(store: Path, kind: str, data: bytes) -> str:
    """Write an object, unless it is there; its id."""
    id = _id(kind, data)
    path = store / "objects" / id[:2] / id[2:]
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        packed = zlib.compress(b"%s %d\0" % (kind.encode(), len(data)) + data, 1)
        _put(path, packed)
    return id


def _put(path: Path, data: bytes) -> None:
    """Write a file whole; the caller holds the store, so that nobody else does."""
    made = path.with_name(f"{path.name}.new")
    made.write_bytes(data)
    os.replace(made, path)
