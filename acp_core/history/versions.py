"""The past contents of a collaboration's files, where they are known from, and what became of a text.

Contents are known from the recording; from the git repository in which the files lie; and for the
rest what stands there now, since the file's own time. Nothing is made up in between. git is run with
a list of arguments and without anything that a repository could have run: no pager, no hooks, no
external differ, no file system monitor, no check of signatures, no fetching. Where it is not
installed, or takes too long, there are no committed versions.

Two versions are compared by lines, changed lines by words; long texts less exactly, so that it never
takes long. Which changes that reviews asked for a revision touched is inferred, and the reason is
said: a review names no line of the proposal. A request counts as touched where it names a section in
which something changed, or where enough of its words stand in what changed.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import SequenceMatcher
from typing import NamedTuple

from acp_core.files import git as repositories
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.history.schema import LARGEST, LARGEST_LOG, MISSING
from acp_core.history.store import Store
from acp_core.model import format
from acp_core.model.past import Request, TrackedFile
from acp_core.model.text import clean, clean_line

GIT_PATIENCE = 10.0  # seconds for one run of git

MOST_COMMITS = 200  # commits of one file that are looked at

LARGEST_COMMITTED = 16 << 20  # bytes of a version

_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat")


@dataclass(frozen=True, slots=True)
class Committed:
    """A version that was committed: when (seconds since 1970), in which commit, and what it is."""

    at: float
    id: str
    size: int
    digest: str
    read: Callable[[], bytes]


def digest(data: bytes) -> str:
    """The name of a content: its SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


def committed_versions(tracked: Sequence[TrackedFile]) -> dict[str, list[Committed]]:
    """The committed versions of these files, oldest first, by the files' names."""
    folders = {os.path.dirname(file.path) for file in tracked}
    worth = {each for each in folders if repositories.top(each) is not None}
    found = {
        file.name: _read_commits(file) for file in tracked if os.path.dirname(file.path) in worth
    }
    return {name: versions for name, versions in found.items() if versions}


def files_in_git(folder: str) -> list[str] | None:
    """The files below a folder that git does not ignore, by name; None where git does not say."""
    if repositories.top(folder) is None:
        return None
    words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
    output = _git(folder, *words)
    return None if output is None else [os.fsdecode(each) for each in output.split(b"\0") if each]


def _read_commits(file: TrackedFile) -> list[Committed]:
    folder, name = os.path.split(file.path)
    if "\n" in name:
        return []
    listed = _git(
        folder,
        "log",
        "--no-show-signature",
        f"--max-count={MOST_COMMITS}",
        "--format=%H %ct",
        "--",
        f"./{name}",
    )
    commits: list[tuple[str, float]] = []
    for line in reversed((listed or b"").decode("ascii", "replace").splitlines()):
        commit, _, at = line.partition(" ")
        if commit.isalnum() and at.isdecimal():
            commits.append((commit, float(at)))
    contents = _contents(folder, [f"{commit}:./{name}" for commit, _ in commits])
    return [
        Committed(at, commit, len(data), digest(data), _reader_of(data))
        for (commit, at), data in zip(commits, contents, strict=False)
        if data is not None and len(data) <= LARGEST_COMMITTED
    ]


def _contents(folder: str, names: list[str]) -> list[bytes | None]:
    """The contents of objects, in one run of git; None for one that is not there."""
    if not names:
        return []
    asked = "".join(f"{name}\n" for name in names).encode(errors="surrogateescape")
    output = _git(folder, "cat-file", "--batch", given=asked)
    found: list[bytes | None] = []
    place = 0
    while output is not None and place < len(output):
        end = output.find(b"\n", place)
        header = output[place:end].split(b" ")
        if end < 0 or len(header) < 3 or header[-2] != b"blob" or not header[-1].isdigit():
            found.append(None)
            place = end + 1 if end >= 0 else len(output)
            continue
        size = int(header[-1])
        found.append(output[end + 1 : end + 1 + size])
        place = end + 1 + size + 1
    return found


def _reader_of(data: bytes) -> Callable[[], bytes]:
    return lambda: data


