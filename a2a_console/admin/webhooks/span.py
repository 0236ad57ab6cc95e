"""The form of a replay: the span of deliveries to one receiver."""

from __future__ import annotations

from typing import Any

from django import forms

from a2a_console.times import moment
from a2a_push.store.delivery_selection import DeliverySelection

__all__ = ["SpanForm"]


def _moment(label: str) -> forms.DateTimeField:
    shown = forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1"})
    return forms.DateTimeField(label=label, widget=shown)


class SpanForm(forms.Form):
    """The form: begin, end, and whether only dead deliveries are sent again."""

    since = _moment("Made from")
    until = _moment("until before")
    only_dead = forms.BooleanField(label="only dead ones", required=False, initial=True)

    def clean(self) -> dict[str, Any]:
        """Refuse a span that ends before it begins."""
        cleaned = super().clean() or {}
        since, until = cleaned.get("since"), cleaned.get("until")
        if since and until and since >= until:
            raise forms.ValidationError("The span must end after it begins.")
        return cleaned

    def read_selection(self, *, receiver: int) -> DeliverySelection:
        """Return the selection of deliveries. The form has to be valid."""
        cleaned = self.cleaned_data
        return DeliverySelection(
            receiver=receiver,
            since=cleaned["since"],
            until=cleaned["until"],
            only_dead=cleaned["only_dead"],
        )

    def describe(self) -> str:
        """Return the span in words."""
        cleaned = self.cleaned_data
        which = "Dead ones" if cleaned["only_dead"] else "Dead and delivered ones"
        return f"{which} made from {moment(cleaned['since'])} until {moment(cleaned['until'])}"

    def wrong(self) -> list[str]:
        """Return the errors of the form as sentences."""
        own = [str(text) for text in self.non_field_errors()]
        fields = [
            f"{self.fields[name].label}: {text}"
            for name, texts in self.errors.items()
            if name in self.fields
            for text in texts
        ]
        return [*own, *fields]
