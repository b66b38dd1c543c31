"""memd: one local memory for every AI tool on a developer's machine.

The rooms, from the ground up: `protocol` (what travels and what is stored), `models` (text to vectors,
locally), `stages` (the write path), `daemon` (the process that owns the data), `clients` (everything that
talks to it). Imports run one way: protocol ← models ← stages ← daemon, and clients → protocol.
Importing this package costs nothing.
"""

# A constant, because importlib.metadata costs milliseconds; a test keeps it equal to pyproject's.
__version__ = "0.1.0"
