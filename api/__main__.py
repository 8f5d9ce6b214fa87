"""``python -m snnc``: the command line."""

from snnc.cli import main

if __name__ == "__main__":
    main()
