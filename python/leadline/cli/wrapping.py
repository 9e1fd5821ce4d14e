"""What verbs share that run a command of the user's: their own failures do not look like its exit code."""

from __future__ import annotations

from typing import Any

import click

EXIT_OWN_FAILURE = 125  # as `env`, `timeout` and `nohup` have it
WORDS = "leadline.command"  # where a context keeps the words behind `--`


class Misused(click.UsageError):
    """A wrong option is a failure of ours too, and must not look like an exit code of the command."""

    exit_code = EXIT_OWN_FAILURE


class WrappingCommand(click.Command):
    """Gives wrong options our own exit code."""

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """As click's, with our exit code."""
        try:
            return super().make_context(*arguments, **options)
        except click.UsageError as error:
            raise Misused(error.format_message(), error.ctx) from error.__cause__


class SeparatedCommand(WrappingCommand):
    """Keeps what follows `--` for the command, and gives wrong options an exit code of our own."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click's, of the words before `--`."""
        index = args.index("--") if "--" in args else len(args)
        ctx.meta[WORDS] = tuple(args[index + 1 :])
        return super().parse_args(ctx, args[:index])
