"""The whole life of a subscription, in test mode. Needs only Python 3.9 and a running `npm start`.

    python3 examples/whole-life/life.py

Reads API_URL, KEY_ID and SECRET from the environment, else from .data/demo.json. Prints one line for each step
and stops with exit code 1 at the first answer or event that is not as expected. A test clock lets the months
pass.
"""
import base64
import json
import os
import time
import urllib.error
import urllib.request
import uuid
from datetime import datetime, timezone

from inbox import SIGNER, Inbox
from payer import pay_at

WAIT_SECONDS = 60


def settings():
    if "API_URL" in os.environ:
        return os.environ["API_URL"], os.environ["KEY_ID"], os.environ["SECRET"]
    with open(".data/demo.json", encoding="utf-8") as file:
        demo = json.load(file)
    return demo["apiUrl"], demo["keyId"], demo["secret"]


API_URL, KEY_ID, SECRET = settings()
AUTHORIZATION = "Basic " + base64.b64encode(f"{KEY_ID}:{SECRET}".encode()).decode()


class Refused(Exception):
    """A definite refusal: a repeat of the same request would be refused too."""

    def __init__(self, status, body):
        super().__init__(f"{status} {body['errorCode']}: {body['errorDescription']}")
        self.code = body["errorCode"]


def call(method, path, body=None):
    """Sends a request until it has a definite answer. Its Idempotency-Key makes a repeat harmless."""
    headers = {"Authorization": AUTHORIZATION}
    if method == "POST":
        headers |= {
            "Content-Type": "application/json",
            "Unknown-Fields": "refuse",
            "Idempotency-Key": str(uuid.uuid4()),
        }
    data = None if body is None else json.dumps(body).encode()
    give_up_at = time.monotonic() + WAIT_SECONDS
    while True:
        request = urllib.request.Request(API_URL + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as answer:
                return json.loads(answer.read() or "{}")
        except urllib.error.HTTPError as error:
            refusal = json.loads(error.read())
            is_pending = refusal["errorCode"] == "payment_outcome_pending"
            may_repeat = is_pending or error.code in (409, 429) or error.code >= 500
            if not may_repeat or time.monotonic() > give_up_at:
                raise Refused(error.code, refusal) from error
            time.sleep(float(error.headers.get("Retry-After", 1)))
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            if time.monotonic() > give_up_at:
                raise
            time.sleep(1)


def get(path):
    return call("GET", path)


def post(path, **body):
    return call("POST", path, body)


def at(instant):
    return round(datetime.fromisoformat(instant).replace(tzinfo=timezone.utc).timestamp() * 1000)


def same(seen, expected, what):
    if seen != expected:
        raise AssertionError(f"{what}: expected {expected}, saw {seen}")


def step(text):
    print(text, flush=True)


class Life:
    """A subscription and its test clock."""

    def __init__(self, subscription_id, clock_id, now):
        self.id, self.clock_id, self.now = subscription_id, clock_id, now
        self.types = []

    def pass_time(self, until):
        self.now = at(until)
        clock = post("/test-clock/advance", testClockId=self.clock_id, to=self.now)
        while clock["status"] == "ADVANCING":
            time.sleep(1)
            clock = get(f"/test-clock/{self.clock_id}")

    def events(self, *types):
        """Expects these new events and no others. Returns the newest."""
        self.types += types
        return inbox.expect(self.types, subscriptionId=self.id)[-1]

    def expect(self, **fields):
        """Expects these fields of the subscription, and returns all."""
        read = get(f"/subscription/get-subscription/{self.id}")
        same({name: read.get(name) for name in fields}, fields, "subscription")
        return read

    def has_access(self):
        """Expects access or none, as derived from the newest event alone (docs/integrating.md)."""
        dated = [e for e in inbox.of(subscriptionId=self.id) if "currentPeriodEnd" in e]
        return self.now < (dated[-1]["currentPeriodEnd"] or 0)

TYPES = [
    "intent.success",
    "intent.failed",
    "intent.refunded",
    "subscription.cycle_charged",
    "subscription.active",
    "subscription.unpaid",
    "subscription.paused",
    "subscription.ended",
    "setup_method.success",
]

inbox = Inbox()

TERMS = {
    "currency": "USD",
    "amount": 1999,
    "interval": "MONTH",
    "intervalCount": 1,
    "cycleCount": 12,
    "callbackUrl": "https://merchant.example/thanks",
}
PAID = ("intent.success", "subscription.cycle_charged")


def subscribe():
    start = "2027-01-31T12:00:00"
    clock = post("/test-clock/create", now=at(start))["testClockId"]
    details = {"name": "Ada Example", "email": "ada@example.com"}
    created = post("/subscription/create", **TERMS, customerDetails=details, testClockId=clock)
    life = Life(created["subscriptionId"], clock, at(start))
    life.expect(status="CREATED")
    step(f"created      {life.id}")

    pay_at(created["fwdUrl"])
    life.events(*PAID, "subscription.active")
    life.expect(status="ACTIVE", nextPaymentDate=at("2027-02-28T12:00:00"), remainingCycleCount=11)
    same(life.has_access(), True, "access")
    step("paid         19.99 USD on the hosted page; ACTIVE until 28 February")
    return life


def edit_and_pause(life):
    post("/subscription/edit", subscriptionId=life.id, newAmount=2499)
    life.pass_time("2027-02-28T12:00:00")
    same(life.events(*PAID)["amount"], 2499, "amount")
    step("edited       24.99 USD from 28 February on")

    life.pass_time("2027-03-10T12:00:00")
    post("/subscription/merchant/pause", subscriptionId=life.id, resumeAt=at("2027-04-15T12:00:00"))
    life.events("subscription.paused")
    life.expect(status="PAUSED", resumeAt=at("2027-04-15T12:00:00"), nextPaymentDate=None)
    same(life.has_access(), True, "access in a pause, while the month is paid")
    life.pass_time("2027-04-15T11:59:59")
    same(life.has_access(), False, "access after the paid month")
    life.pass_time("2027-04-15T12:00:00")
    life.events("subscription.active", *PAID)
    same(life.has_access(), True, "access after the pause")
    step("paused       from 10 March to 15 April; access until 31 March; then charged again")


def recover_from_declines(life):
    post("/test-helpers/decline-next", subscriptionId=life.id, code="insufficient_funds", count=2)
    life.pass_time("2027-05-15T12:00:00")
    unpaid = life.events("intent.failed", "subscription.unpaid")
    same(unpaid["errorCode"], "insufficient_funds", "reason")
    same(unpaid["nextRetryAt"], at("2027-05-15T16:00:00"), "automatic retry")
    same(life.has_access(), False, "access while UNPAID")
    life.pass_time("2027-05-15T16:00:00")
    life.events("intent.failed")
    step("declined     on 15 May and four hours later: insufficient_funds; UNPAID")

    retry = post("/subscription/manual-retry", subscriptionId=life.id)
    same((retry["success"], retry["status"], retry["errorCode"]), (True, "ACTIVE", None), "retry")
    paid = life.events(*PAID, "subscription.active")
    same(paid["currentPeriodEnd"], at("2027-06-15T12:00:00"), "paid until")
    same(life.has_access(), True, "access after the retry")
    step("retried      by hand: paid; ACTIVE until 15 June")

    intent = inbox.of(subscriptionId=life.id, eventType="intent.success")[-1]["intentId"]
    refund = post("/payments/merchant/refund", xIntentId=intent, amount=1000)
    same((refund["amount"], refund["currency"]), (1000, "USD"), "refund")
    same(life.events("intent.refunded")["status"], "PARTIALLY_REFUNDED", "intent")
    step("refunded     10.00 USD of it")


def cancel_at_period_end(life):
    post("/subscription/merchant/cancel", subscriptionId=life.id, atPeriodEnd=True)
    life.expect(status="ACTIVE", cancelAt=at("2027-06-15T12:00:00"), nextPaymentDate=None)
    life.pass_time("2027-06-15T12:00:00")
    same(life.events("subscription.ended")["endReason"], "cancelled", "end")
    same(life.has_access(), False, "access after the end")
    try:
        post("/subscription/edit", subscriptionId=life.id, newAmount=999)
        raise AssertionError("an ENDED subscription was edited")
    except Refused as refusal:
        same(refusal.code, "operation_not_allowed", "refusal")
    life.pass_time("2028-06-15T12:00:00")
    later = get(f"/payments?subscriptionId={life.id}&startTime={at('2027-06-15T12:00:00')}")
    same(later["data"], [], "later payments")
    step("cancelled    at the end of the period: ENDED on 15 June, and no payment in the next year")


def sell_by_link():
    """Sells a subscription by a link, which has no test clock, so the billing is in real time."""
    order = f"order-{uuid.uuid4()}"
    expiry = round(time.time() * 1000) + 86_400_000
    terms = {**TERMS, "receiptId": order, "expiryDate": expiry, "customerDetails": {}}
    made = post("/subscription/link/merchant/generate-link", **terms)
    pay_at(made["shortUrl"])
    paid = inbox.expect([*PAID, "subscription.active"], receiptId=order)[0]
    same((paid["amount"], paid["customerDetails"]["name"]), (1999, "Ada Example"), "payment by link")
    life = Life(paid["subscriptionId"], None, 0)
    life.events(*PAID, "subscription.active")
    post("/subscription/merchant/cancel", subscriptionId=life.id)
    life.events("subscription.ended")
    step(f"link         {made['shortUrl']}: one payer subscribed, and is cancelled at once")


def sell_once_by_link():
    order = f"order-{uuid.uuid4()}"
    expiry = round(time.time() * 1000) + 86_400_000
    offer = {"currency": "USD", "amount": 4900, "description": "A teapot", "comments": "fair in May"}
    made = post("/link/merchant/generate-link", **offer, receiptId=order, expiryDate=expiry)
    pay_at(made["shortUrl"])
    paid = inbox.expect(["intent.success"], receiptId=order)[0]
    seen = {name: paid[name] for name in ("amount", "kind", "comments", "subscriptionId")}
    expected = {"amount": 4900, "kind": "hosted", "comments": "fair in May", "subscriptionId": None}
    same(seen, expected, "payment by link")
    step(f"payment link {made['shortUrl']}: one payer paid 49.00 USD once")


def save_a_card():
    details = {"name": "Ada Example", "email": "ada@example.com"}
    customer = post("/customer/create", customerDetails=details)["customerId"]
    terms = {"currency": "USD", "callbackUrl": TERMS["callbackUrl"], "billingDetails": details}
    setup = post("/setup-method/create", **terms, customerId=customer)
    pay_at(setup["fwdUrl"])
    saved = inbox.expect(["setup_method.success"], setupMethodId=setup["setupMethodId"])[0]
    same(saved["customerId"], customer, "customer")
    charge = {"pmId": saved["pmId"], "customerId": customer, "currency": "USD", "amount": 500}
    paid = post("/payments/charge-tokenised-pm", **charge)
    same(paid["status"], "SUCCESS", "charge")
    post("/test-helpers/decline-next", pmId=saved["pmId"], code="lost_card")
    declined = post("/payments/charge-tokenised-pm", **charge)
    same((declined["status"], declined["errorCode"]), ("FAILED", "lost_card"), "charge")
    inbox.expect(["intent.success"], intentId=paid["intentId"])
    inbox.expect(["intent.failed"], intentId=declined["intentId"])
    step(f"saved        {saved['pmId']}: charged 5.00 USD, and declined once with lost_card")


# Loopback is allowed on a development server. In production this is a public https URL.
endpoint = {"endpoint": inbox.open(), "eventSigner": SIGNER, "subscribedEventTypes": TYPES}
config = post("/webhook", **endpoint)["webhookConfigId"]
try:
    subscription = subscribe()
    edit_and_pause(subscription)
    recover_from_declines(subscription)
    cancel_at_period_end(subscription)
    sell_by_link()
    sell_once_by_link()
    save_a_card()
    same(inbox.forged, 0, "events with a wrong signature")
    step(f"as expected  {len(inbox.events)} events, each with both signatures")
finally:
    call("DELETE", f"/webhook/{config}")
