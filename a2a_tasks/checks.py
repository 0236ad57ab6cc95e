"""System checks of the host: `python manage.py check`."""
