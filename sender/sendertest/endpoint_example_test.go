package sendertest_test

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/surehook/surehook/sender/sendertest"
	"github.com/surehook/surehook/signing"
)

// A receiver that is down once and then accepts, without a connection.
func ExampleNewRoundTripper() {
	receiver := sendertest.NewRoundTripper(
		sendertest.Answer(503, http.Header{"Retry-After": {"120"}}, "come back later"),
		sendertest.Status(200),
	)
	client := &http.Client{Transport: receiver}
	for range 2 {
		resp, err := client.Post("http://receiver.test/hooks", "application/json", strings.NewReader(`{"id":"evt_1"}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d %q\n", resp.StatusCode, resp.Header.Get("Retry-After"))
		_ = resp.Body.Close()
	}
	for _, r := range receiver.Requests() {
		fmt.Println(r.Method, r.URL, string(r.Body))
	}
	// Output:
	// 503 "120"
	// 200 ""
	// POST http://receiver.test/hooks {"id":"evt_1"}
	// POST http://receiver.test/hooks {"id":"evt_1"}
}

func ExampleRequest_Verify() {
	secret := signing.GenerateSecret()
	keys, err := signing.NewKeyring(signing.Key{Secret: secret})
	if err != nil {
		fmt.Println(err)
		return
	}
	body := `{"id":"evt_1"}`
	req, err := http.NewRequest(http.MethodPost, "http://receiver.test/hooks", strings.NewReader(body))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := signing.Sign(req.Header, signing.DefaultSchemes(), "evt_1", time.Now(), []byte(body), keys); err != nil {
		fmt.Println(err)
		return
	}
	receiver := sendertest.NewRoundTripper()
	if _, err := receiver.RoundTrip(req); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(receiver.Requests()[0].Verify(secret))
	fmt.Println(receiver.Requests()[0].Verify(signing.GenerateSecret()) == nil)
	// Output:
	// <nil>
	// false
}
