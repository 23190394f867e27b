"""Signatures agree with what other programs compute, and a bad one is told, not dropped."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core.protocols.wire.collaboration import open_agent as open_wire
from acp_core.protocols.wire.network import identity as network_identity
from acp_core.protocols.wire.network.identity import IdentityError, load_or_make, of_seed, verifies
from acp_core.protocols.wire.schema import basics
from acp_core.protocols.wire.schema.basics import Json, now_text
from tests.protocols.wire.support import served

# RFC 8032, section 7.1, tests 1 to 3: seed, public key, message, signature.
RFC_8032 = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
]
SEED = bytes.fromhex(RFC_8032[0][0])
KEY = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
MESSAGE: Json = {
    "type": "acp.message",
    "message_id": "msg_1",
    "server_seq": 42,
    "ts": "2026-03-21T07:00:00Z",
    "from": "AgentA",
    "role": "user",
    "parts": [{"type": "text", "content": "Grüße"}],
}
# `openssl pkeyutl -sign -rawin` with the key of RFC 8032, test 1, over the canonical JSON.
PLAIN = "bJBGmre2OUHBdFIhJyxjURNuNRUM0J3eOExtPWiNmi3XcH4RUc_l2eCOy-kYe6Y_n7HItQZTVVJymzTJ642mAw"
ASCII = "d6zpgFbhiA_x5x6eGxCYnArOx_rtZIYHY6uLwA3as7wJUt5A0ANtHyJacduQVVLfNRlzDjjxnmVZIsBfrhnnAA"


def signed(signature: str, **changes: object) -> Json:
    block = {"scheme": "ed25519", "public_key": KEY, "sig": signature}
    return {**MESSAGE, "identity": block, **changes}


@pytest.mark.parametrize(("seed", "key", "message", "signature"), RFC_8032)
def test_the_vectors_of_rfc_8032(seed: str, key: str, message: str, signature: str) -> None:
    identity = of_seed(bytes.fromhex(seed))
    data = bytes.fromhex(message)
    assert basics.from_base64(identity.public_text) == bytes.fromhex(key)
    assert identity.sign(data).hex() == signature
    assert verifies(bytes.fromhex(key), bytes.fromhex(signature), data)
    assert not verifies(bytes.fromhex(key), bytes.fromhex(signature), data + b"x")


# RFC 4231, section 4: key, data, HMAC-SHA-256 of the test cases 1 to 4, 6 and 7.
RFC_4231 = [
    (
        "0b" * 20,
        b"Hi There".hex(),
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
    ),
    (
        b"Jefe".hex(),
        b"what do ya want for nothing?".hex(),
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    ),
    ("aa" * 20, "dd" * 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
    (
        bytes(range(1, 26)).hex(),
        "cd" * 50,
        "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
    ),
    (
        "aa" * 131,
        b"Test Using Larger Than Block-Size Key - Hash Key First".hex(),
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
    ),
    (
        "aa" * 131,
        (
            b"This is a test using a larger than block-size key and a larger than block-size"
            b" data. The key needs to be hashed before being used by the HMAC algorithm."
        ).hex(),
        "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
    ),
]


@pytest.mark.parametrize(("key", "data", "expected"), RFC_4231)
def test_the_vectors_of_rfc_4231(key: str, data: str, expected: str) -> None:
    assert network_identity.hmac_sha256(bytes.fromhex(key), bytes.fromhex(data)) == expected


def test_the_hmac_is_the_one_that_openssl_computes() -> None:
    # printf 'msg_7a3f9c2b:2026-03-21T07:00:00Z' | openssl dgst -sha256 -hmac shared-key
    expected = "c5fa20bc42af8f4ec811ba51d4088617e58c3778607aeaa2e567382e5d7a7181"
    message = {"message_id": "msg_7a3f9c2b", "ts": "2026-03-21T07:00:00Z", "parts": []}
    assert network_identity.hmac_of("shared-key", message) == expected
    assert network_identity.sign_message(message, "shared-key", None)["sig"] == expected
    assert network_identity.check_signatures({**message, "sig": expected}, "shared-key") == {
        "_sig_verified": True
    }
    assert network_identity.check_signatures({**message, "sig": expected}, "other") == {
        "_sig_invalid": True
    }
    assert network_identity.check_signatures({**message, "sig": 5}, "shared-key") == {
        "_sig_invalid": True
    }
    assert network_identity.check_signatures(message, "shared-key") == {"_sig_missing": True}
    assert network_identity.check_signatures({**message, "sig": expected}, None) == {}


def test_a_signature_is_the_one_that_openssl_makes() -> None:
    assert network_identity.sign_message(MESSAGE, None, of_seed(SEED)) == signed(PLAIN)


@pytest.mark.parametrize("signature", [PLAIN, ASCII, PLAIN + "=="])
def test_both_spellings_of_the_canonical_json_verify(signature: str) -> None:
    assert network_identity.check_signatures(signed(signature), None, KEY) == {
        "_ed25519_verified": True
    }
    claimed = signed(signature, _ed25519_verified=True, _sig_invalid=True)
    assert network_identity.check_signatures(claimed, None) == {"_ed25519_verified": True}


@pytest.mark.parametrize(
    "message",
    [
        signed(PLAIN, server_seq=43),
        signed(PLAIN, more="x"),
        signed(PLAIN[:-4]),
        signed("ü"),
        {**MESSAGE, "identity": "x"},
        {**MESSAGE, "identity": []},
        {**MESSAGE, "identity": {"scheme": "ed25519", "public_key": 5, "sig": None}},
        {**MESSAGE, "identity": {"scheme": "rsa", "public_key": KEY, "sig": PLAIN}},
    ],
)
def test_what_was_changed_or_is_no_signature_is_told(message: Json) -> None:
    assert network_identity.check_signatures(message, None) == {"_ed25519_invalid": True}


def test_the_key_of_somebody_else_is_told() -> None:
    other = of_seed(bytes.fromhex(RFC_8032[1][0])).public_text
    flags = network_identity.check_signatures(signed(PLAIN), None, other)
    assert flags == {"_ed25519_invalid": True, "_ed25519_other_key": True}


def test_both_signatures_hold_together() -> None:
    message = network_identity.sign_message(MESSAGE, "secret", of_seed(SEED))
    flags = network_identity.check_signatures(message, "secret", KEY)
    assert flags == {"_sig_verified": True, "_ed25519_verified": True}
    spoiled = network_identity.check_signatures(message, "other", KEY)
    assert spoiled == {"_sig_invalid": True, "_ed25519_verified": True}


def test_the_key_file_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "identity.json"
    first = load_or_make(place)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert load_or_make(place).public_text == first.public_text
    content = json.loads(place.read_text())
    assert (content["scheme"], content["public_key"]) == ("ed25519", first.public_text)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"scheme":"ed25519","private_key":"AAAA"}'])
def test_a_file_without_a_key_is_refused(tmp_path: Path, content: str) -> None:
    place = tmp_path / "identity.json"
    place.write_text(content)
    place.chmod(0o600)
    with pytest.raises(IdentityError, match="not an Ed25519 key"):
        load_or_make(place)


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "identity.json"
    load_or_make(place)
    place.chmod(0o644)
    with pytest.raises(IdentityError, match="chmod 600"):
        load_or_make(place)


def test_a_message_of_long_ago_is_verified_and_marked_as_old(tmp_path: Path) -> None:
    with served(tmp_path, secret="k") as agent:
        for id, ts in (("m1", "2020-01-01T00:00:00Z"), ("m2", now_text()), ("m3", now_text())):
            text = [{"type": "text", "content": f"Do {id}"}]
            message: Json = {
                "message_id": id,
                "ts": ts,
                "from": "Ben",
                "role": "user",
                "parts": text,
            }
            sig = network_identity.hmac_of("k", message) if id != "m3" else "0" * 64
            body = {**message, "sig": sig}
            headers = {"authorization": f"Bearer {agent.agent.token}"}
            assert agent.post("/message:send", body, headers=headers).status_code == 200
        old, new, wrong = agent.get("/messages")["messages"]
        assert (old["_sig_verified"], old["_sig_old"]) == (True, True)
        assert (new["_sig_verified"], "_sig_old" in new) == (True, False)
        assert (wrong["_sig_invalid"], "_sig_old" in wrong) == (True, False)
        here = open_wire(str(tmp_path / "A"))
        seen = here.refresh(datetime.now(UTC))
        here.close()
        assert [each.summary.partition(" · dated")[0] for each in seen.events] == [
            "says it is Ben · Do m1 · verified, but old",
            "says it is Ben · Do m2",
            "says it is Ben · Do m3",
        ]
        panel = next(each for each in seen.panels if each.id == "signatures")
        assert panel.columns[1:] == (
            "verified",
            "verified, but old",
            "not verified",
            "wrongly signed",
        )
        assert panel.rows[0].cells == ("unknown sender", "1", "1", "0", "1")
        assert [each.code for each in seen.findings] == ["W10", "W05"]
