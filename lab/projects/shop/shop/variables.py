"""Whether the host is part of the shop."""

import os

WITH_A2A = bool(os.environ.get("WITH_A2A"))
