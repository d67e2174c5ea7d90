"""`python -m attnscope` is the same program as `attnscope`."""

from attnscope.cli.app import main

if __name__ == "__main__":
    main()
