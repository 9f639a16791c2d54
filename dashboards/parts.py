"""What both dashboards are made of: data source, queries, panels of one look, annotations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from grafana_foundation_sdk.builders import common, dashboard, heatmap, prometheus, stat, table, timeseries
from grafana_foundation_sdk.builders.dashboard import Dashboard, DatasourceVariable, QueryVariable, Row
from grafana_foundation_sdk.models.common import (
    GraphDrawStyle,
    LegendDisplayMode,
    LegendPlacement,
    ScaleDistribution,
    SortOrder,
    StackingMode,
    TooltipDisplayMode,
    VisibilityMode,
)
from grafana_foundation_sdk.models.dashboard import (
    AnnotationQuery,
    DashboardCursorSync,
    DataSourceRef,
    DataTransformerConfig,
    DynamicConfigValue,
    Threshold,
    ThresholdsMode,
    ValueMap,
    ValueMappingResult,
    VariableRefresh,
    VariableSort,
)
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

DATASOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
SECONDS, BYTES, RATIO, PER_SECOND, COUNT = "s", "bytes", "percentunit", "ops", "short"
GREEN, RED, ORANGE = "green", "red", "orange"

NAMESPACES = 'label_values(llamapool_model_condition{condition="Ready"}, namespace)'
"""Namespaces that have models."""

AnyPanel = TypeVar("AnyPanel", timeseries.Panel, heatmap.Panel, stat.Panel, table.Panel)


@dataclass(frozen=True)
class Query:
    """One query of a panel; its legend is a template of labels such as `{{reason}}`."""

    expression: str
    legend: str = ""


def new(title: str, uid: str, description: str) -> Dashboard:
    """Return an empty dashboard with its data source variable."""
    return (
        Dashboard(title)
        .uid(uid)
        .description(description)
        .tags(["llamapool"])
        .time("now-6h", "now")
        .refresh("30s")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .readonly()
        .with_variable(DatasourceVariable("datasource").label("Data source").type("prometheus"))
    )


def variable(name: str, label: str, query: str) -> QueryVariable:
    """Return a variable whose values are read anew with the time range."""
    return (
        QueryVariable(name)
        .label(label)
        .datasource(DATASOURCE)
        .query(query)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(VariableSort.ALPHABETICAL_ASC)
    )


class _PrometheusAnnotation(AnnotationQuery):
    """An annotation query with the fields of the Prometheus data source, which the library does not have."""

    def to_json(self) -> dict[str, object]:
        text = "{{reason}}{{cause}}"  # a label that a series lacks is empty
        return {**super().to_json(), "step": "30s", "titleFormat": self.name, "textFormat": text}


class _Annotation(dashboard.AnnotationQuery):
    def __init__(self, annotation: AnnotationQuery) -> None:
        super().__init__()
        self._internal = annotation


def annotation(name: str, expression: str, color: str) -> dashboard.AnnotationQuery:
    """Return marks in every panel at the times when a query has values."""
    made = _PrometheusAnnotation(name=name, datasource=DATASOURCE, expr=expression, icon_color=color)
    return _Annotation(made)


def row(title: str) -> Row:
    """Return a heading."""
    return Row(title)


def graph(
    title: str, unit: str, *queries: Query, description: str, width: int = 12, stacked: Sequence[str] = ()
) -> timeseries.Panel:
    """Return a panel of lines; those whose legend is in `stacked` are areas on top of each other."""
    panel = (
        _dressed(timeseries.Panel(), title, description, queries)
        .unit(unit)
        .min(0)
        .span(width)
        .height(8)
        .line_width(1)
        .show_points(VisibilityMode.NEVER)
        .draw_style(GraphDrawStyle.LINE)
        .legend(
            common.VizLegendOptions()
            .show_legend(show_legend=True)
            .display_mode(LegendDisplayMode.TABLE)
            .placement(LegendPlacement.BOTTOM)
            .calcs(["lastNotNull", "max"])
        )
        .tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING))
    )
    for legend in stacked:
        panel.override_by_name(
            legend,
            [
                DynamicConfigValue("custom.stacking", {"mode": StackingMode.NORMAL, "group": "A"}),
                DynamicConfigValue("custom.fillOpacity", 60),
            ],
        )
    return panel


def line(panel: timeseries.Panel, legend: str, color: str) -> timeseries.Panel:
    """Make one series of a panel a dashed line of a colour, such as a limit."""
    return panel.override_by_name(
        legend,
        [
            DynamicConfigValue("color", {"mode": "fixed", "fixedColor": color}),
            DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [10, 10]}),
            DynamicConfigValue("custom.lineWidth", 2),
        ],
    )


def heat(title: str, query: str, *, description: str, width: int = 12) -> heatmap.Panel:
    """Return a heatmap of the buckets of a histogram of seconds."""
    return (
        _dressed(heatmap.Panel(), title, description, [Query(query, "{{le}}")], PromQueryFormat.HEATMAP)
        .calculate(calculate=False)
        .span(width)
        .height(8)
        .color(
            heatmap.HeatmapColorOptions()
            .mode(HeatmapColorMode.SCHEME)
            .scheme("Oranges")
            .steps(64)
            .exponent(0.5)
            .fill("dark-orange")
        )
        .y_axis(heatmap.YAxisConfig().unit(SECONDS))
        .scale_distribution(common.ScaleDistributionConfig().type(ScaleDistribution.LOG).log(2))
    )


def figure(
    title: str,
    expression: str,
    *,
    description: str,
    bad_from: float | None = None,
    unit: str = COUNT,
    width: int = 4,
) -> stat.Panel:
    """Return one large figure; from `bad_from` on it is red."""
    steps = [Threshold(None, GREEN), *([] if bad_from is None else [Threshold(bad_from, RED)])]
    return (
        _dressed(stat.Panel(), title, description, [Query(expression)])
        .unit(unit)
        .span(width)
        .height(4)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .thresholds(dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE).steps(steps))
    )


def verdict(
    title: str, expression: str, *, description: str, good: str = "True", width: int = 4
) -> stat.Panel:
    """Return the status of a condition by its name; the query's value is 1 for True, 0 for False, else -1."""
    colors = {"True": RED, "False": RED, "Unknown": ORANGE} | {good: GREEN}
    words = {
        value: ValueMappingResult(text=word, color=colors[word], index=index)
        for index, (value, word) in enumerate({"1": "True", "0": "False", "-1": "Unknown"}.items())
    }
    return (
        _dressed(stat.Panel(), title, description, [Query(expression)])
        .span(width)
        .height(4)
        .no_value("not judged")
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .mappings([ValueMap(options=words)])
    )


