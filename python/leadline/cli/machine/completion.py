"""`leadline completion`: the shell's completion script, for the user to source."""

from __future__ import annotations

import click

from leadline.cli.console import echo_text


@click.command(short_help="Print the shell completion script")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script for SHELL.

    bash: leadline completion bash > ~/.local/share/bash-completion/completions/leadline
    """
    from click.shell_completion import get_completion_class

    from leadline.cli.main import leadline
    from leadline.observe.hang_guard import check_answers, search_path

    check_answers([".", *search_path()])  # bash is asked for its version

    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"no completion for {shell}")
    source = completion(leadline, {}, "leadline", "_LEADLINE_COMPLETE").source()
    # Where there is nothing to offer, as behind NAME= of a target, bash offers files.
    echo_text(source.replace("complete -o nosort -F", "complete -o nosort -o bashdefault -o default -F"))
