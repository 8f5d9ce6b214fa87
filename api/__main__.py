"""``python -m snnc``: the command line."""

from snnc.cli.main import main

if __name__ == "__main__":
    main()
