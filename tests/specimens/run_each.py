"""Runs the commands that come in as JSON, one after the other in this process, and says what each gave."""

import json
import sys

from typer.testing import CliRunner

from attnscope.cli.app import app


def main() -> None:
    for arguments in json.load(sys.stdin):
        result = CliRunner().invoke(app, arguments, prog_name="attnscope")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        print(json.dumps([result.exit_code, result.stdout, result.stderr]))


if __name__ == "__main__":
    main()
