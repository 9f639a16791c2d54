from pathlib import Path

import pytest

from tests.cluster import settings
from tests.cluster.errors import LabError


def test_the_state_folder_is_by_default_named_after_the_lab() -> None:
    assert settings.lab("other", {}).state == Path("/var/lib/llamapool-lab/other")


def test_the_state_folder_can_be_chosen() -> None:
    assert settings.lab("other", {"LLAMAPOOL_LAB_STATE": "/srv/lab"}).state == Path("/srv/lab")


def test_a_lab_of_another_name_does_not_take_the_state_folder_of_the_surrounding_one() -> None:
    inside = {"LLAMAPOOL_LAB_NAME": "first", "LLAMAPOOL_LAB_STATE": "/srv/first"}
    assert settings.lab("second", inside).state == Path("/var/lib/llamapool-lab/second")


def test_the_surrounding_lab_is_the_one_meant_when_no_name_is_given() -> None:
    inside = {"LLAMAPOOL_LAB_NAME": "first", "LLAMAPOOL_LAB_STATE": "/srv/first"}
    assert settings.lab(None, inside) == settings.Lab("first", Path("/srv/first"))


@pytest.mark.parametrize("name", ["Upper", "-x", "x-", "a/b", "x" * 21, "1st"])
def test_a_name_that_fits_nowhere_is_refused_with_what_would_fit(name: str) -> None:
    with pytest.raises(LabError, match=r"--name: .* it takes 1 to 20"):
        settings.lab(name, {})


def test_two_labs_share_nothing_on_the_machine() -> None:
    first, second = settings.lab("a", {}), settings.lab("b", {})
    assert first.identity != second.identity
    assert first.network_namespace != second.network_namespace
    assert not set(first.private_folders) & set(second.private_folders)


def test_the_path_of_the_runtime_socket_fits_into_a_socket_address() -> None:
    limit = 108  # sun_path, unix(7)
    assert len(str(settings.lab("x" * 20, {}).containerd_socket)) < limit
