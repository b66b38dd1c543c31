"""What each word rule of the write path is worth on the corpus of sessions: what is kept without it."""

from __future__ import annotations

from collections import Counter, defaultdict

import msgspec

from ..corpus import corpus_folder, models_without, repository, session_names
from ..measurement import BenchOptions, Figure, PartResult, share
from ..temporary_daemon import empty_home, measure

Counts = Counter[str]
_CHANGES = {
    "whole": "gold whole",
    "touched": "whole or partly",
    "whole believed": "believed whole",
    "must-not kept": "must-not",
    "records": "records",
}


def ablation(options: BenchOptions) -> PartResult:
    """Sessions with gold lists, candidates without the store: gold kept whole without each rule that leaves out."""
    folder = corpus_folder(options)
    by_repository = defaultdict[str, list[str]](list)
    for name in session_names(options):
        by_repository[repository(name)].append(name)
    counts = defaultdict[str, Counts](Counts)
    with empty_home() as (_, environment):
        for own, names in by_repository.items():
            options.progress(f"write/ablation: {own}")
            told = measure({**environment, **models_without(own)}, "ablate-rules", str(folder), *names)
            for rule, change in msgspec.json.decode(told, type=dict[str, dict[str, int]]).items():
                counts[rule].update(change)
    whole = counts.pop("")
    rules = sorted(counts, key=lambda rule: (rule.partition(":")[0], -counts[rule]["records"]))
    figures = [
        share("gold whole, with all rules", whole["whole"], whole["gold"]),
        share("  whole or partly", whole["touched"], whole["gold"]),
        share("  whole, by believed records", whole["whole believed"], whole["gold"]),
        Figure("  must-not kept", whole["must-not kept"]),
        Figure("  records", whole["records"]),
        *(share(f"without {rule}", whole["whole"] + counts[rule]["whole"], whole["gold"]) for rule in rules),
    ]
    return PartResult(
        tuple(figures),
        notes=tuple(_note(rule, counts[rule]) for rule in rules),
        shows_not="rules of documents and of talk outside of projects, secrets, and what the store makes of candidates",
    )


def _note(rule: str, change: Counts) -> str:
    number = f"left out {change['left out']}: " if change["left out"] else ""
    return f"{rule}: {number}" + ", ".join(f"{name} {change[measure]:+}" for measure, name in _CHANGES.items())
