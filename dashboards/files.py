"""The dashboards that the chart delivers, and their text as it stands in the chart."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards.fleet import fleet
from dashboards.model import model

FOLDER = Path(__file__).parents[1] / "charts" / "llamapool" / "dashboards"
DASHBOARDS: Mapping[str, Callable[[], Dashboard]] = MappingProxyType({"fleet": fleet, "model": model})


def text_of(build: Callable[[], Dashboard]) -> str:
    """Return a dashboard as the text of its JSON file."""
    return JSONEncoder(sort_keys=True, indent=1).encode(build().build()) + "\n"
