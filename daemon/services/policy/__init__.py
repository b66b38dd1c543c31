"""The policy of each pool: what `.pi/pi.config.yaml` decides, and the lens of a part of a repository (P6, G1)."""
