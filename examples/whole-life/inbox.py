"""The endpoint that receives the events."""
import base64
import hashlib
import hmac
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WAIT_SECONDS = 60

SIGNER = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def is_genuine(body, headers):
    """Checks `webhook-signature`, a signature of Standard Webhooks, over the received bytes."""
    key = base64.b64decode(SIGNER[6:])
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    right = b"v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256))
    is_recent = abs(time.time() - int(headers["webhook-timestamp"])) < 300
    given = headers["webhook-signature"].split(" ")
    return is_recent and any(hmac.compare_digest(one.encode(), right) for one in given)


def has_xpay_signature(body, headers):
    """Checks the older signature. One of the two checks is enough."""
    right = base64.b64encode(hmac.digest(SIGNER.encode(), body, hashlib.sha512))
    return hmac.compare_digest(headers["xpay-signature"].encode(), right)


class Inbox:
    """The events that arrived, each once."""

    def __init__(self):
        self.events = {}
        self.forged = 0
        self.arrived = threading.Condition()

    def receive(self, body, headers):
        """Returns whether both signatures are right."""
        if not (is_genuine(body, headers) and has_xpay_signature(body, headers)):
            self.forged += 1
            return False
        event = json.loads(body)
        with self.arrived:
            self.events.setdefault(event["eventId"], event)
            self.arrived.notify_all()
        return True

    def of(self, **fields):
        """The events with these fields, in the order of their sequence."""
        found = [e for e in list(self.events.values()) if fields.items() <= e.items()]
        return sorted(found, key=lambda event: event["sequence"])

    def expect(self, types, **fields):
        """Waits for the events with these fields, and returns them. Fails if they are not of these types."""
        with self.arrived:
            self.arrived.wait_for(lambda: len(self.of(**fields)) >= len(types), WAIT_SECONDS)
        found = self.of(**fields)
        arrived = [event["eventType"] for event in found]
        if arrived != list(types):
            raise AssertionError(f"events: expected {list(types)}, saw {arrived}")
        return found

    def open(self):
        """Starts an HTTP server for the events. Returns its URL."""
        inbox = self

        class Endpoint(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(204 if inbox.receive(body, self.headers) else 400)
                self.end_headers()

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/webhooks"
