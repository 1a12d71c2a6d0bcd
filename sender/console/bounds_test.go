package console_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/history"
)

// countingStore counts the rows that a history is given, and fails if it is told to.
type countingStore struct {
	history.Store
	mu   sync.Mutex
	rows int
	away error
}

func (s *countingStore) count(rows int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows += rows
	return s.away
}

// since returns how many rows were read since it was called before.
func (s *countingStore) since() (rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	rows, s.rows = s.rows, 0
	return rows
}

func (s *countingStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = err
}

func (s *countingStore) Deliveries(ctx context.Context, q history.DeliveryQuery) ([]sender.Delivery, string, error) {
	list, next, err := s.Store.Deliveries(ctx, q)
	return list, next, errors.Join(err, s.count(len(list)))
}

func (s *countingStore) Events(ctx context.Context, q history.EventQuery) ([]sender.StoredEvent, string, error) {
	list, next, err := s.Store.Events(ctx, q)
	return list, next, errors.Join(err, s.count(len(list)))
}

func (s *countingStore) Notices(ctx context.Context, q history.NoticeQuery) ([]sender.Notice, string, error) {
	list, next, err := s.Store.Notices(ctx, q)
	return list, next, errors.Join(err, s.count(len(list)))
}

func (s *countingStore) Subscriptions(ctx context.Context, q sender.SubscriptionQuery) ([]sender.Subscription, string, error) {
	list, next, err := s.Store.Subscriptions(ctx, q)
	return list, next, errors.Join(err, s.count(len(list)))
}

func (s *countingStore) Rollups(ctx context.Context, from, to time.Time) ([]history.Rollup, error) {
	list, err := s.Store.Rollups(ctx, from, to)
	return list, errors.Join(err, s.count(len(list)))
}

func (s *countingStore) SubscriptionRollups(ctx context.Context, ids []string, from, to time.Time) ([]history.SubscriptionRollup, error) {
	list, err := s.Store.SubscriptionRollups(ctx, ids, from, to)
	return list, errors.Join(err, s.count(len(list)))
}

func (s *countingStore) Counts(ctx context.Context) (history.Counts, error) {
	c, err := s.Store.Counts(ctx)
	return c, errors.Join(err, s.count(1))
}

// A page reads as many rows of a large database as of a small one.
func TestEveryPageReadsFewRows(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for range 60 {
		b.publish("small")
	}
	b.run()
	event := b.deliveries(b.good)[0].Event.ID
	paths := []string{
		"/", "/?range=7d", "/subscriptions", "/subscriptions?failing=1", "/subscriptions/" + b.good, "/subscriptions/" + b.good + "?range=30d", "/deliveries", "/deliveries?status=delivered",
		"/events", "/events/" + event, "/replays", "/notices", "/notices?all=1", "/customers/sub_ada", "/search?q=example", "/search?q=invoice+small",
	}
	read := func() map[string]int {
		rows := map[string]int{}
		for _, path := range paths {
			b.counted.since()
			require.Equal(t, http.StatusOK, b.get(path).status, path)
			rows[path] = b.counted.since()
		}
		return rows
	}
	small := read()
	for i := range 600 {
		b.publish("large" + strconv.Itoa(i))
	}
	for range 10 {
		b.run()
	}
	for path, rows := range read() {
		require.LessOrEqual(t, rows, small[path]+2, "%s", path)
		require.Less(t, rows, 400, path)
	}
}

// While the database is away the console says so, and does not blame itself.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.counted.fail(errDown)
	for _, path := range []string{"/", "/deliveries", "/subscriptions", "/notices", "/events", "/replays"} {
		p := b.get(path)
		require.Equal(t, http.StatusServiceUnavailable, p.status, path)
		require.Contains(t, p.text, "The database does not answer", path)
		require.Equal(t, "5", p.header.Get("Retry-After"))
	}
	require.Contains(t, b.logged(), "level=ERROR")
	b.counted.fail(nil)
	require.Equal(t, http.StatusOK, b.get("/").status)
}

// One search field finds whatever has that id, and what has the text in its URL or name.
func TestSearch(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	d := b.deliveries(b.good)[0]
	for text, link := range map[string]string{
		d.ID: "deliveries/" + d.ID, d.Event.ID: "events/" + d.Event.ID, b.good: "subscriptions/" + b.good, "sub_ada": "customers/sub_ada", "job_1": "jobs/job_1",
		"GOOD.example": "subscriptions/" + b.good, "ada": "customers/sub_ada", "invoice+2": "deliveries?object_id=2&amp;object_type=invoice", "invoice/2": "deliveries?object_id=2&amp;object_type=invoice",
	} {
		p := b.get("/search?q=" + text)
		require.Equal(t, http.StatusOK, p.status, text)
		require.Contains(t, p.text, `href="./`+link, text)
	}
	for _, text := range []string{"dlv_never", "evt_never", "wsub_never", "rpl_never", "job_never", "nowhere.example", "a+b+c", "%3Ciframe%3E"} {
		p := b.get("/search?q=" + text)
		require.Equal(t, http.StatusOK, p.status, text)
		require.Contains(t, p.text, "Nothing was found", text)
	}
}
