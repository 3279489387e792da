"""An access map for people: as cells, in words, as text. No screen here."""
