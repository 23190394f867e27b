"""Where promises are kept: the files that are changed, and the guards that are always taken away."""

from __future__ import annotations

from typing import NamedTuple

ROOMS = (
    "acp_core/files/*.py",
    "acp_core/protocols/*/state.py", "acp_core/protocols/*/state/**/*.py",
    "acp_core/protocols/*/write/**/*.py", "acp_core/protocols/kit/guard.py",
    "acp_core/protocols/folder/read/checkpoint.py",
    "acp_core/protocols/wire/write.py", "acp_core/protocols/wire/serving/http.py",
    "acp_core/protocols/wire/network/links.py", "acp_core/protocols/wire/network/client.py",
)  # fmt: skip
"""The files of which a sample of changes is made."""

GUARDS = (
    "acp_core/files/atomic.py", "acp_core/files/claims.py", "acp_core/files/locked.py",
    "acp_core/protocols/cycle/matters.py", "acp_core/protocols/cycle/write/store.py",
    "acp_core/protocols/folder/read/checkpoint.py",
    "acp_core/protocols/folder/matters/causes.py", "acp_core/protocols/folder/rules/unrecoverable_log.py",
    "acp_core/protocols/governed/rules/guard.py", "acp_core/protocols/governed/read/own_writes.py",
    "acp_core/protocols/kit/guard.py",
    "acp_core/protocols/wire/serving/http.py", "acp_core/protocols/wire/matters.py",
    "acp_core/protocols/workspaces/write/step.py",
)  # fmt: skip
"""The files of which every guard is taken away in every run: what stands before each write, who
conducts and who asks, the syncs and locks that writes rely on, and what keeps a copy from being believed."""


class Undefended(NamedTuple):
    """A guard that no test defended once, and which is therefore taken away in every run.

    Attributes:
        path: Its file.
        was: Its text, which stands there once.
        becomes: What stands there without it.
        test: The test that defends it now, and is tried first.
    """

    path: str
    was: str
    becomes: str
    test: str


UNDEFENDED = (
    Undefended(
        "acp_core/files/locked.py", "if _is_still(path, fd):", "if True:",
        "tests/files/test_locked.py::test_a_log_that_is_replaced_while_its_lock_is_waited_for_gets_the_event",
    ),
    Undefended(
        "acp_core/files/locked.py", "if self.size() != end:", "if False:",
        "tests/files/test_locked.py::test_an_event_that_cannot_be_synced_is_not_taken_back_from_under_anothers",
    ),
    Undefended(
        "acp_core/files/atomic.py", "        sync(fd)", "        pass",
        "tests/files/test_atomic.py::test_what_cannot_be_replaced_leaves_the_old_and_nothing_beside_it[fsync]",
    ),
    Undefended(
        "acp_core/files/atomic.py",
        "said = settle(fd, target, private=private)\n            write_all(fd, data)\n            if sync:",
        "said = settle(fd, target, private=private)\n            write_all(fd, data)\n            if False:",
        "tests/files/test_atomic.py::test_what_cannot_be_replaced_leaves_the_old_and_nothing_beside_it[fsync]",
    ),
    Undefended(
        "acp_core/model/text.py", r'_BIDIRECTIONAL = "\u061c', '_BIDIRECTIONAL = "',
        "tests/model/test_text.py::test_each_sign_that_does_harm_is_seen_even_alone",
    ),
    Undefended(
        "acp_core/files/requests.py", "values, found.st_uid, account)", "values, os.getuid(), account)",
        "tests/files/test_requests.py::test_who_asks_is_the_owner_of_the_file_and_a_link_is_nobodys",
    ),
    Undefended(
        "acp_core/protocols/folder/write/append.py", "            edit.undo()", "            pass",
        "tests/protocols/folder/test_edits.py::test_an_event_that_cannot_be_written_takes_its_review_back_with_it",
    ),
    Undefended(
        "acp_core/protocols/folder/read/facts.py", "and not self._again:", "and True:",
        "tests/protocols/folder/test_following.py::test_two_edits_within_one_tick_of_the_clock_are_both_seen",
    ),
    Undefended(
        "acp_core/protocols/folder/read/facts.py", "and not self._protocol_again:", "and True:",
        "tests/protocols/folder/test_following.py::test_two_changes_of_protocol_json_within_one_tick_are_both_seen",
    ),
    Undefended(
        "acp_core/protocols/cycle/collaboration.py", "and not due and not doubt:", "and not due:",
        "tests/protocols/test_one_tick.py::test_both_changes_are_seen[the state of a cycle]",
    ),
    Undefended(
        "acp_core/protocols/workspaces/collaboration.py", "and not due and not doubt:", "and not due:",
        "tests/protocols/test_one_tick.py::test_both_changes_are_seen[a status of an agent with a workspace]",
    ),
    Undefended(
        "acp_core/protocols/governed/view/reader.py", "and not due and not doubt:", "and not due:",
        "tests/protocols/test_one_tick.py::test_both_changes_are_seen[the configuration of a governed run]",
    ),
    Undefended(
        "acp_core/fleet/readings.py",
        "        member.queued = False  # before reading: what changes from here on is read again\n"
        "        if member.away:\n            return\n"
        "        snapshot = member.refresh(self._clock())\n",
        "        if member.away:\n            return\n"
        "        snapshot = member.refresh(self._clock())\n        member.queued = False\n",
        "tests/fleet/test_readings.py::test_what_changes_while_it_is_read_is_read_again",
    ),
)  # fmt: skip
"""Each of them was taken away, and every test near it passed."""


def is_guard(path: str, kind: str) -> bool:
    """Whether a change is made in every run."""
    return path in GUARDS and kind == "guard"
