"""What a sample must not hold: what belongs to the machine on which it was recorded."""

from __future__ import annotations

import os
import pwd
import re
import sqlite3
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_SECRETS = (rb"PRIVATE KEY", rb"SCRAM-SHA", rb"password=", rb"(?:tok|own)_(?!0{8})[0-9a-f]{8}")
_PLACES = (rb"/tmp/", rb"/var/tmp", rb"/dev/shm", rb"/Users/", rb"/home/(?!me\b)")


def found(tree: Path, *paths: str) -> list[str]:
    """The files below ``tree`` in which something of this machine stands, with what it is.

    Args:
        tree: the sample, unpacked as it is in its archive.
        paths: paths of this machine, besides those that any test of acp knows.
    """
    account, host = (
        re.escape(each) for each in (pwd.getpwuid(os.getuid()).pw_name, os.uname().nodename)
    )
    names = (
        rf'(?:": ?|\(){each}["\)]|{each}@|"{each}-\d' for each in (f'"?{account}', f'"?{host}')
    )
    here = [re.escape(each) for each in (str(ROOT), os.path.expanduser("~"), *paths)]
    words = re.compile(
        b"|".join([*_SECRETS, *_PLACES, *(each.encode() for each in (*names, *here))])
    )
    return [
        f"{name}: {match[0].decode(errors='replace')}"
        for name, data in _texts(tree)
        if (match := words.search(data))
    ]


def _texts(tree: Path) -> Iterator[tuple[str, bytes]]:
    """Everything that is in it: names, links, files, what recordings keep, and objects of git."""
    for path in sorted(tree.rglob("*")):
        name = str(path.relative_to(tree))
        if "/skills/" in name:  # acp's own modules
            continue
        yield name, os.readlink(path).encode() if path.is_symlink() else name.encode()
        if path.is_file():
            yield name, path.read_bytes()
        if path.suffix == ".recording":
            with closing(sqlite3.connect(path)) as db:
                yield from (
                    (name, zlib.decompress(each))
                    for (each,) in db.execute("SELECT packed FROM content")
                )
    for repository in (tree / "store.git", tree / "work/lamp/.git"):
        words = ("git", "--git-dir", repository, "cat-file", "--batch-all-objects", "--batch")
        yield repository.name, subprocess.run(words, capture_output=True, check=True).stdout
