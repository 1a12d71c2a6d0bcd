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
	require.Equal(t, "subscription="+b.good, b.get("/search?q="+b.good).url.RawQuery, "of a deleted one the deliveries are shown")
}
