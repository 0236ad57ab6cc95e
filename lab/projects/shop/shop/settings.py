"""The shop's settings; with WITH_A2A the host is part of it."""

import os
from pathlib import Path

from shop.variables import WITH_A2A

BASE_DIR = Path(os.environ["SHOP_DIR"])
SECRET_KEY = "the shop's own, and of more than fifty characters, as it should be"
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1", "testserver"]
INSTALLED_APPS = (
    "django.contrib.admin.apps.SimpleAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "shop",
)
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
ROOT_URLCONF = "shop.urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [Path(__file__).parent / "templates"],
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
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": BASE_DIR / "shop.sqlite3",
        "ATOMIC_REQUESTS": True,
    }
}
AUTH_USER_MODEL = "shop.Customer"
LOGIN_URL = "/office/login/"
STATIC_URL = "assets/"
LANGUAGE_CODE = "de"
TIME_ZONE = "Europe/Berlin"
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.TokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.AllowAny"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.BrowsableAPIRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.FormParser"],
    "DEFAULT_VERSIONING_CLASS": "rest_framework.versioning.AcceptHeaderVersioning",
    "DEFAULT_THROTTLE_CLASSES": ["rest_framework.throttling.AnonRateThrottle"],
    "DEFAULT_THROTTLE_RATES": {"anon": "1/day"},
    "DATETIME_FORMAT": "%d.%m.%Y",
}
#: No agent's run may come here.
CELERY_BROKER_URL = "redis://127.0.0.1:1/0"

if WITH_A2A:
    import a2a_host

    INSTALLED_APPS += ("support",)
    a2a_host.install(globals())
