"""The curator and the maintainer: roles that propose changes of a pool's playbook (G3, G4)."""
