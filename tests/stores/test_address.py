"""What acp takes as the address of a store, and what it refuses before anything is run."""

from __future__ import annotations

import shlex

import pytest

from acp_core.model.errors import Refused
from acp_core.stores.address import BadAddress, checked_id, parse


@pytest.mark.parametrize(
    ("text", "url", "id"),
    [
        ("git@forge.example:team/r.git#a", "git@forge.example:team/r.git", "a"),
        ("git@forge.example:/srv/r.git#a", "ssh://git@forge.example/srv/r.git", "a"),
        ("git+ssh://u@host:2222/srv/r#a-1", "ssh://u@host:2222/srv/r", "a-1"),
        ("ssh://git@[::1]:22/r", "ssh://git@[::1]:22/r", ""),
        ("git@[::1]:r.git", "git@[::1]:r.git", ""),
        ("git+https://forge.example/r.git#x", "https://forge.example/r.git", "x"),
        ("/srv/r.git/#x", "file:///srv/r.git", "x"),
        ("git+file:///srv/r.git", "file:///srv/r.git", ""),
        ("postgresql://u@db/acp?sslmode=require#x", "postgresql://u@db/acp?sslmode=require", "x"),
        ("postgres:///acp?host=/run/db", "postgresql:///acp?host=/run/db", ""),
        ("postgresql://u@%2Frun%2Fdb/acp", "postgresql://u@%2Frun%2Fdb/acp", ""),
    ],
)
def test_addresses_that_people_write(text: str, url: str, id: str) -> None:
    found = parse(text)
    assert (found.url, found.id) == (url, id)
    assert parse(found.text) == found


@pytest.mark.parametrize(
    "text",
    [
        "ext::sh -c touch x", "ext::sh", "fd::17", "foo::bar", "-oProxyCommand=touch", "--upload-pack=touch",
        "ssh://-oProxyCommand=touch/r", "ssh://-l@host/r", "-l@host:r", "git@-host:r", "git://host/r", "http://host/r",
        "ftp://host/r", "file://host/r", "/srv/../r", "/srv//r", "/", "relative/path", "", "#a", "ssh://host", "ssh://host/",
        "https://u:secret@host/r", "ssh://u:secret@host/r", "postgresql://u:secret@db/acp", "postgresql:///acp?password=secret",
        "postgresql:///acp?passfile=/x", "https://host/r?x", "https://host/%2e%2e/r", "git@host:r\n", "git@host:r r",
        "git@host:r#A", "git@host:r#../x", "git@host:r#", "git@host:r#-a", "git@host:-r", "git@host:r\u202e",
        "a" * 3000,
    ],
)  # fmt: skip
def test_addresses_that_are_refused(text: str) -> None:
    with pytest.raises(BadAddress) as caught:
        parse(text)
    assert isinstance(caught.value, Refused)
    said = str(caught.value)
    assert "secret" not in said and "\n" not in said and len(said) < 500


@pytest.mark.parametrize("id", ["A", "", "a/b", "..", "a" * 65, "-a", "a.b", "ä"])
def test_ids_that_are_refused(id: str) -> None:
    with pytest.raises(BadAddress):
        checked_id(id)


def test_an_address_is_printed_as_a_shell_takes_it() -> None:
    for text, typed in (
        ("git@forge.example:team/r.git#a", "git@forge.example:team/r.git#a"),
        ("ssh://git@[::1]:22/r", "'git+ssh://git@[::1]:22/r'"),
        ("postgresql://anna@db/team?sslmode=verify-full&x=1#a", "'postgresql://anna@db/team?sslmode=verify-full&x=1#a'"),
    ):  # fmt: skip
        assert parse(text).typed == typed
        assert shlex.split(f"acp join {typed} FOLDER") == [
            "acp",
            "join",
            parse(text).text,
            "FOLDER",
        ]
