"""The crash harness: real processes are killed, then every numbered message is accounted for.

    producer ──▶ broker ──▶ workers under a supervisor ──▶ done, or a dead letter
        │           ▲             │
        └─ journal ─┼─────────────┘      the nemesis kills and stops all of them, by a seeded schedule
                    └─ redriver: at the end every letter is sent back, and everything must end done

The journal is the only witness: a file that every process appends to, one write per line, so that no kill can take
back what was noted. The checker reads it together with what is left in the broker, and knows nothing else.
An adapter needs `Adapter(url=…)` and whatever it wants to add to that (`tests/crash/adapter.py`).
"""
