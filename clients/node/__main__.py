"""`python -m memd.clients.node`: write the generated files."""

from . import FOLDER
from .generated_files import generated_files

for name, content in generated_files().items():
    (FOLDER / name).write_text(content, encoding="utf-8")
