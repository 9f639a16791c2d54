"""The operator's own metrics. Series of a model are collected from its last look, and go when it goes."""

import threading
from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from llamapool.domain.conditions import Condition, ConditionStatus, DecisionReason
from llamapool.domain.histogram import Histogram as ObservedHistogram
from llamapool.domain.limits import Limits
from llamapool.domain.memory import MemoryPlan
from llamapool.domain.oom import Cause, Phase

ModelKey = tuple[str, str]
"""Namespace and name of a model."""

_LABELS = ("namespace", "model")
_QUANTILES = (0.5, 0.9, 0.99)
_GAUGES = {
    "llamapool_model_memory_limit_bytes": "Memory limit of the model's pods, the smallest where they differ.",
    "llamapool_model_memory_headroom_bytes": "Memory kept free under the limit.",
    "llamapool_model_memory_base_bytes": "What the server needs beside sequence state.",
    "llamapool_model_memory_predicted_base_bytes": "The base as predicted from the model's header and flags.",
    "llamapool_model_memory_base_error_bytes": "How much more base was predicted than was measured.",
    "llamapool_model_state_budget_bytes": "Most bytes of sequence state that the plan allows.",
    "llamapool_model_checkpoint_bytes": "Size of the data of one checkpoint.",
    "llamapool_model_pool_cap_bytes": "Cap of the pool as written; absent where the server's own rule holds.",
    "llamapool_model_limits_generation": "Generation of the limits as written.",
    "llamapool_model_time_to_first_token_target_seconds": (
        "What 90 % of requests should stay under; absent where the model's own baseline counts."
    ),
    "llamapool_model_update_pending": "1 while pods that another operator built are left in place.",
}


class Metrics:
    """Every metric of the operator, in a registry of its own.

    Attributes:
        registry: what is exported.
        reconcile_seconds: duration of one look at one model.
        reconcile_errors: looks that failed, by reason.
        scrape_errors: scrapes that failed, by model and reason.
        decisions: decisions made, by model and reason.
        watch_last_event: time of the last event of any watch, Unix seconds.
        leader: 1 where this replica leads, 0 where it stands by.
        watch_confirmed: time when the watch was last seen to follow the API server, Unix seconds.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reconcile_seconds = Histogram(
            "llamapool_reconcile_seconds", "Duration of one look at one model.", registry=self.registry
        )
        self.reconcile_errors = Counter(
            "llamapool_reconcile_errors", "Looks that failed.", ("reason",), registry=self.registry
        )
        self.scrape_errors = Counter(
            "llamapool_scrape_errors",
            "Scrapes of servers that failed.",
            (*_LABELS, "reason"),
            registry=self.registry,
        )
        self.decisions = Counter(
            "llamapool_decisions", "Decisions made.", (*_LABELS, "reason"), registry=self.registry
        )
        self.watch_last_event = Gauge(
            "llamapool_watch_last_event_seconds",
            "Time of the last event of any watch, in seconds since 1970.",
            registry=self.registry,
        )
        self.leader = Gauge(
            "llamapool_leader", "1 where this replica leads, 0 where it stands by.", registry=self.registry
        )
        self.watch_confirmed = Gauge(
            "llamapool_watch_confirmed_seconds",
            "Time when the watch was last seen to follow the API server, in seconds since 1970.",
            registry=self.registry,
        )
        self._models = _ModelCollector()
        self.registry.register(self._models)

    def begin_model(self, key: ModelKey) -> None:
        """Start a model's counters at 0, so that the first increase is seen as one."""
        for reason in DecisionReason:
            self.decisions.labels(*key, reason.value)

    def show_model(
        self,
        key: ModelKey,
        *,
        plan: MemoryPlan,
        limits: Limits,
        conditions: tuple[Condition, ...],
        ttft: ObservedHistogram | None,
        ttft_target_seconds: float | None,
        update_pending: bool,
    ) -> None:
        """Take in the last look at a model."""
        figures = {
            "llamapool_model_memory_limit_bytes": plan.limit_bytes,
            "llamapool_model_memory_headroom_bytes": plan.headroom_bytes,
            "llamapool_model_memory_base_bytes": plan.base_bytes,
            "llamapool_model_memory_predicted_base_bytes": plan.predicted_base_bytes,
            "llamapool_model_memory_base_error_bytes": plan.base_error_bytes,
            "llamapool_model_state_budget_bytes": plan.state_budget_bytes,
            "llamapool_model_checkpoint_bytes": plan.checkpoint_bytes,
            "llamapool_model_pool_cap_bytes": limits.pool_cap_bytes,
            "llamapool_model_limits_generation": limits.generation,
            "llamapool_model_time_to_first_token_target_seconds": ttft_target_seconds,
            "llamapool_model_update_pending": update_pending,
        }
        quantiles: dict[float, float] = {}
        for share in _QUANTILES:
            quantile = None if ttft is None else ttft.quantile(share)
            if quantile is not None:
                quantiles[share] = quantile.seconds
        known = {name: float(figure) for name, figure in figures.items() if figure is not None}
        self._models.show(key, known, quantiles, conditions)

    def show_kills(self, key: ModelKey, kills: Mapping[str, int]) -> None:
        """Take in how many ends of containers the model's record counts, by cause and phase."""
        self._models.show_kills(key, kills)

    def show_conditions(self, key: ModelKey, conditions: tuple[Condition, ...]) -> None:
        """Take in a look that found a spec that cannot be used: no figure of an earlier look stays."""
        self._models.show(key, {}, {}, conditions)

    def forget_model(self, key: ModelKey) -> None:
        """Drop every series of a model that is gone."""
        self._models.forget(key)
        labels = dict(zip(_LABELS, key, strict=True))
        for counter in (self.decisions, self.scrape_errors):
            counter.remove_by_labels(labels)


