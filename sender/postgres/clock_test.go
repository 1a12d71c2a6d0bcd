package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// Only the database's clock counts for what is stored and decided: a process whose own
// clock is years off does the same.
func TestOnlyTheDatabasesClockMatters(t *testing.T) {
	for _, year := range []int{1999, 2026, 2161} {
		t.Run(fmt.Sprint(year), func(t *testing.T) {
			ctx, p := t.Context(), newPlace(t)
			at := time.Date(year, 3, 4, 5, 6, 7, 0, time.UTC)
			p.exec(t, `UPDATE {}.`+clockTable+` SET at = $1`, at)
			s := p.frozen(t)
			register(t, s, 3, 1, sender.Settings{})
			publish(t, s, 9, 3)
			require.Equal(t, 9, expandAll(t, s))

			c := exchange(t, s, batchOf(nil, 100))
			require.Equal(t, at, c.Now)
			require.Len(t, c.Claimed, 9)
			require.Equal(t, at.Add(time.Minute), c.NextDue, "when the leases end")
			b := batchOf(c.Claimed[:6], 100)
			for i := range 3 {
				b.Results[i].Class, b.Results[i].StatusCode = sender.ClassStatus, 500
			}
			b.Notices = []sender.Notice{{Kind: sender.NoticeNetwork, Detail: "of a test"}}
			require.Empty(t, exchange(t, s, b).Claimed)
			require.NoError(t, s.InTx(ctx, func(tx pgx.Tx) error {
				if err := s.HoldSubscriptionTx(ctx, tx, subscriptionID(0, 0), sender.SubscriptionPaused, ""); err != nil {
					return err
				}
				return s.ResumeSubscriptionTx(ctx, tx, subscriptionID(0, 0), sender.Resume{Since: at.Add(-time.Hour)})
			}))
			p.advance(t, 2*time.Minute)
			c = exchange(t, s, batchOf(nil, 100))
			require.Len(t, c.Claimed, 6, "three are tried again, three leases have ended")
			require.Len(t, c.Interrupted, 3)
			require.NotZero(t, p.count(t, `SELECT count(*) FROM {}.surehook_waiting`)+p.count(t, `SELECT count(*) FROM {}.surehook_leases`))
			counts, err := s.Counts(ctx)
			require.NoError(t, err)
			require.Zero(t, counts.OldestDue, "nothing that is due was left")

			rows, err := p.pool.Query(ctx, `SELECT table_name, column_name FROM information_schema.columns
				WHERE table_schema = $1 AND data_type = 'timestamp with time zone' AND table_name LIKE 'surehook_%' AND table_name <> 'surehook_migrations'`, p.schema)
			require.NoError(t, err)
			type column struct{ Table, Name string }
			columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
			require.NoError(t, err)
			require.Greater(t, len(columns), 20)
			for _, c := range columns {
				name := pgx.Identifier{c.Name}.Sanitize()
				require.Zero(t, p.count(t, `SELECT count(*) FROM {}.`+c.Table+` WHERE isfinite(`+name+`) AND abs(extract(epoch FROM `+name+` - $1)) > 86400`, at),
					"times in %s.%s of another clock", c.Table, c.Name)
			}
			exchange(t, s, batchOf(c.Claimed, 0))
			p.settled(t)
		})
	}
}
