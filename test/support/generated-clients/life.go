// A short life with a client that oapi-codegen makes from the OpenAPI document.
package main

import (
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"time"

	"perennial.example/life/client"
)

func main() {
	api, err := client.NewClientWithResponses(os.Getenv("API_URL"), client.WithRequestEditorFn(
		func(_ context.Context, request *http.Request) error {
			request.SetBasicAuth(os.Getenv("KEY_ID"), os.Getenv("SECRET"))
			return nil
		}))
	must(err)
	ctx := context.Background()

	name := "Ada Example"
	customer, err := api.CreateCustomerWithResponse(ctx, nil,
		client.CreateCustomerRequest{CustomerDetails: client.CustomerDetails{Name: &name}})
	must(err)
	created, err := api.CreateSubscriptionWithResponse(ctx, nil, client.CreateSubscriptionRequest{
		Amount: 1999, Currency: "USD", Interval: client.MONTH, IntervalCount: 1, CycleCount: 12,
		CallbackUrl: "https://merchant.example/thanks", CustomerDetails: client.CustomerDetails{},
		CustomerId: &customer.JSON200.CustomerId,
	})
	must(err)
	id := created.JSON200.SubscriptionId
	payAt(created.JSON200.FwdUrl)
	paid := read(ctx, api, id)
	fmt.Println("paid", paid.Status, paid.Amount, paid.RemainingCycleCount, *paid.NextPaymentDate == *paid.CurrentPeriodEnd)

	listed, err := api.ListSubscriptionsWithResponse(ctx, &client.ListSubscriptionsParams{CustomerId: &paid.CustomerId})
	must(err)
	fmt.Println("listed", len(listed.JSON200.Data), listed.JSON200.Data[0].SubscriptionId == id)

	cancel := client.CancelSubscriptionRequest{SubscriptionId: id}
	cancelled, err := api.CancelSubscriptionWithResponse(ctx, nil, cancel)
	must(err)
	ended := read(ctx, api, id)
	fmt.Println("cancelled", cancelled.StatusCode(), ended.Status, *ended.EndReason)
	again, err := api.CancelSubscriptionWithResponse(ctx, nil, cancel)
	must(err)
	fmt.Println("refused", again.StatusCode(), again.JSON400.ErrorCode)
}

func read(ctx context.Context, api *client.ClientWithResponses, id string) *client.Subscription {
	answer, err := api.GetSubscriptionWithResponse(ctx, id)
	must(err)
	return answer.JSON200
}

var form = regexp.MustCompile(`(?s)<form[^>]* action="([^"]*)".*?</form>`)
var input = regexp.MustCompile(`<input[^>]* name="([^"]*)"[^>]*>`)
var value = regexp.MustCompile(` value="([^"]*)"`)

// payAt fills in the forms of the hosted page, as the payer's browser does.
func payAt(address string) {
	jar, err := cookiejar.New(nil)
	must(err)
	browser := &http.Client{Jar: jar, Timeout: time.Minute}
	typed := map[string]string{"name": "Ada Example", "email": "ada@example.com",
		"number": "4242 4242 4242 4242", "expiry": "12 / 34", "cvc": "123"}
	page, err := browser.Get(address)
	for range 5 {
		must(err)
		shown := form.FindStringSubmatch(textOf(page))
		if shown == nil {
			return
		}
		fields := url.Values{}
		for _, tag := range input.FindAllStringSubmatch(shown[0], -1) {
			fields.Set(tag[1], typed[tag[1]])
			if given := value.FindStringSubmatch(tag[0]); given != nil && typed[tag[1]] == "" {
				fields.Set(tag[1], given[1])
			}
		}
		target, err := page.Request.URL.Parse(html.UnescapeString(shown[1]))
		must(err)
		page, err = browser.PostForm(target.String(), fields)
		must(err)
	}
	panic("the page still shows a form")
}

func textOf(answer *http.Response) string {
	text, err := io.ReadAll(answer.Body)
	must(err)
	must(answer.Body.Close())
	return string(text)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