def _git(folder: str, *words: str, given: bytes = b"") -> bytes | None:
    """What git prints when it is given something to read; None where it fails."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_")
    } | {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C",
    }
    try:
        done = subprocess.run(
            ["git", "--no-pager", *_SAFE, *words],
            cwd=folder,
            env=environment,
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=GIT_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return done.stdout if done.returncode == 0 else None


RECORDED, COMMITTED, PRESENT = "recorded", "committed", "by its file time"

_SAME = 0.001  # seconds

_LONG = 60  # characters of a name


@dataclass(frozen=True, slots=True)
class Known:
    """A content that a file had since a moment.

    Attributes:
        file: the file's name (see `acp_core.model.past.TrackedFile`).
        since: seconds since 1970; for one that was committed, the time of the commit.
        source: `RECORDED`, `COMMITTED` or `PRESENT`.
        size: bytes, None where the file was not there.
        key: the same for the same content.
        read: gives the content; raises `acp_core.history.store.BadRecording` or OSError.
        note: for a commit, which.
        lost: why the content is not kept although the file was there; "" where it is.
    """

    file: str
    since: float
    source: str
    size: int | None
    key: str
    read: Callable[[], bytes]
    note: str = ""
    lost: str = ""


class Versions:
    """The known versions of all files of a collaboration.

    Args:
        tracked: The files as they are now.
        store: The recording, or None.
        commits: Versions that were committed, by the file's name.
    """

    def __init__(
        self,
        tracked: Sequence[TrackedFile],
        store: Store | None,
        commits: Callable[[Sequence[TrackedFile]], dict[str, list[Committed]]] = committed_versions,
    ) -> None:
        self.files: dict[str, list[Known]] = {}
        self.documents: dict[str, str] = {file.name: file.document for file in tracked}
        self.logs = {file.name for file in tracked if file.log}
        if store is not None:
            self._take_recorded(store)
        for name, found in commits([file for file in tracked if not file.log]).items():
            self._take_committed(name, found)
        for file in tracked:
            self._take_present(file)

    def at(self, file: str, moment: float) -> Known | None:
        """The newest version that was there at a moment; None where none is known.

        Args:
            file: its name.
            moment: seconds since 1970.
        """
        versions = self.files.get(file, [])
        place = bisect_right(versions, moment, key=lambda each: each.since)
        return versions[place - 1] if place else None

    def _take_recorded(self, store: Store) -> None:
        for name, (log, document) in store.files().items():
            self.documents.setdefault(name, document)
            if log:
                self.logs.add(name)
        latest: dict[str, float] = {}
        for version in store.versions():
            since = max(version.since, latest.get(version.file, version.since))
            latest[version.file] = since
            there = version.present
            known = Known(
                version.file,
                since,
                RECORDED,
                version.size if there else None,
                version.whole.hex() if there else "",
                _reader(store, version.id) if there else _nothing,
                lost="" if there or version.state == MISSING else version.state,
            )
            self.files.setdefault(version.file, []).append(known)

    def _take_committed(self, name: str, found: Iterable[Committed]) -> None:
        """Those from before the recording, and those that the recording does not know."""
        versions = self.files.setdefault(name, [])
        known = {version.key for version in versions}
        for commit in found:
            if commit.digest not in known:
                versions.append(
                    Known(
                        name,
                        commit.at,
                        COMMITTED,
                        commit.size,
                        commit.digest,
                        commit.read,
                        commit.id,
                    )
                )
        versions.sort(key=lambda each: each.since)

    def _take_present(self, file: TrackedFile) -> None:
        """What stands there now, where that is not what is known last."""
        versions = self.files.setdefault(file.name, [])
        try:
            found = os.stat(file.path)
            data = read_bounded(file.path, LARGEST_LOG if file.log else LARGEST)
        except (Unreadable, OSError, ValueError):
            return
        key = digest(data)
        if versions and versions[-1].key == key:
            return
        since = found.st_mtime
        if versions and since <= versions[-1].since:
            since = versions[-1].since + _SAME
        versions.append(Known(file.name, since, PRESENT, len(data), key, lambda: data))


def _reader(store: Store, version: int) -> Callable[[], bytes]:
    return lambda: store.content(version)


def _nothing() -> bytes:
    raise FileNotFoundError("the file did not exist")


def short_name(file: str) -> str:
    """A file's name, safe to show; of a long one its end, which tells it apart from others."""
    if len(file) > _LONG and file.count("/") > 1:
        file = "/".join(file.split("/")[-2:])
    return clean_line(file, _LONG)


