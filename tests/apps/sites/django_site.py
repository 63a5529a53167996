"""A Django project in one file: the admin site with one user, `admin` with the password `admin`. Its first argument is the
port. The database is in the current folder."""

import os
import sys

import django
from django.conf import settings
from django.core.management import call_command

settings.configure(
    DEBUG=True,
    SECRET_KEY="for tests only",
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "admin.sqlite3"}},
    INSTALLED_APPS=[f"django.contrib.{name}" for name in ("admin", "auth", "contenttypes", "messages", "sessions", "staticfiles")],
    MIDDLEWARE=[
        "django.contrib.sessions.middleware.SessionMiddleware",
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.contrib.auth.middleware.AuthenticationMiddleware",
        "django.contrib.messages.middleware.MessageMiddleware",
    ],
    TEMPLATES=[
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "APP_DIRS": True,
            "OPTIONS": {
                "context_processors": [
                    "django.template.context_processors.request",
                    "django.contrib.auth.context_processors.auth",
                    "django.contrib.messages.context_processors.messages",
                ]
            },
        }
    ],
    STATIC_URL="/static/",
)
django.setup()

from django.contrib import admin, auth  # noqa: E402
from django.shortcuts import redirect  # noqa: E402
from django.urls import path  # noqa: E402


def leave(request):
    """Logs out and shows the login form, so that every try starts there."""
    auth.logout(request)
    return redirect("/admin/")


urlpatterns = [path("admin/", admin.site.urls), path("leave/", leave)]

if __name__ == "__main__":
    if not os.path.exists("admin.sqlite3"):
        call_command("migrate", verbosity=0)
        auth.get_user_model().objects.create_superuser("admin", "admin@example.com", "admin")
    call_command("runserver", f"127.0.0.1:{sys.argv[1]}", use_reloader=False, verbosity=0)
