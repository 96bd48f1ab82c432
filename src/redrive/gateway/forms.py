"""The form that clients of the front door speak, and what it is in the form of the model behind it."""

from collections.abc import Iterable, Mapping
from typing import Any

from redrive.gateway.from_anthropic import Chunks, from_anthropic
from redrive.gateway.to_anthropic import to_anthropic


class Form:
    """Both speak the same: everything is passed on as it is."""

    def ask(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """What is asked of the model. Raises `RequestRejected` for what cannot be asked."""
        return body

    def answer(self, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        """A whole answer."""
        return raw

    def chunks(self, raw: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        """What one event of a streamed answer says; a provider that did not stream has said it all in one."""
        choices = raw.get("choices")
        if not isinstance(choices, list) or not any(isinstance(one, dict) and "message" in one for one in choices):
            return (raw,)
        said = [{**choice, "delta": choice.get("message")} for choice in choices if isinstance(choice, dict)]
        for choice in said:
            choice.pop("message", None)
        return ({**raw, "object": "chat.completion.chunk", "choices": said},)


class AnthropicForm(Form):
    """The client speaks the OpenAI form, the model the Anthropic one. Belongs to one call."""

    def __init__(self, model: str, body: Mapping[str, Any]) -> None:
        options = body.get("stream_options")
        usage = isinstance(options, dict) and bool(options.get("include_usage"))
        self._model = model
        self._chunks = Chunks(model=model, usage=usage)

    def ask(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        messages, params = to_anthropic(body)
        return {"model": self._model, "messages": messages, **params}

    def answer(self, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        return from_anthropic(raw, model=self._model)

    def chunks(self, raw: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        return super().chunks(self.answer(raw)) if raw.get("type") == "message" else self._chunks.of(raw)
