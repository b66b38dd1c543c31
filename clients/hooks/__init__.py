"""Hooks of coding agents: the program that a host runs on every turn, what reads its sessions, and their set-up."""
