"""The index of faults known from the field names tests that exist."""

import re

import pytest

from tools.hybridmodel_reference import ROOT

NAMED = re.findall(r"`([\w./-]+)::(\w+)`", (ROOT / "tests" / "README.md").read_text(encoding="utf-8"))


def test_the_index_names_tests() -> None:
    assert NAMED


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_test_that_the_index_names_exists(path: str, name: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    assert re.search(rf"^def {name}\(|^TEST\w*\(\w+, {name}\)", text, re.MULTILINE)
