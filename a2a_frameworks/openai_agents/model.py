"""Models of the OpenAI Agents SDK whose answers are steps of a turn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from agents import Model, ModelProvider, ModelResponse

from a2a_frameworks.openai_agents.answer import NAMES, make_event
from a2a_frameworks.openai_agents.steps import Steps

__all__ = ["StepModel", "StepProvider"]


class StepModel(Model):
    """A model whose answers are steps."""

    def __init__(self, model: Model, steps: Steps) -> None:
        self._model, self._steps = model, steps

    def __getattr__(self, name: str) -> Any:
        """Return what the SDK asks models of some kinds about."""
        return getattr(self._model, name)

    async def get_response(self, *request: Any, **about: Any) -> ModelResponse:
        """Return the answer of the model, or the stored one."""
        named = dict(zip(NAMES, request, strict=False))
        return await self._steps.ask(self._model, {**named, **about})

    async def stream_response(self, *request: Any, **about: Any) -> AsyncIterator[Any]:
        """Yield the answer as one event: the words went to the client already."""
        yield make_event(await self.get_response(*request, **about))

    def get_retry_advice(self, request: Any) -> Any:
        """Return the advice of the model."""
        return self._model.get_retry_advice(request)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self._model._cleanup_on_run_end(owner)  # noqa: SLF001 - what the SDK calls

    async def close(self) -> None:
        """Close the model."""
        await self._model.close()


class StepProvider(ModelProvider):
    """A provider of models whose answers are steps."""

    def __init__(self, provider: ModelProvider, steps: Steps) -> None:
        self._provider, self._steps = provider, steps

    def get_model(self, model_name: str | None) -> Model:
        """Return a model by its name."""
        return StepModel(self._provider.get_model(model_name), self._steps)

    async def aclose(self) -> None:
        """Close the provider."""
        await self._provider.aclose()
