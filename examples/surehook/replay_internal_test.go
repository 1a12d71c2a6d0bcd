package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// An output that could not be written is not taken for one that is whole.
func TestOutputIsNotWhole(t *testing.T) {
	t.Parallel()
	var problems bytes.Buffer
	_, full := io.Pipe()
	require.NoError(t, full.Close())
	code := run(t.Context(), []string{"trigger", "-list"}, &terminal{out: full, problems: &problems})
	require.Equal(t, exitUntried, code)
	require.Equal(t, "surehook: the output is not whole: io: read/write on closed pipe\n", problems.String())
}

// How much there is to be done is not known of a job that has not begun.
func TestReplayHasNotBegun(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"id":"job_1","kind":"replay","status":"queued","progress":null}`)
	}))
	t.Cleanup(web.Close)
	s, err := newServer(web.URL, "a token")
	require.NoError(t, err)
	r, err := s.replayed(t.Context(), "job_1")
	require.NoError(t, err)
	require.Equal(t, "0", r.sentOf())
}

// The question can be answered by Ctrl-C, too.
func TestConfirm(t *testing.T) {
	t.Parallel()
	ask := func(ctx context.Context, in io.Reader) (said string, err error) {
		var problems bytes.Buffer
		err = (&terminal{in: in, problems: &problems, asks: true}).confirm(ctx, "send 1 delivery again?", "nothing was sent")
		return problems.String(), err
	}
	for answer, sends := range map[string]bool{"y\n": true, " YES \n": true, "n\n": false, "\n": false, "": false} {
		said, err := ask(t.Context(), bytes.NewBufferString(answer))
		require.Equal(t, sends, err == nil, "%q", answer)
		require.Contains(t, said, "send 1 delivery again?")
	}
	in, typing := io.Pipe() // nobody types
	defer func() { require.NoError(t, typing.Close()) }()
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	_, err := ask(interrupted, in)
	require.True(t, isNo(err))
}

// A replay that has ended otherwise than this command wanted is a no: a script that sends all
// again must not go on as if somebody else had not cancelled it.
func TestReplayEndsOtherwise(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]struct{ sends, cancels int }{
		"succeeded": {exitDone, exitNo},
		"cancelled": {exitNo, exitDone},
		"failed":    {exitNo, exitNo},
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"id":"job_1","kind":"replay","status":"`+status+`","result":{"matched":3,"replayed":1}}`)
		}))
		t.Cleanup(web.Close)
		env := func(name string) string {
			return map[string]string{"SUREHOOK_SERVER": web.URL, "SUREHOOK_TOKEN": "a token"}[name]
		}
		for flag, code := range map[string]int{"-follow": want.sends, "-cancel": want.cancels} {
			var out, problems bytes.Buffer
			require.Equal(t, code, run(t.Context(), []string{"replay", flag, "job_1"}, &terminal{out: &out, problems: &problems, env: env}), "%s: %s %s", status, flag, problems.String())
			require.Contains(t, out.String(), ": 1 of 3 sent again, 2 skipped\n")
		}
	}
}

func TestWhatIsSentOfAReplay(t *testing.T) {
	t.Parallel()
	for says, r := range map[string]replayState{
		"cancelled: 3 of 5 sent again, 1 skipped\n":          {Status: "cancelled", Sent: 3, Matched: 5, Skipped: 1},
		"cancelled: 3 of at least 5 sent again, 1 skipped\n": {Status: "cancelled", Sent: 3, Matched: 5, Skipped: 1, More: true},
		"finished: 3 of 5 sent again, 2 skipped, of these 1 that had become so old that receivers may have forgotten their events\n": {Status: "finished", Sent: 3, Matched: 5, Skipped: 2, TooOld: 1},
		"cancelled: 3 sent again, 1 skipped\n": {Status: "cancelled", Sent: 3, Skipped: 1, More: true},
	} {
		var out bytes.Buffer
		require.NoError(t, ended(&terminal{out: &out}, &r, r.Status))
		require.Equal(t, says, out.String())
		out.Reset()
		require.NoError(t, ended(&terminal{out: &out, json: true}, &r, r.Status))
		require.Equal(t, r.More, bytes.Contains(out.Bytes(), []byte(`"more":true`)))
	}
}
