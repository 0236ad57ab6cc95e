#!/bin/sh
# Package:   opentelemetry-exporter-otlp-proto-http 1.45.2 with opentelemetry-sdk 1.45.2 (PyPI)
# Behaviour: a span whose name, status or event has half of a surrogate pair takes all spans of its batch with it, up to
#            512, also those of others. One raised exception is enough: `start_as_current_span` copies its message into
#            the status, and the encoder refuses the batch. The same text in an attribute loses the attribute alone.
#            Models write such texts: JSON may hold "\ud83d" alone, and json.loads takes it.
# Output:    attribute: before, asked, after
#            exception: nothing
# Run:       sh findings/otlp_exporter_loses_a_batch.sh   (needs python3 and PyPI; some seconds)
set -eu
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet opentelemetry-sdk==1.45.2 opentelemetry-exporter-otlp-proto-http==1.45.2
cat > "$place/try.py" <<'PYTHON'
import json
import logging
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

logging.disable()
SAID = json.loads('"unknown tool x\\ud83d"')
came = []


class Collector(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            came.extend(span.name for scope in resource.scope_spans for span in scope.spans)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def ask_with_attribute(tracer):
    with tracer.start_as_current_span("asked") as span:
        span.set_attribute("said", SAID)


def ask_with_exception(tracer):
    with suppress(ValueError), tracer.start_as_current_span("asked"):
        raise ValueError(SAID)


server = HTTPServer(("127.0.0.1", 0), Collector)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/v1/traces"
for name, ask in (("attribute", ask_with_attribute), ("exception", ask_with_exception)):
    came.clear()
    provider = TracerProvider()
    exporter = OTLPSpanExporter(url, compression=Compression.NoCompression)
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=60_000))
    tracer = provider.get_tracer("try")
    tracer.start_span("before").end()
    ask(tracer)
    tracer.start_span("after").end()
    provider.shutdown()
    print(f"{name}: {', '.join(came) or 'nothing'}")
PYTHON
"$place/venv/bin/python" "$place/try.py" | tee "$place/seen"
sed -n 's/^# Output:    //p; s/^#            \(exception: .*\)$/\1/p' "$0" | diff - "$place/seen"
echo "as described"
