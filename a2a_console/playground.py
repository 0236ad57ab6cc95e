"""The server side of the playground at `/`: its switch, and webhooks for its pages, for half an hour each.

Everything else runs in the browser (`static/a2a_console/playground`), which speaks the public protocol like any client.
The URL is enough to read a webhook, so it cannot be guessed. Every visitor can create one and fill it,
so the storage has one bound for all (docs/decisions/0022).
"""

from __future__ import annotations

import secrets
import time
import zlib
from typing import Any

from django.core import signing
from django.core.cache import BaseCache, caches
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_safe

from a2a_tasks.conf import conf, project

__all__ = ["CACHE", "has_playground", "hook", "new_hook"]

CACHE = "a2a_playground"
#: Seconds for which a URL receives, and for which notifications are kept.
GOOD_FOR = 1800
#: All URLs share 32 ring buffers of 20 places, each for a body of 64 KiB: 42 MB in the worst case.
INBOXES, PLACES, LARGEST = 32, 20, 65_536
_SIGNER = signing.TimestampSigner(salt="a2a_console.playground", sep="~")


def has_playground() -> bool:
    """Return whether this host offers the playground. By default only the embedded host does."""
    if conf.PLAYGROUND == "auto":
        return bool(project.A2A_EMBEDDED)
    return bool(conf.PLAYGROUND.strip().lower() in {"1", "true", "yes", "on"})


@require_safe
@never_cache
def new_hook(request: HttpRequest) -> HttpResponse:
    """Return a webhook for one page: the host calls `url`, the page reads `read`. 404 without a playground."""
    _there()
    name = _SIGNER.sign(secrets.token_urlsafe(12))
    read = reverse("a2a_host:playground-hook", args=[name])
    base = str(conf.PUBLIC_URL or request.build_absolute_uri("/")).rstrip("/")
    return JsonResponse({"url": f"{base}{read}", "read": read})


@csrf_exempt  # hosts that send notifications have no cookies
@require_http_methods(["GET", "POST"])
@never_cache
def hook(request: HttpRequest, name: str) -> HttpResponse:
    """Store a notification (POST), or return those with numbers above `after` (GET). 404 for a wrong or expired URL."""
    _there()
    try:
        _SIGNER.unsign(name, max_age=GOOD_FOR)
    except signing.BadSignature as fault:
        raise Http404 from fault
    if request.method == "POST":
        _keep(name, request)
        return HttpResponse(status=204)
    after = request.GET.get("after", "")
    # Python would refuse a number of too many digits.
    number = int(after) if after.isdecimal() and len(after) < 19 else 0  # noqa: PLR2004
    return JsonResponse({"deliveries": _read_stored(name, number)})


def _there() -> None:
    if not has_playground():
        raise Http404


def _cache() -> BaseCache:
    return caches[CACHE]


def _inbox(name: str) -> str:
    return f"hooks:{zlib.crc32(name.encode()) % INBOXES}"


def _keep(name: str, request: HttpRequest) -> None:
    """Store the notification in its ring buffer; it replaces the oldest of all URLs that share the buffer."""
    cache, inbox = _cache(), _inbox(name)
    cache.add(inbox, 0, GOOD_FOR)
    number = cache.incr(inbox)
    cache.touch(inbox, GOOD_FOR)
    fits = len(request.body) <= LARGEST
    delivery = {
        "hook": name,
        "number": number,
        "at": time.time(),
        "headers": {key.lower(): value for key, value in request.headers.items()},
        "body": request.body.decode(errors="replace") if fits else "(too large to be kept here)",
    }
    cache.set(f"{inbox}:{number % PLACES}", delivery, GOOD_FOR)


def _read_stored(name: str, after: int) -> list[dict[str, Any]]:
    inbox = _inbox(name)
    found = _cache().get_many([f"{inbox}:{place}" for place in range(PLACES)]).values()
    ours = (each for each in found if each["hook"] == name and each["number"] > after)
    return sorted(ours, key=lambda each: int(each["number"]))
