package sqlite_test

import (
	"bytes"
	"database/sql"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/sqlite"
)

// Damaged rows of a subscription harm nobody else, whatever of it is under way: what was
// claimed is recorded or released, and what arrives is kept, or is delivered where that
// is possible.
func TestDamagedRowsHarmTheirOwn(t *testing.T) {
	const mine, number = "wsub_0", `(SELECT no FROM surehook_subscriptions WHERE id = 'wsub_0')`
	for name, c := range map[string]struct {
		damage    string
		delivered bool // all the same
		kept      int  // of what arrives, if not
	}{
		"no head":             {damage: `DELETE FROM surehook_heads WHERE subscription = ` + number, kept: 6},
		"no subscription":     {damage: `DELETE FROM surehook_subscriptions WHERE no = ` + number, kept: 6},
		"no subscriber":       {damage: `DELETE FROM surehook_subscribers WHERE id = 'sub_0'`, kept: 6},
		"a lane too high":     {damage: `UPDATE surehook_heads SET lane = 3 WHERE subscription = ` + number, delivered: true},
		"a lane below zero":   {damage: `UPDATE surehook_heads SET lane = -1 WHERE subscription = ` + number, delivered: true},
		"types that are none": {damage: `UPDATE surehook_subscriptions SET event_types = '[' WHERE no = ` + number, delivered: true},
	} {
		t.Run(name, func(t *testing.T) {
			db := open(t, path(t), fit)
			newStore(t, db, time.Now)
			var log bytes.Buffer
			s, err := sqlite.New(db, &sqlite.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			require.NoError(t, err)
			subscribers := register(t, s, 2)
			publish(t, s, 8, 0, subscribers)
			expandAll(t, s)
			first, err := s.RecordAndClaim(t.Context(), batchOf(nil, 1000))
			require.NoError(t, err)
			require.Len(t, first.Claimed, 8)

			_, err = db.ExecContext(t.Context(), c.damage+`; UPDATE surehook_registry SET version = version + 1`)
			require.NoError(t, err)
			publish(t, s, 6, 0, []string{""}) // to everyone
			var results []sender.Claimed
			var released []sender.Release
			for _, cl := range first.Claimed {
				if len(released) == 0 && cl.Target.Subscription == mine {
					released = append(released, sender.Release{Key: cl.Key, Token: cl.Token})
				} else {
					results = append(results, cl)
				}
			}
			got := map[string]int{}
			var now []sender.Claimed // what arrives is met alone, and then results are
			for more := true; more; {
				x, out, err := s.Step(t.Context(), sender.ExpandParams{Events: 4, Deliveries: 100}, batchOf(now, 100))
				require.NoError(t, err)
				for i, o := range out.Recorded {
					require.False(t, o.Lost, "result %d", i)
				}
				now, results = append(results, out.Claimed...), nil
				for _, cl := range out.Claimed {
					got[cl.Target.Subscription]++
				}
				more = x.More || len(now) > 0
			}
			require.NoError(t, s.Release(t.Context(), released))
			require.Equal(t, 6, got["wsub_1"], "the other one's")
			if c.delivered {
				out, err := s.RecordAndClaim(t.Context(), batchOf(nil, 100))
				require.NoError(t, err)
				require.Equal(t, 7, got[mine]+len(out.Claimed))
			} else {
				require.Zero(t, got[mine])
				require.Equal(t, c.kept, count(t, db, `SELECT count(*) FROM surehook_pending`), "what has arrived")
				require.Equal(t, 1, count(t, db, `SELECT count(*) FROM surehook_waiting`), "what was released is kept")
			}
			require.NoError(t, s.InTx(t.Context(), func(tx *sql.Tx) error {
				_, err := s.SubscriptionsTx(t.Context(), tx, "", "", 10)
				return err
			}))
			require.Equal(t, 1, strings.Count(log.String(), "rows are damaged"), log.String())
		})
	}
}
