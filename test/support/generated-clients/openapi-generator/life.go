// A life with the Go client of openapi-generator: "life create", then, after the payment, "life live <subscription> <clock>".
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"perennial.example/life/client"
)

func main() {
	settings := client.NewConfiguration()
	settings.Servers = client.ServerConfigurations{{URL: os.Getenv("API_URL")}}
	api := client.NewAPIClient(settings)
	ctx := context.WithValue(context.Background(), client.ContextBasicAuth,
		client.BasicAuth{UserName: os.Getenv("KEY_ID"), Password: os.Getenv("SECRET")})
	if os.Args[1] == "create" {
		create(ctx, api)
	} else {
		live(ctx, api, os.Args[2], os.Args[3])
	}
}

func create(ctx context.Context, api *client.APIClient) {
	clock, _, err := api.TestClocksAPI.CreateTestClock(ctx).CreateTestClockRequest(*client.NewCreateTestClockRequest()).Execute()
	must(err)
	request := client.NewCreateSubscriptionRequest(1999, "USD", *client.NewCustomerDetails(),
		"https://merchant.example/thanks", client.MONTH, 1, 12)
	request.SetTestClockId(clock.TestClockId)
	created, _, err := api.SubscriptionsAPI.CreateSubscription(ctx).CreateSubscriptionRequest(*request).Execute()
	must(err)
	fmt.Println(created.SubscriptionId, clock.TestClockId)
}

func live(ctx context.Context, api *client.APIClient, id string, clockId string) {
	read := func() *client.Subscription {
		answer, _, err := api.SubscriptionsAPI.GetSubscription(ctx, id).Execute()
		must(err)
		return answer
	}
	paid := read()
	fmt.Println("paid", paid.Status, paid.Amount, paid.RemainingCycleCount)

	advance := client.NewAdvanceTestClockRequest(clockId, paid.GetNextPaymentDate())
	clock, _, err := api.TestClocksAPI.AdvanceTestClock(ctx).AdvanceTestClockRequest(*advance).Execute()
	must(err)
	for range 300 {
		if clock.Status == "READY" {
			break
		}
		time.Sleep(100 * time.Millisecond)
		clock, _, err = api.TestClocksAPI.GetTestClock(ctx, clockId).Execute()
		must(err)
	}
	renewed := read()
	fmt.Println("renewed", renewed.Status, renewed.RemainingCycleCount)
	list := func(statuses ...string) {
		listed, _, err := api.SubscriptionsAPI.ListSubscriptions(ctx).CustomerId(paid.CustomerId).Status(statuses).Execute()
		must(err)
		fmt.Println("listed", len(listed.Data))
	}
	list("ACTIVE", "UNPAID")
	list("PAUSED", "ENDED")

	cancel := *client.NewCancelSubscriptionRequest(id)
	_, _, err = api.SubscriptionsAPI.CancelSubscription(ctx).CancelSubscriptionRequest(cancel).Execute()
	must(err)
	ended := read()
	fmt.Println("cancelled", ended.Status, ended.GetEndReason())
	list("PAUSED", "ENDED")
	_, refused, err := api.SubscriptionsAPI.CancelSubscription(ctx).CancelSubscriptionRequest(cancel).Execute()
	refusal := err.(*client.GenericOpenAPIError).Model().(client.Error)
	fmt.Println("refused", refused.StatusCode, refusal.ErrorCode)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
