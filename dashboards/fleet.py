"""All models at a glance: which are in trouble, and how the operator itself is."""

from grafana_foundation_sdk.builders import table
from grafana_foundation_sdk.builders.dashboard import Dashboard

from dashboards import parts
from dashboards.parts import BYTES, COUNT, RATIO, SECONDS, Query

_MODELS = 'namespace=~"$namespace"'
_SERVERS = 'namespace=~"$namespace", llamapool_dev_model!=""'
_RATE = "$__rate_interval"


def fleet() -> Dashboard:
    """Return the dashboard."""
    return (
        parts.new("llamapool / fleet", "llamapool-fleet", "All models that llamapool serves.")
        .with_variable(
            parts.variable("namespace", "Namespace", parts.NAMESPACES)
            .multi(multi=True)
            .include_all(include_all=True)
        )
        .annotation(parts.annotation("Decision", _decisions(), "blue"))
        .with_row(parts.row("Models"))
        .with_panel(parts.figure("Models", _models(), description="HybridModels that the operator knows."))
        .with_panel(
            parts.figure(
                "Not ready",
                _models_with("Ready", "False"),
                description="Models of which no replica answers requests.",
                bad_from=1,
            )
        )
        .with_panel(
            parts.figure(
                "Memory does not fit",
                _models_with("MemoryFits", "False"),
                description="Models whose limit holds fewer than one checkpoint a slot.",
                bad_from=1,
            )
        )
        .with_panel(
            parts.figure(
                "Without a pool",
                _models_with("PoolActive", "False"),
                description="No buffers are kept for reuse: by choice, for want of room, or as a fallback.",
            )
        )
        .with_panel(
            parts.figure(
                "Slow",
                _models_with("TTFTHealthy", "False"),
                description="Models whose time to first token is past its target or baseline.",
                bad_from=1,
            )
        )
        .with_panel(
            parts.figure(
                "Degraded",
                _models_with("Degraded", "True"),
                description="Models that need a person: the operator has no step left to take.",
                bad_from=1,
            )
        )
        .with_panel(_table())
        .with_panel(
            parts.graph(
                "TTFT p90",
                SECONDS,
                Query(
                    "max by (namespace, model) (llamapool_model_time_to_first_token_seconds"
                    f'{{{_MODELS}, quantile="0.9"}})',
                    "{{namespace}}/{{model}}",
                ),
                description="Time to first token over the last five minutes, queueing included.",
            )
        )
        .with_panel(
            parts.heat(
                "TTFT, all models",
                "sum by (le) (namespace_model:llamapool_time_to_first_token_seconds_bucket:rate5m"
                f"{{{_MODELS}}})",
                description="From the chart's recording rules; empty where they are not loaded.",
            )
        )
        .with_row(parts.row("Memory"))
        .with_panel(
            parts.graph(
                "Unreclaimable memory, share of the limit",
                RATIO,
                Query(
                    "max by (namespace, llamapool_dev_model) (llamapool_cgroup_unreclaimable_bytes"
                    f"{{{_SERVERS}}} / llamapool_cgroup_limit_bytes{{{_SERVERS}}})",
                    "{{namespace}}/{{llamapool_dev_model}}",
                ),
                description="The replica with the most. At 100 % the kernel kills.",
            ).max(1)
        )
        .with_panel(
            parts.graph(
                "State, share of its budget",
                RATIO,
                Query(
                    "max by (namespace, llamapool_dev_model) (llamapool_state_bytes"
                    f"{{{_SERVERS}}} / llamapool_state_budget_bytes{{{_SERVERS}}})",
                    "{{namespace}}/{{llamapool_dev_model}}",
                ),
                description="Live checkpoints, cached prompts and pooled buffers.",
            ).max(1)
        )
        .with_panel(
            parts.graph(
                "OOM kills by cause",
                COUNT,
                Query(
                    f"sum by (namespace, model, cause) (increase(llamapool_oom_total{{{_MODELS}}}[{_RATE}]))",
                    "{{namespace}}/{{model}} {{cause}}",
                ),
                description="Terminations for memory as the operator explains them.",
            )
        )
        .with_panel(
            parts.graph(
                "Pool hit rate",
                RATIO,
                Query(
                    "sum by (namespace, llamapool_dev_model) "
                    f"(rate(llamapool_pool_hits_total{{{_SERVERS}}}[{_RATE}])) / "
                    "sum by (namespace, llamapool_dev_model) "
                    f"(rate(llamapool_pool_hits_total{{{_SERVERS}}}[{_RATE}])"
                    f" + rate(llamapool_pool_misses_total{{{_SERVERS}}}[{_RATE}]))",
                    "{{namespace}}/{{llamapool_dev_model}}",
                ),
                description="Checkpoint buffers that were resident already, of all that were asked for.",
            ).max(1)
        )
        .with_row(parts.row("Operator"))
        .with_panel(
            parts.graph(
                "Decisions by reason",
                COUNT,
                Query(
                    f"sum by (reason) (increase(llamapool_decisions_total{{{_MODELS}}}[{_RATE}]))",
                    "{{reason}}",
                ),
                description="Changes of limits; a model's status has the evidence.",
                width=8,
            )
        )
        .with_panel(
            parts.graph(
                "Looks",
                SECONDS,
                *(
                    Query(
                        f"histogram_quantile({share}, "
                        f"sum by (le) (rate(llamapool_reconcile_seconds_bucket[{_RATE}])))",
                        legend,
                    )
                    for share, legend in ((0.5, "p50"), (0.99, "p99"))
                ),
                description="Duration of one look at one model.",
                width=8,
            )
        )
        .with_panel(
            parts.graph(
                "Failures",
                COUNT,
                Query(
                    f"sum by (reason) (increase(llamapool_reconcile_errors_total[{_RATE}]))",
                    "look: {{reason}}",
                ),
                Query(
                    "sum by (namespace, model, reason) "
                    f"(increase(llamapool_scrape_errors_total{{{_MODELS}}}[{_RATE}]))",
                    "scrape of {{namespace}}/{{model}}: {{reason}}",
                ),
                description="Looks that failed, and servers whose metrics could not be read.",
                width=8,
            )
        )
        .with_panel(
            parts.graph(
                "Age of the watch",
                SECONDS,
                Query("time() - max(llamapool_watch_confirmed_seconds)", "confirmed"),
                Query("time() - max(llamapool_watch_last_event_seconds)", "last event"),
                description="Time since the watch was last seen to follow the API server, every 30 s,"
                " and since it last brought an event, which in a quiet cluster may be long ago.",
            )
        )
        .with_panel(
            parts.graph(
                "Updates pending",
                COUNT,
                Query(f"sum(llamapool_model_update_pending{{{_MODELS}}})", "models"),
                description="Models whose pods an earlier operator built and this one left in place.",
            )
        )
    )


