"""The status page's server: GET only, no state, nothing but what the watch has brought."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from aiohttp import web

from llamapool.page.history import TtftHistory
from llamapool.page.render import Frame, error_page, fleet_page, model_page, stylesheet

Models = Mapping[tuple[str, str], Mapping[str, Any]]

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class StatusPage:
    """Answers `/` (all models) and `/models/NAMESPACE/NAME`.

    Args:
        models: gives every model by namespace and name, as the API server has it.
        history: their time to first token.
        frame: gives what is around every page, for the time of the request.
    """

    def __init__(
        self, models: Callable[[], Models], history: TtftHistory, frame: Callable[[datetime], Frame]
    ) -> None:
        self._models, self._history, self._frame = models, history, frame

    def application(self) -> web.Application:
        """Return it as an aiohttp application."""
        application = web.Application(middlewares=[self._answer_errors])
        application.router.add_get("/", self._fleet)
        application.router.add_get("/models/{namespace}/{name}", self._model)
        application.router.add_get("/style.css", self._style)
        return application

    async def _fleet(self, _request: web.Request) -> web.Response:
        return self._html(fleet_page(self._models().values(), self._framed()))

    async def _model(self, request: web.Request) -> web.Response:
        key = (request.match_info["namespace"], request.match_info["name"])
        model = self._models().get(key)
        if model is None:
            message = (
                f"There is no HybridModel {key[1]} in namespace {key[0]}, or the operator does not watch it."
            )
            return self._html(error_page("No such model", message, self._framed()), HTTPStatus.NOT_FOUND)
        return self._html(model_page(model, self._history.of(key), self._framed()))

    async def _style(self, _request: web.Request) -> web.Response:
        return web.Response(text=stylesheet(), content_type="text/css", headers=_HEADERS)

    @web.middleware
    async def _answer_errors(
        self, request: web.Request, handler: Callable[[web.Request], Any]
    ) -> web.StreamResponse:
        try:
            response: web.StreamResponse = await handler(request)
        except web.HTTPException as error:
            message = f"{request.method} {request.path}: {error.reason}."
            return self._html(error_page(error.reason, message, self._framed()), error.status)
        return response

    def _framed(self) -> Frame:
        return self._frame(datetime.now(UTC))

    @staticmethod
    def _html(text: str, status: int = HTTPStatus.OK) -> web.Response:
        return web.Response(text=text, content_type="text/html", status=status, headers=_HEADERS)
