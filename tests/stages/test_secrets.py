"""The secret scan: found by form, by name and by place; never again in its own placeholder (W5, P-18).

The figures on the labelled rows and on real transcripts are measured where ../shared/data is there.
"""

import base64
import gzip
import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from memd.clients.bench.write.secret_detection import OF_ANOTHER_RULE
from memd.clients.bench.write.secret_matrix import cases
from memd.protocol.announced_secrets import announced
from memd.protocol.redact import redact as first_net
from memd.stages.secrets import token_prefixes
from memd.stages.secrets.rules import SecretRule, read
from memd.stages.secrets.scan import find, redact

re2: Any = import_module("re2")  # its types here name no more than memd asks of it
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
ROWS, SESSIONS = DATA / "secrets" / "secrets_dev.jsonl.gz", DATA / "sessions"

SAMPLES = {
    "aws-access-token": "AKIA" + "QYLPMN5HHHFPZAM2",
    "github-pat": "ghp_" + "wWPw5k4aXcaT4fNP0UcnZwJUVFk6LO0pINUx",
    "anthropic-api-key": "sk-ant-api03-" + "Zk3v8QmX1r" * 9 + "abcAA",
    "slack-bot-token": "xoxb-" + "893582989554-899326518131-JRHeVv1o9Cf99fwDpuortR2D",
    "gcp-api-key": "AIza" + "SyCw8XmxlGXVRySZxKiuZhFCALuXbLqqHBI",
    "docker-hub-token": "dckr_pat_" + "hc8VxYclixyTr2rDFsa2rqzkP3Y",
    "tailscale-key": "tskey-auth-" + "kXq2CNTRL-d8Lw2Pq7ZtYvB3mN5kR1",
}
"""In two halves, so that no other scanner takes this file for a leak."""


@pytest.mark.parametrize("rule", SAMPLES)
def test_a_secret_becomes_a_placeholder_that_names_its_kind_P18(rule: str) -> None:
    clean, found = redact(f"Größe — use {SAMPLES[rule]}, please; the 鍵 is new.")
    assert clean == f"Größe — use [redacted:{rule}], please; the 鍵 is new."
    assert found == (rule,)


def test_places_are_counted_in_characters_P18() -> None:
    text = f"鍵🔑: {SAMPLES['github-pat']}"
    (found,) = find(text)
    assert text[found.start : found.end] == SAMPLES["github-pat"]


def test_only_the_value_goes_and_its_name_stays_P18() -> None:
    password, token = "m42ploz2wd", "7fQ2mX9vLr4KpZ8sTnB3"
    text = f'url = "postgres://root:{password}@db.internal:5432/shop"\nclient_secret: {token}\n'
    clean, found = redact(text)
    assert password not in clean and token not in clean and len(found) == 2
    assert clean.startswith('url = "postgres://root:[redacted:') and "client_secret: [redacted:" in clean


