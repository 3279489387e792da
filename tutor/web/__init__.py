"""The app as a web page: one app process a browser tab, behind a token."""
