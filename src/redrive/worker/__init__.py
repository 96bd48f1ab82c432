"""Message in, outcome carried out."""
