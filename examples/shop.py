"""An app for `redrive worker shop:app`, on the broker of the settings: `REDRIVE_BROKER`, or `redrive.toml`."""

import redrive
from redrive.config import load_settings

app = redrive.App(load_settings().broker.url, name="shop")


@app.consumer("orders", retry=[1, 2, 4])
async def charge(order: dict[str, object]) -> None:
    if not order.get("customer"):
        raise redrive.GiveUp("no customer", code="no_customer")
