"""The texts that `memd pi init` writes: policy, prompts, the settings with memd's defaults, what git leaves out."""

CONFIG = b"""version: 1
layers:
  L1:
    max_records: 40
    allowed_tags: ["preferences", "identity", "constraints"]
    write_policy: "manual_or_curator_only"
  L2:
    max_records: 300
    allowed_tags: ["workflow", "playbook", "domain", "architecture"]
    write_policy: "curator_or_maintainer_only"
  L3:
    max_records_per_project: 2000
    write_policy: "auto_ok"

confidence_rules:
  promote_to_L2:
    requires_evidence_count: 2
    min_confidence: 0.75
  promote_to_L1:
    requires_evidence_count: 3
    min_confidence: 0.85
  deprecate:
    contradiction_evidence_required: 1

review_policy:
  semi_stable_days: 30
  stable_days: 120
  decay:
    L3_after_days: 45

retrieval:
  always_load:
    - ".pi/memory/L1.identity.jsonl"
  tag_boost:
    workflow: 2.0
    architecture: 1.5
  time_window_days:
    L3_default: 14
"""

IGNORED = b"""# Made anew on each machine, or not yet reviewed
/runtime/
/index/
/cache/
/inbox/
/reports/
# What an interrupted write leaves
/memory/.L*
/patches/.patch_*
"""

ATTRIBUTES = b"""# The same bytes on every machine
memory/*.jsonl text eol=lf
patches/*.json text eol=lf
tools/*.py text eol=lf
"""

PERSONAL_NOTE = b"""This .pi folder holds one person's own identity and playbook (`memd pi init --personal`).
It belongs in a private repository.
"""

POLICY = b"""# Memory policy

1. A patch in `patches/` is the only way in. `memory/*.jsonl` is made from the patches, by `memd pi sync` or
   `python3 .pi/tools/pi_apply_patch.py`; nobody merges it by hand. A pull request holds a patch alone.
2. A record never rests on a single conversation: it has a durable artifact, or instances on two days or more.
3. Every record has a `change_condition`: what would have to happen for it to be wrong.
4. There are no duplicates, only succession: the new record supersedes the old one.
5. What is personal, what identifies somebody, quotes of sessions and secrets never enter this folder.
6. The curator and the maintainer propose; a person, or the merge of a pull request, decides.
7. The agent that does the work reads memory. It writes none.

Layers: L1 identity (40 records, personal, never in a project's folder), L2 playbook (300 records, here), L3 project and
session memory (on each machine, never in git). The numbers that govern this are in `pi.config.yaml`.
"""

PROMPTS = {
    "capturer": b"""# Capturer

Read one finished task. List candidates: facts, decisions, patterns that were stated or done, one line each, with the
words they rest on. Do not judge quality, do not choose a layer, and add nothing that nobody said. Write no memory file.
""",
    "curator": b"""# Curator

Read the candidates. Keep those that recur on different days or rest on a durable artifact. For each, copy the clearest
sentence as it stands; do not compose one. Give confidence, evidence and a change condition. If the playbook has it
already, say so instead of adding it. Output one patch of at most ten operations, and never edit `memory/`.
""",
    "maintainer": b"""# Maintainer

Look for duplicates, for records past their review date, and for records that later work contradicts. Propose
`supersede`, `review` or `deprecate` with a reason, in one patch. Retire nothing yourself.
""",
    "retriever": b"""# Retriever

Before a task: load L1 in full, the playbook by tag and project, and L3 of the last 7 to 14 days. Output a summary and
the records behind it. Write nothing.
""",
}
