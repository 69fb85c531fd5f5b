"""A short life with a client that openapi-python-client makes from the OpenAPI document."""
import base64
import os
import sys

from client import AuthenticatedClient
from client.api.customers import create_customer
from client.api.subscriptions import cancel_subscription, create_subscription, get_subscription, list_subscriptions
from client.models import (
    CancelSubscriptionRequest,
    CreateCustomerRequest,
    CreateSubscriptionRequest,
    CustomerDetails,
    IntervalUnit,
)

sys.path.append("examples/whole-life")
from payer import pay_at  # noqa: E402

token = base64.b64encode(f"{os.environ['KEY_ID']}:{os.environ['SECRET']}".encode()).decode()
api = AuthenticatedClient(os.environ["API_URL"], token=token, prefix="Basic")

ada = CustomerDetails(name="Ada Example")
customer = create_customer.sync(client=api, body=CreateCustomerRequest(ada))
created = create_subscription.sync(
    client=api,
    body=CreateSubscriptionRequest(
        amount=1999,
        currency="USD",
        interval=IntervalUnit.MONTH,
        interval_count=1,
        cycle_count=12,
        callback_url="https://merchant.example/thanks",
        customer_details=CustomerDetails(),
        customer_id=customer.customer_id,
    ),
)
key = created.subscription_id
pay_at(created.fwd_url)
paid = get_subscription.sync(key, client=api)
is_paid_up = paid.next_payment_date == paid.current_period_end
print("paid", paid.status, paid.amount, paid.remaining_cycle_count, str(is_paid_up).lower())

listed = list_subscriptions.sync(client=api, customer_id=paid.customer_id)
print("listed", len(listed.data), str(listed.data[0].subscription_id == key).lower())

cancel = CancelSubscriptionRequest(key)
cancelled = cancel_subscription.sync_detailed(client=api, body=cancel)
ended = get_subscription.sync(key, client=api)
print("cancelled", cancelled.status_code.value, ended.status, ended.end_reason)
again = cancel_subscription.sync_detailed(client=api, body=cancel)
print("refused", again.status_code.value, again.parsed.error_code)
