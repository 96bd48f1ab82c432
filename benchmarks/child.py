"""The measured process: calls the function it is told to and writes its answer as JSON, the only text on stdout."""

import importlib
import json
import os
import sys


def main() -> None:
    program, arguments = sys.argv[1:]
    module, _, name = program.partition(":")
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as stdout:
        os.dup2(2, 1)  # whatever a library prints goes to stderr, banners past `sys.stdout` too
        answer = getattr(importlib.import_module(module), name)(**json.loads(arguments))
        json.dump(answer, stdout)


if __name__ == "__main__":
    main()
