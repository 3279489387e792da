"""The themes offered in Settings, with words. Their text stands out at 4.5:1 at least, at 7:1 in high contrast."""

from __future__ import annotations

from dataclasses import dataclass

from textual.theme import Theme

DEFAULT_THEME = "textual-dark"
NO_COLOUR_THEME = "ansi-dark"  # only its attributes are drawn then: bold, reverse, underline


@dataclass(frozen=True)
class Offered:
    name: str
    words: str
    contrast: float  # the least that its text has; 0 where the terminal chooses the colours


OFFERED = (
    Offered(DEFAULT_THEME, "Dark", 4.5),
    Offered("prep-light", "Light", 4.5),
    Offered("prep-contrast-dark", "High contrast, dark", 7.0),
    Offered("prep-contrast-light", "High contrast, light", 7.0),
    Offered("ansi-dark", "The terminal's own 16 colours, dark", 0.0),
    Offered("ansi-light", "The terminal's own 16 colours, light", 0.0),
)

# textual derives the colours of text from the others, too pale on a light ground; so they are named
OWN = (
    Theme(
        name="prep-light",
        dark=False,
        primary="#004578",
        secondary="#0b5394",
        accent="#005a9e",
        warning="#8a4b00",
        error="#a4262c",
        success="#0b6a32",
        foreground="#1b1b1b",
        background="#fafafa",
        surface="#f0f0f0",
        panel="#e2e6ea",
        variables={
            "text-primary": "#003a66",
            "text-secondary": "#0b447a",
            "text-accent": "#00477d",
            "text-warning": "#6b3a00",
            "text-error": "#8c1d22",
            "text-success": "#08502a",
            "footer-background": "#e2e6ea",
            "footer-foreground": "#1b1b1b",
        },
    ),
    Theme(
        name="prep-contrast-dark",
        dark=True,
        primary="#66c2ff",
        secondary="#9fd8ff",
        accent="#ffd166",
        warning="#ffd166",
        error="#ff9d9d",
        success="#7dffa8",
        foreground="#ffffff",
        background="#000000",
        surface="#000000",
        panel="#202020",
        variables={
            "text-primary": "#9fd8ff",
            "text-secondary": "#9fd8ff",
            "text-accent": "#ffe08a",
            "text-warning": "#ffe08a",
            "text-error": "#ffc2c2",
            "text-success": "#a6ffc4",
            "footer-background": "#202020",
            "footer-foreground": "#ffffff",
            "border": "#ffffff",
            "scrollbar": "#c0c0c0",
            "scrollbar-background": "#202020",
        },
    ),
    Theme(
        name="prep-contrast-light",
        dark=False,
        primary="#00305a",
        secondary="#00305a",
        accent="#4a2500",
        warning="#4a2500",
        error="#6b0d12",
        success="#03381c",
        foreground="#000000",
        background="#ffffff",
        surface="#ffffff",
        panel="#e6e6e6",
        variables={
            "text-primary": "#00264a",
            "text-secondary": "#00264a",
            "text-accent": "#402000",
            "text-warning": "#402000",
            "text-error": "#5c0a0f",
            "text-success": "#022c16",
            "footer-background": "#e6e6e6",
            "footer-foreground": "#000000",
            "border": "#000000",
            "scrollbar": "#404040",
            "scrollbar-background": "#e6e6e6",
        },
    ),
)


def words_of(name: str) -> str:
    """As Settings lists it; textual's other themes keep their names."""
    return next((one.words for one in OFFERED if one.name == name), name)


def choices(available: list[str]) -> list[str]:
    """Those that are checked first, then textual's others by name."""
    first = [one.name for one in OFFERED]
    return first + sorted(name for name in available if name not in first)
