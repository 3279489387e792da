"""The plain commands: text in, text out, for pipes, dumb terminals and screen readers."""
