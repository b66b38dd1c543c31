"""`python -m memd.benchmarks NAME …`: runs one measurement in the home of its environment and prints JSON."""

from __future__ import annotations

import os
import sys

os.umask(0o077)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # two BLAS threads cost 70 times as much on a busy machine

COMMANDS = {
    "ablate-rules": ("benchmarks.rule_ablation", "ablate_command"),
    "fill-home": ("benchmarks.inside", "fill_command"),
    "fill-years": ("benchmarks.years", "years_command"),
    "measure-forgetting": ("benchmarks.forgetting", "forgetting_command"),
    "measure-sleep": ("benchmarks.sleep", "sleep_command"),
    "replay": ("benchmarks.inside", "replay_command"),
    "scan-texts": ("benchmarks.inside", "scan_command"),
    "judge-texts": ("benchmarks.inside", "judge_command"),
    "embed-texts": ("benchmarks.inside", "embed_command"),
    "count-tokens": ("benchmarks.inside", "count_command"),
    "write-partitions": ("benchmarks.sharing", "write_command"),
    "curate-all": ("benchmarks.all_proposals", "curate_command"),
    "check-partitions": ("benchmarks.sharing", "check_command"),
    "teach-agents": ("benchmarks.taught_agents", "agents_command"),
    "try-skill-edits": ("benchmarks.skill_edits", "edits_command"),
}
"""Module below `memd` and function of each measurement; imported when it is run."""


def main() -> int:
    """Run the measurement that the first argument names; return the exit code."""
    from ..daemon.server import offline
    from ..daemon.world import real_world
    from ..protocol.places import places

    name, *arguments = sys.argv[1:] or [""]
    return offline.run(name, arguments, places(os.environ, os.getuid()), real_world(), COMMANDS)


if __name__ == "__main__":
    sys.exit(main())
