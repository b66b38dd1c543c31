"""Five languages besides English: taken to the letter, found by a word, dates and zones right (P-21, P-22)."""

from typing import Any, NamedTuple

import pytest

from memd.protocol.event import Noted, Origin, Said
from memd.protocol.instant import micros


class Told(NamedTuple):
    """A statement, the questions that must find it, its event's time and the same moment in UTC."""

    text: str
    questions: tuple[str, ...]
    at: str
    utc: str


TOLD = {
    "zh": Told(
        "我们决定把果园服务部署在法兰克福的机房。",
        ("果园服务", "法兰克福"),
        "2026-03-10T01:30:00+08:00",
        "2026-03-09T17:30:00Z",
    ),
    "ja": Told(
        "テストは必ずデプロイの前に実行してください。",
        ("デプロイ", "テストの実行"),
        "2026-03-10T02:00:00+09:00",
        "2026-03-09T17:00:00Z",
    ),
    "ko": Told(
        "과수원 서비스는 매주 화요일에 배포합니다.",
        ("과수원", "화요일 배포"),
        "2026-03-10T00:15:00+09:00",
        "2026-03-09T15:15:00Z",
    ),
    "ar": Told(
        "نستخدم قاعدة البيانات بوستجرس في خدمة البستان.",
        ("بوستجرس", "البستان"),
        "2026-03-10T01:00:00+03:00",
        "2026-03-09T22:00:00Z",
    ),
    "de": Told(
        "Die Prüfsummen der Obstgarten-Datenbank schreiben wir immer groß.",
        ("Prüfsummen", "obstgarten"),
        "2026-03-29T03:30:00+02:00",
        "2026-03-29T01:30:00Z",
    ),
}
ASKED, TALKED = Origin(host="test", session="asked"), Origin(host="test", session="talked")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Any:
    import os

    from tests.conftest import RunningDaemon

    folder = tmp_path_factory.mktemp("languages") / "home"
    folder.mkdir(mode=0o700)
    daemon = RunningDaemon({**os.environ, "MEMD_HOME": str(folder)})
    daemon.start()
    with daemon.client() as client:
        client.capture(ASKED, [Noted(turn=name, at=each.at, text=each.text) for name, each in TOLD.items()])
        daemon.settle()
        yield client
    daemon.terminate()


@pytest.mark.parametrize("name", TOLD)
def test_a_statement_is_kept_to_the_letter_with_its_moment_and_zone_P22_P21(kept: Any, name: str) -> None:
    told = TOLD[name]
    (record,) = [each for each in kept.list(limit=50).records if each.provenance.spans[0].turn == name]
    assert record.content == record.provenance.quote == told.text and kept.why(record.id).quote_holds
    assert record.language == name and record.provenance.said_at == told.at
    assert micros(record.provenance.said_at) == micros(told.utc) == micros(record.valid_from)


@pytest.mark.parametrize(("name", "question"), [(name, each) for name, told in TOLD.items() for each in told.questions])
def test_it_is_found_by_a_word_of_its_own_P22(kept: Any, name: str, question: str) -> None:
    answer = kept.recall(question)
    assert [hit.record.provenance.spans[0].turn for hit in answer.hits][:1] == [name], answer.reason


def test_what_was_only_said_is_found_word_for_word_too_P22_Q4(kept: Any) -> None:
    turns = [Said(turn=f"s-{name}", at=each.at, role="assistant", text=each.text) for name, each in TOLD.items()]
    kept.capture(TALKED, turns)
    for name, told in TOLD.items():
        heard = {turn.turn: turn.quote for turn in kept.recall(told.questions[0]).turns}
        assert heard.get(f"s-{name}") == told.text
