"""Colours of code: textual's own, with comments that can be read in every theme."""

from __future__ import annotations

from pygments.token import Token
from textual.highlight import HighlightTheme


class CodeTheme(HighlightTheme):
    STYLES = {
        **HighlightTheme.STYLES,
        Token.Comment: "$text 75%",
        Token.Literal.String.Backtick: "$text 75%",
        Token.Keyword.Constant: "bold $text-success",
        Token.Literal.String.Doc: "$text-success italic",
    }
