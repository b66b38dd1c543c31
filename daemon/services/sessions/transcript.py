"""The turns of a session, with the records that cite them. Words of hidden records are covered; tool results and
secrets are not in the archive."""

from __future__ import annotations

from collections.abc import Sequence

from ....protocol.errors import NotFound
from ....protocol.event import Captured, SentPart, text
from ....protocol.session import Citation, GetTranscript, SessionTurns, TranscriptTurn
from ...projections.records import Records
from ..statements import covered, speaker, stated_spans


def transcript(request: GetTranscript, document: str, captures: Sequence[Captured], records: Records) -> SessionTurns:
    """Return the part of a session's turns that a request asks for. Raises NotFound."""
    spoken = [captured for captured in captures if text(captured.event) and not isinstance(captured.event, SentPart)]
    first = 0
    if request.around:
        places = (place for place, captured in enumerate(spoken) if captured.event.turn == request.around)
        place = next(places, None)
        if place is None:
            raise NotFound(f"no turn {request.around!r} in {document}", hint="`memd why` names the turn of a record")
        first = max(0, place - (request.limit - 1) // 2)
    shown = spoken[first : first + request.limit]
    turns = tuple(_turn(captured, records) for captured in shown)
    return SessionTurns(document=document, turns=turns, before=first, after=len(spoken) - first - len(shown))


def shown_words(captured: Captured, records: Records) -> str:
    """Return the text of a turn, without words that the user hid."""
    return _turn(captured, records).text


def _turn(captured: Captured, records: Records) -> TranscriptTurn:
    event, words, cited = captured.event, text(captured.event), list[Citation]()
    for record, spans in stated_spans(records, captured.document, event.turn):
        for span in spans:
            if record.status == "hidden":
                words = covered(words, span.start, min(span.end, len(words)))
            else:
                cited.append(Citation(record=record.id, status=record.status, start=span.start, end=span.end))
    cited.sort(key=lambda citation: (citation.start, citation.end, citation.record))
    return TranscriptTurn(turn=event.turn, at=event.at, who=speaker(captured), text=words, cited=tuple(cited))
