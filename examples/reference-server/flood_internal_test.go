package main

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The log has one line a second of each kind, and leaves nothing out without a word.
func TestUnflooded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuffer
		calm := unflooded(slog.NewTextHandler(&out, nil))
		log := slog.New(calm)
		lines := func() int {
			synctest.Wait()
			return strings.Count(out.String(), "\n")
		}
		for i := range 1000 {
			log.Error("a request failed", "operation", "publish-event", "try", i)
		}
		log.Error("a request failed", "operation", "list-jobs")
		log.Info("as it is")
		log.Info("as it is")
		require.Equal(t, 4, lines())
		time.Sleep(floodEvery)
		require.Equal(t, 5, lines())
		require.Contains(t, out.String(), "try=999 and_before_it=998")

		log.Error("a request failed", "operation", "publish-event", "try", "late")
		require.Equal(t, 5, lines())
		time.Sleep(floodEvery)
		require.Equal(t, 6, lines())
		require.Contains(t, out.String(), "try=late\n", "nothing stands for others")
		time.Sleep(3 * floodEvery)
		require.Equal(t, 6, lines())
		require.Empty(t, calm.floods.kinds, "what is over is forgotten")

		log.With("process", "a").Warn("said", "n", 1)
		log.With("process", "a").Warn("said", "n", 2)
		calm.flush()
		require.Contains(t, out.String(), "process=a n=2\n")
		time.Sleep(3 * floodEvery)
		require.Equal(t, 8, lines())

		for i := range 5 {
			log.Warn("a delivery is a dead letter: it is not attempted any more", "notice_id", i)
		}
		require.Equal(t, 13, lines(), "each notice is logged")
	})
}

// lockedBuffer can be read while timers write to it.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// What net/http says of itself is logged in the same form, and as seldom.
func TestLogOfNetHTTP(t *testing.T) {
	t.Parallel()
	s, _ := newTestServer(t)
	var out lockedBuffer
	s.log = slog.New(slog.NewTextHandler(&out, nil))
	err := s.run(t.Context(), &crowded{})
	require.ErrorIs(t, err, errNoMore)
	require.Regexp(t, `^time=\S+ level=WARN msg="http: Accept error: `, out.String())
}

var errNoMore = errors.New("no more")

// crowded is a listener that has no connection for anybody, and then breaks.
type crowded struct{ asked bool }

func (f *crowded) Accept() (net.Conn, error) {
	if f.asked {
		return nil, errNoMore
	}
	f.asked = true
	return nil, syscall.EMFILE // until another connection ends
}
func (f *crowded) Close() error   { return nil }
func (f *crowded) Addr() net.Addr { return &net.TCPAddr{} }
