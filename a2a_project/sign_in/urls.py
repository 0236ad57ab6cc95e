"""The pages of allauth that staff needs: without registration and mail, and with the redirect URI at A2A_PUBLIC_URL."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from allauth.account import views as account
from allauth.mfa.totp.views import activate_totp
from allauth.socialaccount import views as social
from allauth.socialaccount.providers.openid_connect import views as issuer
from csp.constants import SELF
from csp.decorators import csp_update
from django.http import HttpRequest, HttpResponseBase
from django.urls import include, path, re_path

from a2a_tasks.conf import conf

__all__ = ["urlpatterns"]

View = Callable[..., HttpResponseBase]


def _at_public_url(view: View) -> View:
    """Return the view with a request whose absolute URLs begin with A2A_PUBLIC_URL, if that is set.

    allauth makes the redirect URI by `request.build_absolute_uri`, and issuers refuse any but the registered one.
    """

    @wraps(view)
    def visit(request: HttpRequest, **names: str) -> HttpResponseBase:
        if public := str(conf.PUBLIC_URL).rstrip("/"):
            ours = request.build_absolute_uri

            def absolute(location: str | None = None) -> str:
                return public + location if location and location[0] == "/" else ours(location)

            request.build_absolute_uri = absolute  # type: ignore[method-assign]
        return view(request, **names)

    return visit


#: The pages at which allauth goes to the issuer and comes back, with its names and paths.
ISSUER = [
    path("login/", _at_public_url(issuer.login), name="openid_connect_login"),
    path("login/callback/", _at_public_url(issuer.callback), name="openid_connect_callback"),
]
urlpatterns = [
    path("login/", account.login, name="account_login"),
    path("logout/", account.logout, name="account_logout"),
    path("inactive/", account.account_inactive, name="account_inactive"),
    path("reauthenticate/", account.reauthenticate, name="account_reauthenticate"),
    # The page contains the image to scan.
    path(
        "2fa/totp/activate/",
        csp_update({"img-src": [SELF, "data:"]})(activate_totp),
        name="mfa_activate_totp",
    ),
    path("2fa/", include("allauth.mfa.urls")),
    path("cancelled/", social.login_cancelled, name="socialaccount_login_cancelled"),
    path("error/", social.login_error, name="socialaccount_login_error"),
    path("oidc/", include([re_path(r"^(?P<provider_id>[^/]+)/", include(ISSUER))])),
]
