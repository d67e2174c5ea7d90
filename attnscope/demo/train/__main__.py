"""`python -m attnscope.demo.train`."""

import sys

from attnscope.demo.train.command import main

sys.exit(main())
