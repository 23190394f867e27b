"""In which order a command writes, syncs and renames, in sentences that can be compared.

    replace protocol.json    written beside it, synced, renamed, its folder synced
    make proposal.md         the same, and never in place of another file
    append events.jsonl      written at its end, and synced; its folder too where it is new
    remove lock              and its folder synced
    folder drafts            made, and the folder that it stands in synced

What of that is missing is said behind it, such as "(not synced)". What is named by chance or by the
time is "*"; what lies in the person's own state begins with "~". `EXPECTED` holds these sentences for every command;
`python -m tests.faults.write_order` prints them anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from tests.faults.shim import Faults
from tests.faults.writing import ALL, Writing

EXPECTED = Path(__file__).with_name("write_order.txt")
_UNFINISHED = re.compile(r"(.*/)?\.[^/]+\.[0-9a-f]{16}\.acp-tmp")
_BY_CHANCE = re.compile(
    r"\d{4}-?\d\d-?\d\dT[\d-]+Z?|(?<=turn_)[0-9a-f]+|(?<=run_)[0-9a-f]+|[0-9a-f]{8,}"
)


def record(faults: Faults, place: Path, writing: Writing) -> list[str]:
    """Prepare what a command needs in ``place``, run it, and say in which order it wrote."""
    root, state = place / "root", place / "state"
    place.mkdir(parents=True)
    writing.prepare(root)
    words = writing.words(str(root))
    ran = faults.run(*words, kind="record", env={"ACP_STATE": str(state)})
    assert ran.code == 0, (writing.name, ran)
    named = [[_named(each, root, state) for each in call.split("\0")] for call in ran.names]
    return [_BY_CHANCE.sub("*", line) for line in _sentences(named)]


def expected() -> dict[str, list[str]]:
    """What `EXPECTED` holds: the sentences of each command."""
    found: dict[str, list[str]] = {}
    for line in EXPECTED.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            lines = found.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return found


def _named(word: str, root: Path, state: Path) -> str:
    for base, sign in ((root, ""), (state, "~"), (root.parent, "../")):
        if word == str(base):
            return sign or "."
        if word.startswith(f"{base}/"):
            return sign + word[len(str(base)) + 1 :]
    return word


def _sentences(calls: list[list[str]]) -> Iterator[str]:
    left = list(reversed(calls))
    new: set[str] = set()
    while left:
        word, path, *_ = left.pop()
        if word in ("create", "write") and _UNFINISHED.fullmatch(path):
            yield _whole_file(path, left)
        elif word == "write":
            while left and left[-1] == ["write", path]:
                left.pop()
            missing = [] if _next(left, "sync", path) else ["not synced"]
            if path in new and not _folder_synced(left, path):
                missing.append("name not synced")
            new.discard(path)
            yield f"append {path}" + (f" ({', '.join(missing)})" if missing else "")
        elif word == "cut":
            yield f"cut {path}{'' if _next(left, 'sync', path) else ' (not synced)'}"
        elif word == "unlink":
            yield f"remove {path}{'' if _folder_synced(left, path) else ' (not synced)'}"
        elif word == "mkdir":
            yield f"folder {path}{'' if _folder_synced(left, path) else ' (not synced)'}"
        else:
            if word == "create":
                new.add(path)
            yield " ".join([word, path, *_])


def _whole_file(beside: str, left: list[list[str]]) -> str:
    """The calls that put one whole file in its place are taken from ``left``."""
    synced = False
    while left and left[-1][1] == beside and left[-1][0] in ("write", "sync"):
        synced = left.pop()[0] == "sync"
    if not left or left[-1][:2] not in (["rename", beside], ["link", beside]):
        return f"leave {beside}"
    word, _, path = left.pop()
    if word == "link":
        _next(left, "unlink", beside)
    missing = [] if synced else ["content not synced"]
    missing += [] if _folder_synced(left, path) else ["name not synced"]
    verb = "replace" if word == "rename" else "make"
    return f"{verb} {path}" + (f" ({', '.join(missing)})" if missing else "")


def _folder_synced(left: list[list[str]], path: str) -> bool:
    folder = os.path.dirname(path)
    if path == "~" or folder == "..":
        return _next(left, "sync", "../")
    return _next(left, "sync", folder or ("~" if path.startswith("~") else "."))


def _next(left: list[list[str]], *call: str) -> bool:
    """Whether this call comes next; then it is taken."""
    if left and left[-1] == list(call):
        left.pop()
        return True
    return False


def main() -> None:
    """Print what each command does now, as `EXPECTED` holds it."""
    import tempfile

    faults = Faults()
    with tempfile.TemporaryDirectory() as place:
        for writing in ALL:
            os.environ["ACP_STATE"] = str(Path(place) / writing.name / "own")
            lines = record(faults, Path(place) / writing.name, writing)
            print("\n".join([f"[{writing.name}]", *lines, ""]))
    faults.close()


if __name__ == "__main__":
    main()