def text_of(known: Known | None) -> str:
    """A document's version as text that is safe to show; "" where there was no such file."""
    return clean(bytes_of(known).decode(errors="replace"))


def bytes_of(known: Known | None) -> bytes:
    """A document's version as it was; nothing where there was no such file."""
    return b"" if known is None or known.size is None else known.read()


NOT_KEPT = "no earlier version was kept"


def describe_version(known: Known | None, utc: bool, *, precise: bool = False) -> str:
    """Since when a version held (precisely: as versions are told apart), and where that is known from."""
    if known is None:
        return NOT_KEPT
    since = datetime.fromtimestamp(known.since, UTC)
    at = format.precise(since, utc) if precise else format.exact(since, utc)
    note = f" {known.note[:12]}" if known.note else ""
    note += f"; {known.lost}" if known.lost else ""
    return f"{at} ({known.source}{note})"


def describe_versions(old: Known | None, new: Known | None, utc: bool) -> str:
    """Two versions of a document; what holds for both, as the day, stands once."""
    if old is None and new is None:
        return NOT_KEPT
    before, after = describe_version(old, utc), describe_version(new, utc)
    if old is None or new is None:
        return f"{before} → {after}"
    (day, time, rest), (next_day, next_time, next_rest) = (
        each.split(" ", 2) for each in (before, after)
    )
    if rest != next_rest:
        return f"{before} → {after}"
    return f"{day} {time} → {'' if day == next_day else f'{next_day} '}{next_time} {rest}"


SAME, OLD, NEW = " ", "-", "+"

EXACT = 4_000  # lines of both texts up to which the comparison is exact; then it is good enough

_WORDS = 400  # words of a line that are compared

_ALIKE = 0.4  # share of a line's words that must be the same for two lines to be one that changed

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")

Piece = tuple[str, bool]

"""A part of a line, and whether it changed."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line: ``sign`` is `SAME`, `OLD` or `NEW`; numbers count from 1, None where it is not there."""

    sign: str
    old: int | None
    new: int | None
    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        """The whole line."""
        return "".join(piece for piece, _ in self.pieces)


def compare_lines(old: str, new: str) -> list[Line]:
    """Every line of both texts, in order; of a line that changed, the old form comes first.

    Args:
        old, new: the texts, with "\\n" as their only line end.
    """
    before, after = _split(old), _split(new)
    found: list[Line] = []
    matcher = SequenceMatcher(None, before, after, autojunk=len(before) + len(after) > EXACT)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind == "equal":
            found += [
                Line(SAME, i + 1, j1 + (i - i1) + 1, ((before[i], False),)) for i in range(i1, i2)
            ]
        else:
            found += _changed(before[i1:i2], after[j1:j2], i1, j1)
    return found


def unseen(old: bytes, new: bytes, diff: Sequence[Line]) -> list[str]:
    """What is different in the bytes and not in the lines, in sentences: line ends above all."""
    before, after = _ends(old), _ends(new)
    found = []
    if before[0] != after[0]:
        found.append(f"line ends: {before[0]} → {after[0]}")
    if before[1] != after[1]:
        found.append("the last line now ends with a newline" if after[1] else
                     "the last line no longer ends with a newline")  # fmt: skip
    if not found and old != new and not is_changed(diff):
        found.append("the files differ only in bytes that are not visible as text")
    return found


def _ends(text: bytes) -> tuple[str, bool]:
    crlf, cr, lf = text.count(b"\r\n"), text.count(b"\r"), text.count(b"\n")
    counts = {"LF": lf - crlf, "CR LF": crlf, "CR": cr - crlf}
    used = [name for name, count in counts.items() if count]
    how = (
        " and ".join(f"{counts[name]} {name}" for name in used) if len(used) > 1 else "".join(used)
    )
    return how or "none", not text or text.endswith((b"\n", b"\r"))


def is_changed(diff: Sequence[Line]) -> bool:
    """Whether anything is different."""
    return any(line.sign != SAME for line in diff)


def hunks(diff: Sequence[Line], context: int = 3) -> list[list[Line]]:
    """The changed places, each with some unchanged lines around it."""
    changed = [place for place, line in enumerate(diff) if line.sign != SAME]
    found: list[list[Line]] = []
    end = -1
    for place in changed:
        first, last = max(place - context, 0), min(place + context, len(diff) - 1)
        if found and first <= end + 1:
            found[-1] += diff[end + 1 : last + 1]
        else:
            found.append([*diff[first : last + 1]])
        end = max(end, last)
    return found


