"""What agents of this protocol have been seen to do wrong, and which test holds that ours does not.

The list is in words; a test checks that each test that it names exists. What no other file tests
stands below.
"""

from __future__ import annotations

import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from acp_core.protocols.wire.network.agent_directory import folder_of
from tests.protocols.wire.support import Process, acp, refused, served, until
from tests.support.private import open_to_others

COVERED = {
    # Who may ask.
    "A web page lets its browser connect peers, register webhooks, or read messages and the link": (
        "test_web_pages_are_not_let_in", "test_no_answer_invites_a_web_page",
        "test_too_many_requests_are_sent_away",
    ),
    "Any program on the machine, or the network, uses the whole interface without a token": (
        "test_an_agent_that_others_can_reach_asks_for_a_token", "test_tokens_tell_who_asks",
    ),
    "The agent is made to ask other machines: webhooks, files, a search for neighbours": (
        "test_nothing_is_posted_to_strangers", "test_a_file_is_a_web_address",
        "test_no_endpoint_looks_for_machines",
    ),
    "A token is guessed byte by byte, or travels to where it is not needed": (
        "test_only_who_knows_the_token_is_let_in", "test_agents_hear_of_each_other_and_tokens_stay_at_home",
        "test_a_token_goes_to_no_other_host",
    ),
    # What is told.
    "Webhooks are taken and never fire": ("test_what_happens_is_posted",),
    "Events come a second late, or not at all while a connection is kept": (
        "test_events_come_as_they_happen", "test_clients_that_read_in_blocks_see_each_event_at_once",
    ),
    "One open stream holds up everybody, or a thousand are not served": (
        "test_a_follower_that_does_not_read_holds_up_nobody", "test_a_thousand_follow_at_once",
    ),
    "What happened while a stream was broken is lost, or comes twice, after a restart as well": (
        "test_what_was_missed_comes_again_and_nothing_twice",
        "test_a_follower_of_a_killed_agent_goes_on_where_it_was",
    ),
    # Signatures.
    "A message to one peer lacks the signature, the identity or its context": (
        "test_a_message_to_one_peer_is_signed_and_keeps_its_context",
    ),
    "An unsigned message passes for a signed one where a secret is shared": (
        "test_signatures_are_verified_and_told", "test_what_was_changed_or_is_no_signature_is_told",
    ),
    "A bad HMAC makes a good Ed25519 signature count as bad": ("test_both_signatures_hold_together",),
    "A sender says of itself that it was verified": (
        "test_flags_of_the_receiver_cannot_be_sent", "test_flags_from_outside_are_taken_off",
    ),
    "Another key, or a copied card, is taken for a known peer": (
        "test_a_copied_card_is_not_enough", "test_another_key_for_a_known_peer_is_refused_and_told",
    ),
    "A message is dropped because its time is an old one": ("test_an_old_message_is_not_dropped",),
    # Peers.
    "One peer that leaves makes the others count as gone": ("test_a_stranger_s_fault_touches_nobody_else",),
    "Connecting again makes second entries, second connections, and ghosts that stay": (
        "test_one_connection_although_both_call_again_and_again",
    ),
    "Three agents do not find together, or a message goes to whoever came last": (
        "test_three_agents_and_a_choice", "test_three_agents_one_of_them_knows_both",
    ),
    "After a restart the link is another one, and nobody connects again": (
        "test_an_agent_comes_back_at_the_same_place", "test_a_host_of_an_older_version_is_dialled_again",
    ),
    "Counters of received messages stay at zero": ("test_messages_go_both_ways_over_one_connection",),
    "A link that is none is taken": ("test_what_is_no_link", "test_connecting_to_what_is_no_agent"),
    # Delivery.
    "A message to who is away is refused and queued as well, twice, or to whoever comes first": (
        "test_a_peer_that_was_away_gets_everything_once_and_in_order",
        "test_another_agent_at_a_peer_s_link_gets_nothing_of_its_queue",
    ),
    "A queue in memory drops the oldest without a word": (
        "test_too_much_for_one_peer_is_refused_before_it_is_taken", "test_ten_thousand_messages_with_kills_at_random",
    ),
    "A message counts as sent although the peer had died": ("test_ten_thousand_messages_with_kills_at_random",),
    "Sends at the same time break the connection": ("test_many_send_at_once_over_one_connection",),
    "The answer to a send lacks its server_seq, and a repeated one gets another": (
        "test_a_message_from_somebody_else_arrives_once",
    ),
    "A relay can be read and not written, and lists its rooms to everybody": (
        "test_what_is_sent_while_the_relay_or_the_peer_is_gone_arrives_once",
        "test_rooms_are_not_listed_and_not_taken_over",
    ),
    # Malformed and endless things.
    "A frame that is a list, or has fields of other kinds, ends the connection": (
        "test_a_bad_frame_ends_nothing", "test_a_bad_frame_is_answered_and_the_connection_goes_on",
    ),
    "A malformed body is answered with 500, or not at all": (
        "test_any_body", "test_any_query", "test_each_endpoint_answers_as_its_description_says",
        "test_what_is_no_http_is_refused_as_everything_else_is",
    ),
    "A body without end, or one that never comes, is read for ever": (
        "test_a_body_that_does_not_come_holds_up_nobody", "test_a_message_that_is_too_large_is_named",
        "test_who_never_asks_is_not_waited_for", "test_only_so_many_connections_are_held",
    ),
    "Histories are read whole at each request and grow without bounds": (
        "test_pages_follow_each_other", "test_what_is_no_longer_kept_is_told",
    ),
    "What arrived stands in a file that others can read, shared by agents of the same name": (
        "test_what_an_agent_keeps_is_for_its_owner_alone", "test_one_name_stands_for_one_process",
    ),
    # Tasks.
    "A task takes any state, and goes on after its end": (
        "test_the_transitions_of_a_task", "test_a_task_of_ones_own_goes_through_its_life",
    ),
    "Any peer changes any task": ("test_a_task_lives_on_both_sides",),
    "A canceled task counts as failed": ("test_a_task_is_canceled_once_and_stays_so",),
    "The id that a client gives to a task is not used": ("test_a_message_with_an_unknown_task_makes_one",),
    "Tasks cannot be filtered by their peer": ("test_tasks_are_found_by_their_peer",),
    "A message without a role is taken": ("test_full_messages_need_a_role",),
    # Older ones.
    "Agents of the older form are not understood": (
        "test_an_older_agent_connects_and_is_understood", "test_frames_of_the_older_form_are_taken",
    ),
}  # fmt: skip


