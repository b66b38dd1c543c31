"""What happened to captures, for `memd status`: taken, skipped, refused, each with its time and reason (U6).

Comes in: requests on their way to the committer. Goes out: the same, with somebody who looks at the answers. Invariant:
what a client was told stands in the next status.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....protocol.errors import Forgotten, MemdError, Withheld
from ....protocol.reply import AnyData, Taken
from ....protocol.request import AnyRequest, Capture, Remember

Note = Callable[[str, str], None]
Respond = Callable[[AnyData | MemdError], None]
Taking = Capture | Remember


class CaptureStatus:
    """Looks at what the committer answers; `note` takes a name and what happened."""

    def __init__(self, note: Note) -> None:
        self._note = note

    def watched(self, arrived: Sequence[tuple[AnyRequest, Respond]]) -> list[tuple[Taking, Respond]]:
        """Those of the requests that take something in, each with a response that is noted."""
        return [(each, self._watch(each, respond)) for each, respond in arrived if isinstance(each, Capture | Remember)]

    def _watch(self, wish: Taking, respond: Respond) -> Respond:
        def noted(answer: AnyData | MemdError) -> None:
            if said := _trouble(answer):  # first: whoever is told may ask for it at once
                name, why = said
                self._note(name, f"{wish.origin.document[:80]}: {why}")
            respond(answer)

        return noted


def _trouble(answer: AnyData | MemdError) -> tuple[str, str] | None:
    """Under which name an answer is noted, and why; None where all was taken."""
    match answer:
        case Taken(refused=(), skipped=0):
            return None
        case Forgotten():
            return None
        case Withheld():
            return "skipped", answer.message
        case MemdError():
            return "refused", f"{answer.code}: {answer.message}"
        case Taken(refused=(first, *_)):
            return "refused", f"{len(answer.refused)} events: {first.problem.message}"
        case Taken(skipped=skipped) if skipped:
            return "skipped", f"{skipped} events: {answer.why}"
        case _:
            return None
