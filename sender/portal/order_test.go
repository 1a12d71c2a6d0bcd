package portal_test

import (
	"encoding/json"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/catalogue/shop"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/portal"
)

// at is a part of a page by its id, up to its end.
func (p page) at(t *testing.T, id string) page {
	t.Helper()
	m := regexp.MustCompile(`(?s)id="` + id + `">(.*?)</div>`).FindStringSubmatch(p.text)
	require.NotNil(t, m, "%s\n%s", id, p.text)
	return page{text: m[1], url: p.url}
}

// The form has the order in plain words. It does not change settings that it does not show.
func TestOrderOfAnEndpoint(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := b.visit("sub_ada")
	v.get("/endpoints/new").has(t, `value="relaxed" checked><span>In any order`, "One version after another", "Only the latest")
	p := v.post("/endpoints", "url", "https://new.example.com/", "type", "*", "order", "latest")
	id := strings.TrimPrefix(p.url.Path, v.root+"/endpoints/")
	at := "/endpoints/" + id
	v.done(p, at, "The endpoint was added")
	require.Equal(t, sender.OrderLatest, b.endpoint(id).Settings.Order)
	v.get(at).has(t, `value="latest" checked><span>Only the latest`)

	save := func(pairs ...string) page {
		return v.post(at, append([]string{"url", "https://new.example.com/", "type", "*"}, pairs...)...)
	}
	v.done(save("order", "object"), at, "Saved.")
	require.Equal(t, sender.OrderObject, b.endpoint(id).Settings.Order)
	// The service has set how long a version holds back others.
	settings := b.endpoint(id).Settings
	settings.HoldTries, settings.HoldFor, settings.HoldDead, settings.Rate = 3, time.Hour, true, 7
	_, err := b.reg.Update(t.Context(), id, sender.SubscriptionChange{Settings: &settings})
	require.NoError(t, err)
	v.done(save("order", "object"), at, "Saved.")
	require.Equal(t, settings, b.endpoint(id).Settings)
	v.done(save(), at, "Saved.")
	require.Equal(t, settings, b.endpoint(id).Settings, "a form without the field")
	p = save("order", "strict")
	require.Equal(t, http.StatusUnprocessableEntity, p.status)
	p.at(t, "order-says").has(t, `the order is "strict"`)
	require.Equal(t, settings, b.endpoint(id).Settings)
	v.done(save("order", "relaxed"), at, "Saved.")
	require.Equal(t, sender.Settings{Rate: 7, PayloadVersion: settings.PayloadVersion}, b.endpoint(id).Settings)
}

// An order that leaves out older events is refused in its own field for types of which each
// event counts. What was typed stays, and nothing is saved.
func TestOrderOfFacts(t *testing.T) {
	t.Parallel()
	types, err := shop.New()
	require.NoError(t, err)
	b := newBedWithFacts(t, types.Facts())
	v := b.visit("sub_ada")
	const says = `in the order "latest" a newer event replaces older ones, and each event of the type "invoice.payment_failed" counts: choose another order, or event types without this one`
	before, err := b.reg.Subscriptions(t.Context(), "sub_ada", "", 50)
	require.NoError(t, err)
	good := b.endpoint(b.ada.good)
	for _, at := range []string{"/endpoints", "/endpoints/" + good.ID} {
		for _, asked := range []struct{ types, says string }{{"invoice.*", says + `; "invoice.*" has it`}, {"invoice.payment_failed", says}} {
			p := v.post(at, "url", "https://new.example.com/", "description", "typed", "types", asked.types, "order", "latest")
			require.Equal(t, http.StatusUnprocessableEntity, p.status, p.text)
			said := html.UnescapeString(p.at(t, "order-says").text)
			require.Contains(t, said, `<p class="bad small">`)
			require.Contains(t, said, asked.says+"<")
			p.has(t, `value="latest" checked>`, `value="https://new.example.com/"`, `value="typed"`)
			require.NotContains(t, p.at(t, "types-say").text, "bad")
		}
	}
	after, err := b.reg.Subscriptions(t.Context(), "sub_ada", "", 50)
	require.NoError(t, err)
	require.Equal(t, before, after)
	p := v.post("/endpoints/"+good.ID, "url", good.URL, "types", "invoice.paid", "order", "latest")
	v.done(p, "/endpoints/"+good.ID, "Saved.")
	p = v.post("/endpoints/"+good.ID, "url", good.URL, "types", "invoice.payment_failed", "order", "latest")
	require.Equal(t, http.StatusUnprocessableEntity, p.status)
	p.at(t, "order-says").has(t, says)
}

