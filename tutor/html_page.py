"""A page of HTML that needs nothing from elsewhere, and the looks of its plots: SVG in the page, no script, no font."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import Any

# readable on white, and told apart without red and green (Okabe and Ito, 2008)
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#999999"
STYLE = """\
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff; }
table { border-collapse: collapse; }
td, th { text-align: left; border-bottom: 1px solid #ddd; }
"""


def html_page(title: str, style: str, body: str) -> str:
    """`title` is text, `body` is HTML, `style` is CSS beside what every page has."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title>\n<style>\n{STYLE}{style}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def left_out_words(what: str, error: ImportError) -> str:
    """In a line: what was not written, and the package that it needs."""
    package = (error.name or str(error)).partition(".")[0]
    return f"{what} needs the package {package}, which cannot be imported."


def looks(colours: Sequence[str], height: int, *, bars: bool = True) -> dict[str, Any]:
    from pygal.style import Style

    style = Style(
        colors=tuple(colours),
        background="transparent",
        plot_background="transparent",
        font_family="system-ui, sans-serif",
        label_font_size=14,
        major_label_font_size=14,
        value_font_size=14,
        legend_font_size=14,
        title_font_size=16,
        foreground="#222",
        foreground_strong="#111",
        foreground_subtle="#777",
        opacity="1",
        value_colors=tuple("#fff" if colour == BLUE and bars else "#222" for colour in colours),
    )
    # pygal's default script is fetched from elsewhere: without it the page needs nothing
    return {
        "style": style,
        "js": (),
        "width": 720,
        "height": height,
        "print_values": True,
        "legend_at_bottom": True,
        "disable_xml_declaration": True,
        "explicit_size": False,
    }


def svg(chart: Any) -> str:
    """Without pygal's comments, and without the settings it leaves for a script that is not there."""
    text: str = chart.render(is_unicode=True)
    return re.sub(r"<!--.*?-->|<script.*?</script>", "", text, flags=re.DOTALL)
