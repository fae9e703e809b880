"""The one HTTP client: bounded in time and size, retried where that can help, with typed errors that hold no secret."""

from factcheck.errors import PermanentError, RateLimitedError, TransientError
from factcheck.net.client import Net, NetSettings, NetUsage
from factcheck.net.exchange import HttpStatusError, RedirectedError, Reply
from factcheck.net.guard import AddressRefusedError, guard_url
from factcheck.net.rate import RateLimit, TokenBucket

__all__ = [
    "AddressRefusedError",
    "HttpStatusError",
    "Net",
    "NetSettings",
    "NetUsage",
    "PermanentError",
    "RateLimit",
    "RateLimitedError",
    "RedirectedError",
    "Reply",
    "TokenBucket",
    "TransientError",
    "guard_url",
]
