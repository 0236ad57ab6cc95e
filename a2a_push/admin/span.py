"""The form that says what of a receiver is sent again."""

from __future__ import annotations

from typing import Any

from django import forms

from a2a_push.store.chosen import Chosen
from a2a_tasks.admin.shown import moment

__all__ = ["SpanForm"]


def _moment(label: str) -> forms.DateTimeField:
    shown = forms.DateTimeInput(attrs={"type": "datetime-local", "step": "1"})
    return forms.DateTimeField(label=label, widget=shown)


class SpanForm(forms.Form):
    """From when, until when, and whether only dead ones."""

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

    def chosen(self, *, receiver: int) -> Chosen:
        """The deliveries meant, once the form is valid."""
        said = self.cleaned_data
        return Chosen(
            receiver=receiver,
            since=said["since"],
            until=said["until"],
            only_dead=said["only_dead"],
        )

    def words(self) -> str:
        """The same for people."""
        said = self.cleaned_data
        which = "Dead ones" if said["only_dead"] else "Dead and delivered ones"
        return f"{which} made from {moment(said['since'])} until {moment(said['until'])}"

    def wrong(self) -> list[str]:
        """What is wrong, in sentences."""
        own = [str(text) for text in self.non_field_errors()]
        fields = [
            f"{self.fields[name].label}: {text}"
            for name, texts in self.errors.items()
            if name in self.fields
            for text in texts
        ]
        return [*own, *fields]
