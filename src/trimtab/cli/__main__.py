"""`python -m trimtab.cli` is `trimtab`."""

from trimtab.cli.app import main

main()
