package main

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver/catchup"
)

// expiring has each cursor expired.
type expiring struct{ asked int }

func (e *expiring) Page(ctx context.Context, _ string, _ int, _ time.Duration) (catchup.Page, error) {
	if e.asked++; e.asked > 1000 {
		<-ctx.Done() // it is asked without a pause
	}
	return catchup.Page{}, &catchup.ExpiredError{Next: "a"}
}

// A sender that has each cursor expired is not asked without a pause.
func TestListenWithCursorsThatAlwaysExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		source := &expiring{}
		l := &listener{t: &terminal{out: io.Discard, problems: io.Discard}, source: source}
		require.NoError(t, l.run(ctx))
		require.LessOrEqual(t, source.asked, 62)
	})
}
