"""Echoes: memory that comes back is no statement, whatever it is wrapped in; what is said of it is one (W9, P-6)."""

import json
import textwrap

import pytest

from memd.models.pair import PairJudge
from memd.protocol.event import AnyEvent, Captured, Noted, Said
from memd.protocol.record import Record
from memd.stages.batch import Batch, Given, Item, Known, Proposal
from memd.stages.echoes import EchoMatcher
from memd.stages.pipeline import NamedStage, run
from memd.stages.reconcile import candidate_id, judge

PAIRS = PairJudge()
LINE = "The user prefers tabs for indentation in all of the Go services of the orchard."
HEARD = EchoMatcher([LINE, "The orchard deploys on Tuesdays.", "果园服务每周二部署。", "Ja."])
AT = "2026-03-10T09:00:00+01:00"


@pytest.mark.parametrize(
    "text",
    [
        LINE,
        LINE.upper(),
        f"- {LINE} [2026-03-10]",
        f"> {LINE}",
        f"**{LINE}**",
        json.dumps(f"- {LINE}\n- and more"),
        json.dumps({"context": LINE}),
        json.dumps({"memory": f"{LINE}\nThe orchard deploys on Tuesdays.\nThe user prefers tabs for"}),
        "\n".join(textwrap.wrap(LINE, 20)),
        "\n".join(f"> {part}" for part in textwrap.wrap(LINE, 24)),
        "prefers tabs for indentation in all of the Go services",
        f"As I noted in my memory: {LINE}",
        "What I recall of you says: “the orchard deploys on Tuesdays”.",
        "the orchard\\ndeploys on\\tTuesdays",
        "果园服务每周二部署",
        "我记得：果园服务每周二部署。",
    ],
)
def test_what_was_given_is_told_however_it_is_wrapped_W9(text: str) -> None:
    assert HEARD.echoed(text)


@pytest.mark.parametrize(
    "text",
    [
        "The orchard deploys on Mondays.",
        "The orchard no longer deploys on Tuesdays.",
        "The orchard deploys on Tuesdays only if the cherry job has run, so we moved the release to Friday.",
        "That the orchard deploys on Tuesdays is wrong.",
        "The user prefers spaces for indentation in all of the Go services of the orchard.",
        "果园服务每周三部署。",
        "果园服务不每周二部署。",
        "Yes.",
        "Ja, gern.",
        "",
    ],
)
def test_what_says_something_else_is_none_W9(text: str) -> None:
    assert not HEARD.echoed(text)


def batch(stages: tuple[NamedStage, ...], *events: AnyEvent, given: Given | None, document: str = "test:two") -> Batch:
    items = tuple(
        Item(seq=at, captured=Captured(document=document, event=event), author="ada")
        for at, event in enumerate(events, 1)
    )
    whole = Batch(items=items, given={document: given} if given else {})
    return run(whole, stages, lambda: 0.0)[0]


def known(stages: tuple[NamedStage, ...], text: str) -> tuple[Record, bytes]:
    first = batch(stages, Noted(turn="t", at="2026-03-01T09:00:00Z", text=text), given=None, document="test:one")
    (proposal,) = judge(first.candidates, {})
    return proposal.record, proposal.vector


def answered(stages: tuple[NamedStage, ...], text: str, record: Record, vector: bytes, told: bool) -> list[Proposal]:
    """What becomes of a user's words in a session that was, or was not, told this record."""
    import numpy as np

    given = Given(texts=(record.content, record.description), ids=(record.id,)) if told else None
    after = batch(stages, Said(turn="t", at=AT, role="user", text=text), given=given)
    near = {
        candidate_id(one): [
            Known(record=record, similarity=float(np.frombuffer(one.vector, "<f4") @ np.frombuffer(vector, "<f4")))
        ]
        for one in after.candidates
    }
    recalled = {"test:two": frozenset(given.ids)} if given else {}
    return judge(after.candidates, near, reader=PAIRS, recalled=recalled)


@pytest.mark.parametrize(
    ("text", "again"),
    [
        ("I prefer tabs for indentation.", "I prefer tabs for indentation."),
        ("I prefer tabs for indentation.", "For indentation I prefer tabs."),
        ("We always deploy the orchard on Tuesdays.", "Our orchard deploys always happen on Tuesdays."),
        ("Never push directly to main.", "Never push straight to main."),
        (
            "We keep our notes in Markdown, because it is easy to read.",
            "Right, Markdown for notes, reading it is simple.",
        ),
        ("I prefer dark themes in every editor.", "Sure, every editor I use gets a dark theme."),
    ],
)
def test_a_paraphrase_where_it_was_told_adds_nothing_W9(stages: tuple[NamedStage, ...], text: str, again: str) -> None:
    record, vector = known(stages, text)
    for proposal in answered(stages, again, record, vector, told=True):
        assert (proposal.decision.action, proposal.evidence) == ("noop", None)


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("I prefer tabs for indentation.", "I prefer spaces for indentation now."),
        ("We always deploy the orchard on Tuesdays.", "We no longer deploy the orchard on Tuesdays."),
        ("The orchard listens on port 8080.", "The orchard listens on port 9090."),
        ("We deploy the orchard on Tuesdays.", "Right, we deploy the orchard on Fridays now."),
        ("We keep our notes in Markdown.", "Yes, but we no longer keep our notes in Markdown."),
    ],
)
def test_a_change_of_mind_where_it_was_told_counts_W9(stages: tuple[NamedStage, ...], text: str, change: str) -> None:
    record, vector = known(stages, text)
    proposals = answered(stages, change, record, vector, told=True)
    assert [each.decision.action for each in proposals] == ["add"]


def test_elsewhere_the_same_words_are_evidence_P7(stages: tuple[NamedStage, ...]) -> None:
    record, vector = known(stages, "I prefer tabs for indentation.")
    (proposal,) = answered(stages, "I prefer tabs for indentation.", record, vector, told=False)
    assert proposal.decision.action == "noop" and proposal.evidence is not None
