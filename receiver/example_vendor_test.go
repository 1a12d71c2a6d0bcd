package receiver_test

import (
	"context"
	"fmt"
	"net/http"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/signing"
	"github.com/surehook/surehook/signing/vendors"
)

func ExampleVendorEnvelope() {
	v, _ := vendors.Find("pagerduty")
	envelope := receiver.VendorEnvelope(v)
	ev := receiver.Event{Body: []byte(`{"event":{"id":"01","event_type":"incident.triggered","data":{"type":"incident","id":"PGR0VU2"}}}`)}
	fmt.Println(envelope.DataField, envelope.Read(&ev), ev.Object)
	// Output: event.data <nil> {incident PGR0VU2}
}

func ExampleHandshake_Answer() {
	meta := &receiver.Handshake{VerifyToken: "a token that nobody guesses"}
	answer, is, err := meta.Answer(context.Background(), signing.Message{
		Method: http.MethodGet, URL: "/hooks?hub.mode=subscribe&hub.verify_token=a+token+that+nobody+guesses&hub.challenge=1158201444",
	})
	fmt.Println(answer.Status, string(answer.Body), is, err)
	// Output: 200 1158201444 true <nil>
}
