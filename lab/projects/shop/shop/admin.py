"""The shop's back office: an admin site of its own, beside Django's."""

from django.contrib.admin import AdminSite, ModelAdmin

from shop.models import Customer, Product


class Office(AdminSite):
    """Its site: users with an address elsewhere may not use it."""

    site_header = "Back office"

    def has_permission(self, request):
        """Return whether the user is of the shop."""
        return super().has_permission(request) and request.user.email.endswith("@shop.example")


class ProductAdmin(ModelAdmin):
    """The pages of products."""

    list_display = ["name", "added_at"]
    search_fields = ["name"]
    date_hierarchy = "added_at"


office = Office(name="office")
office.register(Product, ProductAdmin)
office.register(Customer)