def test_a_private_key_goes_whole_even_if_its_end_is_missing_P18() -> None:
    body = "\n".join(f"{n:02d}" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDndJt7Na" for n in range(40))
    whole = f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----"
    assert redact(f"key:\n{whole}\ndone") == ("key:\n[redacted:private-key]\ndone", ("private-key",))
    assert "MIIE" not in redact(f"key:\n-----BEGIN RSA PRIVATE KEY-----\n{body}")[0]
    for words in (
        "-----BEGIN PRIVATE KEY-----\n***\n-----END PRIVATE KEY-----",
        "It says -----BEGIN PRIVATE KEY-----.",
    ):
        assert redact(words) == (words, ())


@pytest.mark.parametrize(
    "text",
    [
        "The password is asked for, and the token expires after 3600 seconds.",
        "key = hashlib.sha256(name.encode()).hexdigest()",
        "max_tokens: 4096, input_tokens=18231, cache_read_input_tokens=99120",
        "commit 9a038989604e8da62ecddbe2094b16ce1b778be1 by Ada",
        'token = os.environ["API_TOKEN"]; secret = ${{ secrets.DEPLOY_KEY }}',
        "DATABASE_URL=postgres://user:${PASSWORD}@localhost/db",
        "session 0736f5ef-7e88-499a-80cc-90c85d2a5180 belongs to user_id 42",
        "git clone git@github.com:owner/name.git && cd name",
    ],
)
def test_what_a_session_is_full_of_is_left_alone_P18(text: str) -> None:
    assert redact(text) == (text, ())


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("openssl pkcs12 -export -in a.crt -out a.p12 -passout pass:tr0ub4dor", "openssl-passphrase"),
        ("sshpass -p 'tr0ub4dor' ssh ada@orchard", "sshpass-password"),
        ("mysql://ada:tr0ub4dor@orchard.example/db", "url-password"),
    ],
)
def test_a_password_on_a_command_line_is_found_P18(text: str, rule: str) -> None:
    assert redact(text) == (text.replace("tr0ub4dor", f"[redacted:{rule}]"), (rule,))


@pytest.mark.parametrize(
    "text",
    [
        "postgres://postgres:postgres@localhost:5432/test",
        "mongodb://root:root@localhost:27017/",
        'api_key = "a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6"',
        "openssl rsa -in key.pem -passin pass:password",
    ],
)
def test_what_everybody_has_is_no_secret_P18(text: str) -> None:
    assert redact(text) == (text, ())


@pytest.mark.parametrize("name", ["clé api", "contraseña", "mot de passe", "schlüssel"])
@pytest.mark.parametrize("spelling", [str.lower, str.upper, str.title])
def test_a_name_with_letters_beyond_ascii_announces_in_any_case_P18(name: str, spelling: Callable[[str], str]) -> None:
    secret = "Tr0ub4dor&Zq9"
    text = f"鍵é {'API-' if name == 'schlüssel' else ''}{spelling(name)}: {secret}é — 鍵"
    (hit,) = find(text)
    assert text[hit.start : hit.end].startswith(secret)


def test_threads_that_scan_at_once_find_what_one_finds_P18() -> None:
    texts = [f"é{number} " * number + f"token: {secret}" for number in range(40) for secret in SAMPLES.values()]
    expected = [find(text) for text in texts]
    with ThreadPoolExecutor(8) as threads:
        assert all(spans == expected for spans in threads.map(lambda _: [find(text) for text in texts], range(16)))
    assert all(expected)


def test_a_secret_longer_than_what_is_looked_at_first_goes_whole_P18() -> None:
    token = (
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ"
        + "c3ViIjoiMTIzNDU2Nzg5MCIs" * 200
        + ".SflKxwRJSMeKKF2QT4fwpMeJf36POk6y"
    )
    assert redact(f"say {token} and more words " * 2) == ("say [redacted:jwt] and more words " * 2, ("jwt", "jwt"))


def test_what_stands_beside_a_placeholder_is_still_found_P18() -> None:
    text = f"[redacted:jwt] {SAMPLES['github-pat']} [redacted:jwt]"
    assert redact(text) == ("[redacted:jwt] [redacted:github-pat] [redacted:jwt]", ("github-pat",))
    assert redact("key = [redacted:generic-api-key]; password: '[redacted:quoted-password]'")[1] == ()


def test_what_the_first_net_takes_out_the_door_takes_out_too_P18() -> None:
    for secret in SAMPLES.values():
        if first_net(secret)[1]:
            assert redact(secret)[1]


def test_every_rule_can_be_compiled_and_no_name_stands_twice_W5() -> None:
    rules = read()
    for rule in rules:
        for pattern in (rule.pattern, *rule.allow, *rule.allow_match):
            assert re2.compile(pattern)
    names = [rule.name for rule in rules]
    assert len(names) == len(set(names)) > 250


