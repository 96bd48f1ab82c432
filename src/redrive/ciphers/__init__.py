"""Ciphers: what keeps the content of letters from those who have no key."""
