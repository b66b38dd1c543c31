"""The hub's benchmark measures a real hub (H3)."""

from __future__ import annotations

import pytest

from memd.clients.bench import hub_costs
from memd.clients.bench.measurement import BenchOptions
from tests.clients.hub_server import postgres

__all__ = ["postgres"]
QUICK = BenchOptions(quick=True)


@pytest.mark.slow
def test_the_search_of_the_benchmark_is_exact_and_stays_in_its_pools_H3(postgres: str) -> None:
    result = hub_costs.search(QUICK)
    figures = {figure.name: figure for figure in result.figures}
    assert figures["recall@50 of the exact nearest"].met
    assert figures["subjects who got fewer rows than there are"].met
    assert figures["rows of pools that were not granted"].met
    assert sorted(len(curve.points) for curve in result.curves) == [3, 4, 4, 4, 4]
    assert sum(note.startswith("on paper") for note in result.notes) == 3


@pytest.mark.slow
def test_the_lines_of_the_benchmark_come_back_as_they_were_put_H3(postgres: str) -> None:
    figures = {figure.name for figure in hub_costs.lines(QUICK).figures}
    assert {"put of 20 lines, p50", "lines read and verified", "lines put at once"} <= figures


@pytest.mark.slow
def test_three_gateways_answer_for_one_hub_H3(postgres: str) -> None:
    figures = hub_costs.gateways(QUICK).figures
    assert all(figure.value > 0 and figure.floor > 0 for figure in figures)