@pytest.mark.parametrize("rule", [each for each in read() if each.probe or each.run], ids=lambda each: each.name)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(data=st.data())
def test_what_a_rule_matches_stands_for_what_is_looked_for_before_it_W5(rule: SecretRule, data: st.DataObject) -> None:
    few = re.sub(r"(?<!\\)\)[+*]", "){0,2}", rule.pattern)  # unlike re2, re may backtrack for hours on (a+)+
    text = data.draw(st.from_regex(re.compile(few, re.ASCII), alphabet=st.characters(exclude_categories=["Cs"])))
    match = re2.search(rule.pattern, text)
    assume(match and not any(re2.search(each, match[min(1, match.re.groups)]) for each in rule.allow))
    clues = [rule.probe] if rule.probe else [re.escape(word) + rule.run for word in rule.keywords]
    assert any(re2.search(f"(?i:{clue})", text) for clue in clues), text


KEY_LINES = ["MIIEpAIBAAKCAQEA" + "q7Zt" * 12, *(["Xy9+" * 16] * 8), "Zk3v8QmX1r=="]
BEGIN, END = "-----BEGIN RSA " + "PRIVATE KEY-----", "-----END RSA " + "PRIVATE KEY-----"


@pytest.mark.parametrize(
    "lines",
    [
        [f"{number:6}\t{line}" for number, line in enumerate([BEGIN, *KEY_LINES, END], 1)],
        [f"{number}→{line}" for number, line in enumerate([BEGIN, *KEY_LINES], 1)],
        KEY_LINES,
        [*KEY_LINES[2:], END],
        [json.dumps(json.dumps("\n".join([BEGIN, *KEY_LINES, END])))],
        [f"+{line}" for line in [BEGIN, *KEY_LINES, END]],
        ["PuTTY-User-Key-File-3: ssh-ed25519", "Private-Lines: 9", *KEY_LINES[1:]],
    ],
    ids=["numbered", "arrows", "without its begin", "its end alone", "escaped twice", "in a diff", "of PuTTY"],
)
def test_a_private_key_is_found_however_it_is_shown_P18(lines: list[str]) -> None:
    clean, found = redact("before\n" + "\n".join(lines) + "\nafter.")
    assert found and KEY_LINES[1][:20] not in clean and clean.startswith("before\n") and clean.endswith("after.")


HUMAN = "Tr0ub4dor&Zq"


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(f"DB_PASSWORD={HUMAN}".encode()).decode(),
        base64.b64encode(json.dumps({"user": "ada", "password": HUMAN}).encode()).decode(),
        f"see {base64.b64encode(SAMPLES['github-pat'].encode()).decode()}",
        f"DB_PASSWORD={HUMAN}".encode().hex(),
        "pass\u200bword: " + HUMAN,
        "\u200b".join(SAMPLES["github-pat"]),
        "".join(chr(ord(char) + 0xFEE0) for char in f"password={HUMAN}"),
        f"\\u0070assword\\u003d{HUMAN}",
        f"password%3D{HUMAN.replace('&', '%26')}",
        f"&quot;password&quot;:&quot;{HUMAN}&quot;",
        f"\x1b[31mpassword\x1b[0m: \x1b[1m{HUMAN}\x1b[0m",
        f"xx{SAMPLES['github-pat']}yy",
    ],
)
def test_a_secret_in_another_reading_of_the_text_is_found_P18(text: str) -> None:
    clean, found = redact(f"vor — {text} — nach")
    assert found and HUMAN not in clean and SAMPLES["github-pat"] not in clean
    assert clean.startswith("vor — ") and clean.endswith(" — nach") and len(clean) < len(f"vor — {text} — nach") + 40
    assert redact(clean) == (clean, ())


def test_the_names_of_secrets_are_found_by_the_whole_scan_as_by_the_clients_P18() -> None:
    for case in cases(seed=17):
        assert find(case.text) or not announced(case.text), case.text


