"""Secrets that a name, flag, command, URL or phrase announces, whatever their characters (W5, P-18)."""

import random
from statistics import fmean

import pytest

from memd.clients.bench.write.secret_matrix import cases, human_password, near_misses
from memd.protocol.announced_secrets import announced, names_only_a_secret
from memd.protocol.redact import redact

WORDS = "Tr0ub4dor&Zq"


def without(text: str) -> str:
    """`text` with a star for each announced secret."""
    for hit in reversed(announced(text)):
        text = f"{text[: hit.start]}*{text[hit.end :]}"
    return text


@pytest.mark.parametrize("held_out", [False, True], ids=["tuned", "held out"])
def test_at_least_97_of_100_passwords_are_taken_in_every_half_of_the_forms_P18(held_out: bool) -> None:
    chosen = [case for case in cases(seed=11) if case.held_out == held_out]
    hits = [[(hit.kind, hit.start, hit.end) for hit in announced(case.text)] for case in chosen]
    assert fmean(case.is_taken(of_case) for case, of_case in zip(chosen, hits, strict=True)) >= 0.97
    assert fmean(case.is_exact(of_case) for case, of_case in zip(chosen, hits, strict=True)) >= 0.97


def test_at_most_two_of_100_near_misses_raise_an_alarm_P18() -> None:
    texts = [text for text, _ in near_misses()]
    assert len(texts) >= 300 and fmean(bool(announced(text)) for text in texts) <= 0.02


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (f"My database password is {WORDS}", "My database password is *"),
        (f"the root password is {WORDS}, ask Ada if it fails", "the root password is *, ask Ada if it fails"),
        (f"mysql -u root -p{WORDS} shop", "mysql -u root -p* shop"),
        (f'{{"a":"{{\\"password\\":\\"{WORDS}\\"}}"}}', '{"a":"{\\"password\\":\\"*\\"}"}'),
        (f"redis://:{WORDS}@cache:6379/0", "redis://:*@cache:6379/0"),
        ("postgres://app:p@ss:w0rd@db.internal/shop", "postgres://app:*@db.internal/shop"),
        (f"username=ada&password={WORDS}&remember=1", "username=ada&password=*&remember=1"),
        (f"env:\n  - name: DB_PASSWORD\n    value: {WORDS}\n", "env:\n  - name: DB_PASSWORD\n    value: *\n"),
        ('passphrase = "correct horse battery staple"', 'passphrase = "*"'),
        ("DB_PASSWORD=swordfish", "DB_PASSWORD=*"),
    ],
)
def test_the_secret_goes_and_nothing_else_P18(text: str, rest: str) -> None:
    assert without(text) == rest


@pytest.mark.parametrize(
    "text",
    [
        'password = os.environ["DB_PASSWORD"]',
        "token: ${{ secrets.GITHUB_TOKEN }}",
        "export TOKEN=$(cat token.txt)",
        "client_secret: <your client secret>",
        "password: str",
        "PASSWORD=changeme",
        "The token is a JWT signed with RS256.",
        "My password is wrong and I can't log in.",
        "password_hash = bcrypt.hashpw(raw, bcrypt.gensalt())",
        "next_page_token: CAUQAA12",
        "docker run -p 8080:80 nginx",
        "mysql -u root -p",
        '["username", "password", "email1"]',
    ],
)
def test_what_only_resembles_a_secret_stays_P18(text: str) -> None:
    assert announced(text) == []


def test_a_text_without_its_secrets_announces_no_more_P18() -> None:
    chance = random.Random(3)
    for case in cases(seed=13):
        clean, _ = redact(case.text)
        assert redact(clean)[0] == clean
    assert redact(f"password: {human_password(chance, 12)}")[0] == "password: [redacted:password]"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My database password is [redacted:password]", True),
        ("Mein Datenbank-Passwort ist [redacted:password]", True),
        ("We deploy the orchard with [redacted:token] from the runner in Frankfurt each Friday", False),
        ("My dog is called Rex and lives in Vienna", False),
    ],
)
def test_a_clause_that_only_says_that_there_is_a_secret_is_told_apart_P18(text: str, expected: bool) -> None:
    assert names_only_a_secret(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "id,email,password_reset_at\n1,a@b.example,2026-03-04T10:00:00Z",
        "model,tokens,cost\ngpt-4o,12000,0.36\nsonnet-4,8000,0.24",
        "| test | pass | fail |\n|---|---|---|\n| unit2 | 41/50 | 9 |",
        "| field | password | token |\n|---|---|---|\n| required | yes | no |",
        "NAME     TYPE     SECRET\nweb1     Opaque   none",
        "Password\n--------\nThe password must have 12 characters.",
        "INSERT INTO users (name, password_hash) VALUES ('a', '$2b$12$abcdefghijklmnopqrstuv')",
    ],
)
def test_a_table_or_heading_without_a_secret_stays_P18(text: str) -> None:
    assert announced(text) == []


def test_every_row_of_a_table_loses_its_secret_in_linear_time_P18() -> None:
    rows = "".join(f"user{number},{WORDS}{number},x\n" for number in range(3_000))
    assert WORDS not in without(f"name,password,note\n{rows}")
    assert len(announced("name,token,note\n" * 5_000)) == 0


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        (f"az keyvault secret set --name n \\\n  --value {WORDS}", "az keyvault secret set --name n \\\n  --value *"),
        (f"heroku config:set NODE_ENV=production STRIPE={WORDS}", "heroku config:set NODE_ENV=production STRIPE=*"),
        (f"INSERT INTO u (a, password) VALUES ('x', '{WORDS}')", "INSERT INTO u (a, password) VALUES ('x', '*')"),
        (f"パスワードは{WORDS}です", "パスワードは*です"),
        (f"Пароль от базы: {WORDS}", "Пароль от базы: *"),
    ],
)
def test_an_argument_a_cell_and_a_value_in_another_script_go_alone_P18(text: str, rest: str) -> None:
    assert without(text) == rest
