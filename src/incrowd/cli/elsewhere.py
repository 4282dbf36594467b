"""Plug-in commands, discovered through entry points and loaded when needed.

A package adds a command with an entry point in the group `incrowd.commands` that names a function, written
like the commands of this package. A plug-in cannot replace a built-in command.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperGroup

from incrowd.errors import InvalidInput

GROUP = "incrowd.commands"


class Commands(TyperGroup):
    """The built-in commands, followed by those of installed packages."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Every command's name; a broken package is skipped, so that help always works."""
        return [*super().list_commands(ctx), *(name for name in _offered() if self._works(ctx, name))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, loaded now if it is a plug-in; None if there is none."""
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
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)}


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