def changed_sections(diff: Sequence[Line]) -> list[str]:
    """The headings below which something changed, in order, each once."""
    found: dict[str, None] = {}
    heading = ""
    for line in diff:
        title = re.match(r"#{1,6}\s+(.*?)\s*#*\s*$", line.text)
        if title and line.sign != OLD:
            heading = title[1]
        if line.sign != SAME and line.text.strip():
            found.setdefault(heading)
    return [title for title in found if title]


def _split(text: str) -> list[str]:
    split = text.split("\n")
    return split[:-1] if split and not split[-1] else split


def _changed(old: list[str], new: list[str], i: int, j: int) -> list[Line]:
    """Lines that were exchanged: two that are alike stand together, compared word by word."""
    found: list[Line] = []
    gone: list[Line] = []
    come: list[Line] = []
    for place in range(max(len(old), len(new))):
        both = place < len(old) and place < len(new)
        pair = _words(old[place], new[place]) if both else None
        if pair:
            found += [*gone, *come]
            found.append(Line(OLD, i + place + 1, None, pair[0]))
            found.append(Line(NEW, None, j + place + 1, pair[1]))
            gone, come = [], []
            continue
        if place < len(old):
            gone.append(Line(OLD, i + place + 1, None, ((old[place], True),)))
        if place < len(new):
            come.append(Line(NEW, None, j + place + 1, ((new[place], True),)))
    return [*found, *gone, *come]


def _words(old: str, new: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]] | None:
    """Two forms of a line by their words; None where they have too little in common."""
    before, after = _TOKEN.findall(old), _TOKEN.findall(new)
    if not before or not after or len(before) > _WORDS or len(after) > _WORDS:
        return None
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return None
    left: list[Piece] = []
    right: list[Piece] = []
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        changed = kind != "equal"
        if i2 > i1:
            left.append(("".join(before[i1:i2]), changed))
        if j2 > j1:
            right.append(("".join(after[j1:j2]), changed))
    return tuple(left), tuple(right)


_WORD = re.compile(r"\w{4,}")

_SHARE = 0.5  # of a request's words that must stand in what changed

_FEWEST = 2

_COMMON = frozenset(
    {
        "about", "also", "been", "change", "does", "each", "every", "from", "have", "into", "make",
        "must", "name", "need", "never", "only", "other", "please", "section", "should", "that",
        "their", "them", "then", "there", "these", "they", "this", "those", "what", "when",
        "where", "which", "will", "with", "would", "your",
    }
)  # fmt: skip


class Touched(NamedTuple):
    """A request, and why it counts as touched: ``section`` it names, else ``words`` it shares."""

    request: Request
    section: str
    words: tuple[str, ...]

    @property
    def reason(self) -> str:
        """Why, in words."""
        if self.section:
            return f"it names the section “{self.section}”"
        return f"shared words: {', '.join(self.words)}"


def touched(requests: Sequence[Request], diff: Sequence[Line]) -> list[Touched]:
    """The requests that a revision touched, in their order.

    Args:
        requests: of the reviews between the two versions.
        diff: of the two versions, see `acp_core.history.versions.compare_lines`.
    """
    sections = [(title, _folded(title)) for title in changed_sections(diff)]
    changed = _words_by_stem("\n".join(line.text for line in diff if line.sign != SAME))
    new = _folded("\n".join(line.text for line in diff if line.sign == NEW))
    found = []
    for request in requests:
        text = _folded(request.text)
        if text in new:  # this is where it was asked for
            continue
        named = [
            t for t, folded in sections if folded and re.search(rf"\b{re.escape(folded)}\b", text)
        ]
        if named:
            found.append(Touched(request, max(named, key=len), ()))
            continue
        words = _words_by_stem(request.text)
        shared = tuple(word for stem, word in words.items() if stem in changed)
        if len(shared) >= _FEWEST and len(shared) >= _SHARE * len(words):
            found.append(Touched(request, "", shared))
    return found


def _folded(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _words_by_stem(text: str) -> dict[str, str]:
    """The words that say something, by their stems."""
    words = [word for word in _WORD.findall(text.casefold()) if word not in _COMMON]
    return {_stem(word): word for word in words}


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word
