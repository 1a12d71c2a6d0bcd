package sqlite_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	driver "modernc.org/sqlite"

	"github.com/surehook/surehook/internal/proof/faultdriver"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/sqlite"
)

const busySnapshot = 5 | 2<<8 // SQLITE_BUSY_SNAPSHOT, sqlite.org/rescode.html

// A deferred transaction that read before another one committed may not write.
func TestPublishTxThatCannotUpgrade(t *testing.T) {
	withKey := draft("", 0)
	withKey.Key = "a key"
	for name, d := range map[string]sender.Draft{"plain": draft("", 0), "with a key": withKey} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			db := open(t, path(t), fit)
			s := newStore(t, db, time.Now)
			tx, err := db.BeginTx(ctx, nil)
			require.NoError(t, err)
			defer func() { _ = tx.Rollback() }()
			var n int
			require.NoError(t, tx.QueryRowContext(ctx, `SELECT count(*) FROM surehook_events`).Scan(&n))
			publish(t, s, 1, 0, []string{""})

			_, err = s.PublishTx(ctx, tx, []sender.Draft{d})
			require.ErrorIs(t, err, sender.ErrRetryTx)
			var cause *driver.Error
			require.ErrorAs(t, err, &cause, "the driver's error")
			require.Equal(t, busySnapshot, cause.Code())

			require.NoError(t, tx.Rollback())
			require.NoError(t, publishInTx(ctx, s, d), "the same again, in a transaction that may write")
		})
	}
}

// A caller that reads a subscription to change it can write it, also in a deferred transaction.
func TestSubscriptionToChangeIsLocked(t *testing.T) {
	ctx, p := t.Context(), path(t)
	db := open(t, p, fit)
	s := newStore(t, db, time.Now)
	register(t, s, 1)
	other := open(t, p, "_pragma=busy_timeout(0)")
	tx, err := db.BeginTx(ctx, nil)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback() }()
	n, err := s.SubscriptionTx(ctx, tx, sender.SubscriptionKey{ID: "wsub_0", ToChange: true})
	require.NoError(t, err)
	_, err = other.ExecContext(ctx, `UPDATE surehook_subscriptions SET description = 'another'`)
	require.ErrorContains(t, err, "locked")
	n.Description = "mine"
	require.NoError(t, s.UpdateSubscriptionTx(ctx, tx, n))
	require.NoError(t, tx.Commit())
}

// A call that would wait for itself is refused at once. A wait would last until the context
// ends.
func TestCallsInsideInTxAreRefused(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, other := newStore(t, open(t, path(t), fit), time.Now), newStore(t, open(t, path(t), fit), time.Now)
	pub, err := sender.NewPublisher(s, nil)
	require.NoError(t, err)
	elsewhere, err := sender.NewPublisher(other, nil)
	require.NoError(t, err)
	event := sender.Event{Type: "a.b", Object: sender.Object{Type: "thing", ID: "1"}}
	derived, done := context.WithCancel(context.Background()) // not one of ctx's
	defer done()
	require.NoError(t, pub.InTx(ctx, func(tx *sql.Tx) error {
		for name, call := range map[string]func() error{
			"Publish":        func() error { _, err := pub.Publish(ctx, event); return err },
			"another's ctx":  func() error { _, err := pub.Publish(derived, event); return err },
			"InTx":           func() error { return pub.InTx(ctx, func(*sql.Tx) error { return nil }) },
			"InReadTx":       func() error { return s.InReadTx(ctx, func(*sql.Tx) error { return nil }) },
			"another method": func() error { return s.Redeliver(ctx, "dlv_x_1", time.Time{}) },
			"WaitToWrite":    func() error { _, err := s.WaitToWrite(ctx); return err },
		} {
			err := call()
			require.ErrorIs(t, err, sender.ErrInvalid, name)
			require.ErrorContains(t, err, "use PublishTx with the transaction that you have", name)
		}
		_, err := elsewhere.Publish(ctx, event)
		require.NoError(t, err, "another store's turns are others")
		_, err = pub.PublishTx(ctx, tx, event)
		return err
	}))
	ref, err := pub.Publish(ctx, event)
	require.NoError(t, err)
	require.EqualValues(t, 2, ref.Version, "the refused ones have left nothing")

	// Others wait for their turn, as ever.
	waits := make(chan error, 1)
	require.NoError(t, pub.InTx(ctx, func(*sql.Tx) error {
		go func() {
			_, err := pub.Publish(ctx, event)
			waits <- err
		}()
		return nil
	}))
	require.NoError(t, <-waits)
}