def listing(
    title: str, *queries: Query, units: dict[str, str], hidden: Sequence[str], description: str
) -> table.Panel:
    """Return a table with one row for each combination of labels and one column for each query."""
    panel = _dressed(table.Panel(), title, description, queries, PromQueryFormat.TABLE, instant=True)
    for letter, query in zip("ABCDEFGHIJ", queries, strict=False):
        properties = [DynamicConfigValue("displayName", query.legend)]
        if query.legend in units:
            properties.append(DynamicConfigValue("unit", units[query.legend]))
        panel.override_by_name(f"Value #{letter}", properties)
    return (
        panel.span(24)
        .height(9)
        .with_transformation(DataTransformerConfig(id_val="merge", options={}))
        .with_transformation(
            DataTransformerConfig(
                id_val="organize", options={"excludeByName": dict.fromkeys(("Time", *hidden), True)}
            )
        )
    )


def _dressed(
    panel: AnyPanel,
    title: str,
    description: str,
    queries: Sequence[Query],
    query_format: PromQueryFormat = PromQueryFormat.TIME_SERIES,
    *,
    instant: bool = False,
) -> AnyPanel:
    """Give a panel its title, description and queries."""
    made: Any = panel.title(title).description(description).datasource(DATASOURCE)
    for letter, query in zip("ABCDEFGHIJ", queries, strict=False):
        target = (
            prometheus.Dataquery()
            .expr(query.expression)
            .legend_format(query.legend or "__auto")
            .format(query_format)
            .ref_id(letter)
        )
        made.with_target(target.instant() if instant else target.range())
    done: AnyPanel = made
    return done
