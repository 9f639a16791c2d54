"""The dashboards of the chart are those that their source builds."""

import pytest

from dashboards.files import DASHBOARDS, FOLDER, text_of


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_committed_dashboard_is_what_its_source_builds(name: str) -> None:
    committed = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    assert committed == text_of(DASHBOARDS[name]), "write it anew: python -m dashboards"


def test_the_chart_has_no_other_dashboards() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(DASHBOARDS)
