"""A clause that gives one thing two names teaches both of them (R2)."""

import pytest

from memd.stages.thing_names import names_of


@pytest.mark.parametrize(
    ("clause", "names"),
    [
        ("Postgres (we call it the ledger db) runs on port 5433.", ("Postgres", "ledger db")),
        ("The k8s cluster 'basil' aka prod-2 is in Frankfurt.", ("basil", "prod-2")),
        ("We call the staging cluster basil.", ("staging cluster", "basil")),
        ("The queue, which we call the belt, is Redis.", ("queue", "belt")),
        ("Postgres is also called the ledger db.", ("Postgres", "ledger db")),
        ("Kubernetes, k8s for short, is our platform.", ("Kubernetes", "k8s")),
        ("The user interface library (short: UIL) is frozen.", ("user interface library", "UIL")),
        ("We call the API twice.", ()),
        ("The method is called once, also called by the worker.", ()),
        ("The number is stored, we call it again later.", ()),
        ("Customer in Osaka made a claim.", ()),
        ("Add a short README.", ()),
    ],
)
def test_a_clause_names_a_thing_twice_or_teaches_no_name_R2(clause: str, names: tuple[str, ...]) -> None:
    assert names_of(clause) == names
