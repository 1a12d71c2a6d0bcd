package scenario_test

import (
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/sqlite"
)

var (
	// The race detector makes SQLite many times slower.
	outageEvents  = flag.Int("outage.events", map[bool]int{false: 2000, true: 500}[race.Enabled], "events that are published in TestOrderAfterADayOfOutage")
	outageObjects = flag.Int("outage.objects", 50, "objects that they are about")
)

// After an outage of a day, an endpoint that wants the latest alone gets one event for each
// object, its last, and its backlog was bounded by the objects. One with the order of
// objects gets all of them, each object's in the order of their versions.
func TestOrderAfterADayOfOutage(t *testing.T) {
	clock := &yearClock{yearBegins}
	db, err := sql.Open("sqlite", crashDSN(filepath.Join(t.TempDir(), "outage.db")))
	require.NoError(t, err)
	defer db.Close()
	store, err := sqlite.New(db, &sqlite.Config{Now: clock.Now})
	require.NoError(t, err)
	require.NoError(t, store.Migrate(t.Context()))
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: make([]byte, 32)})
	require.NoError(t, err)
	reg, err := sender.NewRegistry(store, keys, &sender.RegistryConfig{Network: sender.Network{AllowPrivateNetworks: true}, Now: clock.Now})
	require.NoError(t, err)
	_, _, err = reg.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	ids := map[sender.Order]string{}
	for _, order := range []sender.Order{sender.OrderLatest, sender.OrderObject} {
		s, err := reg.Subscribe(t.Context(), sender.NewSubscription{
			Subscriber: "sub_a", URL: "http://" + string(order) + ".example/", EventTypes: []string{"thing.changed"},
			Settings: sender.Settings{Order: order, MaxInFlight: 50},
		})
		require.NoError(t, err)
		ids[order] = s.ID
	}
	pub, err := sender.NewPublisher(store, nil)
	require.NoError(t, err)
	hist, err := history.New(store, nil)
	require.NoError(t, err)
	endpoints := &outage{down: true, versions: map[string][]int64{}}
	d, err := dispatch.New(store, keys, &dispatch.Config{UnguardedTransport: endpoints, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	run := func() {
		t.Helper()
		for {
			report, err := d.RunOnce(t.Context())
			require.NoError(t, err)
			if report.Attempted == 0 {
				return
			}
		}
	}

	const batch = 100
	for done := 0; done < *outageEvents; done += batch {
		events := make([]sender.Event, min(batch, *outageEvents-done))
		for i := range events {
			object := fmt.Sprintf("thing_%d", (done+i)%*outageObjects)
			events[i] = sender.Event{Type: "thing.changed", Object: sender.Object{Type: "thing", ID: object}, Subscriber: "sub_a", Data: done + i}
		}
		_, err := pub.PublishMany(t.Context(), events)
		require.NoError(t, err)
		run()
		clock.now = clock.now.Add(24 * time.Hour * batch / time.Duration(*outageEvents))
	}
	backlog := func(order sender.Order) int64 {
		s, err := reg.Subscription(t.Context(), ids[order])
		require.NoError(t, err)
		return s.Backlog
	}
	require.LessOrEqual(t, backlog(sender.OrderLatest), int64(*outageObjects))
	require.Equal(t, int64(*outageEvents), backlog(sender.OrderObject))

	endpoints.down = false
	for range 48 {
		clock.now = clock.now.Add(time.Hour) // as the retries come due
		run()
	}
	require.Zero(t, backlog(sender.OrderLatest))
	require.Zero(t, backlog(sender.OrderObject))
	last, all := endpoints.of("latest.example"), endpoints.of("object.example")
	require.Len(t, last, *outageObjects, "one for each object")
	require.Len(t, all, *outageObjects)
	for object, versions := range all {
		require.IsIncreasing(t, versions, object)
		require.Len(t, versions, *outageEvents / *outageObjects)
		require.Equal(t, versions[len(versions)-1:], last["latest.example"+strings.TrimPrefix(object, "object.example")], object)
	}
	superseded, _, err := hist.Deliveries(t.Context(), history.DeliveryQuery{Subscription: ids[sender.OrderLatest], Status: sender.StatusSuperseded, Limit: 1})
	require.NoError(t, err)
	require.Len(t, superseded, 1, "the others are on record")
}

// outage is endpoints that are down at first. It notes which versions of each object arrive
// afterwards, by host and object.
type outage struct {
	mu       sync.Mutex
	down     bool
	versions map[string][]int64
}

func (o *outage) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	answer := &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody, Header: http.Header{}, Request: r}
	if o.down {
		return answer, nil
	}
	var e struct {
		Version int64
		Object  struct{ ID string }
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return nil, err
	}
	answer.StatusCode = http.StatusNoContent
	o.mu.Lock()
	defer o.mu.Unlock()
	key := r.URL.Host + " " + e.Object.ID
	o.versions[key] = append(o.versions[key], e.Version)
	return answer, nil
}

// of returns what a host got.
func (o *outage) of(host string) map[string][]int64 {
	all := map[string][]int64{}
	for key, versions := range o.versions {
		if strings.HasPrefix(key, host+" ") {
			all[key] = versions
		}
	}
	return all
}
