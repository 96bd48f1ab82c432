"""Asks a model, through a provider that is out of order at first. `python examples/gateway.py` needs nothing else.

With `BASE_URL` (and a key in `API_KEY`) in the environment it asks a real one instead.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from redrive.gateway import Gateway, LLMRequest, ModelConfig


@asynccontextmanager
async def a_moody_provider() -> AsyncIterator[str]:
    """Is busy when it hears something for the first time, and answers the second time."""
    heard: set[str] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        asked = json.loads(await reader.readexactly(size))["messages"][-1]["content"]
        answer = {"choices": [{"message": {"role": "assistant", "content": f"You said: {asked}"}}]}
        busy = {"error": {"message": "come back later"}}
        body = json.dumps(answer if asked in heard else busy).encode()
        status = "200 OK" if asked in heard else "503 Busy"
        heard.add(asked)
        kind = "Content-Type: application/json\r\nConnection: close\r\n"
        writer.write(f"HTTP/1.1 {status}\r\n{kind}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


async def ask(base_url: str, *, key: str | None = None) -> None:
    models = {"fast": ModelConfig(base_url=base_url, model_name=os.environ.get("MODEL", "m"), api_key_env=key)}
    async with Gateway(models, policy=[0.1, 0.2, 0.4]) as gateway:
        requests = [
            LLMRequest(agent_id=agent, model="fast", messages=[{"role": "user", "content": f"hello from {agent}"}])
            for agent in ("planner", "writer")
        ]
        for future in await gateway.submit_many(requests):
            answer = await future
            print(f"{answer.text} (attempts: {answer.attempts})")


async def main() -> None:
    if "BASE_URL" in os.environ:
        await ask(os.environ["BASE_URL"], key="API_KEY")
        return
    async with a_moody_provider() as base_url:
        await ask(base_url)


if __name__ == "__main__":
    asyncio.run(main())
