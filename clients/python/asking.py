"""The client's methods for questions and for what becomes of answers: recall, feedback, what was given in vain.

Comes in: a wish. Goes out: the daemon's typed reply, or its error. Invariant: one method a request, as in `client.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TypeVar

from ...protocol import intent
from ...protocol import recall as asked

T = TypeVar("T")


class AskingRequests(ABC):
    """A part of `Client`, which sends what these ask."""

    @abstractmethod
    def ask(self, wish: intent.Request, data: type[T]) -> T:
        """The reply to a request."""

    def recall(
        self,
        query: str,
        *,
        cwd: str = "",
        pools: Sequence[str] = (),
        limit: int = 20,
        budget_tokens: int = 1500,
        include_retired: bool = False,
        explain: bool = False,
        as_of: str = "",
        believed_at: str = "",
        document: str = "",
        keywords: Sequence[str] = (),
        perspective: str = "",
        agent: str = "",
        threshold: float = 0.0,
        deep: bool = False,
    ) -> asked.Recalled:
        """What is known about a question (Q2), each hit with its source; or what was true, or believed, then (Q12).

        `document`: the session that asks, which never learns again what it is told here (W9). The others: `Recall`.
        """
        wish = asked.Recall(
            query=query,
            cwd=cwd,
            pools=tuple(pools),
            limit=limit,
            budget_tokens=budget_tokens,
            include_retired=include_retired,
            explain=explain,
            as_of=as_of,
            believed_at=believed_at,
            document=document,
            keywords=tuple(keywords),
            perspective=perspective,
            agent=agent,
            threshold=threshold,
            deep=deep,
        )
        return self.ask(wish, asked.Recalled)

    def feedback(
        self,
        recall: str = "",
        *,
        used: Sequence[str] = (),
        helpful: Sequence[str] = (),
        wrong: Sequence[str] = (),
        failed: bool = False,
    ) -> asked.FeedbackTaken:
        """What became of an answer, named by its `recall`, or of records (T3, T4). Raises NotFound, InvalidRequest."""
        wish = asked.Feedback(
            recall=recall, used=tuple(used), helpful=tuple(helpful), wrong=tuple(wrong), failed=failed
        )
        return self.ask(wish, asked.FeedbackTaken)

    def never_used(self, pools: Sequence[str] = (), least: int = 3, limit: int = 50) -> asked.UnusedList:
        """Records that were often given and never used (Q9). Raises NotFound."""
        return self.ask(asked.NeverUsed(pools=tuple(pools), least=least, limit=limit), asked.UnusedList)
