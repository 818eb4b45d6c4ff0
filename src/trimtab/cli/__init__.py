"""The command line."""

from __future__ import annotations

from trimtab.cli.app import main

__all__ = ["main"]
