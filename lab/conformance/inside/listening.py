"""`listening.py COMMAND ... --port N`: listen at once, then become the command, which accepts from `--fd`.

The ITK's receiver of webhooks has 5 seconds to answer; a client that is let in waits longer.
"""

import os
import socket
import sys

command = sys.argv[1:]
listener = socket.create_server(("127.0.0.1", int(command[command.index("--port") + 1])))
listener.set_inheritable(True)
os.execv(command[0], [*command, "--fd", str(listener.fileno())])
