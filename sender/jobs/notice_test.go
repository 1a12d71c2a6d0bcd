package jobs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/jobs"
)

// The log says which try failed, and by an error of what type. The text may have the owner's
// data: the job and the hook have it, and the log has not.
func TestLogOfATryThatFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		var log strings.Builder
		var told noted[string]
		j := b.jobs(config{
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Hooks:  jobs.Hooks{Ended: func(_ context.Context, tr jobs.Try) { told.add(tr.Err.Error()) }},
		}, work(func(context.Context, *run) (json.RawMessage, error) {
			return nil, jobs.Permanent(fmt.Errorf("reading the customer: %w", &net.AddrError{Err: "unknown", Addr: "ada@acme.example"}))
		}))
		job := b.submit(j, jobs.Submission{})
		stop := b.start(j)
		require.Contains(t, b.finished(j, job.ID).Error, "ada@acme.example: unknown")
		require.NoError(t, stop())
		require.Len(t, told.list(), 1)
		require.Contains(t, told.list()[0], "ada@acme.example: unknown")
		require.Contains(t, log.String(), "job="+job.ID+" status=failed tries=1 lost=false error_type=*net.AddrError")
		require.NotContains(t, log.String(), "ada@")
	})
}
