"""`python -m leadline` is the `leadline` command."""

from leadline.cli.main import main

main()
