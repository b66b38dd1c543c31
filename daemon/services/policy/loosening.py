"""Compares a policy with the default: which rules it makes looser, and what is in force until the user accepts that.

A rule is looser if memd would accept with less proof, keep more, keep it longer without a look, or let more write. What
retrieval orders is neither: it changes nothing that memd holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, cast

import msgspec

from ....protocol.policy import Loosened, Policy

Kind = Literal["most", "least", "tags", "first"]


class Rule(NamedTuple):
    """A rule by its path. `most`: a higher number is looser; `least`: a lower one; `tags`: a tag more is looser, and
    none at all allows any; `first`: the earlier of `values` is looser."""

    path: tuple[str, ...]
    kind: Kind
    values: Sequence[str] = ()


RULES = (
    Rule(("layers", "L1", "max_records"), "most"),
    Rule(("layers", "L1", "allowed_tags"), "tags"),
    Rule(("layers", "L1", "write_policy"), "first", ("manual_or_curator_only", "manual_only")),
    Rule(("layers", "L2", "max_records"), "most"),
    Rule(("layers", "L2", "allowed_tags"), "tags"),
    Rule(("layers", "L2", "write_policy"), "first", ("curator_or_maintainer_only", "curator_only", "manual_only")),
    Rule(("layers", "L3", "max_records_per_project"), "most"),
    Rule(("layers", "L3", "write_policy"), "first", ("auto_ok", "capturer_only")),
    Rule(("confidence_rules", "promote_to_L2", "requires_evidence_count"), "least"),
    Rule(("confidence_rules", "promote_to_L2", "min_confidence"), "least"),
    Rule(("confidence_rules", "promote_to_L1", "requires_evidence_count"), "least"),
    Rule(("confidence_rules", "promote_to_L1", "min_confidence"), "least"),
    Rule(("confidence_rules", "deprecate", "contradiction_evidence_required"), "most"),
    Rule(("review_policy", "semi_stable_days"), "most"),
    Rule(("review_policy", "stable_days"), "most"),
    Rule(("review_policy", "decay", "L3_after_days"), "most"),
)
"""Every rule but those of `retrieval`; a test compares the list with the policy's fields."""


def loosened(policy: Policy, base: Policy) -> tuple[Loosened, ...]:
    """Return the rules that a policy makes looser than `base`."""
    asked, usual = msgspec.to_builtins(policy), msgspec.to_builtins(base)
    return tuple(
        Loosened(rule=".".join(rule.path), default=_shown(_at(usual, rule)), asked=_shown(_at(asked, rule)))
        for rule in RULES
        if _is_looser(rule, _at(asked, rule), _at(usual, rule))
    )


def stricter(policy: Policy, base: Policy) -> Policy:
    """Return a policy with the rules of `base` where it is looser."""
    asked, usual = msgspec.to_builtins(policy), msgspec.to_builtins(base)
    for rule in RULES:
        if _is_looser(rule, _at(asked, rule), _at(usual, rule)):
            *above, name = rule.path
            table = asked
            for key in above:
                table = table[key]
            table[name] = _at(usual, rule)
    return msgspec.convert(asked, Policy)


def _at(values: Any, rule: Rule) -> Any:
    for key in rule.path:
        values = values[key]
    return values


def _is_looser(rule: Rule, asked: Any, usual: Any) -> bool:
    match rule.kind:
        case "most":
            return asked > usual
        case "least":
            return asked < usual
        case "first":
            return rule.values.index(asked) < rule.values.index(usual)
        case "tags":
            return bool(usual) and (not asked or not set(asked) <= set(usual))


def _shown(value: Any) -> str:
    return (", ".join(cast("list[str]", value)) or "any") if isinstance(value, list) else str(value)
