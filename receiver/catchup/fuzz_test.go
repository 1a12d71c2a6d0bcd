package catchup_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/surehook/surehook/receiver/catchup"
)

type answering func(*http.Request) *http.Response

func (f answering) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// A feed's answer is either a page in JSON with its cursor, or an error that repeats
// neither the cursor nor the token, and not much of the answer.
func FuzzFeedAnswer(f *testing.F) {
	f.Add(200, "application/json", []byte(`{"data":[{"id":"evt_1"}],"next_cursor":"c"}`))
	f.Add(200, "application/json; charset=utf-8", []byte(`{"data":[],"next_cursor":"c","next_cursor":"d"}`))
	f.Add(200, "application/json", []byte(`{"data":null,"next_cursor":"c"}`))
	f.Add(200, "application/json", []byte(`{"data":[]}`))
	f.Add(200, "text/html", []byte(`<html>`))
	f.Add(410, "application/problem+json", []byte(`{"type":"x/cursor-expired","next_cursor":"e"}`))
	f.Add(429, "", []byte(`{"detail":"`+strings.Repeat("é", 200)+`"}`))
	f.Add(302, "", []byte(nil))
	f.Add(200, "application/json", []byte(`{"data":[{"a":["\u00e9\"",1e3,[],{}]} ] , "next_cursor" :"\u0063","x":"\\"} `))
	var answer func() *http.Response
	client, err := catchup.NewClient("https://sender.example/events", &catchup.ClientConfig{
		Token: catchup.Token("canary-token"), MaxPageBytes: 1 << 10,
		Transport: answering(func(*http.Request) *http.Response { return answer() }),
	})
	if err != nil {
		f.Fatal(err)
	}
	narrow, err := catchup.NewClient("https://sender.example/events", &catchup.ClientConfig{
		MaxPageBytes: 1, Transport: answering(func(*http.Request) *http.Response { return answer() }),
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, status int, media string, body []byte) {
		if status < 200 || status > 599 {
			return
		}
		answer = func() *http.Response {
			return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {media}}, Body: io.NopCloser(bytes.NewReader(body))}
		}
		page, err := client.Page(t.Context(), "canary-cursor", 10, 0)
		// The cursor behind a page that is too large is the page's own cursor.
		_, skimmed := narrow.Page(t.Context(), "", 1, 0)
		if large, ok := errors.AsType[*catchup.PageTooLargeError](skimmed); ok && large.Next != "" && len(body) <= 1<<10 {
			if err != nil || large.Next != page.Next || len(page.Events) != 1 {
				t.Fatalf("%q would lead to %q, and is %+v, %v", body, large.Next, page, err)
			}
		}
		if err != nil {
			if text := err.Error(); strings.Contains(text, "canary") && !bytes.Contains(body, []byte("canary")) || len(text) > 600 {
				t.Fatalf("it says %q", text)
			}
			return
		}
		var whole map[string]json.RawMessage
		if status != 200 || len(body) > 1<<10 || page.Next == "" || json.Unmarshal(body, &whole) != nil {
			t.Fatalf("%d %q is a page: %+v", status, body, page)
		}
		for _, event := range page.Events {
			if !json.Valid(event) || !bytes.Contains(body, event) {
				t.Fatalf("the event %q is not as it was in %q", event, body)
			}
		}
	})
}
