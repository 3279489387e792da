"""The course on screen and in plain text. Never imports torch or triton."""
