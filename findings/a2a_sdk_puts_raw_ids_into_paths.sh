#!/bin/sh
# Package:   a2a-sdk 1.3.0 (PyPI)
# Behaviour: over HTTP+JSON its client puts ids into paths as they are. A client chooses the ids of its webhooks, and any
#            text is allowed. With `#` or `?` in the id, the rest is no part of the path: the client reads, and deletes,
#            the webhook whose id is what stands before. With `/` it asks for a path that no version has. Over JSON-RPC and gRPC,
#            and in @a2a-js/sdk 1.3.0, each id is itself.
# Output:    'build#2': DELETE /tasks/1/pushNotificationConfigs/build
#            'build?2': DELETE /tasks/1/pushNotificationConfigs/build
#            'build/2': DELETE /tasks/1/pushNotificationConfigs/build/2
# Run:       sh findings/a2a_sdk_puts_raw_ids_into_paths.sh   (needs python3 and PyPI; half a minute)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet "a2a-sdk[http-server]==1.3.0"
cat > "$place/try.py" <<'PYTHON'
import asyncio
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from a2a.client import ClientConfig, create_client
from a2a.types import AgentCard, AgentInterface, DeleteTaskPushNotificationConfigRequest

asked = []


class Agent(BaseHTTPRequestHandler):
    def do_DELETE(self):
        asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


async def delete():
    url = f"http://127.0.0.1:{server.server_port}"
    found = AgentInterface(url=url, protocol_binding="HTTP+JSON", protocol_version="1.0")
    card = AgentCard(name="Echo", description="Repeats", version="1", supported_interfaces=[found])
    client = await create_client(card, ClientConfig(supported_protocol_bindings=["HTTP+JSON"]))
    for id_ in ("build#2", "build?2", "build/2"):
        await client.delete_task_push_notification_config(
            DeleteTaskPushNotificationConfigRequest(task_id="1", id=id_)
        )
        print(f"{id_!r}: DELETE {asked.pop()}")
    await client.close()


server = HTTPServer(("127.0.0.1", 0), Agent)
threading.Thread(target=server.serve_forever, daemon=True).start()
asyncio.run(delete())
PYTHON
"$place/venv/bin/python" "$place/try.py" | tee "$place/seen"
sed -n "s/^# Output:    //p; s/^#            \('b.*\)$/\1/p" "$0" | diff - "$place/seen"
echo "as described"