def _models() -> str:
    return (
        "count(count by (namespace, model) "
        f'(llamapool_model_condition{{{_MODELS}, condition="Ready", status="True"}})) or vector(0)'
    )


def _models_with(condition: str, status: str) -> str:
    return (
        "sum(max by (namespace, model) "
        f'(llamapool_model_condition{{{_MODELS}, condition="{condition}", status="{status}"}})) or vector(0)'
    )


def _decisions() -> str:
    return f"sum by (namespace, model, reason) (increase(llamapool_decisions_total{{{_MODELS}}}[2m])) > 0"


def _table() -> table.Panel:
    def of(metric: str, extra: str = "") -> str:
        return f"max by (namespace, model) ({metric}{{{_MODELS}{extra}}})"

    queries = (
        Query(of("llamapool_model_condition", ', condition="Ready", status="True"'), "Ready"),
        Query(of("llamapool_model_condition", ', condition="MemoryFits", status="True"'), "Fits"),
        Query(of("llamapool_model_memory_limit_bytes"), "Limit"),
        Query(of("llamapool_model_memory_base_bytes"), "Base"),
        Query(of("llamapool_model_state_budget_bytes"), "State budget"),
        Query(of("llamapool_model_pool_cap_bytes"), "Pool cap"),
        Query(of("llamapool_model_checkpoint_bytes"), "Checkpoint"),
        Query(of("llamapool_model_time_to_first_token_seconds", ', quantile="0.9"'), "TTFT p90"),
    )
    units = dict.fromkeys(("Limit", "Base", "State budget", "Pool cap", "Checkpoint"), BYTES)
    return parts.listing(
        "Models",
        *queries,
        units=units | {"TTFT p90": SECONDS},
        hidden=(),
        description="What each model may use and how it is. 1: yes, 0: no or unknown.",
    )
