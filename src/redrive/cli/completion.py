"""`redrive completion`: the completion script of a shell."""

import sys
from typing import Literal


def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print the completion script of a shell.

    For bash: `source <(redrive completion bash)` in ~/.bashrc. For zsh: save it as `_redrive` in a folder of
    `$fpath`. For fish: save it as `~/.config/fish/completions/redrive.fish`.
    """
    from redrive.cli import app

    sys.stdout.write(app.generate_completion(shell=shell))
