"""LLM calls with the manners of messages: queues, limits, retries, dead letters."""

from redrive.gateway.gateway import Gateway
from redrive.gateway.model import ModelConfig
from redrive.gateway.request import LLMRequest, LLMResponse, Usage
from redrive.gateway.router import ResponseRouter
from redrive.gateway.stats import ModelStats
from redrive.gateway.streams import AnswerStream, Delta
from redrive.gateway.surroundings import Outside
from redrive.gateway.transport import Post, Reply, StreamedReply, Transport

__all__ = [
    "AnswerStream",
    "Delta",
    "Gateway",
    "LLMRequest",
    "LLMResponse",
    "ModelConfig",
    "ModelStats",
    "Outside",
    "Post",
    "Reply",
    "ResponseRouter",
    "StreamedReply",
    "Transport",
    "Usage",
]