// The form has the filter, with what is wrong with it, and with what it would have passed of the
// customer's own events.
func TestFilterOfAnEndpoint(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, to := range []string{"sub_ada", "sub_bob"} {
		for _, amount := range []string{"5", "50", "500"} {
			_, err := b.pub.Publish(t.Context(), sender.Event{Type: "refund.made", Subscriber: to, Object: sender.Object{Type: "refund", ID: amount}, Data: json.RawMessage(`{"amount":` + amount + `}`)})
			require.NoError(t, err)
		}
	}
	v := b.visit("sub_ada")
	const filter = `{"data.amount": {"gte": 50}}`
	before, err := b.reg.Subscriptions(t.Context(), "sub_ada", "", 50)
	require.NoError(t, err)
	for _, at := range []string{"/endpoints/new/preview", "/endpoints/" + b.ada.good + "/preview"} {
		try := func(pairs ...string) page {
			return v.post(at, append([]string{"url", "no url yet", "description", "typed", "order", "latest"}, pairs...)...)
		}
		p := try("types", "refund.*", "filter", filter)
		require.Equal(t, http.StatusOK, p.status, p.text)
		p.at(t, "filter-says").has(t, "Of the last 3 events of these types, it would pass <b>2</b>.")
		p.has(t, `value="no url yet"`, `value="typed"`, `value="refund.*"`, `value="latest" checked`, filter+"</textarea>")
		try("types", "nothing.*", "filter", filter).at(t, "filter-says").has(t, "There are no events of these types")
		for _, wrong := range []struct{ field, filter, types, says string }{
			{"filter-says", `{"data.amount": {"above": 50}}`, "refund.*", "it is no operator"},
			{"filter-says", `{"data.amount": `, "refund.*", "it is not JSON"},
			{"filter-says", "", "refund.*", "it is empty"},
			{"types-say", filter, "", "choose one or more"},
			{"types-say", filter, "no.*.no", `"no.*.no"`},
		} {
			p := try("types", wrong.types, "filter", wrong.filter)
			require.Equal(t, http.StatusUnprocessableEntity, p.status, "%v", wrong)
			p.at(t, wrong.field).has(t, `class="bad small"`, wrong.says)
			require.NotContains(t, p.text, "it would pass")
		}
	}
	after, err := b.reg.Subscriptions(t.Context(), "sub_ada", "", 50)
	require.NoError(t, err)
	require.Equal(t, before, after, "to try a filter changes nothing")
	require.NotContains(t, b.logged(), "try a filter")

	p := v.post("/endpoints", "url", "https://new.example.com/", "types", "refund.*", "filter", filter)
	at := "/endpoints/" + strings.TrimPrefix(p.url.Path, v.root+"/endpoints/")
	v.done(p, at, "The endpoint was added")
	id := strings.TrimPrefix(at, "/endpoints/")
	require.JSONEq(t, filter, b.endpoint(id).Filter.String())
	v.get(at).has(t, "\"data.amount\": {\n    \"gte\": 50\n  }\n}</textarea>")
	save := func(pairs ...string) page {
		return v.post(at, append([]string{"url", "https://new.example.com/", "types", "refund.*"}, pairs...)...)
	}
	p = save("filter", `{"data.amount": {"above": 50}, "a..b": 1}`)
	require.Equal(t, http.StatusUnprocessableEntity, p.status)
	p.at(t, "filter-says").has(t, "it is no operator", "a..b")
	p.has(t, `"above": 50`, `aria-invalid="true"`)
	v.done(save(), at, "Saved.")
	require.JSONEq(t, filter, b.endpoint(id).Filter.String(), "a form without the field")
	v.done(save("filter", " \n "), at, "Saved.")
	require.Nil(t, b.endpoint(id).Filter)
}