# --- figures on real data ----------------------------------------------------------------------------------------
def _rows() -> list[dict[str, Any]]:
    if not ROWS.is_file():
        pytest.skip("the labelled secrets of ../shared/data are not on this machine")
    with gzip.open(ROWS, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


_HEADS = "api bot hmac service db mysql sim user ssh gh".split()
_JOINTS = ("", "_", "-", ".", " ", "__", "____", "-_")
_NOUNS = "key password pass pin mdp token secret sshpass wpa_passphrase smbpasswd gh_secret".split()
_TAILS = ("", "_prod", "2", "_1")


def test_the_whole_scan_finds_what_is_assigned_to_any_name_that_announces_to_a_client_P18() -> None:
    value, missed = "kR7xQ2mL", list[str]()
    for head, joint, noun, tail in product(("", *_HEADS), _JOINTS, _NOUNS, _TAILS):
        for spelling in (str.lower, str.upper, str.title):
            text = f"{spelling(head + joint + noun + tail)}={value}"
            if announced(text) and value in redact(text)[0]:
                missed.append(text)
    assert not missed


def test_many_secrets_in_one_text_take_time_in_proportion_W5() -> None:
    def took(count: int) -> float:
        text = " ".join(f"password={number:016x}kR7x" for number in range(count))
        times: list[float] = []
        for _ in range(2):
            began = process_time()
            assert len(redact(first_net(redact(text)[0])[0])[1]) == 0
            times.append(process_time() - began)
        return min(times)

    assert took(16_000) < 16 * took(2_000)


def test_the_labelled_rows_are_told_apart_P18() -> None:
    right, missed, alarms, strictly = 0, 0, 0, 0
    for row in _rows():
        found = {each.rule for each in find(row["text"])}
        if row["label"]:
            right, missed = right + bool(found), missed + (not found)
        else:
            alarms += bool(found - OF_ANOTHER_RULE.get(row["rule"], set()))
            strictly += bool(found)
    assert _f1(right, missed, alarms) >= 0.95, (right, missed, alarms)
    assert _f1(right, missed, strictly) >= 0.93, (right, missed, strictly)


def _f1(right: int, missed: int, alarms: int) -> float:
    return 2 * right / (2 * right + missed + alarms)


def test_a_secret_is_taken_out_wherever_its_text_says_it_again_P18() -> None:
    key = SAMPLES["github-pat"]
    clean, found = redact(f"token: {key}\nthen I typed x{key}y, and {key[:-9]} is another one")
    assert key not in clean and found == ("github-pat", "github-pat") and key[:-9] in clean
    assert [each.rule for each in find(f"{key} — ä {key}z")] == ["github-pat", "github-pat"]


def test_placeholders_are_never_found_again_P18() -> None:
    for row in _rows():
        clean, _ = redact(row["text"])
        assert redact(clean) == (clean, ()), row["rule"]


def test_real_transcripts_raise_no_alarm_P18() -> None:
    if not SESSIONS.is_dir():
        pytest.skip("the real sessions of ../shared/data are not on this machine")
    size, alarms = 0, 0
    for path in sorted(SESSIONS.rglob("*.json*")):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            words = "\n".join(_strings(line))
            size, alarms = size + len(words), alarms + len(find(words))
    assert size > 1_000_000 and alarms <= size / 1_000_000


def _strings(line: str) -> Iterator[str]:
    try:
        waiting: list[Any] = [json.loads(line)]
    except ValueError:
        return
    while waiting:
        match waiting.pop():
            case str() as words:
                yield words.encode("utf-8", "replace").decode()
            case list() as each:
                waiting += each
            case dict() as each:
                waiting += [value for name, value in each.items() if name not in {"signature", "data"}]
            case _:
                pass


def test_the_beginnings_of_tokens_that_clients_know_are_those_of_the_rules_P18() -> None:
    assert token_prefixes.FILE.read_text(encoding="utf-8") == token_prefixes.source(), (
        "run `python -m memd.stages.secrets.token_prefixes`"
    )
