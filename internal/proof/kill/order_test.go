package kill_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/killtest"
	"github.com/surehook/surehook/internal/race"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
)

var (
	orderingOnSQLite = killtest.NewChild("order on SQLite", func(ctx context.Context, path string) error {
		return producerOnSQLite(child{}, openSQLite(child{}, path), false).change(ctx, 30*time.Millisecond)
	})
	orderingOnPostgres = killtest.NewChild("order on PostgreSQL", func(ctx context.Context, at schema) error {
		return producerOnPostgres(child{}, openPool(child{}, at), at, false, dispatch.Hooks{}, noHorizon).change(ctx, 10*time.Millisecond)
	})
)

// change dispatches, and publishes versions of a few objects.
func (p *producer[Tx]) change(ctx context.Context, tick time.Duration) error {
	ran := make(chan error, 1)
	go func() { ran <- p.dispatcher.Run(ctx) }()
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for {
		select {
		case err := <-ran:
			return err
		case <-ticks.C:
		}
		object := sender.Object{Type: "thing", ID: fmt.Sprint(rand.IntN(5))}
		if _, err := p.pub.Publish(ctx, sender.Event{Type: "thing.changed", Object: object, Subscriber: "sub_a"}); err != nil {
			return err
		}
		fmt.Println("published")
	}
}

// Three processes publish versions of a few objects, and deliver them to an endpoint that
// fails and hangs now and then. Each round kills one of them. Under the order of objects no
// version arrives after a later one of its object has come, and in the end all have arrived.
func TestOrderOfObjects(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "sender.db")
		ordered(t, producerOnSQLite(t, openSQLite(t, path), true), func(int) *exec.Cmd { return orderingOnSQLite.Command(path) })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		at, _ := testSchema(t)
		ordered(t, producerOnPostgres(t, openPool(t, at), at, true, dispatch.Hooks{}, noHorizon), func(n int) *exec.Cmd { return orderingOnPostgres.Command(at.named(n)) })
	})
}

func ordered[Tx any](t *testing.T, p *producer[Tx], child func(n int) *exec.Cmd) {
	rounds := 6
	if race.Enabled { // it is processes that race, and not their code
		rounds = 2
	}
	rounds = killsOr(t, rounds)
	to := &arrivals{versions: map[string][]int64{}}
	server := httptest.NewServer(to)
	defer server.Close()
	_, _, err := p.registry.CreateSubscriber(t.Context(), sender.NewSubscriber{ID: "sub_a"})
	require.NoError(t, err)
	_, err = p.registry.Subscribe(t.Context(), sender.NewSubscription{
		Subscriber: "sub_a", URL: server.URL, EventTypes: []string{"thing.changed"}, Settings: sender.Settings{Order: sender.OrderObject},
	})
	require.NoError(t, err)
	killtest.Run(t, killtest.Case{
		Child: child, Rounds: rounds, Processes: 3, Replace: true,
		Point: killtest.Lines(5, 60), Within: 100 * time.Millisecond,
	})
	p.finish(t)

	newest := map[string]int64{}
	interrupted := 0
	for _, d := range p.deliveries(t) {
		require.Equal(t, sender.StatusDelivered, d.Status)
		newest[d.Event.Object.ID] = max(newest[d.Event.Object.ID], d.Version)
		for _, a := range d.Attempts {
			if a.Class == sender.ClassInterrupted {
				interrupted++
			}
		}
	}
	require.NotEmpty(t, newest)
	posts := 0
	for object, versions := range to.versions {
		require.True(t, slices.IsSorted(versions), "versions of %s, as they came: %v", object, versions)
		posts += len(versions)
		require.Len(t, slices.Compact(versions), int(newest[object]), "each version of %s came", object)
	}
	t.Logf("%d posts, %d attempts interrupted", posts, interrupted)
}

// arrivals is an endpoint that notes the versions of each object as they come.
type arrivals struct {
	mu       sync.Mutex
	versions map[string][]int64
}

func (a *arrivals) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var e struct {
		Version int64
		Object  struct{ ID string }
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, &e) != nil {
		return // its process was killed
	}
	a.mu.Lock()
	a.versions[e.Object.ID] = append(a.versions[e.Object.ID], e.Version)
	a.mu.Unlock()
	switch rand.IntN(60) {
	case 0: // its sender waits until the attempt's timeout
		<-r.Context().Done()
	case 1, 2, 3, 4, 5, 6, 7, 8, 9:
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}
