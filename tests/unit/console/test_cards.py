"""Cells of tables know the names of their columns."""

from __future__ import annotations

from a2a_console.templatetags.cards import label_cells

TABLE = (
    '<table><thead><tr><th scope="col"><a href="?o=1">Last\n &amp; first</a></th><th>State</th></tr></thead>'
    '<tbody><tr><th class="field-x">a</th><td>&lt;td&gt;</td><td>more</td></tr>'
    '<tr><td colspan="2">none</td></tr></tbody></table>'
)


def test_each_cell_gets_the_name_above_it() -> None:
    text = label_cells(TABLE)
    assert '<th data-column="Last &amp; first" class="field-x">a</th>' in text
    assert '<td data-column="State">&lt;td&gt;</td><td data-column="">more</td>' in text
    assert '<td colspan="2">none</td>' in text
    assert text.startswith('<table data-cards><thead><tr><th scope="col">'), "heads stay"


def test_what_is_no_table_stays() -> None:
    assert label_cells("<p>No rows.</p>") == "<p>No rows.</p>"
