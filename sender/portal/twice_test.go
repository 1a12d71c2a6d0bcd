package portal_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/portal"
	"github.com/surehook/surehook/sender/replay"
)

// A form for a new endpoint that is sent again, in turn or at once, makes one endpoint, and both
// answers lead to it, even if what the first one made leaves no room for another.
func TestAddAnEndpointTwice(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	one := &roomForOne{Registry: b.reg}
	backend := b.backend()
	backend.Registry = one
	var err error
	b.portal, err = portal.New(backend, [][]byte{portalKey}, b.config())
	require.NoError(t, err)
	b.server = httptest.NewServer(http.StripPrefix(prefix, b.portal))
	t.Cleanup(b.server.Close)
	v := b.visit("sub_ada")
	once := func(p page) string {
		return regexp.MustCompile(`name="once" value="([^"]+)"`).FindStringSubmatch(p.text)[1]
	}
	add := func(v *visitor, once, url string) page {
		return v.post("/endpoints", "url", url, "types", "invoice.*", "once", once)
	}
	const url = "https://new.example.com/hooks"
	first := once(v.get("/endpoints/new"))
	require.NotEqual(t, first, once(v.get("/endpoints/new")))
	require.Equal(t, first, once(v.post("/endpoints/new/preview", "url", url, "types", "invoice.*", "filter", `{"data.a": 1}`, "once", first)), "to try a filter is not to add")
	require.Equal(t, first, once(add(v, first, "http://localhost/")), "nor is a mistake")

	var pages [2]page
	var both sync.WaitGroup
	for i := range pages {
		both.Go(func() { pages[i] = add(v, first, url) })
	}
	both.Wait()
	id := strings.TrimPrefix(pages[0].url.Path, v.root+"/endpoints/")
	for _, p := range append(pages[:], add(v, first, url)) {
		v.done(p, "/endpoints/"+id, "The endpoint was added")
	}
	require.Equal(t, 1, one.made())

	// Other entries, another page and another subscriber's form make other endpoints.
	p := add(v, first, "https://other.example.com/")
	require.Equal(t, http.StatusUnprocessableEntity, p.status)
	p.has(t, "there is room for one")
	one.more = 10
	ada := map[string]bool{id: true}
	for _, p := range []page{add(v, first, "https://other.example.com/"), add(v, once(v.get("/endpoints/new")), url)} {
		require.Equal(t, http.StatusOK, p.status)
		ada[strings.TrimPrefix(p.url.Path, v.root+"/endpoints/")] = true
	}
	require.Len(t, ada, 3)
	bob := b.visit("sub_bob")
	p = add(bob, first, url)
	require.Equal(t, http.StatusOK, p.status)
	require.False(t, ada[strings.TrimPrefix(p.url.Path, bob.root+"/endpoints/")])
	require.Equal(t, "sub_ada", b.endpoint(id).Subscriber)

	// One that was deleted since is added again only by another click.
	require.NoError(t, b.reg.Unsubscribe(t.Context(), id))
	p = add(v, first, url)
	require.Equal(t, http.StatusConflict, p.status)
	p.has(t, "was deleted since", url)
	require.NotEqual(t, first, once(p))
}

// A form that begins a replay begins one if it is sent again, in turn or at once, and so does one
// that deletes an endpoint. Both answers are those of the first one.
func TestReplayAndDeleteTwice(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := b.visit("sub_ada")
	hidden := func(p page, name string) string {
		return regexp.MustCompile(`name="` + name + `" value="([^"]+)"`).FindStringSubmatch(p.text)[1]
	}
	twice := func(send func() page) (both [2]page) {
		var wait sync.WaitGroup
		for i := range both {
			wait.Go(func() { both[i] = send() })
		}
		wait.Wait()
		return both
	}
	replays := func() int {
		list, err := b.replays.List(t.Context(), replay.Query{Subscriber: "sub_ada"})
		require.NoError(t, err)
		return len(list)
	}
	preview := "/replays/new?preview=1&endpoint=" + b.ada.bad
	once, before := hidden(v.get(preview), "once"), replays()
	require.NotEqual(t, once, hidden(v.get(preview), "once"))
	begin := func(once, rate string) page {
		return v.post("/replays", "endpoint", b.ada.bad, "rate", rate, "once", once)
	}
	both := twice(func() page { return begin(once, "") })
	at := strings.TrimPrefix(both[0].url.Path, v.root)
	for _, p := range append(both[:], begin(once, "")) {
		v.done(p, at, "They are being sent again")
	}
	require.Equal(t, before+1, replays())
	for _, p := range []page{begin(once, "5"), begin(hidden(v.get(preview), "once"), "")} {
		require.NotEqual(t, at, strings.TrimPrefix(p.url.Path, v.root), "other entries, or another page")
	}
	require.Equal(t, before+3, replays())

	shown := hidden(v.get("/endpoints/"+b.ada.good), "shown")
	remove := func(id string) page { return v.post("/endpoints/"+id+"/delete", "shown", shown) }
	both = twice(func() page { return remove(b.ada.good) })
	for _, p := range append(both[:], remove(b.ada.good)) {
		v.done(p, "/", "The endpoint was deleted")
	}
	require.Equal(t, 1, strings.Count(b.logged(), `action="delete an endpoint"`))
	require.Equal(t, http.StatusNotFound, v.post("/endpoints/"+b.ada.good+"/delete").status)
	require.Equal(t, http.StatusNotFound, remove(b.bob.good).status)
	require.NoError(t, b.reg.Unsubscribe(t.Context(), b.bob.good))
	require.Equal(t, http.StatusNotFound, remove(b.bob.good).status, "it was another's")
}

// roomForOne is a registry that takes one new endpoint, and as many others as more says.
type roomForOne struct {
	portal.Registry
	mu   sync.Mutex
	more int
	ids  []string
}

func (r *roomForOne) made() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ids)
}

func (r *roomForOne) Subscribe(ctx context.Context, n sender.NewSubscription) (sender.Subscription, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ids) > r.more {
		return sender.Subscription{}, &sender.FieldError{Field: "url", Reason: "there is room for one"}
	}
	s, err := r.Registry.Subscribe(ctx, n)
	if err == nil {
		r.ids = append(r.ids, s.ID)
	}
	return s, err
}
