package console_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

// However much a program lets its callers say of a customer, its page stays small.
func TestLargeCustomer(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	_, _, err := b.reg.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_large"})
	require.NoError(t, err)
	p := b.get("/customers/sub_large")
	require.Equal(t, http.StatusOK, p.status)
	require.Less(t, len(p.text), 64<<10)
	require.Contains(t, p.text, "99,901 attributes more are not shown.")
	require.Contains(t, p.text, "é…</bdi>")
	require.NotContains(t, b.get("/customers/sub_ada").text, "not shown")
}

// The form of all notices has room for those that it names, with ids as long as they can be.
func TestAcknowledgeAllOfMany(t *testing.T) {
	t.Parallel()
	b := newEmptyBed(t)
	owner := "sub_" + strings.Repeat("o", 124)
	_, _, err := b.reg.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: owner})
	require.NoError(t, err)
	const many = 210
	for i := range many {
		_, err := b.reg.Subscribe(t.Context(), sender.NewSubscription{ID: fmt.Sprintf("wsub_%0123d", i), Subscriber: owner, URL: "https://gone.example.com/", Settings: sender.Settings{Gone: sender.GoneStops}})
		require.NoError(t, err)
	}
	b.publish("1")
	open := func() int {
		n := 0
		for q := (history.NoticeQuery{Unread: true, Limit: 200}); ; {
			list, next, err := b.history.Notices(t.Context(), q)
			require.NoError(t, err)
			if n, q.Cursor = n+len(list), next; next == "" {
				return n
			}
		}
	}
	for open() < many {
		b.run()
	}
	for before := open(); before > 0; {
		page := b.get("/notices").text
		form, _, _ := strings.Cut(page, "Acknowledge all of these")
		groups := url.Values{}
		for _, m := range regexp.MustCompile(`name="group" value="([^"]*)"`).FindAllStringSubmatch(form, -1) {
			groups.Add("group", html.UnescapeString(m[1]))
		}
		b.done(b.post("/notices/acknowledge", groups), "/notices", "Acknowledged")
		now := open()
		require.Less(t, now, before)
		require.Equal(t, before > len(groups["group"]), strings.Contains(page, "There are more than these"))
		before = now
	}
	require.Contains(t, b.get("/notices").text, "Nobody has to learn anything")
}

// A page of one kind of notices does not say that there are no others.
func TestNoticesOfAKind(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	p := b.get("/notices?kind=" + string(sender.NoticeNetwork))
	require.NotContains(t, p.text, "Nobody has to learn anything")
	require.Contains(t, p.text, "None of this kind is open.")
}

// A body that is shown in part says so, however it is shown, and no button copies a part of it.
func TestLargeBody(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	_, err := b.pub.Publish(t.Context(), sender.Event{
		Type: "invoice.paid", Object: sender.Object{Type: "invoice", ID: "large"}, Data: json.RawMessage(`"` + strings.Repeat("x", 100<<10) + `"`),
	})
	require.NoError(t, err)
	b.run()
	at := "/deliveries/" + b.deliveries(b.good)[0].ID
	for _, query := range []string{"", "?raw=1"} {
		p := b.get(at + query)
		require.Contains(t, p.text, "The beginning of 102,", query)
		require.NotContains(t, p.text, "Copy the body", query)
	}
	small := b.get("/deliveries/" + b.deliveries(b.good)[1].ID).text
	require.NotContains(t, small, "The beginning of")
}
