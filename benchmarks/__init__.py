"""Measurements that need the layers from inside: a filled home, replay speed, judged texts. Nothing imports it."""
