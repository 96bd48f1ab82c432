"""The measured process: calls the function it is told to and prints its answer as JSON, the one line on stdout."""

import contextlib
import importlib
import json
import sys


def main() -> None:
    program, arguments = sys.argv[1:]
    module, _, name = program.partition(":")
    with contextlib.redirect_stdout(sys.stderr):
        answer = getattr(importlib.import_module(module), name)(**json.loads(arguments))
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
