"""One model: its memory against its limit, its time to first token, its pool, and what was decided."""

from grafana_foundation_sdk.builders.dashboard import Dashboard

from dashboards import parts
from dashboards.parts import BYTES, COUNT, ORANGE, PER_SECOND, RATIO, RED, SECONDS, Query

_MODEL = 'namespace="$namespace", model="$model"'
_SERVERS = 'namespace="$namespace", llamapool_dev_model="$model"'
_REPLICA = f'{_SERVERS}, instance="$replica"'
_RATE = "$__rate_interval"
_SHARES = ((0.5, "p50"), (0.9, "p90"), (0.99, "p99"))


def model() -> Dashboard:
    """Return the dashboard."""
    made = (
        parts.new(
            "llamapool / model", "llamapool-model", "One model, its memory and its time to first token."
        )
        .with_variable(parts.variable("namespace", "Namespace", parts.NAMESPACES))
        .with_variable(
            parts.variable(
                "model",
                "Model",
                'label_values(llamapool_model_condition{namespace="$namespace", condition="Ready"}, model)',
            )
        )
        .with_variable(
            parts.variable(
                "replica", "Replica", f"label_values(llamapool_build_info{{{_SERVERS}}}, instance)"
            )
        )
        .annotation(
            parts.annotation(
                "Decision",
                f"sum by (reason) (increase(llamapool_decisions_total{{{_MODEL}}}[2m])) > 0",
                "blue",
            )
        )
        .annotation(
            parts.annotation(
                "Pool cap changed",
                f"max(changes(llamapool_model_pool_cap_bytes{{{_MODEL}}}[2m])) > 0",
                "purple",
            )
        )
        .annotation(
            parts.annotation(
                "OOM kill", f"sum by (cause) (increase(llamapool_oom_total{{{_MODEL}}}[2m])) > 0", "red"
            )
        )
        .with_row(parts.row("Conditions"))
    )
    for condition, good, description in (
        ("Ready", "True", "At least one replica answers requests."),
        ("MemoryFits", "True", "The limit holds at least one checkpoint a slot."),
        ("LimitsApplied", "True", "Every server has said that it applies the limits as written."),
        ("PoolActive", "True", "Buffers of checkpoints are kept for reuse."),
        ("TTFTHealthy", "True", "The time to first token is within its target or baseline."),
        ("Degraded", "False", "The operator has no step left to take; a person is needed."),
    ):
        made.with_panel(parts.verdict(condition, _verdict_of(condition), good=good, description=description))
    return _decisions(_pool(_time_to_first_token(_memory(made))))


def _verdict_of(condition: str) -> str:
    selector = f'{_MODEL}, condition="{condition}"'
    return (
        f'max(llamapool_model_condition{{{selector}, status="True"}})'
        f' - max(llamapool_model_condition{{{selector}, status="Unknown"}})'
    )


def _memory(made: Dashboard) -> Dashboard:
    plan = parts.graph(
        "Memory plan of $replica",
        BYTES,
        Query(f"llamapool_memory_base_bytes{{{_REPLICA}}}", "base"),
        Query(f"llamapool_checkpoints_live_bytes{{{_REPLICA}}}", "live checkpoints"),
        Query(f"llamapool_prompt_cache_bytes{{{_REPLICA}}}", "cached prompts"),
        Query(f"llamapool_pool_held_bytes{{{_REPLICA}}}", "pooled buffers"),
        Query(
            f"llamapool_memory_base_bytes{{{_REPLICA}}} + llamapool_state_budget_bytes{{{_REPLICA}}}",
            "base + state budget",
        ),
        Query(f"llamapool_cgroup_limit_bytes{{{_REPLICA}}}", "limit"),
        description="What is used, stacked, against what may be; between budget and limit is headroom.",
        stacked=("base", "live checkpoints", "cached prompts", "pooled buffers"),
    )
    parts.line(plan, "base + state budget", ORANGE)
    cgroup = parts.graph(
        "Memory of $replica by the kernel",
        BYTES,
        Query(f"llamapool_cgroup_anon_bytes{{{_REPLICA}}}", "anonymous"),
        Query(f"llamapool_cgroup_shmem_bytes{{{_REPLICA}}}", "shared"),
        Query(f"llamapool_cgroup_file_bytes{{{_REPLICA}}}", "page cache"),
        Query(f"llamapool_cgroup_unreclaimable_bytes{{{_REPLICA}}}", "unreclaimable"),
        Query(f"llamapool_cgroup_limit_bytes{{{_REPLICA}}}", "limit"),
        description="Page cache, mmapped weights among it, is given back under pressure.",
        stacked=("anonymous", "shared", "page cache"),
    )
    kills = parts.graph(
        "OOM kills by cause",
        COUNT,
        Query(
            f"sum by (cause, phase) (increase(llamapool_oom_total{{{_MODEL}}}[{_RATE}]))",
            "{{cause}}, {{phase}}",
        ),
        description="Terminations for memory as the operator explains them, and the phase they came in.",
    )
    given_up = parts.graph(
        "State given up or not made",
        PER_SECOND,
        Query(
            f"sum(rate(llamapool_checkpoints_evicted_total{{{_SERVERS}}}[{_RATE}]))", "checkpoints evicted"
        ),
        Query(
            f"sum(rate(llamapool_checkpoints_skipped_total{{{_SERVERS}}}[{_RATE}]))", "checkpoints skipped"
        ),
        Query(f"sum(rate(llamapool_prompts_evicted_total{{{_SERVERS}}}[{_RATE}]))", "prompts evicted"),
        Query(f"sum(rate(llamapool_prompts_skipped_total{{{_SERVERS}}}[{_RATE}]))", "prompts skipped"),
        Query(f"sum(rate(llamapool_allocation_failures_total{{{_SERVERS}}}[{_RATE}]))", "allocations failed"),
        description="What the budget did not hold. A conversation whose state is gone is processed anew.",
    )
    return (
        made.with_row(parts.row("Memory"))
        .with_panel(parts.line(plan, "limit", RED))
        .with_panel(parts.line(cgroup, "limit", RED))
        .with_panel(kills)
        .with_panel(given_up)
    )