class _ModelCollector(Collector):
    """Exports one set of gauges a model."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._figures: dict[ModelKey, Mapping[str, float]] = {}
        self._quantiles: dict[ModelKey, Mapping[float, float]] = {}
        self._conditions: dict[ModelKey, tuple[Condition, ...]] = {}
        self._kills: dict[ModelKey, Mapping[str, int]] = {}

    def show(
        self,
        key: ModelKey,
        figures: Mapping[str, float],
        quantiles: Mapping[float, float],
        conditions: tuple[Condition, ...],
    ) -> None:
        with self._lock:
            self._figures[key], self._quantiles[key] = figures, quantiles
            self._conditions[key] = conditions

    def show_kills(self, key: ModelKey, kills: Mapping[str, int]) -> None:
        with self._lock:
            self._kills[key] = kills

    def forget(self, key: ModelKey) -> None:
        with self._lock:
            for values in (self._figures, self._quantiles, self._conditions, self._kills):
                values.pop(key, None)

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            figures, quantiles = dict(self._figures), dict(self._quantiles)
            conditions, kills = dict(self._conditions), dict(self._kills)
        for name, help_text in _GAUGES.items():
            family = GaugeMetricFamily(name, help_text, labels=_LABELS)
            for key, values in figures.items():
                if name in values:
                    family.add_metric(key, values[name])
            yield family
        ttft = GaugeMetricFamily(
            "llamapool_model_time_to_first_token_seconds",
            "Time to first token lately, over all pods; absent while no request was served.",
            labels=(*_LABELS, "quantile"),
        )
        for key, shares in quantiles.items():
            for share, seconds in shares.items():
                ttft.add_metric((*key, str(share)), seconds)
        yield ttft
        condition = GaugeMetricFamily(
            "llamapool_model_condition",
            "1 for the status that a condition has, 0 for the other two.",
            labels=(*_LABELS, "condition", "status"),
        )
        reason = GaugeMetricFamily(
            "llamapool_model_condition_reason",
            "1 for the reason that a condition has.",
            labels=(*_LABELS, "condition", "status", "reason"),
        )
        for key, held in conditions.items():
            for one in held:
                for status in ConditionStatus:
                    condition.add_metric((*key, one.type.value, status.value), float(one.status is status))
                reason.add_metric((*key, one.type.value, one.status.value, one.reason.value), 1.0)
        yield condition
        yield reason
        yield _kill_counter(kills)


def _kill_counter(kills: Mapping[ModelKey, Mapping[str, int]]) -> CounterMetricFamily:
    ended = CounterMetricFamily(
        "llamapool_oom",
        "Ends of containers that were not asked for, each counted once, over restarts of the operator.",
        labels=(*_LABELS, "cause", "phase"),
    )
    for key, totals in kills.items():
        for cause in Cause:
            for phase in Phase:
                # From 0 on, so that the first increase is seen as one.
                ended.add_metric((*key, cause, phase), totals.get(f"{cause}/{phase}", 0))
    return ended
