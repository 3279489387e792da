"""What the compiler made of a submission, and two compiles compared. No textual here."""
