"""Agents that find each other on a network: here over the loopback interface."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.protocols.wire.network import lan
from acp_core.protocols.wire.network.lan import GROUP, PORT, Announcement, Heard
from acp_core.protocols.wire.schema.basics import is_name
from tests.protocols.wire.support import OWNER, PATIENCE, ROOT, Process, until

HERE = ("--host", "0.0.0.0", "--mdns-interface", "127.0.0.1")
ANY = ("--port", "0", "--http-port", "0", "--sync", "normal")
SPECIFIED = b'ACP1{"v":1,"name":"A","tok":"tok_1","wp":7801,"hp":7901}'


def shout(*said: bytes) -> None:
    """Send datagrams as any host could."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        for data in said:
            one.sendto(data, (GROUP, PORT))


@pytest.fixture
def ears() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
            one.setsockopt(socket.SOL_SOCKET, option, 1)
        one.bind((GROUP, PORT))
        place = socket.inet_aton(GROUP) + socket.inet_aton("127.0.0.1")
        one.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, place)
        one.settimeout(PATIENCE)
        yield one


def heard_by(agent: Process, path: str = "/discover") -> dict[str, Any]:
    shown = {"authorization": f"Bearer {agent.owner_token}"}
    answer = httpx.get(
        f"{agent.url}{path}", headers=shown, trust_env=False, auth=OWNER, timeout=PATIENCE
    )
    assert answer.status_code == 200, answer.text
    content: dict[str, Any] = answer.json()
    return content


def named(agent: Process, name: str) -> dict[str, Any] | None:
    told = heard_by(agent)
    assert told["peers"] == told["lan_peers"]
    return next((each for each in told["peers"] if each["name"] == name), None)


def test_the_datagram_is_the_specified_one() -> None:
    said = Announcement("A", "tok_1", 7801, 7901)
    assert lan.write_datagram(said) == SPECIFIED
    assert lan.read_datagram(SPECIFIED) == said
    assert lan.read_datagram(SPECIFIED[:-1] + b',"more":[1]}') == said  # what is unknown is ignored
    long = Announcement("\U0001f600" * 64, "t" * 128, 65535, 65535)
    assert len(lan.write_datagram(long)) <= lan.LARGEST
    assert lan.read_datagram(lan.write_datagram(long)) == long


def test_agents_hear_of_each_other_and_tokens_stay_at_home(ears: socket.socket) -> None:
    quiet = Process("Quiet", *ANY, *HERE, "--advertise-mdns")
    open_ = Process("Open", *ANY, *HERE, "--advertise-token")
    with quiet:
        while b'"Quiet"' not in (data := ears.recv(2048)):
            pass
        ports = int(quiet.link.rsplit(":", 1)[1].split("/")[0]), int(quiet.url.rsplit(":", 1)[1])
        assert json.loads(data[4:]) == dict(
            zip(("v", "name", "tok", "wp", "hp"), (1, "Quiet", "", *ports), strict=True)
        )
        with open_:
            found = until(lambda: named(quiet, "Open"), "that Quiet hears of Open")
            assert found["link"].endswith(open_.link.rsplit(":", 1)[1])
            assert (found["ws_port"], found["ip"]) == (parse_port(open_.link), "127.0.0.1")
            assert named(quiet, "Quiet") is None  # nobody finds itself
            assert heard_by(quiet)["mdns_active"] is True
            assert heard_by(quiet, "/card")["capabilities"]["lan_discovery"] is True
            hostile = [
                SPECIFIED.replace(b'"A"', b'"evil\\u001b[31m"'),
                SPECIFIED.replace(b"7801", b"0"),
                SPECIFIED.replace(b"7801", b"true"),
                SPECIFIED.replace(b"tok_1", b"../x"),
                SPECIFIED.replace(b'"v":1', b'"v":2'),
                b"ACP1" + b"[" * 1000,
                b"ACP1\xff",
                b"ACP1",
                b"",
                SPECIFIED + b" " * 5000,
            ]
            shout(*hostile * 10)
            good = SPECIFIED.replace(b'"A"', b'"After"').replace(b"7801", b"7701")
            after = until(lambda: shout(good) or named(quiet, "After"), "that it still hears")
            assert after["link"] == "acp://127.0.0.1:7701/tok_1"
            names = {each["name"] for each in heard_by(quiet)["peers"]}
            assert not {name for name in names if "evil" in name or name == "A"}
            assert heard_by(quiet, "/status")["peer_count"] == 0  # it connects to nobody by itself


