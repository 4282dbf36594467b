"""The entry of the command line: registers commands, prints errors as one sentence, sets the exit status."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated

import typer

from incrowd.cli import accounts, asking, explaining, owning, profiling, screen, starting, tour
from incrowd.cli.elsewhere import Commands
from incrowd.errors import BudgetExceeded, IncrowdError

WRONG, INTERRUPTED = 2, 130
TRACEBACK = "INCROWD_TRACEBACK"
"""Environment variable: if set, an unexpected failure shows its traceback."""

app = typer.Typer(
    name="incrowd",
    cls=Commands,
    help="Ask questions about tables of people, with a privacy guarantee for each of them.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
ledger_app = typer.Typer(
    help="The account of what was spent: found it, show it, verify it, steer it, keep it safe.",
    rich_markup_mode=None,
)
explain_app = typer.Typer(help="What an epsilon means, and what releases add up to.", rich_markup_mode=None)


def _version(asked: bool) -> None:
    if asked:
        from incrowd import __version__

        print(f"incrowd {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


app.command("demo")(tour.demo)
app.command("init")(starting.init)
app.command("tune")(profiling.tune)
app.command("ask")(asking.ask)
app.command("price")(asking.price)
app.command("budget")(accounts.budget)
ledger_app.command("found")(owning.found)
ledger_app.command("anchor")(owning.anchor)
ledger_app.command("backup")(owning.backup)
ledger_app.command("restore")(owning.restore)
ledger_app.command("clock")(owning.clock)
ledger_app.command("top-up")(owning.top_up)
ledger_app.command("lower")(owning.lower)
ledger_app.command("retire")(owning.retire)
ledger_app.command("show")(accounts.show)
ledger_app.command("export")(accounts.export)
ledger_app.command("verify")(accounts.verify)
ledger_app.command("head")(accounts.head)
app.add_typer(ledger_app, name="ledger")
explain_app.command("epsilon")(explaining.epsilon)
explain_app.command("compose")(explaining.compose)
app.add_typer(explain_app, name="explain")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        _as_a_program()
    try:
        result = app(args=words, prog_name="incrowd", standalone_mode=False)
        sys.stdout.flush()
        if result == INTERRUPTED:
            raise KeyboardInterrupt
        return result if isinstance(result, int) else 0
    except IncrowdError as error:
        return _fail(error, _as_options(error), error.exit_status, words)
    except typer.Abort as error:
        return _fail(error, "The input ended before all was answered; nothing was written.", WRONG, words)
    except KeyboardInterrupt as error:
        return _fail(error, "Interrupted; a price that was reserved stays paid.", INTERRUPTED, words)
    except BrokenPipeError:
        # The reader (head, less) has seen enough; nothing more may be written to it at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        usage = getattr(error, "format_message", None)
        if callable(usage):
            return _fail(error, _usage_sentence(str(usage()), error), WRONG, words)
        if os.environ.get(TRACEBACK):
            raise
        if isinstance(error, OSError) and error.filename:
            reason = (error.strerror or "it failed").lower()
            return _fail(error, f"{error.filename} cannot be used: {reason}.", WRONG, words)
        # The message of an unexpected error may quote rows, so only its type is printed.
        said = (
            f"Incrowd failed as it never should ({type(error).__name__}); please report it with the command."
        )
        return _fail(error, said, WRONG, words)


def _as_a_program() -> None:
    """Process-wide settings (warnings, encodings); applied only when run as a program."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # meant for developers of Incrowd; PYTHONWARNINGS shows them
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ± or █ must not end the program


def _as_options(error: IncrowdError) -> str:
    """The error's sentence, with the arguments that it names (`name=`) written as options (`--name`).

    >>> _as_options(IncrowdError("Say who asks, with analyst=: ana or ben.", arguments=("analyst",)))
    'Say who asks, with --analyst: ana or ben.'
    """
    sentence = str(error)
    for name in error.arguments:
        sentence = sentence.replace(f"{name}=", f"--{name}")
    return sentence


def _usage_sentence(said: str, error: Exception) -> str:
    """The option parser's error as one sentence that points to --help."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "incrowd"
    sentence = " ".join(said.split()).rstrip(".")
    return f"{sentence} (see {command} --help)."


def _fail(error: BaseException, sentence: str, status: int, words: Sequence[str]) -> int:
    sys.stdout.flush()
    if "--json" in words:
        about: dict[str, object] = {"kind": type(error).__name__, "message": sentence}
        if isinstance(error, BudgetExceeded):
            about |= {"asked": error.asked, "left": error.left}
        screen.emit_json({"error": about})
    screen.complain(sentence)
    return status