def _time_to_first_token(made: Dashboard) -> Dashboard:
    quantiles = parts.graph(
        "Time to first token",
        SECONDS,
        *(Query(_quantile("llamapool_time_to_first_token_seconds", share), name) for share, name in _SHARES),
        Query(f"max(llamapool_model_time_to_first_token_target_seconds{{{_MODEL}}})", "target p90"),
        description="From the arrival of a request to its first token, queueing included, all replicas.",
    )
    return (
        made.with_row(parts.row("Time to first token"))
        .with_panel(parts.line(quantiles, "target p90", RED))
        .with_panel(
            parts.heat(
                "Time to first token, distribution",
                "sum by (le) "
                f"(increase(llamapool_time_to_first_token_seconds_bucket{{{_SERVERS}}}[{_RATE}]))",
                description="Requests by time to first token, all replicas.",
            )
        )
        .with_panel(
            parts.graph(
                "Time to make a checkpoint",
                SECONDS,
                *(Query(_quantile("llamapool_checkpoint_seconds", share), name) for share, name in _SHARES),
                description="The part of the time to first token that the pool is about.",
            )
        )
        .with_panel(
            parts.graph(
                "Prompts",
                COUNT,
                *(Query(_quantile("llamapool_prompt_tokens", share), name) for share, name in _SHARES),
                Query(f"sum(rate(llamapool_prompt_tokens_count{{{_SERVERS}}}[{_RATE}])) * 60", "a minute"),
                description="Tokens per prompt: a slower first token may come of longer prompts.",
            )
        )
    )


def _pool(made: Dashboard) -> Dashboard:
    held = parts.graph(
        "Pool of $replica",
        BYTES,
        Query(f"llamapool_pool_held_bytes{{{_REPLICA}}}", "held"),
        Query(f"llamapool_pool_high_water_bytes{{{_REPLICA}}}", "high water"),
        Query(f"llamapool_pool_cap_bytes{{{_REPLICA}}}", "cap in effect"),
        Query(f"max(llamapool_model_pool_cap_bytes{{{_MODEL}}})", "cap as written"),
        description="Buffers kept for reuse. The server's own budget may bound the cap as written.",
    )
    return (
        made.with_row(parts.row("Pool"))
        .with_panel(parts.line(held, "cap in effect", RED))
        .with_panel(
            parts.graph(
                "Pool hit rate",
                RATIO,
                Query(
                    f"sum(rate(llamapool_pool_hits_total{{{_SERVERS}}}[{_RATE}]))"
                    f" / (sum(rate(llamapool_pool_hits_total{{{_SERVERS}}}[{_RATE}]))"
                    f" + sum(rate(llamapool_pool_misses_total{{{_SERVERS}}}[{_RATE}])))",
                    "hits",
                ),
                description="Checkpoint buffers that were resident already, of all that were asked for.",
            ).max(1)
        )
        .with_panel(
            parts.graph(
                "What the pool does",
                PER_SECOND,
                *(
                    Query(f"sum(rate(llamapool_pool_{name}_total{{{_SERVERS}}}[{_RATE}]))", name)
                    for name in ("hits", "misses", "declines", "evictions", "trims")
                ),
                description="Declines and evictions with misses beside them: the cap is too small.",
            )
        )
        .with_panel(
            parts.graph(
                "Checkpoints of $replica",
                COUNT,
                Query(f"llamapool_checkpoints_live{{{_REPLICA}}}", "live"),
                Query(f"llamapool_pool_held_buffers{{{_REPLICA}}}", "pooled"),
                description="Checkpoints in memory, shared ones counted once, and buffers kept for reuse.",
            )
        )
    )


def _decisions(made: Dashboard) -> Dashboard:
    return (
        made.with_row(parts.row("Decisions"))
        .with_panel(
            parts.graph(
                "Decisions by reason",
                COUNT,
                Query(
                    f"sum by (reason) (increase(llamapool_decisions_total{{{_MODEL}}}[{_RATE}]))",
                    "{{reason}}",
                ),
                description="Changes of limits; kubectl describe has each with its evidence.",
            )
        )
        .with_panel(
            parts.graph(
                "Trials",
                COUNT,
                Query(
                    "max(llamapool_model_condition_reason"
                    f'{{{_MODEL}, condition="PoolActive", reason="TrialRunning"}}) or vector(0)',
                    "running",
                ),
                Query(
                    "sum by (reason) "
                    f'(increase(llamapool_decisions_total{{{_MODEL}, reason=~"Trial.+"}}[{_RATE}]))',
                    "{{reason}}",
                ),
                description="Pool off and on in alternation; what each came to is in status.trial.",
            )
        )
        .with_panel(
            parts.graph(
                "Limits, generation",
                COUNT,
                Query(f"max(llamapool_model_limits_generation{{{_MODEL}}})", "written"),
                Query(f"llamapool_limits_generation{{{_SERVERS}}}", "applied by {{instance}}"),
                Query(
                    f"sum(increase(llamapool_limits_errors_total{{{_SERVERS}}}[{_RATE}]))", "invalid files"
                ),
                description="A server that stays behind the written generation does not read its limits.",
            )
        )
    )


def _quantile(metric: str, share: float) -> str:
    return f"histogram_quantile({share}, sum by (le) (rate({metric}_bucket{{{_SERVERS}}}[{_RATE}])))"
