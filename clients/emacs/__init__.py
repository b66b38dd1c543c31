"""The Emacs package, one file: `memd plugin emacs` prints its folder."""

from pathlib import Path

FOLDER = Path(__file__).parent
