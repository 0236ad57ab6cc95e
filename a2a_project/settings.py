"""Django settings, read from the environment (twelve-factor). No variable set = the embedded host.

`docs/reference/settings.md` lists every variable. Settings of the host itself (`A2A_*`) are declared, with type, default and
comment, in `a2a_tasks/conf.py`; this module has only those of Django and Celery.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import environ
from django.conf import global_settings
from django.core.exceptions import ImproperlyConfigured

from a2a_project import __version__, defaults, variables
from a2a_project.log_format import make_logging

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()

#: The project is the host, and nothing else (`a2a_tasks/conf.py`).
A2A_OWN_PROJECT = True
#: The directory of the embedded host's database and its generated key: never beside an installed package.
IS_CHECKOUT = (BASE_DIR / "manage.py").is_file()
VAR_DIR = Path(env.str("VAR_DIR", default=str((BASE_DIR if IS_CHECKOUT else Path.cwd()) / "var")))
#: Embedded: no DATABASE_URL, so SQLite under VAR_DIR and everything in one process.
A2A_EMBEDDED = not env.str("DATABASE_URL", default="")
if A2A_EMBEDDED:
    VAR_DIR.mkdir(parents=True, exist_ok=True)  # SQLite makes a missing file, but no directory


def _generate_key() -> str:
    """Return the key of an embedded host: made once, kept in VAR_DIR, readable by its owner only."""
    path = VAR_DIR / "secret_key"
    if not path.exists():
        VAR_DIR.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=VAR_DIR) as draft:  # mode 0600
            draft.write(secrets.token_urlsafe(48))
            draft.flush()
            with suppress(FileExistsError):  # another process was first: its key is used
                os.link(draft.name, path)
    return path.read_text().strip()


SECRET_KEY = env.str("SECRET_KEY", default="") or _generate_key()
#: Former keys, newest first: they still open and verify, but nothing new is sealed or signed with them.
SECRET_KEY_FALLBACKS = [
    key.strip() for key in env.list("SECRET_KEY_FALLBACKS", default=[]) if key.strip()
]
#: True if the key was generated: a host on several machines would then have several.
SECRET_KEY_IS_OURS = not env.str("SECRET_KEY", default="")
DEBUG = env.bool("DEBUG", default=False)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
#: A proxy may send a `Host` of its own: then Django takes the pages at A2A_PUBLIC_URL for those of another site.
_PUBLIC = urlsplit(env.str("A2A_PUBLIC_URL", default=""))
_OURS = [f"{_PUBLIC.scheme}://{_PUBLIC.netloc}"] if _PUBLIC.netloc else []
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[]) or _OURS

#: Addresses and networks of proxies whose X-Forwarded-For and -Proto are believed.
TRUSTED_PROXIES = [
    proxy.strip() for proxy in env.list("TRUSTED_PROXIES", default=[]) if proxy.strip()
]

#: The examples of a checkout; an installed package has none.
EXAMPLES = ["examples.demo", "examples.tables"] if IS_CHECKOUT else []
INSTALLED_APPS = [
    "a2a_project",  # for its commands; its `runserver` is daphne's, which as an app loads Twisted into every process
    "a2a_console",  # before the admin, whose pages it extends
    "a2a_project.admin_config.HostAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "axes",
    "channels",
    "rest_framework",
    "drf_spectacular",
    # the files of the page at /api/v1/docs/: nothing is loaded from other hosts
    "drf_spectacular_sidecar",
    "a2a_tasks",
    "a2a_push",
    # Agents are Django apps; A2A_APPS adds yours, separated by commas.
    *variables.apps(env.list("A2A_APPS", default=EXAMPLES)),
]
MIDDLEWARE = [
    "a2a_project.page_headers.PageHeaders",
    "django.middleware.security.SecurityMiddleware",
    "a2a_project.static_files.StaticFiles",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "a2a_tasks.access.staff.audit_staff",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "a2a_project.fault_pages.FaultPages",
    "axes.middleware.AxesMiddleware",
    "a2a_tasks.access.sign_in_forms.SignInForms",
]
ROOT_URLCONF = "a2a_project.urls"
ASGI_APPLICATION = "a2a_project.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        # templates there replace those of the apps
        "DIRS": [BASE_DIR / "templates", Path(__file__).parent / "host_templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

DATABASES = {
    "default": variables.database(
        env.str("DATABASE_URL", default="") or f"sqlite:///{VAR_DIR / 'host.sqlite3'}"
    )
}
DATABASES["default"]["OPTIONS"] = defaults.connect(DATABASES["default"])
database = str(DATABASES["default"]["NAME"])
if DATABASES["default"]["ENGINE"].endswith("sqlite3") and database != ":memory:":
    with suppress(OSError):  # SQLite reports the mistake better
        # A new file is readable by its owner only; SQLite gives its log the same mode.
        Path(database).touch(0o600)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Further security headers of the pages (`page_headers.py`).
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
#: Cookies are sent over TLS only. The embedded host has no TLS.
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = env.bool("SECURE_COOKIES", default=not A2A_EMBEDDED)
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
#: The connection and TRUSTED_PROXIES tell whether a request came by TLS; so there is no SECURE_PROXY_SSL_HEADER, which
#: anyone could send.
SECURE_SSL_REDIRECT = env.bool("SECURE_SSL_REDIRECT", default=False)
SECURE_HSTS_SECONDS = env.int("SECURE_HSTS_SECONDS", default=0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = env.bool("SECURE_HSTS_INCLUDE_SUBDOMAINS", default=False)
SECURE_HSTS_PRELOAD = env.bool("SECURE_HSTS_PRELOAD", default=False)
SILENCED_SYSTEM_CHECKS = [
    "security.W005",  # subdomains may belong to others
    "security.W021",  # a preload list includes all subdomains
]

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
# Users who fail too often, by name and address, have to wait (docs/decisions/0015). In the database: one count for all.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = "a2a_tasks.access.lockout.failures"
AXES_COOLOFF_TIME = "a2a_tasks.access.lockout.read_cooloff"
AXES_CLIENT_IP_CALLABLE = "a2a_tasks.access.lockout.address"
AXES_RESET_ON_SUCCESS = True
AXES_DISABLE_ACCESS_LOG = True
AXES_VERBOSE = False
AXES_ENABLE_ADMIN = False  # `a2a_console.admin` has its own page
AXES_LOCKOUT_TEMPLATE = "a2a_tasks/locked.html"

# Single sign-on and a second factor for the admin: an extra, off unless one of these is set.
SSO_ISSUER = env.str("A2A_SSO_OIDC_ISSUER", default="")
_MFA = env.str("A2A_ADMIN_MFA", default="")
if _MFA not in {"", "required"}:
    raise ImproperlyConfigured(f"A2A_ADMIN_MFA must be empty or required, not {_MFA!r}")
MFA_REQUIRED = _MFA == "required"
SIGN_IN_EXTRA = bool(SSO_ISSUER) or MFA_REQUIRED
if SIGN_IN_EXTRA:
    from a2a_project.sign_in.mapping import parse_mapping

    INSTALLED_APPS += [
        "allauth",
        "allauth.account",
        "allauth.mfa",
        "allauth.socialaccount",
        "allauth.socialaccount.providers.openid_connect",
    ]
    MIDDLEWARE += [
        "allauth.account.middleware.AccountMiddleware",
        "a2a_project.sign_in.second_factor.SecondFactor",
    ]
    AUTHENTICATION_BACKENDS[1] = "allauth.account.auth_backends.AuthenticationBackend"
    LOGIN_URL, LOGIN_REDIRECT_URL = "account_login", "admin:index"
    ACCOUNT_ADAPTER = "a2a_project.sign_in.adapters.Accounts"
    ACCOUNT_LOGIN_METHODS = {"username"}
    ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*", "password2*"]
    ACCOUNT_EMAIL_VERIFICATION = "none"
    ACCOUNT_UNIQUE_EMAIL = False
    # axes counts failures, for all processes, and by address
    ACCOUNT_RATE_LIMITS = {"login": None, "login_failed": None}
    ACCOUNT_SESSION_REMEMBER = False
    SOCIALACCOUNT_ADAPTER = "a2a_project.sign_in.adapters.IssuerAdapter"
    # A form that ends at the issuer would need its address in the content security policy.
    SOCIALACCOUNT_LOGIN_ON_GET = True
    MFA_ADAPTER = "a2a_project.sign_in.adapters.Factors"
    MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
    MFA_TOTP_ISSUER = "A2A host"
    MFA_TOTP_TOLERANCE = 1  # steps of half a minute, by which clocks may differ
    MFA_FORMS = {
        "authenticate": "a2a_project.sign_in.second_factor.CountedForm",
        "reauthenticate": "a2a_project.sign_in.second_factor.CountedAgainForm",
    }
    SESSION_COOKIE_AGE = 12 * 3600  # after that the issuer is asked again
    SSO_GROUPS_CLAIM = env.str("A2A_SSO_GROUPS_CLAIM", default="groups")
    SSO_GROUPS = parse_mapping(env.str("A2A_SSO_GROUPS", default=""))
    SOCIALACCOUNT_PROVIDERS = {
        "openid_connect": {
            "OAUTH_PKCE_ENABLED": True,
            "APPS": [
                {
                    "provider_id": "sso",
                    "name": "Single sign-on",
                    "client_id": env.str("A2A_SSO_CLIENT_ID", default=""),
                    "secret": env.str("A2A_SSO_CLIENT_SECRET", default=""),
                    "settings": {"server_url": SSO_ISSUER, "fetch_userinfo": False},
                }
            ]
            if SSO_ISSUER
            else [],
        }
    }

#: Django's hashers, the first of them with a limit: it hashes, and verifies the hashes of Django's own.
PASSWORD_HASHERS = ["a2a_tasks.access.hashing.BoundedHasher", *global_settings.PASSWORD_HASHERS[1:]]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = True
FORMAT_MODULE_PATH = "a2a_project.formats"
USE_TZ = True

#: Path below which everything is served (`a2a_tasks/conf.py`).
STATIC_URL = f"{env.str('A2A_PREFIX', default='')}/static/"
STATIC_ROOT = VAR_DIR / "static"
WHITENOISE_USE_FINDERS = True  # the admin's files are served without a collectstatic step

#: The storage of files that are too large for a row (Django's STORAGES): by default a directory, which all processes of
#: a host must share.
FILE_STORAGE = env.str("FILE_STORAGE", default="django.core.files.storage.FileSystemStorage")
FILE_STORAGE_OPTIONS = env.json("FILE_STORAGE_OPTIONS", default={})
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "a2a_files": defaults.keep_files(VAR_DIR / "files", FILE_STORAGE, **FILE_STORAGE_OPTIONS),
}

#: Hints between processes; empty = one process, hints in memory.
REDIS_URL = variables.server(
    "REDIS_URL", env.str("REDIS_URL", default=""), ("redis", "rediss", "unix")
)
#: Notifications to the playground (a2a_console/playground.py): shared by all web processes, and useless after half an
#: hour.
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    "a2a_playground": defaults.keep_hooks(REDIS_URL),
}
#: The Celery broker; empty = runs are started in the web process.
A2A_CELERY_BROKER_URL = variables.server(
    "CELERY_BROKER_URL", env.str("CELERY_BROKER_URL", default=""), variables.BROKERS
)

LOGGING = make_logging(
    env.str("LOG_LEVEL", default="INFO"), env.str("A2A_LOG_FORMAT", default="text")
)
#: Version on the page of workers, unless A2A_RELEASE is set.
A2A_HOST_VERSION = __version__
