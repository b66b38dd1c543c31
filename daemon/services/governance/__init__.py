"""Governance: patches of the playbook, which a person or a merge decides, and each pool's policy (G1-G8)."""