def test_each_test_of_the_list_exists() -> None:
    there = {
        name
        for path in Path(__file__).parent.glob("test_*.py")
        for name in re.findall(r"^ *def (test_\w+)\(", path.read_text(encoding="utf-8"), re.M)
    }
    named = {name for names in COVERED.values() for name in names}
    assert sorted(named - there) == []


def test_no_endpoint_looks_for_machines(tmp_path: Path) -> None:
    with served(tmp_path) as agent:
        answer = agent.http.get("/peers/discover", params={"subnet": "10.0.0.0/24"})
        refused(answer, 404, "ERR_NOT_FOUND")
        assert agent.get("/discover")["lan_peers"] == []


def test_a_message_to_one_peer_is_signed_and_keeps_its_context(tmp_path: Path) -> None:
    keys = {name: str(tmp_path / f"{name}.json") for name in "AB"}
    with (
        served(tmp_path, "A", secret="s", identity=keys["A"]) as a,
        served(tmp_path, "B", secret="s", identity=keys["B"]) as b,
    ):
        peer = a.meet(b)
        a.post(f"/peer/{peer}/send", {"text": "x", "context_id": "c", "task_id": "t1"})
        until(lambda: b.get("/messages")["messages"], "the message")
        came = b.get("/messages")["messages"][0]
        assert (came["context_id"], came["task_id"]) == ("c", "t1")
        assert came["sig"]
        assert came["_ed25519_verified"] is True
        assert not any(flag in came for flag in ("_sig_invalid", "_sig_missing"))


def test_an_old_message_is_not_dropped(tmp_path: Path) -> None:
    with served(tmp_path, secret="s") as agent:
        body = {"text": "old", "from": "B", "ts": "2020-01-01T00:00:00Z"}
        assert agent.post("/message:send", body).status_code == 200
        assert agent.get("/messages")["messages"][0]["ts"] == "2020-01-01T00:00:00Z"


def test_many_send_at_once_over_one_connection(tmp_path: Path) -> None:
    with served(tmp_path, "A") as a, served(tmp_path, "B") as b:
        peer = a.meet(b)
        with ThreadPoolExecutor(16) as pool:
            answers = list(
                pool.map(lambda n: a.post(f"/peer/{peer}/send", {"text": f"{n}"}), range(160))
            )
        assert {each.status_code for each in answers} == {200}
        until(lambda: b.get("/messages")["total"] == 160, "all messages")
        connected = b.get("/peers")
        assert [each["connected"] for each in connected] == [True]
        assert connected[0]["messages_received"] == 160


def test_tasks_are_found_by_their_peer(tmp_path: Path) -> None:
    with served(tmp_path, "A") as a, served(tmp_path, "B") as b:
        peer = a.meet(b)
        a.post("/tasks", {"text": "own"})
        task = a.post("/tasks", {"text": "theirs", "delegate": True}).json()
        assert [each["id"] for each in a.get("/tasks", peer_id=peer)] == [task["id"]]
        assert a.get("/tasks", peer_id="peer_999") == []


def test_what_an_agent_keeps_is_for_its_owner_alone(tmp_path: Path) -> None:
    with served(tmp_path) as agent:
        agent.post("/message:send", {"text": "private", "from": "B"})
        for path in agent.agent.store.path.parent.glob("wire.sqlite3*"):
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    with Process("A", "--port", "0", "--http-port", "0", "--on-message", "echo done") as process:
        assert acp("wire", "send", "A", "private", "--from", "owner")[0] == 0
        until(lambda: (folder_of("A") / "answers").exists(), "the answer")
        assert acp("show", process.link)[0] == 0
    assert open_to_others() == []


@pytest.mark.parametrize("words", ["acp.evil", "../../etc"])
def test_a_name_is_no_path(tmp_path: Path, words: str) -> None:
    from acp_core.protocols.wire.network import agent_directory

    assert agent_directory.folder_of(words).parent == agent_directory.folder_of("plain").parent
