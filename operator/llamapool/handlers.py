"""The operator's process: kopf watches and indexes, the loop looks; no policy here.

Only events and an index: every other kind of kopf handler puts a finalizer on the HybridModel, which could
then not be deleted while the operator is gone.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import kopf
from aiohttp import web
from prometheus_client import start_http_server

from llamapool.adapters.cluster import KubernetesCluster
from llamapool.adapters.fence import FencedCluster
from llamapool.adapters.metrics import Metrics, ModelKey
from llamapool.adapters.scrape import HttpScraper
from llamapool.api import GROUP, PLURAL, VERSION
from llamapool.errors import ClusterError, NotFoundError
from llamapool.leadership import Leadership
from llamapool.loop import Loop
from llamapool.manifests.common import MODEL_LABEL, Images
from llamapool.page.history import TtftHistory
from llamapool.page.render import Frame
from llamapool.page.routes import StatusPage
from llamapool.reconcile import Reconciler
from llamapool.schema import known_schema, require_current
from llamapool.settings import Settings
from llamapool.watch import WatchCheck

_LOG = logging.getLogger(__name__)
_SCRAPE_THREADS = 32
_WATCH_CHECK_SECONDS = 30.0
_HISTORY_SECONDS = 60.0
_WATCH_SECONDS = 300
_LEASE_TIMEOUT_SECONDS = 3.0
"""An attempt is two requests; both must fail well before the renewal deadline."""


def run(settings: Settings) -> None:
    """Run the operator until it is told to stop.

    Raises:
        ClusterError: the API server does not answer, or serves no HybridModels.
        OutdatedSchemaError: it serves those of an older release.
    """
    log_format = kopf.LogFormat.JSON if settings.log.format == "json" else kopf.LogFormat.FULL
    kopf.configure(log_format=log_format)
    logging.getLogger().setLevel(settings.log.level)
    logging.getLogger("kopf").setLevel(max(logging.WARNING, logging.getLogger().level))
    metrics = Metrics()
    cluster = KubernetesCluster(request_timeout_seconds=settings.loop.request_timeout_seconds)
    leadership = _leadership(settings)
    start_http_server(settings.ports.metrics, registry=metrics.registry)
    with ThreadPoolExecutor(_SCRAPE_THREADS, thread_name_prefix="scrape") as executor:
        reconciler = Reconciler(
            cluster=FencedCluster(cluster, lambda: leadership is None or leadership.leads),
            scraper=HttpScraper(timeout_seconds=settings.loop.scrape_timeout_seconds),
            metrics=metrics,
            executor=executor,
            images=Images(server=settings.server_image, operator=settings.operator_image),
            scrape_annotations=settings.scrape_annotations,
            settings=settings.loop,
        )
        process = _Process(
            settings=settings,
            cluster=cluster,
            metrics=metrics,
            reconciler=reconciler,
            leadership=leadership,
        )
        process.require_models()
        # By default kopf asks for the user's name, which a container's user id need not have.
        identity: Any = settings.election.identity
        kopf.run(
            identity=identity,
            registry=process.registry(),
            standalone=True,
            clusterwide=not settings.namespaces,
            namespaces=settings.namespaces,
        )


def _leadership(settings: Settings) -> Leadership | None:
    """Return this replica's part in the election; None where there is none, and it always leads."""
    election = settings.election
    if not election.name:
        return None
    return Leadership(
        cluster=KubernetesCluster(request_timeout_seconds=_LEASE_TIMEOUT_SECONDS),
        namespace=election.namespace,
        name=election.name,
        identity=election.identity,
        settings=election.lease,
    )


