# Verifies a webhook. Usage: python3 verify.py <secret> < delivery.json
# delivery.json: {"headers": {…}, "body": "<the received bytes, in Base64>"}
import base64
import hashlib
import hmac
import json
import sys
import time


def is_genuine(body: bytes, headers: dict, secret: str) -> bool:
    """`body`: the received bytes, before any parsing. `secret`: the text of `eventSigner`."""
    key = base64.b64decode(secret[6:]) if secret.startswith("whsec_") else secret.encode()
    timestamp = headers["webhook-timestamp"]
    signed = f"{headers['webhook-id']}.{timestamp}.".encode() + body
    right = b"v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256))
    is_recent = abs(time.time() - int(timestamp)) < 300
    given = headers["webhook-signature"].split(" ")
    return is_recent and any(hmac.compare_digest(one.encode(), right) for one in given)


def has_xpay_signature(body: bytes, headers: dict, secret: str) -> bool:
    """Checks the older signature, which does not stop a replay. Its key is the secret's whole text."""
    right = base64.b64encode(hmac.digest(secret.encode(), body, hashlib.sha512))
    return hmac.compare_digest(headers["xpay-signature"].encode(), right)


delivery = json.load(sys.stdin)
received = base64.b64decode(delivery["body"])
checks = {"webhook-signature": is_genuine, "xpay-signature": has_xpay_signature}
for name, check in checks.items():
    print(name, "valid" if check(received, delivery["headers"], sys.argv[1]) else "wrong")
