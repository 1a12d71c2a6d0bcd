package console_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/replay"
)

// One search field leads to whatever has that id, and finds what has the text in its URL or
// name.
func TestSearch(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	d := b.deliveries(b.good)[0]
	replays, err := b.replays.List(t.Context(), replay.Query{})
	require.NoError(t, err)
	for text, path := range map[string]string{
		d.ID: "/deliveries/" + d.ID, "+" + d.ID: "/deliveries/" + d.ID, d.Event.ID: "/events/" + d.Event.ID, b.good: "/subscriptions/" + b.good, "sub_ada": "/customers/sub_ada", "job_1": "/jobs/job_1",
		replays[0].ID: "/replays/" + replays[0].ID, "invoice+2": "/deliveries", "invoice/2": "/deliveries", "invoice:2": "/deliveries",
	} {
		p := b.get("/search?q=" + text)
		require.Equal(t, http.StatusOK, p.status, text)
		require.Equal(t, prefix+path, p.url.Path, text)
		require.True(t, path != "/deliveries" || p.url.RawQuery == "object_id=2&object_type=invoice", p.url)
	}
	for text, link := range map[string]string{"GOOD.example": "subscriptions/" + b.good, "example.com/hooks": "subscriptions/" + b.good, "ada": "customers/sub_ada"} {
		require.Contains(t, b.get("/search?q="+text).text, `href="./`+link, text)
	}
	for _, text := range []string{"dlv_never", "evt_never", "wsub_never", "rpl_never", "job_never", "nowhere.example", "a+b+c", "%3Ciframe%3E"} {
		p := b.get("/search?q=" + text)
		require.Equal(t, http.StatusOK, p.status, text)
		require.Contains(t, p.text, "Nothing was found", text)
	}
	require.NoError(t, b.reg.Unsubscribe(t.Context(), b.good))
	b.run()
	require.NotContains(t, b.get("/deliveries?subscription="+b.bad).text, "Their subscription is deleted")
	require.NoError(t, b.reg.DeleteSubscriber(t.Context(), "sub_ada"))
	b.run()
	for _, path := range []string{"/search?q=" + b.good, "/subscriptions/" + b.good} {
		p := b.get(path)
		require.Equal(t, "subscription="+b.good, p.url.RawQuery, "of a deleted one the deliveries are shown")
		require.Contains(t, p.text, "Their subscription is deleted")
	}
	require.Equal(t, "subscriber=sub_ada", b.get("/customers/sub_ada").url.RawQuery)
	for _, path := range []string{"/subscriptions/wsub_never", "/customers/sub_never", "/subscriptions/" + d.ID, "/customers/" + b.good} {
		require.Equal(t, http.StatusNotFound, b.get(path).status, path)
	}
}