@dataclass(kw_only=True)
class _Process:
    """The parts of a running operator that live on its event loop.

    A replica that stands by watches too, so that it takes over with everything it needs in memory; it only
    does not look.
    """

    settings: Settings
    cluster: KubernetesCluster
    metrics: Metrics
    reconciler: Reconciler
    leadership: Leadership | None
    watch: WatchCheck = field(default_factory=WatchCheck)
    history: TtftHistory = field(default_factory=TtftHistory)
    loop: Loop = field(init=False)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.loop = Loop(
            look=self._look,
            forget=self.reconciler.forget,
            metrics=self.metrics,
            settings=self.settings.loop,
        )

    def require_models(self) -> None:
        """Check that the API server serves HybridModels as this operator knows them.

        kopf would wait for them in silence.

        Raises:
            ClusterError: it serves none, or does not answer.
            OutdatedSchemaError: it serves those of an older release.
        """
        try:
            self._served()
        except NotFoundError as error:
            message = "the API server serves no HybridModels: apply crds/llamapool.dev_hybridmodels.yaml"
            raise NotFoundError(error.status, error.reason, f"{message} ({error})") from error
        try:
            served = self.cluster.model_schema()
        except ClusterError as error:
            _LOG.warning(
                "whether the CustomResourceDefinition is older than this operator is unknown: %s", error
            )
            return
        require_current(served, known_schema())

    def registry(self) -> kopf.OperatorRegistry:
        """Return the handlers."""
        registry = kopf.OperatorRegistry()
        model = (GROUP, VERSION, PLURAL)
        labelled: dict[str, Any] = {"labels": {MODEL_LABEL: kopf.PRESENT}, "registry": registry}

        @kopf.on.login(registry=registry)
        async def login(**context: Any) -> kopf.ConnectionInfo | None:
            # The same credentials as our own client's, and the API server by its address: the cluster's DNS
            # need not be up.
            return kopf.login_via_client(**context)

        @kopf.on.startup(registry=registry, errors=kopf.ErrorsMode.PERMANENT)
        async def start(settings: kopf.OperatorSettings, **indices: Any) -> None:
            # The operator tells its decisions itself, and the CRD comes with the chart: nothing to scan for.
            settings.posting.enabled = False
            settings.scanning.disabled = True
            # A watch is begun anew now and then, so that a silently dead one is not dead for good.
            settings.watching.server_timeout = _WATCH_SECONDS
            settings.watching.client_timeout = _WATCH_SECONDS + 30
            settings.watching.label_selectors["v1", "pods"] = MODEL_LABEL
            settings.watching.label_selectors["apps", "v1", "deployments"] = MODEL_LABEL
            await self._start(indices["models"])

        @kopf.on.cleanup(registry=registry)
        async def stop(**_: Any) -> None:
            for task in self.tasks:
                task.cancel()
            await asyncio.gather(*self.tasks, return_exceptions=True)
            if self.leadership is not None:
                await asyncio.to_thread(self.leadership.release)

        @kopf.index(*model, id="models", registry=registry)
        async def models(
            namespace: str | None, name: str | None, body: kopf.Body, **_: Any
        ) -> dict[tuple[str | None, str | None], dict[str, Any]]:
            return {(namespace, name): dict(body)}

        @kopf.on.event(*model, registry=registry)
        async def model_changed(namespace: str | None, name: str | None, **_: Any) -> None:
            self._wake(namespace, name)

        @kopf.on.event("v1", "pods", **labelled)
        async def pod_changed(namespace: str | None, labels: kopf.Labels, **_: Any) -> None:
            self._wake(namespace, labels[MODEL_LABEL])

        @kopf.on.event("apps", "v1", "deployments", **labelled)
        async def deployment_changed(namespace: str | None, labels: kopf.Labels, **_: Any) -> None:
            self._wake(namespace, labels[MODEL_LABEL])

        return registry

    async def _start(self, models: Mapping[ModelKey, Any]) -> None:
        self.tasks.append(asyncio.create_task(self.loop.run(lambda: list(models) if self._leads() else [])))
        self.tasks.append(asyncio.create_task(self._campaign()))
        self.tasks.append(asyncio.create_task(self._check_watch(models)))
        application = web.Application()
        application.router.add_get("/healthz", self._healthz)
        await _listen(application, self.settings.ports.health)
        if self.settings.ports.status is not None:
            self.tasks.append(asyncio.create_task(self._keep_history(models)))
            page = StatusPage(lambda: _bodies(models), self.history, self._frame)
            await _listen(page.application(), self.settings.ports.status)

    async def _keep_history(self, models: Mapping[ModelKey, Any]) -> None:
        """Note every model's time to first token once a minute for as long as the process runs."""
        while True:
            statuses = {key: body.get("status") or {} for key, body in _bodies(models).items()}
            self.history.sample(statuses, now=time.time())
            await asyncio.sleep(_HISTORY_SECONDS)

    def _frame(self, now: datetime) -> Frame:
        trouble = "the watch of HybridModels has stopped to follow the API server" if self.watch.stale else ""
        replica = self.settings.election.identity
        return Frame(now=now, replica=replica, leads=self._leads(), trouble=trouble)

    async def _look(self, key: ModelKey) -> bool:
        return await asyncio.to_thread(self.reconciler.look, key)

    def _wake(self, namespace: str | None, name: str | None) -> None:
        self.metrics.watch_last_event.set(time.time())
        self.loop.wake((namespace or "", name or ""))

    def _leads(self) -> bool:
        leads = self.leadership is None or self.leadership.leads
        self.metrics.leader.set(leads)
        return leads

    async def _campaign(self) -> None:
        """Take or renew the lease for as long as the process runs."""
        while self.leadership is not None:
            await asyncio.to_thread(self.leadership.attempt)
            await asyncio.sleep(self.leadership.settings.retry_seconds)

    async def _check_watch(self, models: Mapping[ModelKey, Any]) -> None:
        """Compare the index with the API server for as long as the process runs."""
        self.metrics.watch_confirmed.set(time.time())  # it has just begun
        while True:
            await asyncio.sleep(_WATCH_CHECK_SECONDS)
            indexed = {key: body["metadata"]["resourceVersion"] for key, body in _bodies(models).items()}
            try:
                served = await asyncio.to_thread(self._served)
            except ClusterError as error:
                _LOG.warning("the watch cannot be checked: %s", error)
                continue
            self.watch.compare(indexed, served)
            if self.watch.stale:
                _LOG.error("the watch of HybridModels has stopped to follow the API server")
            else:
                self.metrics.watch_confirmed.set(time.time())

    def _served(self) -> dict[ModelKey, str]:
        namespaces: tuple[str | None, ...] = self.settings.namespaces or (None,)
        found = [model for namespace in namespaces for model in self.cluster.list("HybridModel", namespace)]
        return {
            (model["metadata"]["namespace"], model["metadata"]["name"]): model["metadata"]["resourceVersion"]
            for model in found
        }

    async def _healthz(self, _request: web.Request) -> web.Response:
        """Answer 200 while the loop turns and the watch follows; the kubelet restarts the pod otherwise."""
        if not self.loop.alive:
            return web.Response(status=503, text="the loop has stopped\n")
        if self.watch.stale:
            return web.Response(status=503, text="the watch has stopped\n")
        if any(task.done() and not task.cancelled() and task.exception() for task in self.tasks):
            return web.Response(status=503, text="a task of the operator has failed\n")
        return web.Response(text="ok\n")


def _bodies(models: Mapping[ModelKey, Any]) -> dict[ModelKey, Mapping[str, Any]]:
    """Return the models of the index, which keeps a collection for each key."""
    return {key: body for key in list(models) for body in models[key]}


async def _listen(application: web.Application, port: int) -> None:
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, port=port).start()
