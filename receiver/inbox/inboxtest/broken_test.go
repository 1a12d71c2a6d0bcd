package inboxtest_test

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/inbox"
	"github.com/surehook/surehook/receiver/inbox/inboxtest"
	"github.com/surehook/surehook/receiver/inbox/sqlite"
)

type tx = *sql.Tx

// broken is a good store of which some methods are replaced.
type broken struct {
	good   *sqlite.Store
	inTx   receiver.InTx[tx]
	record func(context.Context, tx, inbox.Record) (bool, error)
	claim  func(context.Context, tx, string, int, time.Duration) ([]inbox.Claim, error)
	finish func(context.Context, tx, inbox.Claim) error
	retry  func(context.Context, tx, inbox.Claim, time.Duration, string) error
	status func(context.Context, tx, string) (inbox.Status, error)
	late   func(context.Context, tx, string, time.Duration) (inbox.Overdue, error)
	lose   func(t *testing.T) (back func())
}

func (b *broken) RecordTx(ctx context.Context, tx tx, r inbox.Record) (bool, error) {
	return b.record(ctx, tx, r)
}
func (b *broken) ClaimTx(ctx context.Context, tx tx, scope string, limit int, lease time.Duration) ([]inbox.Claim, error) {
	return b.claim(ctx, tx, scope, limit, lease)
}
func (b *broken) FinishTx(ctx context.Context, tx tx, c inbox.Claim) error {
	return b.finish(ctx, tx, c)
}
func (b *broken) RetryTx(ctx context.Context, tx tx, c inbox.Claim, after time.Duration, reason string) error {
	return b.retry(ctx, tx, c, after, reason)
}
func (b *broken) StatusTx(ctx context.Context, tx tx, scope string) (inbox.Status, error) {
	return b.status(ctx, tx, scope)
}
func (b *broken) OverdueTx(ctx context.Context, tx tx, scope string, longer time.Duration) (inbox.Overdue, error) {
	return b.late(ctx, tx, scope, longer)
}

func open(t *testing.T) *broken {
	path := filepath.Join(t.TempDir(), "inbox.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=synchronous(off)&_pragma=busy_timeout(20000)")
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	require.NoError(t, sqlite.Migrate(t.Context(), db))
	good := sqlite.New()
	return &broken{
		good: good, inTx: receiver.SQL(db, nil),
		record: good.RecordTx, claim: good.ClaimTx, finish: good.FinishTx, retry: good.RetryTx, status: good.StatusTx, late: good.OverdueTx,
		lose: func(t *testing.T) (back func()) {
			db.SetMaxOpenConns(1)
			require.NoError(t, os.Rename(path, path+".moved"))
			return func() { require.NoError(t, os.Rename(path+".moved", path)) }
		},
	}
}

func exec(ctx context.Context, tx tx, query string, args ...any) error {
	if tx == nil {
		return inbox.ErrInvalid
	}
	_, err := tx.ExecContext(ctx, query, args...)
	return err
}

// unclaimed leaves a line due at once.
func unclaimed(ctx context.Context, tx tx, claims []inbox.Claim) (err error) {
	for _, c := range claims {
		err = errors.Join(err, exec(ctx, tx, "UPDATE surehook_inbox_lines SET due_at = 0 WHERE scope = ? AND line = ?", c.Scope, c.Line))
	}
	return err
}

