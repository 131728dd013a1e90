"""Records of before are spelled, signed and read as they ever were."""

from __future__ import annotations

import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agentwatch.decisions.envelope import SigningKey, Trust, TrustedKey, seal
from agentwatch.decisions.ledger import verified
from agentwatch.decisions.record import parse

KEY = SigningKey(Ed25519PrivateKey.from_private_bytes(b"k" * 32))

ABOUT = (
    '"workspace_id":"shop-0123456789abcdef","seq":2,"prev_sha256":"' + "0" * 64 + '","decision_id":"{id}",'
    '"task_id":"a.b","attempt":1,'
)
DIGESTS = (
    '"handoff_sha256":"249215fed826e1cff9368c2c7490760a16f7bd49f875d39a9f23eaf1505d076d",'
    '"return_sha256":"7187f0675eb3827939741acf7342ba78836ecec21a31ecf3f34a55309d3bee8a",'
)
BY = '"operator":"ada","created_at":"2030-01-01T12:00:00Z","expires_at":'
STORED = [
    (
        '{"version":1,' + ABOUT.replace("{id}", "9ad9e99ef1d163d13825dc3041b6aee7") + DIGESTS + '"action":"retry",'
        '"params":{"mitigation":"reduced_scope","handoff":"{\\"task_id\\": \\"größe\\"}","mode":null,"answers":[],'
        '"report":null},"note":"once more",' + BY + '"2030-01-08T12:00:00Z"}',
        "b58ad291ba5a0fc69a075580a864a3f20eb5ae2fd18c18a29de457a25bda30d4",
    ),
    (
        '{"version":1,' + ABOUT.replace("{id}", "9e91101df0e058fe13ba95352e747ba2") + DIGESTS + '"action":"retry",'
        '"params":{"mitigation":null,"handoff":null,"mode":null,"answers":[],"report":null},"note":"once more",'
        + BY
        + 'null,"after":"9ad9e99ef1d163d13825dc3041b6aee7"}',
        "69b9e2ac4345e5f4152bed46604ca401e6ea865123be8c80d9a60c31f63cd7c7",
    ),
    (
        '{"version":2,' + ABOUT.replace("{id}", "cece6a13c18c7213b8d432b349d3fb5e") + '"handoff_sha256":null,'
        '"return_sha256":null,"action":"allow","params":{"mitigation":null,"handoff":null,"mode":null,"answers":[],'
        '"report":null,"rule":"Bash(ls)"},"note":"",' + BY + '"2030-01-01T12:10:00Z","request":{"program":"claude",'
        '"session":"5f0c","nonce":"nonce","kind":"permission","input_sha256":"' + "1" * 64 + '"}}',
        "b7fdfdd46bcad31cacfdfd35a22edce222c435c06d5ab999074894c2e4d482ef",
    ),
]


@pytest.mark.parametrize(("text", "digest"), STORED)
def test_a_record_of_before_is_the_same_to_the_byte(text: str, digest: str) -> None:
    record = parse(text.encode())
    assert record.to_bytes() == text.encode()
    file = seal(record.to_bytes(), KEY)
    assert hashlib.sha256(file).hexdigest() == digest
    trust = Trust((TrustedKey(KEY.public),))
    assert verified(file, trust, "shop-0123456789abcdef") == (record, KEY.public.keyid)
