"""Widgets of the terminal app: one pane for each kind of item, and the parts they are made of."""
