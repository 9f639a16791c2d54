"""The reference is the schema's."""

import yaml

from tools.hybridmodel_reference import CRD, REFERENCE, reference


def test_the_reference_of_the_hybridmodel_is_current() -> None:
    text = reference(yaml.safe_load(CRD.read_text(encoding="utf-8")))
    assert text == REFERENCE.read_text(encoding="utf-8"), "run python tools/hybridmodel_reference.py"
