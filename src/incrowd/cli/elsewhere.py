"""Commands of rooms that the command line does not know: found by their entry points, loaded when needed.

A package adds a command by an entry point in the group `incrowd.commands` that names a function, written as
the commands here are. Commands of our own need no looking up, and cannot be replaced.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperGroup

from incrowd.errors import InvalidInput

GROUP = "incrowd.commands"


class Commands(TyperGroup):
    """The commands that were added to this group, and after them those that installed packages offer."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Every command's name; a package that is broken is passed over, so that help is always shown."""
        return [*super().list_commands(ctx), *(name for name in _offered() if self._works(ctx, name))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, loaded now if it is another package's; None if there is none."""
        own = super().get_command(ctx, cmd_name)
        if own is not None or cmd_name not in (offered := _offered()):
            return own
        return _loaded(offered[cmd_name])

    def _works(self, ctx: Any, name: str) -> bool:
        try:
            return name not in self.commands and self.get_command(ctx, name) is not None
        except InvalidInput:
            return False


def _offered() -> dict[str, EntryPoint]:
    return {each.name: each for each in sorted(entry_points(group=GROUP), key=lambda each: each.name)}


def _loaded(offer: EntryPoint) -> Any:
    try:
        function = offer.load()
    except Exception as error:
        raise InvalidInput(
            f"The command {offer.name} cannot be loaded from {offer.module} ({type(error).__name__}): "
            "install that package anew, or remove it."
        ) from error
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    alone.command(offer.name)(function)
    return typer.main.get_command(alone)
