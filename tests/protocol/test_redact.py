"""The short list takes secrets out before a spool sees them (P-18), and leaves ordinary text alone."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.protocol.redact import RULES, redact

# Assembled, so that no scanner takes this file for a leak.
SECRETS = {
    "aws-access-key": "AKIA" + "ABCDEFGHIJKLMNOP",
    "github-token": "ghp_" + "a1" * 18,
    "slack-token": "xoxb-" + "1234567890-abcdef",
    "model-api-key": "sk-ant-" + "a1B2" * 8,
    "jwt": "eyJ" + "hbGciOiJIUzI1" + ".eyJ" + "zdWIiOiIxMjM0" + "." + "SflKxwRJSMeKKF2",
}


@pytest.mark.parametrize("rule", SECRETS)
def test_a_secret_becomes_a_typed_placeholder_P18(rule: str) -> None:
    clean, found = redact(f"the key is {SECRETS[rule]} today")
    assert SECRETS[rule] not in clean
    assert clean == f"the key is [redacted:{rule}] today" and found == (rule,)


def test_only_the_secret_part_of_an_assignment_goes_P18() -> None:
    clean, found = redact("DB_PASSWORD='hunter2hunter2' and postgres://ada:s3cr3t@db/x")
    assert clean == "DB_PASSWORD='[redacted:assigned-secret]' and postgres://ada:[redacted:url-password]@db/x"
    assert found == ("assigned-secret", "url-password")


@pytest.mark.parametrize(
    "text",
    [
        "the token budget is 500",
        "password: see the vault",
        "https://example.org/a:b@c",
        "commit 3f2a9c1d5e6b7a8f9c0d1e2f3a4b5c6d7e8f9a0b",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert redact(text) == (text, ())


@given(st.text(max_size=300))
def test_what_was_taken_out_once_is_not_found_again(text: str) -> None:
    clean, _ = redact(text)
    assert redact(clean)[0] == clean


WHOLE = re.compile("|".join(f"(?:{rule})" for _, rule in RULES), re.DOTALL)
NAMES = {name for name, _ in RULES}
PIECES = st.sampled_from(
    [
        *SECRETS.values(),
        *"= : ' / @ ſ K ı İ - _ paſſword apı_key toKen bearer ://u: key sk- sk_live_".split(),
        "a1B2c3D4" * 4,
    ]
)


@settings(deadline=None)
@given(st.lists(PIECES | st.text(max_size=5), max_size=12))
def test_the_clues_leave_no_rule_out_P18(pieces: list[str]) -> None:
    text = "".join(pieces)
    found = {rule for rule in redact(text)[1] if rule in NAMES}  # the others are announced secrets
    assert bool(found) == bool(WHOLE.search(text))
