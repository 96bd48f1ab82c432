"""The panels as a Grafana dashboard, built with Grafana's own types."""

from collections.abc import Mapping

from grafana_foundation_sdk.builders import common, dashboard, piechart, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import DataSourceRef, LegendDisplayMode, LegendPlacement
from grafana_foundation_sdk.models.dashboard import VariableRefresh

from deploy.generator.panels import PANELS, PanelRow
from redrive.observe import table

_SOURCE = DataSourceRef(type_val="prometheus", uid="prometheus")
_HEIGHT = 8


def redrive_dashboard() -> str:
    """The dashboard as JSON."""
    built = (
        dashboard.Dashboard("Redrive")
        .uid("redrive")
        .description("Dead letters: how many, of what, for how long, and what came of sending them back.")
        .tags(["redrive", "dlq"])
        .refresh("30s")
        .time("now-3h", "now")
        .readonly()
        .with_variable(
            dashboard.QueryVariable("queue")
            .label("Queue")
            .query(f"label_values({table.SETTLED.name}, queue)")
            .datasource(_SOURCE)
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
            .multi(multi=True)
            .include_all(include_all=True)
            .all_value(".*")
        )
    )
    for row in PANELS:
        built.with_panel(_panel(row))
    return JSONEncoder(sort_keys=True, indent=2).encode(built.build()) + "\n"


_Panel = timeseries.Panel | piechart.Panel | stat.Panel
_KINDS: Mapping[str, type[_Panel]] = {"lines": timeseries.Panel, "pie": piechart.Panel, "number": stat.Panel}


def _panel(row: PanelRow) -> _Panel:
    panel = _KINDS[row.kind]()
    panel.title(row.title).description(row.tells).unit(row.unit).datasource(_SOURCE)
    panel.span(row.width).height(4 if row.kind == "number" else _HEIGHT)
    if not isinstance(panel, timeseries.Panel):
        panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
    else:
        panel.min(0).fill_opacity(10).legend(
            common.VizLegendOptions()
            .display_mode(LegendDisplayMode.LIST)
            .placement(LegendPlacement.BOTTOM)
            .show_legend(show_legend=True)
        )
    for number, (name, expression) in enumerate(row.asks):
        query = prometheus.Dataquery().expr(expression).legend_format(name).ref_id("ABCD"[number])
        panel.with_target(query.range() if row.kind == "lines" else query.instant())
    return panel
