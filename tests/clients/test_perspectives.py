"""The keywords of an agent's perspective widen its questions (Q7, P5)."""

from collections.abc import Callable
from typing import Any

from tests.conftest import RunningDaemon

REVIEWER = ("agent", "add", "reviewer", "-p", "security: cve, token, token", "-p", "design:layout", "-p", "cost")


def test_a_recall_under_a_perspective_searches_its_keywords_too_Q7(
    daemon: RunningDaemon, memd: Callable[..., Any]
) -> None:
    added = memd(*REVIEWER)
    assert "security: cve, token, design: layout, cost" in added.text
    assert "design: layout" in memd("agent").text
    for thing in ("token scopes", "layout grid"):
        memd("remember", "--personal", f"Every release needs a review of the {thing}.", "--wait")

    def words(perspective: str) -> dict[str, float]:
        """How well each record matches by words, by what is special to it."""
        asked = ("recall", "what does every release need", "--agent", "reviewer", "--explain", "--json")
        hits = memd(*asked, "--perspective", perspective).data["hits"]
        return {hit["record"]["description"].split()[-2]: hit["parts"]["words"] for hit in hits}

    assert words("security")["token"] > words("security")["layout"]
    assert words("design")["layout"] > words("design")["token"]
    assert words("cost") == words("")


def test_keywords_alone_answer_no_question_Q7(daemon: RunningDaemon, memd: Callable[..., Any]) -> None:
    memd(*REVIEWER)
    memd("remember", "--personal", "Every release needs a review of the token scopes.", "--wait")
    asked = memd("recall", "where is the violin", "--agent", "reviewer", "--perspective", "security", "--json").data
    assert asked["abstained"] and asked["hits"] == []


def test_a_perspective_without_a_name_is_refused_with_the_form_Q7(
    daemon: RunningDaemon, memd: Callable[..., Any]
) -> None:
    for wrong in (": cve", f"{'a' * 41}: cve"):
        refused = memd("agent", "add", "reviewer", "-p", wrong)
        assert refused.code == 2 and '"security: cve, token"' in refused.errors
