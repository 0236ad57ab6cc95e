"""The playground at `/`: whether there is one, and the webhook that a page of it has for half an hour.

Everything else is in the browser (`static/a2a_tasks/playground`), which speaks the public protocol as any client does. What arrives
at a webhook is anybody's who knows its address, so the address cannot be guessed; and it is anybody's to fill, so what is kept is
bounded as a whole (docs/decisions/0139).
"""

from __future__ import annotations

import secrets
import time
import zlib
from typing import Any

from django.conf import settings
from django.core import signing
from django.core.cache import BaseCache, caches
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_safe

from a2a_tasks.conf import conf

__all__ = ["CACHE", "has_playground", "hook", "new_hook"]

CACHE = "playground"
#: Seconds for which an address receives, and what it received is kept.
GOOD_FOR = 1800
#: All addresses share so many drawers of so many places, each for a body of so many bytes: 42 MB at the worst.
DRAWERS, PLACES, LARGEST = 32, 20, 65_536
_SIGNER = signing.TimestampSigner(salt="a2a_project.playground", sep="~")


def has_playground() -> bool:
    """Does this host offer one? By default only the embedded host does."""
    if conf.PLAYGROUND == "auto":
        return bool(settings.EMBEDDED)
    return bool(conf.PLAYGROUND.strip().lower() in {"1", "true", "yes", "on"})


@require_safe
@never_cache
def new_hook(request: HttpRequest) -> HttpResponse:
    """An address for one page: `url` is for the host to call, `read` for the page to look at. 404 without a playground."""
    _there()
    name = _SIGNER.sign(secrets.token_urlsafe(12))
    read = reverse("playground-hook", args=[name])
    base = str(conf.PUBLIC_URL or request.build_absolute_uri("/")).rstrip("/")
    return JsonResponse({"url": f"{base}{read}", "read": read})


@csrf_exempt  # hosts have no cookies
@require_http_methods(["GET", "POST"])
@never_cache
def hook(request: HttpRequest, name: str) -> HttpResponse:
    """POST is a notification; GET with `after` gives those with greater numbers. 404 when the address is none, or too old."""
    _there()
    try:
        _SIGNER.unsign(name, max_age=GOOD_FOR)
    except signing.BadSignature as fault:
        raise Http404 from fault
    if request.method == "POST":
        _keep(name, request)
        return HttpResponse(status=204)
    after = request.GET.get("after", "")
    # Longer than any number there is; Python would refuse it.
    number = int(after) if after.isdecimal() and len(after) < 19 else 0  # noqa: PLR2004
    return JsonResponse({"deliveries": _kept(name, number)})


def _there() -> None:
    if not has_playground():
        raise Http404


def _cache() -> BaseCache:
    return caches[CACHE]


def _drawer(name: str) -> str:
    return f"hooks:{zlib.crc32(name.encode()) % DRAWERS}"


def _keep(name: str, request: HttpRequest) -> None:
    """Put it into the drawer; the oldest of all that share the drawer gives way."""
    cache, drawer = _cache(), _drawer(name)
    cache.add(drawer, 0, GOOD_FOR)
    number = cache.incr(drawer)
    cache.touch(drawer, GOOD_FOR)
    fits = len(request.body) <= LARGEST
    delivery = {
        "hook": name,
        "number": number,
        "at": time.time(),
        "headers": {key.lower(): value for key, value in request.headers.items()},
        "body": request.body.decode(errors="replace") if fits else "(too large to be kept here)",
    }
    cache.set(f"{drawer}:{number % PLACES}", delivery, GOOD_FOR)


def _kept(name: str, after: int) -> list[dict[str, Any]]:
    drawer = _drawer(name)
    found = _cache().get_many([f"{drawer}:{place}" for place in range(PLACES)]).values()
    ours = (each for each in found if each["hook"] == name and each["number"] > after)
    return sorted(ours, key=lambda each: int(each["number"]))
