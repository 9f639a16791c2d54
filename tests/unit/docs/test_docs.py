"""The docs name what exists, and the reference is the schema's."""

import re
from pathlib import Path

import pytest
import yaml

from tools.hybridmodel_reference import CRD, REFERENCE, ROOT, reference

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_reference_of_the_hybridmodel_is_current() -> None:
    text = reference(yaml.safe_load(CRD.read_text(encoding="utf-8")))
    assert text == REFERENCE.read_text(encoding="utf-8"), "run python tools/hybridmodel_reference.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for target in _LINK.findall(page.read_text(encoding="utf-8")):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        linked = page.parent / name if name else page
        assert linked.exists(), f"{target} is not there"
        if anchor and linked.suffix == ".md":
            assert anchor in anchors(linked), f"{target}: {linked.name} has no such heading"
