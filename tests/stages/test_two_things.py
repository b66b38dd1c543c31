"""What is done to a thing, and what is chosen: another thing stays beside the first, a choice replaces it (P-8)."""

import pytest

from memd.stages.contradictions import compare, of_another


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("We decided to test the parser with hypothesis.", "We decided to test the printer with hypothesis."),
        ("We deploy billing on Fridays.", "We deploy search on Fridays."),
        ("I put the invoices in Basel.", "I put the archive in Basel."),
        ("Our CI caches wheels in S3.", "Our CI caches logs in S3."),
        ("We run the ledger in Lisbon.", "We run the parser in Lisbon."),
    ],
)  # fmt: skip
def test_another_thing_stays_beside_the_first_P8(older: str, newer: str) -> None:
    assert compare(older, newer, 0.85).label == "unrelated"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("We test the parser with hypothesis.", "We test the parser with pytest."),
        ("We deploy billing on Fridays.", "We deploy billing on Mondays."),
        ("We decided to use Postgres for the ledger.", "We decided to use SQLite for the ledger."),
        ("I run Debian on my laptop.", "I run Arch on my laptop."),
        ("We run the ledger in Lisbon.", "We run the ledger in Oslo."),
        ("We keep the docs in Notion.", "We keep the docs in Confluence."),
    ],
)
def test_another_choice_for_the_same_thing_replaces_it_T1(older: str, newer: str) -> None:
    assert compare(older, newer, 0.85).label == "replaces"


@pytest.mark.parametrize(
    ("long", "short"),
    [
        ("The staging database lives in Frankfurt.", "the staging DB lives in Frankfurt"),
        ("We deploy to production on Fridays.", "We deploy to prod on Fridays."),
        ("Our Kubernetes cluster runs in eu-west-1.", "Our k8s cluster runs in eu-west-1."),
        ("The user prefers Visual Studio Code.", "The user prefers VS Code."),
        ("I live in the United States.", "I live in the US."),
    ],
)
def test_a_short_form_says_what_the_long_one_says_P7(long: str, short: str) -> None:
    assert compare(long, short, 0.9).label == compare(short, long, 0.9).label == "same"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The settings are in `db.py`.", "The settings are in `database.py`."),
        ("Give us the keys of the car.", "Give United States the keys of the car."),
        ("The host is prod-1.", "The host is production-1."),
    ],
)
def test_a_short_form_in_a_name_is_a_part_of_the_name_P8(older: str, newer: str) -> None:
    assert compare(older, newer, 0.9).label != "same"


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        ("The server web1 listens on port 8080.", "The server web2 listens on port 9090.", True),
        ("`door.py` holds the socket.", "`log.py` holds the chain.", True),
        ("The server web1 listens on port 8080.", "The server web1 listens on port 9090.", False),
        ("The crate41 stands in room 708 of the office.", "The crate153 stands in room 708 of the office.", True),
        ("`door.py` holds the socket.", "`log.py` holds the socket.", True),
        ("We run on pg14.", "We run on pg15.", False),
        ("We run on pg14 in production.", "We run on pg15 in production.", False),
        ("Use node18 for the build.", "Use node20 for the build.", False),
        ("node18 is our default runtime.", "node20 is our default runtime.", False),
        ("The ledger runs in Lisbon.", "The parser runs in Oslo.", False),
    ],
)
def test_of_one_form_and_of_another_thing_P8(older: str, newer: str, expected: bool) -> None:
    assert of_another(older, newer) is expected


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Alice reports to Bob", "Bob reports to Alice"),
        ("In git, main merges into release", "In git, release merges into main"),
        ("The auth service calls the ledger service", "The ledger service calls the auth service"),
        ("The parser runs before the lexer", "The lexer runs before the parser"),
        ("The alert fires when load < 5 on web1", "The alert fires when load > 5 on web1"),
        ("The freezer is set to -5 degrees", "The freezer is set to 5 degrees"),
        ("HTTP 404 means the user is gone", "HTTP 410 means the user is gone"),
        ("Version 2 of the API is deprecated", "Version 3 of the API is deprecated"),
        ("🎉🎉", "✅"),
    ],
)
def test_like_words_that_say_something_else_are_not_the_same_P8(older: str, newer: str) -> None:
    assert compare(older, newer, 0.98).label == "unrelated"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I like tea and coffee", "I like coffee and tea"),
        ("The alert fires when load < 5 on web1", "The alert fires if load < 5 on web1"),
        ("The freezer is set to -5 degrees", "The freezer: set to -5 degrees"),
    ],
)
def test_the_same_words_in_another_order_are_the_same_P7(older: str, newer: str) -> None:
    assert compare(older, newer, 0.98).label == "same"


@pytest.mark.parametrize(
    ("older", "newer", "expected"),
    [
        ("Ticket 4711 is fixed", "Ticket 4712 is fixed", "unrelated"),
        ("PR 12 is approved by Dana", "PR 13 is approved by Dana", "unrelated"),
        ("Room 12 has the projector", "Room 14 has the projector", "unrelated"),
        ("Step 3 needs sudo", "Step 4 needs sudo", "unrelated"),
        ("Python 3.11 is our minimum", "Python 3.12 is our minimum", "replaces"),
        ("Node 18 runs in production", "Node 20 runs in production now", "replaces"),
        ("The build takes 5 minutes", "The build takes 7 minutes", "replaces"),
        ("The server listens on port 4511", "The server listens on port 4512", "replaces"),
        ("Room 12 has 20 seats", "Room 12 has 24 seats", "replaces"),
    ],
)
def test_a_number_that_names_a_thing_is_not_its_value_P8(older: str, newer: str, expected: str) -> None:
    assert compare(older, newer, 0.95).label == expected
