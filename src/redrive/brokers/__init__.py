"""Adapters: one folder per message system, behind the ports of the core."""
