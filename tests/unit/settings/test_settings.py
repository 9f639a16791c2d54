"""Settings are read from the environment, and what cannot be used is named."""

import pytest

from llamapool.errors import InvalidFieldError
from llamapool.settings import Settings

IMAGE = {"LLAMAPOOL_SERVER_IMAGE": "server:1", "LLAMAPOOL_OPERATOR_IMAGE": "operator:1"}


def test_only_the_images_have_to_be_set() -> None:
    settings = Settings.from_environment(IMAGE)
    assert settings.server_image == "server:1"
    assert settings.namespaces == ()
    assert (settings.ports.metrics, settings.ports.health) == (9090, 8081)
    assert (settings.log.format, settings.log.level) == ("plain", "INFO")
    assert settings.election.name == ""


def test_every_variable_is_read() -> None:
    settings = Settings.from_environment(
        IMAGE
        | {
            "LLAMAPOOL_NAMESPACES": "a, b,",
            "LLAMAPOOL_LOG_FORMAT": "json",
            "LLAMAPOOL_LOG_LEVEL": "debug",
            "LLAMAPOOL_METRICS_PORT": "9999",
            "LLAMAPOOL_HEALTH_PORT": "8888",
            "LLAMAPOOL_LEASE": "system/llamapool",
            "LLAMAPOOL_IDENTITY": "llamapool-0",
            "LLAMAPOOL_SCRAPE_ANNOTATIONS": "false",
        }
    )
    assert settings.namespaces == ("a", "b")
    assert (settings.log.format, settings.log.level) == ("json", "DEBUG")
    election = settings.election
    assert (election.namespace, election.name, election.identity) == ("system", "llamapool", "llamapool-0")
    assert (settings.ports.metrics, settings.ports.health) == (9999, 8888)
    assert not settings.scrape_annotations


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LLAMAPOOL_SERVER_IMAGE", ""),
        ("LLAMAPOOL_OPERATOR_IMAGE", ""),
        ("LLAMAPOOL_LOG_FORMAT", "xml"),
        ("LLAMAPOOL_LOG_LEVEL", "LOUD"),
        ("LLAMAPOOL_SCRAPE_ANNOTATIONS", "yes"),
        ("LLAMAPOOL_METRICS_PORT", "0"),
        ("LLAMAPOOL_METRICS_PORT", "http"),
        ("LLAMAPOOL_HEALTH_PORT", "65536"),
        ("LLAMAPOOL_HEALTH_PORT", "²"),
        ("LLAMAPOOL_LEASE", "llamapool"),
        ("LLAMAPOOL_LEASE", "/llamapool"),
        ("LLAMAPOOL_LEASE", "a/b/c"),
    ],
)
def test_a_variable_that_cannot_be_used_is_named(name: str, value: str) -> None:
    with pytest.raises(InvalidFieldError) as raised:
        Settings.from_environment(IMAGE | {name: value})
    assert raised.value.field == name
