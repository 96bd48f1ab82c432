"""The command line: one module per noun, imported when its command is called."""

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter

from redrive.cli.output import Exit, complain, exit_for

app = App(
    name="redrive",
    help="""Retries, dead letters and a safe way back for message consumers.

    Exit status: 0 done, 1 the answer is no, 2 wrong usage or settings, 3 nobody answers, 4 not found.
    """,
    version_flags=["--version"],
    default_parameter=Parameter(negative=(), show_default=False),
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
_COMMANDS = {
    "demo": "See it work: a queue, workers that fail and die, and where every message ends up.",
    "worker": "Run an app's consumers in supervised processes.",
    "publish": "Put messages into a queue.",
    "queues": "Show queues; pause and resume consumers.",
    "dlq": "Look into a dead letter queue; send letters back or remove them.",
    "serve": "Collect, redrive, and serve the console and the REST API, in one process.",
    "collect": "Collect dead letters into the store, and carry out redrives.",
    "letters": "Look at collected dead letters, decide about them, send them back.",
    "incidents": "Letters that failed the same way: look at them, note, assign, mute, resolve.",
    "alerts": "Whether those who are told of alerts hear them.",
    "redrives": "What was sent back and what became of it: watch, pause, resume, cancel.",
    "audit": "Who did what to which letters, and whether that record still holds.",
    "store": "Look after the store itself.",
    "tokens": "Who may call the service: issue tokens, list and revoke them.",
    "adopt": "Take over a DLQ that exists, whoever wrote it.",
    "gateway": "Ask language models, with limits, retries and dead letters.",
    "config": "Show the settings, and where each comes from.",
    "doctor": "Look for what could lose messages here.",
    "completion": "Print the completion script of a shell.",
}
for _order, (_name, _help) in enumerate(_COMMANDS.items()):
    app.command(f"redrive.cli.{_name}:{_name}", name=_name, help=_help, sort_key=_order)


def main(tokens: Sequence[str] | None = None) -> None:
    """Run one command and exit with its status (see `Exit`)."""
    sys.exit(run(sys.argv[1:] if tokens is None else tokens))


def run(tokens: Sequence[str]) -> int:
    """Run one command; return its exit status. Mistakes and refusals are said on stderr, one line each."""
    try:
        answer = app(list(tokens), exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except CycloptsError as error:
        complain([" ".join(str(error).split())])
        return Exit.USAGE
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:  # somebody's `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        return Exit.OK
    except Exception as error:
        if (status := exit_for(error)) is None:
            raise
        return status
    return answer if isinstance(answer, int) else Exit.OK
