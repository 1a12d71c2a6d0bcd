package catchup_test

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	markers "github.com/surehook/surehook/dedup"
	dedup "github.com/surehook/surehook/dedup/sqlite"
	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/catchup"
	cursors "github.com/surehook/surehook/receiver/catchup/sqlite"
)

const private = "what nobody else is to see"

// poison mixes events that the pipeline refuses for good with others that it takes.
func (f *fakeFeed) poison() {
	f.add(1)
	f.put(fmt.Sprintf(`{"id":"evt_large","type":"thing.made","object":{"type":"thing","id":"l"},"version":1,"data":"%s"}`, strings.Repeat(private, 100)))
	f.put(`{"id":"evt_early","type":"thing.made","data":"` + private + `"}`)
	f.put(`{"id":"` + private + strings.Repeat("!", 300) + `","type":"thing.made","object":{"type":"thing","id":"n"},"version":1}`)
	f.add(1)
	f.put(`{"Id":"evt_other","data":"` + private + `"}`)
}

// storeAlone keeps no dead letters.
type storeAlone struct{ markers.Store[*sql.Tx] }

// An event that can never be applied stops nothing: it becomes a dead letter, or is
// reported, and the cursor moves past it.
func TestWhatCanNeverBeApplied(t *testing.T) {
	t.Parallel()
	hopeless := func(ctx context.Context, tx *sql.Tx, ev receiver.Event) error {
		if ev.ID == "evt_005" {
			return receiver.Permanent(errBroken)
		}
		return effect(ctx, tx, ev)
	}
	for name, c := range map[string]struct {
		store   markers.Store[*sql.Tx]
		report  catchup.Report
		letters []string
		refused []string
	}{
		"dead letters": {
			dedup.New(), catchup.Report{Seen: 6, Applied: 1, DeadLettered: 3, Refused: 2, Missed: []string{"evt_001", "evt_large", "evt_early", "evt_005"}},
			[]string{"evt_005", "evt_early", "evt_large"}, []string{"", "evt_other"},
		},
		"a store without them": {
			storeAlone{dedup.New()}, catchup.Report{Seen: 6, Applied: 1, Refused: 5, Missed: []string{"evt_001"}},
			[]string{}, []string{"evt_large", "evt_early", "", "evt_005", "evt_other"},
		},
	} {
		for _, limit := range []int{1, 100} { // each event is the last of its page, or only one event is
			t.Run(fmt.Sprint(name, ", ", limit, " a page"), func(t *testing.T) {
				b := newBed(t)
				b.feed.poison()
				b.rcv = newReceiver(t, b.db, c.store, receiver.Config{MaxBodyBytes: 1000})
				var log bytes.Buffer
				var refused, after []string
				cfg := catchup.Config{Limit: limit, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError})), Hooks: catchup.Hooks{
					Refused: func(_ context.Context, r catchup.Refusal) {
						require.ErrorIs(t, r.Err, receiver.ErrNotKept)
						refused, after = append(refused, r.Event), append(after, r.After)
					},
					Retry: func(_ context.Context, event string, err error, _ time.Duration) {
						t.Errorf("%s is tried again: %v", event, err)
					},
				}}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
				defer cancel()
				report, err := b.catchup(hopeless, cfg).Reconcile(ctx, "")
				require.NoError(t, err)
				c.report.Next = "at 6"
				require.Equal(t, c.report, report)
				require.Equal(t, c.refused, refused)
				require.Equal(t, len(refused), strings.Count(log.String(), "level=ERROR"))
				for _, id := range refused {
					require.Contains(t, log.String(), "event_id="+cmp.Or(id, `""`))
				}
				require.Contains(t, log.String(), "named like id in another case", "the reason")
				require.NotContains(t, log.String(), private)
				require.Equal(t, map[int]string{1: "at 5", 100: ""}[limit], after[len(after)-1])
				require.Equal(t, []string{"evt_001"}, b.effects())
				require.Equal(t, c.letters, column(t, b.db, "SELECT id FROM surehook_dedup_dead_letters ORDER BY id"))

				b.run(b.catchup(hopeless, catchup.Config{Limit: limit}), func() bool { return b.cursor() == "at 6" })
				require.Equal(t, []string{"evt_001"}, b.effects())
			})
		}
	}
}

// A dead letter that cannot be stored now is tried again.
func TestDeadLetterThatCannotBeStoredNow(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.feed.put(`{"id":"evt_early"}`)
	ids := b.feed.add(1)
	_, err := b.db.Exec("CREATE TRIGGER refuse BEFORE INSERT ON surehook_dedup_dead_letters BEGIN SELECT RAISE(ABORT, 'no room'); END")
	require.NoError(t, err)
	tries := 0
	report, err := b.catchup(effect, catchup.Config{Hooks: catchup.Hooks{Retry: func(_ context.Context, event string, err error, _ time.Duration) {
		require.Equal(t, "evt_early", event)
		require.ErrorContains(t, err, "no room")
		require.Empty(t, b.effects())
		if tries++; tries == 3 {
			_, err := b.db.Exec("DROP TRIGGER refuse")
			require.NoError(t, err)
		}
	}}}).Reconcile(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, catchup.Report{Seen: 2, Applied: 1, DeadLettered: 1, Missed: []string{"evt_early", ids[0]}, Next: "at 2"}, report)
}

// An event that is larger than any page may be is passed over and reported. The events
// behind it are not passed over.
func TestEventLargerThanAPage(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ids := b.feed.add(5)
	b.feed.put(fmt.Sprintf(`{"id":"evt_large","type":"thing.made","object":{"type":"thing","id":"l"},"version":1,"data":"%s"}`, strings.Repeat(private, 1000)))
	ids = append(ids, b.feed.add(3)...)
	client := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
		if err != nil {
			t.Error(err)
		}
		page, err := b.feed.Page(r.Context(), r.URL.Query().Get("after"), limit, 0)
		if err != nil && r.Context().Err() == nil { // a client that is stopped takes its request back
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"data": page.Events, "next_cursor": page.Next})
	}, catchup.ClientConfig{MaxPageBytes: 5000})
	var refused []catchup.Refusal
	c, err := catchup.New(client, b.rcv, receiver.SQL(b.db, nil), cursors.New(), receiver.State(effect), &catchup.Config{Logger: quiet, Hooks: catchup.Hooks{
		Refused: func(_ context.Context, r catchup.Refusal) { refused = append(refused, r) },
		Retry:   func(_ context.Context, _ string, err error, _ time.Duration) { t.Error("it is tried again:", err) },
	}})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	report, err := c.Reconcile(ctx, "")
	require.NoError(t, err)
	require.Equal(t, catchup.Report{Seen: 9, Applied: 8, Refused: 1, Missed: ids, Next: "at 9"}, report)
	require.Len(t, refused, 1)
	require.Equal(t, "at 5", refused[0].After)
	require.ErrorIs(t, refused[0].Err, catchup.ErrPageTooLarge)
	require.Equal(t, ids, b.effects())

	b.run(c, func() bool { return b.cursor() == "at 9" })
}
