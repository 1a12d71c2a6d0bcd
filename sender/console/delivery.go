package console

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/internal/look"
	"github.com/surehook/surehook/sender/internal/look/charts"
)

type deliveryView struct {
	sender.Delivery
	State look.State
	Why   history.Why
	// Redeliver says what sending it again does; "": it cannot be sent again.
	Redeliver string
	look.AttemptsPage
	Strip         template.HTML // of the attempts that are listed
	Path, Host    string
	Curl          string
	ObjectHistory string // the link to the deliveries of the same object to the same subscription
	Raw           bool   // the body is shown as it is posted
	Beside        history.Neighbours
}

func (c *Console) delivery(ctx context.Context, r *http.Request) (view, error) {
	id := r.PathValue("id")
	d, attempts, err := look.DeliveryWithAttempts(r.URL.Query().Get("attempt"), func(q history.AttemptQuery) (sender.Delivery, error) { return c.History.DeliveryWith(ctx, id, q) })
	if err != nil {
		return view{}, err
	}
	v := deliveryView{Delivery: d, AttemptsPage: attempts, State: look.Delivery(d), Raw: r.URL.Query().Get("raw") != ""}
	if v.Why, err = c.History.Why(ctx, id); err != nil {
		return view{}, err
	}
	if v.Beside, err = c.History.Neighbours(ctx, id); err != nil {
		return view{}, err
	}
	switch {
	case d.Redacted || d.Status == sender.StatusCancelled || v.Why.Subscription == "":
	case v.Why.Subscription == sender.SubscriptionPaused || v.Why.Subscription == sender.SubscriptionDisabled:
		v.Redeliver = "It is sent as soon as its subscription is resumed."
	case d.Status == sender.StatusDelivered:
		v.Redeliver = "It is sent a single time more; if that fails it stays delivered."
	default:
		v.Redeliver = "It is sent now, and its schedule starts anew; its attempt numbers go on at " + strconv.Itoa(d.AttemptCount+1) + "."
	}
	v.Strip = strip(&d, v.List)
	v.Host, v.Path = look.Host(d.URL), pathOf(d.URL)
	if !d.Redacted {
		v.Curl = curl(&d)
	}
	v.ObjectHistory = "deliveries?" + url.Values{"object_type": {d.Event.Object.Type}, "object_id": {d.Event.Object.ID}, "subscription": {d.Subscription}}.Encode()
	return view{title: look.Plain(d.Event.Type) + " to " + v.Host, nav: "deliveries", crumbs: []crumb{{"Deliveries", "deliveries"}}, owners: []string{d.Subscriber}, data: &v}, nil
}

// strip is the line of some of a delivery's attempts, the newest first, by the time since its
// event.
func strip(d *sender.Delivery, attempts []sender.Attempt) template.HTML {
	s := charts.Strip{From: d.CreatedAt, Next: d.NextAttemptAt, Say: look.Took}
	for _, a := range slices.Backward(attempts) {
		class, word := "f-bad", look.Answer(a.StatusCode, a.Class).Text
		switch a.Class {
		case sender.ClassNone:
			class = "f-ok"
		case sender.ClassTimeout, sender.ClassInterrupted:
			class = "f-warn"
		}
		s.Stops = append(s.Stops, charts.Stop{At: a.StartedAt, Class: class, Title: "Attempt " + strconv.Itoa(a.Number) + ", +" + look.Took(max(0, a.StartedAt.Sub(d.CreatedAt))) + ": " + word})
	}
	return s.HTML()
}

func pathOf(u string) string {
	p, err := url.Parse(u)
	if err != nil {
		return ""
	}
	return look.Plain(p.RequestURI())
}

// curl is the command that posts the same body, quoted for bash. It has no signature: only
// the sender has the secret. -g has curl take the URL as it is: without it, brackets and
// braces in it would stand for many URLs.
func curl(d *sender.Delivery) string {
	if len(d.Body) > look.MaxShown {
		return ""
	}
	return "curl -g -X POST " + quote(d.URL) + " \\\n  -H 'Content-Type: application/json' \\\n  -H " + quote("Webhook-Id: "+d.Event.ID) + " \\\n  --data-raw " + quote(string(d.Body))
}

// quote is a text as a word of bash. The page shows characters that cannot be seen as escapes
// of its own, and the button copies what it shows: so they are written as escapes of bash.
func quote(s string) string {
	if look.Plain(s) == s {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if c := s[:size]; r == '\'' || r == '\\' || look.Plain(c) != c {
			for i := range size {
				fmt.Fprintf(&b, `\x%02x`, c[i])
			}
		} else {
			b.WriteString(c)
		}
		s = s[size:]
	}
	return b.String() + "'"
}

func (c *Console) redeliver(ctx context.Context, r *http.Request) (string, string, error) {
	id := r.PathValue("id")
	if err := c.sendAgain(r)(ctx, id); err != nil {
		return "", "", err
	}
	said := "redelivered"
	if d, err := c.History.DeliveryWith(ctx, id, history.AttemptQuery{}); err == nil && d.Status == sender.StatusHeld {
		said = "held"
	}
	return "deliveries/" + id, said, nil
}

func (c *Console) passOver(ctx context.Context, r *http.Request) (string, string, error) {
	id := r.PathValue("id")
	pass := c.History.PassOver
	if r.PostForm.Get("force") != "" {
		pass = c.History.PassOverForced
	}
	return "deliveries/" + id, "passed", pass(ctx, id)
}

func (c *Console) sendAgain(r *http.Request) func(ctx context.Context, id string) error {
	if r.PostForm.Get("force") != "" {
		return c.History.RedeliverForced
	}
	return c.History.Redeliver
}

// redeliverSeveral sends those again that were chosen in a list. One that cannot be sent
// again does not keep the others from it: the answer says how many there were.
func (c *Console) redeliverSeveral(ctx context.Context, r *http.Request) (string, string, error) {
	ids, err := several("id", r.PostForm["id"], maxLimit)
	if err != nil {
		return "", "", err
	}
	send := c.sendAgain(r)
	var refused []string
	for i, id := range ids {
		switch err := send(ctx, id); {
		case err == nil:
		case errors.Is(err, sender.ErrNotFound), errors.Is(err, sender.ErrCancelled), errors.Is(err, sender.ErrRedacted), errors.Is(err, sender.ErrRetention):
			refused = append(refused, look.Short(id)+": "+strings.TrimPrefix(err.Error(), "sender: "))
		default:
			return "", "", partly{err, i > len(refused)}
		}
	}
	if sent := len(ids) - len(refused); len(refused) > 0 {
		return "", "", partly{conflict(strconv.Itoa(sent) + " of " + strconv.Itoa(len(ids)) + " are sent again. The others cannot be:\n" + strings.Join(refused, "\n")), sent > 0}
	}
	return "deliveries", "allagain", nil
}
