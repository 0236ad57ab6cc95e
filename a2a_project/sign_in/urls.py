"""The pages of allauth that staff needs: without registration and mail."""

from __future__ import annotations

from allauth.account import views as account
from allauth.mfa.totp.views import activate_totp
from allauth.socialaccount import views as social
from allauth.socialaccount.providers.openid_connect import views as issuer
from csp.constants import SELF
from csp.decorators import csp_update
from django.urls import include, path, re_path

from a2a_project.sign_in.public_url import at_public_url

__all__ = ["urlpatterns"]

#: The pages at which allauth goes to the issuer and comes back, with its names and paths.
ISSUER = [
    path("login/", at_public_url(issuer.login), name="openid_connect_login"),
    path("login/callback/", at_public_url(issuer.callback), name="openid_connect_callback"),
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
