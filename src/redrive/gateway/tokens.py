"""What a request may cost in tokens, before anybody knows: an estimate that is corrected by what the answer tells."""

from typing import Final

from redrive.gateway.request import LLMRequest

_BYTES: Final = 3  # of JSON per token: rather too many tokens than too few
_ANSWER: Final = 512
_NAMES: Final = ("max_completion_tokens", "max_tokens", "max_output_tokens")


def tokens_of(request: LLMRequest, body: bytes) -> int:
    """How many tokens to reserve: what the request says, or its length and the longest answer it asks for."""
    if request.est_tokens is not None:
        return request.est_tokens
    longest = _ANSWER
    if request.params:
        asked = (request.params.get(name) for name in _NAMES)
        longest = next((number for number in asked if type(number) is int and number > 0), _ANSWER)
    return len(body) // _BYTES + 1 + longest
