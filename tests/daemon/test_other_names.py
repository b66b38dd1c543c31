"""A question with another name of a thing finds the records that have the first (R2, Q2)."""

from typing import Any


def test_a_question_with_the_other_name_finds_the_record_Q2(daemon: Any) -> None:
    with daemon.client() as client:
        for name, number in (("Redis", 4), ("Postgres", 7), ("Nginx", 2), ("Kafka", 9)):
            client.remember(f"{name} runs on node {number} of the rack.")
        named = client.remember("Postgres is also called the ledger.")
        daemon.settle()
        assert client.get(named.record.id).aliases == ("Postgres", "ledger")
        hits = [hit.record.content for hit in client.recall("Which node of the rack does the ledger run on?").hits]
        assert next(text for text in hits if "node" in text) == "Postgres runs on node 7 of the rack."
        client.edit(named.record.id, "Postgres stores the bookings.")
        daemon.settle()
        assert client.get(named.record.id).aliases == ()