// A filter that its form shows with blanks between is not too long because of them.
func TestLongFilterOfAnEndpoint(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := b.visit("sub_ada")
	filter := `{"data.of":{"in":["` + strings.Repeat(`a","`, 999) + `a"]}}`
	_, err := b.reg.Update(t.Context(), b.ada.good, sender.SubscriptionChange{Filter: &filter})
	require.NoError(t, err)
	was := b.endpoint(b.ada.good)
	at := "/endpoints/" + b.ada.good
	shown := html.UnescapeString(regexp.MustCompile(`(?s)<textarea id="filter"[^>]*>(.*?)</textarea>`).FindStringSubmatch(v.get(at).text)[1])
	require.Greater(t, len(shown), 8<<10)
	pairs := []string{"url", was.URL, "types", strings.Join(was.EventTypes, ","), "description", was.Description, "filter", shown}
	p := v.post(at+"/preview", pairs...)
	require.Equal(t, http.StatusOK, p.status, p.text)
	v.done(v.post(at, pairs...), at, "Saved.")
	require.Equal(t, was, b.endpoint(b.ada.good))
	require.Equal(t, http.StatusOK, v.post("/endpoints", pairs...).status)
}

// A customer reads why a delivery was replaced, what another one waits for, and can have the
// later ones go on. Nobody else can.
func TestVersionsThatWait(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.ordered()
	v := b.visit("sub_ada")
	old := b.deliveries(b.ada.held, sender.StatusSuperseded)
	require.Len(t, old, 1)
	v.get("/deliveries?status=superseded").has(t, "Replaced", "deliveries/"+old[0].ID)
	v.get("/deliveries/"+old[0].ID).has(t, "Replaced", "A newer version of its object came before this one was delivered", "Nothing has failed", "Send again", "None was made.", "What we would have posted")

	dead := b.deliveries(b.ada.bad, sender.StatusDeadLettered)[0].ID
	waits := b.deliveries(b.ada.bad, sender.StatusPending)[0].ID
	at := "/deliveries/" + dead
	v.get(at).has(t, "Later versions of its object wait for it", "Pass over")
	p := v.get("/deliveries/" + waits)
	p.has(t, "It waits for another version of its object", `href="../deliveries/`+dead+`"`)
	require.NotContains(t, p.text, "Pass over")
	require.Equal(t, http.StatusNotFound, b.visit("sub_bob").post(at+"/pass-over").status)
	require.Equal(t, http.StatusConflict, v.post("/deliveries/"+waits+"/pass-over").status)
	v.get(at).has(t, "Pass over")
	v.done(v.post(at+"/pass-over"), at, "The later versions go on")
	require.NotContains(t, v.get(at).text, "Pass over")
	require.Equal(t, http.StatusConflict, v.post(at+"/pass-over").status)
	b.run()
	d, err := b.history.Delivery(t.Context(), waits)
	require.NoError(t, err)
	require.Equal(t, 1, d.AttemptCount)
}

// A delivery that was put off before its first attempt is not said to be tried again.
func TestPutOff(t *testing.T) {
	t.Parallel()
	require.Equal(t, "It could not be sent yet, for a reason on our side.", portal.Said(sender.Delivery{Status: sender.StatusPending}, history.Why{Reason: history.WhyAwaitingRetry}))
}

// ordered has ada's endpoints have an order, with versions that wait and one that was replaced.
func (b *bed) ordered() {
	b.t.Helper()
	for id, s := range map[string]sender.Settings{b.ada.held: {Order: sender.OrderLatest}, b.ada.bad: {Order: sender.OrderObject, HoldTries: 1, HoldDead: true}} {
		_, err := b.reg.Update(b.t.Context(), id, sender.SubscriptionChange{Settings: &s})
		require.NoError(b.t, err)
	}
	for range 2 {
		b.publish("sub_ada", "inv_7")
		b.run()
	}
}
