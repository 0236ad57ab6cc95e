"""The shop's users, who have no names, and its products."""

import uuid

from django.contrib.auth.models import AbstractUser, UserManager
from django.db import models


class Customers(UserManager):
    """They are made by their address."""

    def create_superuser(self, email, password=None, **more):
        """Make a user with all rights."""
        more |= {"is_staff": True, "is_superuser": True}
        user = self.model(email=email, **more)
        user.set_password(password)
        user.save()
        return user


class Customer(AbstractUser):
    """A user."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    username = None
    email = models.EmailField(unique=True)
    USERNAME_FIELD = "email"
    REQUIRED_FIELDS = []
    objects = Customers()


class Product(models.Model):
    """What is sold."""

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=20)
    added_at = models.DateTimeField()

    def __str__(self):
        """Return its name."""
        return self.name
