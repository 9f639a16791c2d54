"""Golden files are written anew by `pytest tests/unit/manifests --regenerate-golden`."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate-golden", action="store_true", help="write the golden files anew")


@pytest.fixture
def regenerate_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--regenerate-golden"))
