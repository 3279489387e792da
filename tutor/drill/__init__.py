"""Timed mock interviews. The engine has no screen and an injected clock; the app and `drill --plain` use it alike."""
