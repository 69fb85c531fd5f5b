import java.net.URI;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.JSON;
import org.openapitools.client.api.SubscriptionsApi;
import org.openapitools.client.api.TestClocksApi;
import org.openapitools.client.model.AdvanceTestClockRequest;
import org.openapitools.client.model.CancelSubscriptionRequest;
import org.openapitools.client.model.CreateSubscriptionRequest;
import org.openapitools.client.model.CreateTestClockRequest;
import org.openapitools.client.model.CustomerDetails;
import org.openapitools.client.model.Error;
import org.openapitools.client.model.IntervalUnit;
import org.openapitools.client.model.Subscription;
import org.openapitools.client.model.TestClock;

/** As `life.go`, with the Java client of openapi-generator. */
class Life {
    private static final SubscriptionsApi SUBSCRIPTIONS = new SubscriptionsApi(client());
    private static final TestClocksApi CLOCKS = new TestClocksApi(client());

    public static void main(String[] args) throws Exception {
        if (args[0].equals("create")) create();
        else live(args[1], args[2]);
        System.exit(0); // not after the idle minutes of the client's connections
    }

    private static ApiClient client() {
        var client = new ApiClient().setBasePath(System.getenv("API_URL")).setReadTimeout(60_000);
        client.setUsername(System.getenv("KEY_ID"));
        client.setPassword(System.getenv("SECRET"));
        return client;
    }

    private static void create() throws ApiException {
        var clock = CLOCKS.createTestClock(new CreateTestClockRequest(), null, null);
        var request = new CreateSubscriptionRequest().amount(1999L).currency("USD")
            .customerDetails(new CustomerDetails()).callbackUrl(URI.create("https://merchant.example/thanks"))
            .interval(IntervalUnit.MONTH).intervalCount(1L).cycleCount(12L).testClockId(clock.getTestClockId());
        var created = SUBSCRIPTIONS.createSubscription(request, null, null);
        System.out.println(created.getSubscriptionId() + " " + clock.getTestClockId());
    }

    private static void live(String id, String clockId) throws Exception {
        Subscription paid = SUBSCRIPTIONS.getSubscription(id);
        print("paid", paid.getStatus(), paid.getAmount(), paid.getRemainingCycleCount());

        var advance = new AdvanceTestClockRequest().testClockId(clockId).to(paid.getNextPaymentDate());
        TestClock clock = CLOCKS.advanceTestClock(advance, null, null);
        for (int look = 0; look < 300 && clock.getStatus() != TestClock.StatusEnum.READY; look++) {
            Thread.sleep(100);
            clock = CLOCKS.getTestClock(clockId);
        }
        Subscription renewed = SUBSCRIPTIONS.getSubscription(id);
        print("renewed", renewed.getStatus(), renewed.getRemainingCycleCount());
        list(paid, "ACTIVE", "UNPAID");
        list(paid, "PAUSED", "ENDED");

        var cancel = new CancelSubscriptionRequest().subscriptionId(id);
        SUBSCRIPTIONS.cancelSubscription(cancel, null, null);
        Subscription ended = SUBSCRIPTIONS.getSubscription(id);
        print("cancelled", ended.getStatus(), ended.getEndReason());
        list(paid, "PAUSED", "ENDED");
        try {
            SUBSCRIPTIONS.cancelSubscription(cancel, null, null);
        } catch (ApiException refusal) {
            var error = JSON.getGson().fromJson(refusal.getResponseBody(), Error.class);
            print("refused", refusal.getCode(), error.getErrorCode());
        }
    }

    private static void list(Subscription of, String... statuses) throws ApiException {
        var listed = SUBSCRIPTIONS.listSubscriptions(
            null, null, null, null, of.getCustomerId(), List.of(statuses), null, null);
        print("listed", listed.getData().size());
    }

    private static void print(Object... words) {
        System.out.println(Stream.of(words).map(String::valueOf).collect(Collectors.joining(" ")));
    }
}
