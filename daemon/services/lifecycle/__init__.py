"""Strength, sleep and maintenance: what fades, what stays. Its first inhabitant is the idle trigger."""