def parse_port(link: str) -> int:
    return int(link.rsplit(":", 1)[1].split("/")[0])


@pytest.mark.slow
def test_the_command_lists_who_is_there() -> None:
    code = "import sys\nfrom acp_tui.__main__ import main\nsys.exit(main(sys.argv[1:]))"
    over = threading.Event()

    def again() -> None:
        while not over.wait(0.2):
            shout(SPECIFIED.replace(b'"A"', b'"Known"'))
            shout(b'ACP1{"v":1,"name":"Shy","tok":"","wp":8801,"hp":8901}')

    talking = threading.Thread(target=again)
    talking.start()
    try:
        for more in ((), ("--json",)):
            ran = subprocess.run(
                [sys.executable, "-c", code, "wire", "discover", "--seconds", "2",
                 "--interface", "127.0.0.1", *more],
                capture_output=True, text=True, check=True, cwd=ROOT, env={**os.environ},
            )  # fmt: skip
            if more:
                agents = json.loads(ran.stdout)["agents"]
                shy = next(each for each in agents if each["name"] == "Shy")
                assert (shy["link"], shy["token"], shy["ws_port"]) == (None, None, 8801)
            else:
                assert "Known  acp://127.0.0.1:7801/tok_1" in ran.stdout
                assert "Shy  http://127.0.0.1:8901 (token not announced)" in ran.stdout
    finally:
        over.set()
        talking.join()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--advertise-mdns",), "--host 0.0.0.0"),
        (("--host", "0.0.0.0", "--advertise-mdns", "--mdns-interface", "lo"), "IPv4"),
        (("--host", "0.0.0.0", "--advertise-token", "--mdns-interface", "192.0.2.1"), "network"),
    ],
)
def test_what_cannot_be_advertised_is_told_in_one_line(options: tuple[str, ...], said: str) -> None:
    agent = Process("A", *ANY, *options)
    with pytest.raises(AssertionError, match=said):
        agent.start()
    agent.kill()


def test_a_neighbour_is_forgotten_and_nobody_fills_the_table() -> None:
    heard = Heard()

    def say(name: str, port: int, address: str, now: float) -> object:
        return heard.add(lan.write_datagram(Announcement(name, "", port, 1)), address, now)

    assert say("Good", 7801, "10.0.0.1", 0.0)
    assert say("Good", 7801, "10.0.0.1", 1.0) is None  # nothing new
    assert say("Renamed", 7801, "10.0.0.1", 2.0)
    for n in range(1000):
        say("Flood", 1000 + n, "10.0.0.2", 3.0)
    told = heard.listed(4.0)
    assert len(told) == 1 + lan.MOST_OF_ONE
    assert told[0]["name"] == "Renamed"
    for n in range(1000):
        say("Many", 7801, f"10.1.{n // 250}.{n % 250}", 5.0)
    assert len(heard.listed(6.0)) == lan.MOST
    assert heard.listed(6.0)[0]["name"] == "Renamed"
    assert heard.listed(200.0) == []


@given(st.one_of(st.binary(max_size=1100), st.binary(max_size=200).map(lambda b: b"ACP1" + b)))
def test_whatever_comes_is_read_or_passed_over(data: bytes) -> None:
    said = lan.read_datagram(data)
    assert said is None or lan.read_datagram(lan.write_datagram(said)) == said


@given(
    st.dictionaries(
        st.sampled_from(["v", "name", "tok", "wp", "hp"]),
        st.one_of(st.just(1), st.integers(), st.text(max_size=70), st.none(), st.lists(st.none())),
    )
)
def test_whatever_the_fields_hold(fields: dict[str, Any]) -> None:
    said = lan.read_datagram(b"ACP1" + json.dumps(fields).encode())
    if said is not None:
        assert 0 < said.ws_port < 65536
        assert is_name(said.name)
