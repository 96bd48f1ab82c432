"""Every page there is, over the stock of `stock.py`."""

from tests.browser.stock import Stock


def pages(stock: Stock) -> dict[str, str]:
    """The path of each, by a name that a file can have."""
    return {
        "overview": "/",
        "incidents": "/incidents",
        "incident": f"/incidents/{stock.incident}",
        "letters": "/letters",
        "letters-filtered": "/letters?queue=orders&error_type=KeyError&state=open",
        "letters-none": "/letters?q=nowhere-to-be-found",
        "letter": f"/letters/{stock.letter}",
        "letter-text": f"/letters/{stock.letter}?view=text",
        "letter-hex": f"/letters/{stock.binary}?view=hex",
        "letter-digest": f"/letters/{stock.digest}",
        "letter-hostile": f"/letters/{stock.hostile}",
        "letter-large": f"/letters/{stock.large}",
        "redrives": "/redrives",
        "redrive-new": "/redrives/new?fingerprint=" + stock.incident + "&canary=1,5,25&rate=50",
        "redrive": f"/redrives/{stock.redrive}",
        "discard": f"/discard?fingerprint={stock.incident}",
        "gateways": "/gateways",
        "audit": "/audit",
        "settings": "/settings",
        "purge": "/settings/purge?older_than=12h&state=resolved",
        "sign-in": "/sign-in",
        "nowhere": "/nowhere",
    }
