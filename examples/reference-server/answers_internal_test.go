package main

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Work that has transactions of its own is done once, whatever becomes of the client, and again
// only if it was refused, or if its process was lost.
func TestOnceApart(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t)
	c := caller{id: "sub_c", path: "POST /a"}
	done := 0
	work := func(context.Context) (int, error) {
		done++
		return done, nil
	}
	ask := func(ctx context.Context, key string, within time.Duration, do func(context.Context) (int, error)) (int, error) {
		return onceApart(ctx, s.answers, c, key, "asked", within, do)
	}

	// Its client leaves in the middle of it.
	leaving, leave := context.WithCancel(t.Context())
	n, err := ask(leaving, "left", time.Minute, func(ctx context.Context) (int, error) {
		leave()
		require.NoError(t, ctx.Err())
		return work(ctx)
	})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	n, err = ask(t.Context(), "left", time.Minute, work)
	require.NoError(t, err)
	require.Equal(t, 1, n, "the repeat has its answer")

	// It is refused.
	refused := errors.New("refused")
	_, err = ask(t.Context(), "refused", time.Minute, func(context.Context) (int, error) { return 0, refused })
	require.ErrorIs(t, err, refused)
	n, err = ask(t.Context(), "refused", time.Minute, work)
	require.NoError(t, err)
	require.Equal(t, 2, n)

	// Its process is lost: the key is held for a time, and then free.
	require.NoError(t, s.db.inTx(t.Context(), func(tx *sql.Tx) error {
		hash, err := hashOf("asked")
		require.NoError(t, err)
		_, err = s.answers.hold(t.Context(), tx, c, "lost", hash, time.Minute, nil)
		return err
	}))
	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = ask(impatient, "lost", time.Minute, work)
	require.Error(t, err)
	require.NotErrorIs(t, err, errUnderWay, "it waits for as long as its client does")
	require.Equal(t, 2, done)
	_, err = s.db.sql.ExecContext(t.Context(), "UPDATE server_answers SET created_at = created_at - ?", (3 * time.Minute).Microseconds())
	require.NoError(t, err)
	n, err = ask(t.Context(), "lost", time.Minute, work)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	n, err = ask(t.Context(), "left", time.Minute, work)
	require.NoError(t, err)
	require.Equal(t, 1, n, "an answer is kept for a day")
}

// A repeat waits for the answer to the first request; another request with its key does not.
func TestRepeatWaits(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t)
	c := caller{id: "sub_c", path: "POST /a"}
	ask := func(asked string, do func() int) (int, error) {
		return onceApart(t.Context(), s.answers, c, "k", asked, time.Minute, func(context.Context) (int, error) { return do(), nil })
	}
	never := func() int { return 2 }
	begun, end := make(chan struct{}), make(chan struct{})
	got := make(chan int, 2)
	report := func(n int, err error) {
		if err != nil {
			t.Error(err)
		}
		got <- n
	}
	go func() {
		report(ask("one", func() int {
			close(begun)
			<-end
			return 1
		}))
	}()
	<-begun
	_, err := ask("another", never)
	p := (*Problem)(nil)
	require.ErrorAs(t, err, &p)
	require.Equal(t, http.StatusConflict, p.Status)
	go func() { report(ask("one", never)) }()
	close(end)
	require.Equal(t, []int{1, 1}, []int{<-got, <-got})
}