// In InTx nobody can come between a read and a write, whatever the DSN says.
func TestInTxReadsThenWrites(t *testing.T) {
	for name, params := range map[string]string{
		"default": "", "deferred": "&_txlock=deferred", "immediate": "&_txlock=immediate", "exclusive": "&_txlock=exclusive",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, p := t.Context(), path(t)
			s := newStore(t, open(t, p, fit+params), time.Now)
			other := open(t, p, "_pragma=busy_timeout(0)")
			runs := 0
			require.NoError(t, s.InTx(ctx, func(tx *sql.Tx) error {
				runs++
				var n int
				if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM surehook_events`).Scan(&n); err != nil {
					return err
				}
				_, err := other.ExecContext(ctx, `CREATE TABLE meanwhile (n INTEGER)`)
				require.ErrorContains(t, err, "locked")
				_, err = s.PublishTx(ctx, tx, []sender.Draft{draft("", 0)})
				return err
			}))
			require.Equal(t, 1, runs)
			require.Equal(t, 1, count(t, other, `SELECT count(*) FROM surehook_events`))
		})
	}
}

// If a function does not return nil, its transaction is rolled back, however the
// function ends, and the next one has its turn.
func TestInTxRollsBack(t *testing.T) {
	ctx := t.Context()
	db := open(t, path(t), fit)
	db.SetMaxOpenConns(1) // a transaction left open would keep the only one
	s := newStore(t, db, time.Now)
	publishing := func(then func() error) func(tx *sql.Tx) error {
		return func(tx *sql.Tx) error {
			if _, err := s.PublishTx(ctx, tx, []sender.Draft{draft("", 0)}); err != nil {
				return err
			}
			return then()
		}
	}
	nothingLeft := func() {
		t.Helper()
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		require.NoError(t, s.InTx(short, func(tx *sql.Tx) error {
			var n int
			require.NoError(t, tx.QueryRowContext(ctx, `SELECT count(*) FROM surehook_events`).Scan(&n))
			require.Zero(t, n)
			return nil
		}))
	}
	mine := errors.New("mine")
	require.ErrorIs(t, s.InTx(ctx, publishing(func() error { return mine })), mine)
	nothingLeft()
	require.PanicsWithValue(t, "mine", func() { _ = s.InTx(ctx, publishing(func() error { panic("mine") })) })
	nothingLeft()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.InTx(ctx, publishing(func() error {
			runtime.Goexit()
			return nil
		}))
	}()
	<-ended
	nothingLeft()
}

// A function that has ended its transaction, or in which SQLite has ended it, does not get an
// event stored without its change, nor a subscriber.
func TestEndedTransaction(t *testing.T) {
	ctx := t.Context()
	db := open(t, path(t), fit)
	s := newStore(t, db, time.Now)
	_, err := db.ExecContext(ctx, `CREATE TABLE changes (id INTEGER PRIMARY KEY)`)
	require.NoError(t, err)
	for i, statement := range []string{"ROLLBACK", "COMMIT", "INSERT OR ROLLBACK INTO changes VALUES (1)"} {
		for name, call := range map[string]func(tx *sql.Tx) error{
			"event": func(tx *sql.Tx) error {
				_, err := s.PublishTx(ctx, tx, []sender.Draft{draft("", 0)})
				return err
			},
			"subscriber": func(tx *sql.Tx) error {
				return s.CreateSubscriberTx(ctx, tx, sender.Subscriber{ID: "sub_1"}, []sender.SealedSecret{{ID: "sec_1", Sealed: []byte("sealed")}})
			},
		} {
			require.ErrorIs(t, s.InTx(ctx, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, `INSERT OR IGNORE INTO changes VALUES (?)`, i)
				require.NoError(t, err)
				_, _ = tx.ExecContext(ctx, statement)
				return call(tx)
			}), sql.ErrTxDone, "%s after %s", name, statement)
			require.Zero(t, count(t, db, `SELECT (SELECT count(*) FROM surehook_events) + (SELECT count(*) FROM surehook_subscribers)`), "%s after %s", name, statement)
		}
	}
}

// A pool of one connection is enough, also when the first call of all has it.
func TestOneConnection(t *testing.T) {
	p := path(t)
	owners := register(t, newStore(t, open(t, p, fit), time.Now), 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // whoever waits for a second one fails
	defer cancel()
	db := open(t, p, fit)
	db.SetMaxOpenConns(1)
	s, err := sqlite.New(db, nil)
	require.NoError(t, err)

	tx, err := db.BeginTx(ctx, nil)
	require.NoError(t, err)
	_, err = s.PublishTx(ctx, tx, []sender.Draft{draft(owners[0], 0)})
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	require.NoError(t, publishInTx(ctx, s, draft(owners[0], 0)))
	_, _, err = s.Step(ctx, dispatch.ExpandParams{Events: 10, Deliveries: 10}, dispatch.Batch{})
	require.NoError(t, err)
	_, c, err := s.Step(ctx, dispatch.ExpandParams{}, batchOf(nil, 10))
	require.NoError(t, err)
	require.Len(t, c.Claimed, 2)
	_, _, err = s.Step(ctx, dispatch.ExpandParams{}, batchOf(c.Claimed, 10))
	require.NoError(t, err)
	all, _, err := s.Deliveries(ctx, history.DeliveryQuery{Status: sender.StatusDelivered})
	require.NoError(t, err)
	require.Len(t, all, 2)
}

// Writers get their turns in the order in which they asked, through InTx and otherwise.
func TestTurns(t *testing.T) {
	db := open(t, path(t), fit)
	newStore(t, db, time.Now)
	synctest.Test(t, func(t *testing.T) {
		s, err := sqlite.New(db, nil)
		require.NoError(t, err)
		done, err := s.WaitToWrite(t.Context())
		require.NoError(t, err)
		const waiting = 10
		order := make(chan int, waiting)
		errs := make(chan error, waiting)
		for i := range waiting {
			go func() {
				if i%2 == 0 {
					errs <- s.InTx(t.Context(), func(*sql.Tx) error { order <- i; return nil })
					return
				}
				done, err := s.WaitToWrite(t.Context())
				order <- i
				if err == nil {
					done()
				}
				errs <- err
			}()
			synctest.Wait() // now it stands in the queue
		}
		require.Empty(t, order, "those who did not wait for the turn")
		done()
		for i := range waiting {
			require.NoError(t, <-errs)
			require.Equal(t, i, <-order)
		}
	})
}

func TestTurnIsEndedOnce(t *testing.T) {
	db := open(t, path(t), fit)
	newStore(t, db, time.Now)
	synctest.Test(t, func(t *testing.T) {
		s, err := sqlite.New(db, nil)
		require.NoError(t, err)
		first, err := s.WaitToWrite(t.Context())
		require.NoError(t, err)
		first()
		second, err := s.WaitToWrite(t.Context())
		require.NoError(t, err)
		first() // must end nothing of the second

		gone, cancel := context.WithCancel(t.Context())
		waited := make(chan error, 1)
		go func() {
			_, err := s.WaitToWrite(gone)
			waited <- err
		}()
		synctest.Wait()
		require.Empty(t, waited, "somebody whose turn it is not")
		cancel()
		require.ErrorIs(t, <-waited, context.Canceled)
		second()
		require.NoError(t, publishInTx(t.Context(), s, draft("", 0)), "who stopped waiting keeps no place")
	})
}

// database/sql tells it by a statement that is prepared on another *sql.DB, in a text that
// does not say whose it is.
func TestTransactionOfAnotherDatabase(t *testing.T) {
	ctx := t.Context()
	s, other := newStore(t, open(t, path(t), fit), time.Now), open(t, path(t), fit)
	newStore(t, other, time.Now) // it has the tables, too
	// The first round is the store's first call. A mistake must not be told later than that.
	for _, key := range []string{"", "a key"} {
		tx, err := other.BeginTx(ctx, nil)
		require.NoError(t, err)
		d := draft("", 0)
		d.Key = key
		_, err = s.PublishTx(ctx, tx, []sender.Draft{d})
		require.ErrorIs(t, err, sender.ErrInvalid, key)
		require.ErrorContains(t, err, "it is of another *sql.DB than the store's", key)
		var n int
		require.NoError(t, tx.QueryRowContext(ctx, `SELECT count(*) FROM surehook_events`).Scan(&n))
		require.Zero(t, n, key)
		require.NoError(t, tx.Rollback())
	}
}

// A commit that fails leaves no transaction in the pool, which would keep everybody from
// writing.
func TestInTxAfterACommitThatFailed(t *testing.T) {
	db := open(t, path(t), fit+"&_pragma=foreign_keys(1)")
	_, err := db.Exec("CREATE TABLE orders (id INTEGER PRIMARY KEY); CREATE TABLE items (item INTEGER REFERENCES orders DEFERRABLE INITIALLY DEFERRED)")
	require.NoError(t, err)
	s := newStore(t, db, time.Now)
	run := func(statement string) error {
		return s.InTx(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.Exec(statement)
			return err
		})
	}
	require.ErrorContains(t, run("INSERT INTO items VALUES (1)"), "FOREIGN KEY")
	require.NoError(t, run("INSERT INTO orders VALUES (2)"))
}

// A step whose context ends while it expands ends, too, and others can write. The statements that
// run while events are still read must not wait for the rollback, which waits for these.
func TestContextEndsDuringAnExpansion(t *testing.T) {
	p := path(t)
	db := open(t, p, fit)
	s := newStore(t, db, time.Now)
	subscribers := register(t, s, 3)
	publish(t, s, 9, 10, subscribers)

	ctx, cancel := context.WithCancel(t.Context())
	inRollback := func() bool {
		stacks := make([]byte, 1<<20)
		return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("sql.(*Tx).rollback"))
	}
	connector, err := faultdriver.Open(db.Driver(), "file:"+p+"?"+fit)
	require.NoError(t, err)
	cancelling := sql.OpenDB(faultdriver.Wrap(connector, func(_ context.Context, c faultdriver.Call, do func() error) error {
		if strings.Contains(c.Text, "FROM surehook_patterns") && c.Kind == faultdriver.Query {
			cancel()
			for !inRollback() {
				runtime.Gosched()
			}
		}
		return do()
	}))
	defer cancelling.Close()
	stopping, err := sqlite.New(cancelling, nil)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		_, _, err := stopping.Step(ctx, dispatch.ExpandParams{Events: 10, Deliveries: 10}, dispatch.Batch{})
		ended <- err
	}()
	select {
	case err := <-ended:
		require.Error(t, err)
	case <-time.After(20 * time.Second):
		require.FailNow(t, "the step waits for ever")
	}
	x, _, err := s.Step(t.Context(), dispatch.ExpandParams{Events: 10, Deliveries: 10}, dispatch.Batch{})
	require.NoError(t, err)
	require.Equal(t, dispatch.Expanded{Events: 9, Deliveries: 9}, x)
}
