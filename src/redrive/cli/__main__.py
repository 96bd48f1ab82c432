"""`python -m redrive.cli`: the same as `redrive`."""

from redrive.cli import main

main()