var breakages = []struct {
	name   string
	caught []string
	change func(b *broken)
}{
	{"tells everybody that the event is fresh", []string{"recorded-once", "fresh-once"}, func(b *broken) {
		b.record = func(ctx context.Context, tx tx, r inbox.Record) (bool, error) {
			_, err := b.good.RecordTx(ctx, tx, r)
			return err == nil, err
		}
	}},
	{"keeps the copy", []string{"recorded-once"}, func(b *broken) {
		b.record = func(ctx context.Context, tx tx, r inbox.Record) (bool, error) {
			fresh, err := b.good.RecordTx(ctx, tx, r)
			if err == nil && !fresh {
				err = exec(ctx, tx, "UPDATE surehook_inbox_events SET body = ? WHERE scope = ? AND id = ?", r.Body, r.Scope, r.ID)
			}
			return fresh, err
		}
	}},
	{"makes a line of the copy", []string{"recorded-once"}, func(b *broken) {
		b.record = func(ctx context.Context, tx tx, r inbox.Record) (bool, error) {
			fresh, err := b.good.RecordTx(ctx, tx, r)
			if err == nil && !fresh {
				err = exec(ctx, tx, "UPDATE surehook_inbox_events SET line = ? WHERE scope = ? AND id = ?", r.Line, r.Scope, r.ID)
				err = errors.Join(err, exec(ctx, tx, "INSERT INTO surehook_inbox_lines (scope, line, due_at) VALUES (?, ?, 0) ON CONFLICT DO NOTHING", r.Scope, r.Line))
			}
			return fresh, err
		}
	}},
	{"ends bodies at a zero byte", []string{"whole"}, func(b *broken) {
		b.record = func(ctx context.Context, tx tx, r inbox.Record) (bool, error) {
			head, _, _ := strings.Cut(string(r.Body), "\x00")
			r.Body = []byte(head)
			return b.good.RecordTx(ctx, tx, r)
		}
	}},
	{"lower-cases ids", []string{"whole"}, func(b *broken) {
		b.record = func(ctx context.Context, tx tx, r inbox.Record) (bool, error) {
			r.ID = strings.ToLower(r.ID)
			return b.good.RecordTx(ctx, tx, r)
		}
	}},
	{"does not know scopes", []string{"scopes"}, func(b *broken) {
		b.record = func(ctx context.Context, tx tx, r inbox.Record) (bool, error) {
			if r.Scope != "" && len(r.Scope) < 100 {
				r.Scope = "all"
			}
			return b.good.RecordTx(ctx, tx, r)
		}
	}},
	{"records in a transaction of its own", []string{"record-rollback"}, func(b *broken) {
		kept := make(chan inbox.Record, 100) // recorded at the next chance, because SQLite has one writer
		b.record = func(ctx context.Context, tx tx, r inbox.Record) (bool, error) {
			fresh, err := b.good.RecordTx(ctx, tx, r)
			if fresh && len(kept) < cap(kept) {
				kept <- r
			}
			return fresh, err
		}
		b.claim = func(ctx context.Context, tx tx, scope string, limit int, lease time.Duration) ([]inbox.Claim, error) {
			for len(kept) > 0 {
				if _, err := b.good.RecordTx(ctx, tx, <-kept); err != nil {
					return nil, err
				}
			}
			return b.good.ClaimTx(ctx, tx, scope, limit, lease)
		}
	}},
	{"wakes a line that waits", []string{"one-of-a-line", "waits-in-line"}, func(b *broken) {
		b.record = func(ctx context.Context, tx tx, r inbox.Record) (bool, error) {
			fresh, err := b.good.RecordTx(ctx, tx, r)
			if fresh {
				err = exec(ctx, tx, "UPDATE surehook_inbox_lines SET due_at = 0 WHERE scope = ? AND line = ?", r.Scope, r.Line)
			}
			return fresh, err
		}
	}},
	{"checks nothing", []string{"arguments"}, func(b *broken) {
		b.record = func(ctx context.Context, tx tx, r inbox.Record) (bool, error) {
			fresh, err := b.good.RecordTx(ctx, tx, r)
			if tx != nil && errors.Is(err, inbox.ErrInvalid) {
				return false, nil
			}
			return fresh, err
		}
	}},
	{"needs no transaction", []string{"no-transaction"}, func(b *broken) {
		b.finish = func(ctx context.Context, tx tx, c inbox.Claim) error {
			if tx == nil {
				return nil
			}
			return b.good.FinishTx(ctx, tx, c)
		}
	}},
	{"claims without a lease", []string{"one-of-a-line", "claimed-once"}, func(b *broken) {
		b.claim = func(ctx context.Context, tx tx, scope string, limit int, lease time.Duration) ([]inbox.Claim, error) {
			claims, err := b.good.ClaimTx(ctx, tx, scope, limit, lease)
			return claims, errors.Join(err, unclaimed(ctx, tx, claims))
		}
	}},
	{"never ends a lease", []string{"lease-ends"}, func(b *broken) {
		b.claim = func(ctx context.Context, tx tx, scope string, limit int, lease time.Duration) ([]inbox.Claim, error) {
			return b.good.ClaimTx(ctx, tx, scope, limit, max(lease, 0)*1000)
		}
	}},
	{"keeps the token", []string{"lease-ends"}, func(b *broken) {
		b.claim = func(ctx context.Context, tx tx, scope string, limit int, lease time.Duration) ([]inbox.Claim, error) {
			claims, err := b.good.ClaimTx(ctx, tx, scope, limit, lease)
			for i := range claims {
				claims[i].Token = 1
				err = errors.Join(err, exec(ctx, tx, "UPDATE surehook_inbox_lines SET token = 1 WHERE scope = ? AND line = ?", claims[i].Scope, claims[i].Line))
			}
			return claims, err
		}
	}},
	{"counts the tokens", []string{"claim-rollback", "finished"}, func(b *broken) {
		b.claim = func(ctx context.Context, tx tx, scope string, limit int, lease time.Duration) ([]inbox.Claim, error) {
			claims, err := b.good.ClaimTx(ctx, tx, scope, limit, lease)
			for i := range claims {
				c := &claims[i]
				c.Token = int64(c.Attempt)
				err = errors.Join(err, exec(ctx, tx, "UPDATE surehook_inbox_lines SET token = ? WHERE scope = ? AND line = ?", c.Token, c.Scope, c.Line))
			}
			return claims, err
		}
	}},
	{"counts no attempts", []string{"lease-ends", "put-back"}, func(b *broken) {
		b.claim = func(ctx context.Context, tx tx, scope string, limit int, lease time.Duration) ([]inbox.Claim, error) {
			claims, err := b.good.ClaimTx(ctx, tx, scope, limit, lease)
			for i := range claims {
				claims[i].Attempt = 1
			}
			return claims, err
		}
	}},
	{"begins the age anew", []string{"age"}, func(b *broken) {
		b.claim = func(ctx context.Context, tx tx, scope string, limit int, lease time.Duration) ([]inbox.Claim, error) {
			claims, err := b.good.ClaimTx(ctx, tx, scope, limit, lease)
			for i := range claims {
				claims[i].Age = 0
			}
			return claims, err
		}
	}},
	{"claims one more than the limit", []string{"longest-due-first"}, func(b *broken) {
		b.claim = func(ctx context.Context, tx tx, scope string, limit int, lease time.Duration) ([]inbox.Claim, error) {
			if limit < 1 {
				return b.good.ClaimTx(ctx, tx, scope, limit, lease)
			}
			return b.good.ClaimTx(ctx, tx, scope, limit+1, lease)
		}
	}},
	{"claims those first that are due last", []string{"longest-due-first"}, func(b *broken) {
		b.claim = func(ctx context.Context, tx tx, scope string, limit int, lease time.Duration) ([]inbox.Claim, error) {
			if limit == 1 && tx != nil && lease > 0 {
				if err := exec(ctx, tx, "UPDATE surehook_inbox_lines SET due_at = -due_at WHERE token = 0"); err != nil {
					return nil, err
				}
			}
			return b.good.ClaimTx(ctx, tx, scope, limit, lease)
		}
	}},
	{"claims in all scopes", []string{"claimed-in-scope"}, func(b *broken) {
		b.claim = func(ctx context.Context, tx tx, _ string, limit int, lease time.Duration) ([]inbox.Claim, error) {
			return b.good.ClaimTx(ctx, tx, "", limit, lease)
		}
	}},
	{"counts all scopes", []string{"claimed-in-scope"}, func(b *broken) {
		b.status = func(ctx context.Context, tx tx, _ string) (inbox.Status, error) {
			return b.good.StatusTx(ctx, tx, "")
		}
	}},
	{"does not know who has one scope", []string{"one-scope", "overdue"}, func(b *broken) {
		b.record = func(ctx context.Context, tx tx, r inbox.Record) (bool, error) {
			r.OneScope = false
			return b.good.RecordTx(ctx, tx, r)
		}
	}},
	{"counts those with one scope in all", []string{"one-scope"}, func(b *broken) {
		b.status = func(ctx context.Context, tx tx, scope string) (s inbox.Status, err error) {
			if s, err = b.good.StatusTx(ctx, tx, scope); err == nil && scope == "" {
				err = tx.QueryRowContext(ctx, "SELECT count(*) FROM surehook_inbox_events").Scan(&s.Events)
			}
			return s, err
		}
	}},
	{"leaves a line as it was first", []string{"one-scope"}, func(b *broken) {
		b.record = func(ctx context.Context, tx tx, r inbox.Record) (bool, error) {
			var oneScope bool
			if tx != nil && tx.QueryRowContext(ctx, "SELECT one_scope FROM surehook_inbox_lines WHERE scope = ? AND line = ?", r.Scope, r.Line).Scan(&oneScope) == nil {
				r.OneScope = oneScope
			}
			return b.good.RecordTx(ctx, tx, r)
		}
	}},
	{"tells of its own as overdue", []string{"overdue"}, func(b *broken) {
		b.late = func(ctx context.Context, tx tx, _ string, longer time.Duration) (inbox.Overdue, error) {
			return b.good.OverdueTx(ctx, tx, "none", longer)
		}
	}},
	{"tells of all that waits", []string{"overdue"}, func(b *broken) {
		b.late = func(ctx context.Context, tx tx, scope string, _ time.Duration) (inbox.Overdue, error) {
			return b.good.OverdueTx(ctx, tx, scope, 0)
		}
	}},
	{"counts an attempt that was rolled back", []string{"claim-rollback"}, func(b *broken) {
		var mu sync.Mutex
		attempts := map[string]int{}
		b.claim = func(ctx context.Context, tx tx, scope string, limit int, lease time.Duration) ([]inbox.Claim, error) {
			claims, err := b.good.ClaimTx(ctx, tx, scope, limit, lease)
			mu.Lock()
			defer mu.Unlock()
			for i := range claims {
				attempts[claims[i].ID]++
				claims[i].Attempt = attempts[claims[i].ID]
			}
			return claims, err
		}
	}},
	{"takes what comes too late", []string{"lease-ends", "finished", "put-back", "finished-once"}, func(b *broken) {
		b.finish = func(ctx context.Context, tx tx, c inbox.Claim) error {
			if err := b.good.FinishTx(ctx, tx, c); !errors.Is(err, inbox.ErrLeaseLost) {
				return err
			}
			return exec(ctx, tx, "DELETE FROM surehook_inbox_events WHERE scope = ? AND id = ?", c.Scope, c.ID)
		}
	}},
	{"forgets those behind", []string{"one-of-a-line", "recorded-while-finished", "put-back-keeps-order"}, func(b *broken) {
		b.finish = func(ctx context.Context, tx tx, c inbox.Claim) error {
			err := b.good.FinishTx(ctx, tx, c)
			if err == nil {
				err = exec(ctx, tx, "DELETE FROM surehook_inbox_lines WHERE scope = ? AND line = ?", c.Scope, c.Line)
			}
			return err
		}
	}},
	{"finishes in spite of a rollback", []string{"finish-rollback"}, func(b *broken) {
		var mu sync.Mutex
		done := map[string]bool{}
		b.finish = func(ctx context.Context, tx tx, c inbox.Claim) error {
			err := b.good.FinishTx(ctx, tx, c)
			mu.Lock()
			defer mu.Unlock()
			if err == nil && done[c.ID] {
				return inbox.ErrLeaseLost
			}
			done[c.ID] = true
			return err
		}
	}},
	{"puts back at once", []string{"put-back", "waits-in-line", "status"}, func(b *broken) {
		b.retry = func(ctx context.Context, tx tx, c inbox.Claim, _ time.Duration, _ string) error {
			return b.good.RetryTx(ctx, tx, c, 0, "")
		}
	}},
	{"puts back at the end of the line", []string{"put-back-keeps-order"}, func(b *broken) {
		b.retry = func(ctx context.Context, tx tx, c inbox.Claim, after time.Duration, reason string) error {
			err := b.good.RetryTx(ctx, tx, c, after, reason)
			if err == nil {
				err = exec(ctx, tx, "UPDATE surehook_inbox_events SET version = 0 WHERE scope = ? AND id = ?", c.Scope, c.ID)
			}
			return err
		}
	}},
	{"does not look for its file", []string{"lost"}, func(b *broken) {
		b.retry = func(ctx context.Context, tx tx, _ inbox.Claim, _ time.Duration, _ string) error {
			return exec(ctx, tx, "UPDATE surehook_inbox_lines SET token = 0")
		}
	}},
	{"heeds no context", []string{"context-ended"}, func(b *broken) {
		b.finish = func(ctx context.Context, tx tx, c inbox.Claim) error {
			return b.good.FinishTx(context.WithoutCancel(ctx), tx, c)
		}
	}},
}

func TestSuiteFindsBrokenStores(t *testing.T) {
	harness := func(b *broken) inboxtest.Harness[tx] {
		return inboxtest.Harness[tx]{Store: b, InTx: b.inTx, Lose: b.lose}
	}
	t.Run("good", func(t *testing.T) {
		t.Parallel()
		inboxtest.Run(t, func(t *testing.T) inboxtest.Harness[tx] { return harness(open(t)) })
	})
	var mu sync.Mutex
	proved := map[string]bool{}
	t.Cleanup(func() { // when all have ended
		for _, name := range inboxtest.Names() {
			if !proved[name] {
				t.Errorf("no broken store proves %s", name)
			}
		}
	})
	for _, c := range breakages {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found := inboxtest.Broken(t, func(t *testing.T) inboxtest.Harness[tx] {
				b := open(t)
				c.change(b)
				return harness(b)
			}, c.caught)
			names := slices.Sorted(maps.Keys(found))
			for _, name := range c.caught {
				require.Contains(t, names, name)
				t.Logf("%s: %s", name, found[name][0])
				mu.Lock()
				proved[name] = true
				mu.Unlock()
			}
		})
	}
}
