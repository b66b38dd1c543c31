"""later"""

import typer

app = typer.Typer()


@app.command()
def bench() -> None:
    """later"""
