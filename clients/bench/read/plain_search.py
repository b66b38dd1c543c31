"""Plain BM25 over whole texts, with the tokenizer that tantivy has for English: the peer that recall must not be worse
than."""

from __future__ import annotations

from collections.abc import Sequence

import tantivy

TOKENIZER = "en_stem"
LISTED = 20


class PlainSearch:
    """An index of texts in memory."""

    def __init__(self, texts: Sequence[str]) -> None:
        builder = tantivy.SchemaBuilder()
        builder.add_unsigned_field("place", stored=True)
        builder.add_text_field("text", tokenizer_name=TOKENIZER)
        self._index = tantivy.Index(builder.build())
        writer = self._index.writer(15_000_000, 1)
        for place, text in enumerate(texts):
            document = tantivy.Document()
            document.add_unsigned("place", place)
            document.add_text("text", text)
            writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()

    def find(self, question: str, limit: int = LISTED) -> list[int]:
        """Return the places of the texts that share a word with a question, the best first."""
        words = "".join(letter if letter.isalnum() else " " for letter in question).lower()
        if not words.strip():
            return []
        query = self._index.parse_query(words, ["text"])
        searcher = self._index.searcher()
        hits = searcher.search(query, limit).hits
        return [int(str(searcher.doc(address).get_first("place"))) for _, address in hits]
