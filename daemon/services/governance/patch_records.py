"""Records from the patches of other authors (G2, W5).

Pure: no store, no clock. Invariants: the id, the pool and the source follow from the name in the patch, never from what
it says; a record of another author is a document's word without a pin, in the playbook of its project; it has no type
that speaks for the user, and no text with characters that a terminal acts on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from unicodedata import category

from ....protocol.errors import MemdError
from ....protocol.instant import checked, from_micros, micros
from ....protocol.patch_file import (
    AddRecord,
    DeprecateRecord,
    PatchOperation,
    PromoteRecord,
    ReviewRecord,
    SeedRecord,
    SupersedeRecord,
)
from ....protocol.record import (
    CONSOLIDATED,
    PRINCIPLE,
    QUOTE_LIMIT,
    TYPES,
    Artifact,
    Provenance,
    Record,
    Review,
    Span,
    Volatility,
)
from ....protocol.shared_lines import shown_name
from ..outgoing_screen import flags_in, secrets_in
from ..playbook_belief import playbook_document, playbook_id
from ..statements import line

SPEAKING = frozenset({"identity", "persona", PRINCIPLE})
"""Types that speak for the user: a record with one of these becomes a note."""

_NO_TAGS = frozenset({*SPEAKING, CONSOLIDATED, "summary"})
_WORD = 64
_FORBIDDEN = frozenset({"Cc", "Cs", "Zl", "Zp"})
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
VOLATILITIES: dict[str, Volatility] = {"stable": "stable", "semi-stable": "semi", "volatile": "situational"}

UNKNOWN_AUTHOR = "an unknown author"


class Arriving(NamedTuple):
    """Where a patch comes from. `now`: when it came, in microseconds; `by_user`: the user adopted it."""

    pool: str
    mark: str
    author: str
    now: int
    by_user: bool = False


def author_name(name: str) -> str:
    """Return the name of a commit's author as memd shows it."""
    try:
        shown = shown_name(name)
    except MemdError:
        return UNKNOWN_AUTHOR
    return UNKNOWN_AUTHOR if secrets_in(shown) or flags_in(shown) else shown


def why_not(operation: PatchOperation) -> str:
    """Return why memd does not take an operation of another author, "" if it does."""
    texts = list(_texts(operation))
    if secret := next((found[0].rule for words in texts if (found := secrets_in(words))), ""):
        return f"it has a secret ({secret}): its author should revoke it"
    if not all(_is_plain(words) for words in texts):
        return "it has characters that memd does not show"
    if not isinstance(operation, AddRecord | PromoteRecord):
        return ""
    record = operation.record
    if record.layer == "L3":
        return "only records of the playbook come with a patch, and it is of layer L3"
    if not record.statement.strip():
        return "its statement is empty"
    if any(len(tag) > _WORD for tag in record.tags):
        return f"a tag has more than {_WORD} characters"
    return "" if _is_instant(record.created_at) else f"{record.created_at} is no day"


def name_of(operation: PatchOperation) -> str:
    """Return the name of the record that an operation is about."""
    match operation:
        case AddRecord(record=record) | PromoteRecord(record=record):
            return record.id
        case SupersedeRecord(old=old):
            return old
        case DeprecateRecord(id=id) | ReviewRecord(id=id):
            return id


def record_of(seed: SeedRecord, arriving: Arriving) -> Record:
    """Return the record that a patch states, as it is before anything retires it."""
    flags = tuple(dict.fromkeys(flags_in("\n".join((seed.statement, *seed.tags)), not arriving.by_user)))
    said = min(micros(f"{seed.created_at}T00:00:00Z"), arriving.now)
    text, trust = seed.statement, "user" if arriving.by_user else "document"
    document = playbook_document(arriving.mark)
    return Record(
        id=playbook_id(arriving.pool, arriving.mark, seed.id),
        pool=arriving.pool,
        kind="note",
        content=text,
        description=line(text),
        layer="L2",
        status="quarantined" if flags or seed.layer == "L1" else "active",
        tags=_tags(seed),
        artifacts=_artifacts(seed),
        confidence=round(seed.confidence, 2),
        volatility=VOLATILITIES[seed.stability],
        review=_review(seed),
        flags=flags,
        provenance=Provenance(
            author=arriving.author,
            source=document,
            trust=trust,
            spans=(Span(document, seed.id, 0, len(text)),),
            quote=text[:QUOTE_LIMIT],
            said_at=from_micros(said),
            visibility="shared",
        ),
    )


def says_the_same(first: Record, second: Record) -> bool:
    """Whether two records state the same in the same way."""
    return _stated(first) == _stated(second)


def _stated(record: Record) -> tuple[object, ...]:
    review = record.review or Review()
    kept = review.cadence_days, review.next, review.change_condition
    return record.content, record.tags, record.artifacts, record.confidence, record.volatility, kept


def _tags(seed: SeedRecord) -> tuple[str, ...]:
    tags = [tag for tag in (" ".join(tag.split()) for tag in seed.tags) if tag and tag.casefold() not in _NO_TAGS]
    kind = tags[0] if tags and tags[0] in TYPES and seed.tags[0].casefold() not in SPEAKING else "note"
    return tuple(dict.fromkeys((kind, *tags)))


def _artifacts(seed: SeedRecord) -> tuple[Artifact, ...]:
    """Return the evidence that a reader of another machine can look up."""
    kept: list[Artifact] = []
    for item in seed.evidence:
        if item.type == "commit" and 7 <= len(item.ref) <= 64 and item.ref.isalnum():
            kept.append(Artifact(type="commit", ref=item.ref, note=item.note))
        elif item.ref.startswith("https://") and len(item.ref) <= 500:
            kept.append(Artifact(type="url", ref=item.ref, note=item.note))
    return tuple(dict.fromkeys(kept))[:8]


def _review(seed: SeedRecord) -> Review:
    following = seed.review.next_review
    return Review(
        cadence_days=seed.review.cadence_days,
        next=instant(following) if _is_instant(following) else "",
        change_condition=seed.review.change_condition,
    )


def instant(day: str) -> str:
    """Return a day, or a time, as RFC 3339. Raises InvalidRequest, NaiveTime."""
    return checked(f"{day}T00:00:00Z" if len(day) == 10 else day)


def _is_instant(text: str) -> bool:
    try:
        return bool(instant(text))
    except (MemdError, ValueError, OverflowError):
        return False


def _texts(operation: PatchOperation) -> Iterator[str]:
    match operation:
        case AddRecord(record=record) | PromoteRecord(record=record):
            yield from (record.statement, *record.tags, record.scope.type, record.review.change_condition)
            yield from (words for item in record.evidence for words in (item.type, item.ref, item.note))
        case DeprecateRecord(reason=reason):
            yield reason
        case _:
            pass


def _is_plain(words: str) -> bool:
    """Whether a text has only characters that show something, line breaks and tabs."""
    return all(
        character in "\n\t" or (category(character) not in _FORBIDDEN and character not in _TURNING)
        for character in words
    )
