"""Collaborations are found under the given paths, also those that come later."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from acp_core.protocols import registry
from acp_core.protocols.discovery import Explorer, discover, identify
from tests.support import toy


@pytest.fixture(autouse=True)
def only_toys(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    toy.register(monkeypatch, tmp_path_factory.mktemp("site"), alone=True)


def keys(*folders: Path) -> list[str]:
    return [str(folder) for folder in folders]


def found(*paths: Path, **bounds: int) -> list[str]:
    return [one.key for one in discover(paths, **bounds).found]


# --- one look ------------------------------------------------------------------------------


def test_finds_a_given_folder_and_those_below_it_the_upper_ones_first(tmp_path: Path) -> None:
    deep = toy.make(tmp_path / "a" / "b" / "c")
    near = toy.make(tmp_path / "z")
    assert found(tmp_path) == keys(near, deep)
    assert found(near) == keys(near)


def test_looks_into_collaborations_too_for_they_may_hold_others(tmp_path: Path) -> None:
    whole = toy.make(tmp_path / "whole")
    part = toy.make(whole / "parts" / "part")
    assert found(tmp_path) == keys(whole, part)


def test_leaves_out_what_is_too_deep_and_what_is_never_looked_into(tmp_path: Path) -> None:
    toy.make(tmp_path / "a" / "b" / "c")
    toy.make(tmp_path / "node_modules" / "x")
    toy.make(tmp_path / ".git" / "x")
    assert found(tmp_path, depth=2) == []
    assert found(tmp_path, depth=3) == keys(tmp_path / "a" / "b" / "c")


def test_finds_each_once_where_paths_overlap_or_lead_to_the_same(tmp_path: Path) -> None:
    one = toy.make(tmp_path / "a" / "one")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "a")
    assert found(tmp_path, tmp_path / "a", one, tmp_path / "a" / "..") == keys(one)
    assert found(tmp_path / "a", link) == keys(one)
    assert found(link) == keys(link / "one")  # under the name that was given


def test_does_not_follow_links_below_a_path(tmp_path: Path) -> None:
    toy.make(tmp_path / "outside" / "one")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path / "outside")
    (inside / "loop").symlink_to(inside)
    assert found(inside) == []


def test_stops_at_its_bound_and_says_so(tmp_path: Path) -> None:
    for number in range(5):
        toy.make(tmp_path / str(number))
    assert not discover([tmp_path], limit=6).cut
    few = discover([tmp_path], limit=3)
    assert few.cut
    assert [Path(one.key).name for one in few.found] == ["0", "1"]
    assert len(few.explored_folders) == 3


def test_says_why_a_path_could_not_be_listed(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    problems = discover([tmp_path / "none", file]).problems
    assert problems[str(tmp_path / "none")] == "No such file or directory"
    assert problems[str(file)] == "Not a directory"


def test_identify_speaks_of_this_very_folder_only(tmp_path: Path) -> None:
    toy.make(tmp_path / "one")
    known = tuple(registry.installed())
    assert identify(tmp_path, known) is None
    assert identify(tmp_path / "none", known) is None
    one = identify(tmp_path / "x" / ".." / "one", known)
    assert one is not None
    assert one.protocol.name == "toy"
    assert one.open().key == str(tmp_path / "one")


def test_a_faulty_protocol_does_not_hide_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty = registry.Protocol("faulty", "Faulty", ("toy.json",), "nowhere:detect", "nowhere:open")
    monkeypatch.setattr(registry, "bundled", lambda: iter([faulty]))
    one = toy.make(tmp_path / "one")
    assert [(f.key, f.protocol.name) for f in discover([tmp_path]).found] == [(str(one), "toy")]


# --- looking again -------------------------------------------------------------------------


def explorer(*paths: Path, depth: int = 4, limit: int = 20_000) -> Explorer:
    explorer = Explorer(paths, depth=depth, limit=limit)
    list(explorer.explore())
    return explorer


def test_a_new_collaboration_is_found_where_something_appeared(tmp_path: Path) -> None:
    toy.make(tmp_path / "old")
    known = explorer(tmp_path)
    new = toy.make(tmp_path / "a" / "new")
    changes = known.explore_entries([tmp_path / "a"])
    assert ([one.key for one in changes.appeared], changes.vanished) == (keys(new), [])
    assert new in known.explored_folders
    assert known.explore_entries([tmp_path / "a"]) == ([], [])


def test_a_folder_becomes_a_collaboration_and_ceases_to_be_one(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    folder.mkdir()
    known = explorer(tmp_path)
    toy.make(folder)
    assert [one.key for one in known.explore_entries([folder / "toy.json"]).appeared] == keys(
        folder
    )
    (folder / "toy.json").unlink()
    assert known.explore_entries([folder / "toy.json"]).vanished == keys(folder)


def test_what_stood_in_a_removed_folder_has_vanished(tmp_path: Path) -> None:
    one, other = toy.make(tmp_path / "a" / "one"), toy.make(tmp_path / "ab" / "other")
    known = explorer(tmp_path)
    shutil.rmtree(tmp_path / "a")
    assert known.explore_entries([tmp_path / "a"]) == ([], keys(one))
    assert [found.key for found in known.discovery.found] == keys(other)
    toy.make(one)
    assert [found.key for found in known.explore_entries([tmp_path / "a"]).appeared] == keys(one)


def test_a_renamed_folder_vanishes_and_appears(tmp_path: Path) -> None:
    one = toy.make(tmp_path / "one")
    known = explorer(tmp_path)
    one.rename(tmp_path / "two")
    changes = known.explore_entries([one, tmp_path / "two"])
    assert [found.key for found in changes.appeared] == keys(tmp_path / "two")
    assert changes.vanished == keys(one)


def test_looking_everywhere_again_finds_what_nobody_told_of(tmp_path: Path) -> None:
    one = toy.make(tmp_path / "a" / "one")
    known = explorer(tmp_path)
    assert known.explore_again() == ([], [])
    two = toy.make(tmp_path / "a" / "b" / "two")
    shutil.rmtree(one)
    changes = known.explore_again()
    assert [found.key for found in changes.appeared] == keys(two)
    assert changes.vanished == keys(one)


def test_a_change_in_the_same_tick_of_the_file_systems_clock_is_found(tmp_path: Path) -> None:
    """Where clocks are coarse, what comes just after a look bears the time of what came before."""
    os.utime(tmp_path)
    before = tmp_path.stat()
    looking = explorer(tmp_path)
    one = toy.make(tmp_path / "one")
    os.utime(tmp_path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert [found.key for found in looking.explore_again().appeared] == keys(one)


def test_a_path_that_does_not_exist_yet_is_waited_for(tmp_path: Path) -> None:
    known = explorer(tmp_path / "later")
    assert str(tmp_path / "later") in known.problems
    one = toy.make(tmp_path / "later" / "one")
    assert [found.key for found in known.explore_again().appeared] == keys(one)
    assert known.problems == {}
    shutil.rmtree(tmp_path / "later")
    assert known.explore_again().vanished == keys(one)
    assert str(tmp_path / "later") in known.problems


def test_files_that_mean_nothing_cost_no_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy.make(tmp_path / "one")
    known = explorer(tmp_path)
    listed: list[object] = []
    monkeypatch.setattr(os, "scandir", lambda path: listed.append(path))
    (tmp_path / "one" / "notes.md").write_text("")
    (tmp_path / "output.o").write_text("")
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "node_modules").mkdir()
    noticed = [tmp_path / "one" / "notes.md", tmp_path / "output.o"]
    known.explore_entries([*noticed, tmp_path / "link", tmp_path / "node_modules"])
    assert listed == []


def test_the_bounds_hold_for_what_comes_later(tmp_path: Path) -> None:
    known = explorer(tmp_path, depth=2, limit=4)
    toy.make(tmp_path / "a" / "b" / "c")
    assert known.explore_entries([tmp_path / "a"]).appeared == []
    assert tmp_path / "a" / "b" / "c" not in known.explored_folders
    for number in range(5):
        toy.make(tmp_path / str(number))
    assert len(known.explore_again().appeared) == 1
    assert known.cut
