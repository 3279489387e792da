"""A file under the learner's hands: saved, joined with what others saved, compared. No textual here."""
