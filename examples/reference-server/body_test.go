package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// A body that stalls is answered, and the connection ends: net/http would wait for the rest.
func TestBodyThatStalls(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(bounded(http.NotFoundHandler(), time.Millisecond, nil))
	t.Cleanup(srv.Close)
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	_, err = conn.Write([]byte("POST /events HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"))
	require.NoError(t, err)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusRequestTimeout, res.StatusCode)
	require.True(t, res.Close)
}

// A client may ask before it sends a body. The server refuses one that is too large at once.
func TestBodyThatIsAskedFor(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(bounded(http.NotFoundHandler(), 20*time.Second, nil))
	t.Cleanup(srv.Close)
	answer := func(size int) int {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
		_, err = fmt.Fprintf(conn, "POST /events HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", size)
		require.NoError(t, err)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		defer res.Body.Close()
		return res.StatusCode
	}
	require.Equal(t, http.StatusContinue, answer(maxBody))
	require.Equal(t, http.StatusRequestEntityTooLarge, answer(maxBody+1))
}

// Many clients send all before they read. They, too, learn why a body was refused.
func TestBodyThatIsSentWhole(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(bounded(http.NotFoundHandler(), 20*time.Second, newLargeBodies()))
	t.Cleanup(srv.Close)
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	const size = 50 << 20 // more than waits on the way
	_, err = fmt.Fprintf(conn, "POST /events HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", size)
	require.NoError(t, err)
	_, err = conn.Write(make([]byte, size))
	require.NoError(t, err)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusRequestEntityTooLarge, res.StatusCode)
}

// Few large bodies are looked at at a time, the operator's among them. The others wait.
func TestLargeBodiesLookedAt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const sent = 3 * largeLooked
		answers, seen := make(chan int, sent), make(chan int32, sent)
		var looking atomic.Int32
		h := bounded(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			seen <- looking.Add(1)
			time.Sleep(time.Second)
			looking.Add(-1)
		}), 20*time.Second, newLargeBodies())
		large := `"` + strings.Repeat("x", largeBody) + `"`
		for range sent {
			go func() {
				w := httptest.NewRecorder()
				r := httptest.NewRequestWithContext(context.WithValue(t.Context(), callerKey{}, caller{id: sender.Operator}), http.MethodPost, "/jobs", strings.NewReader(large))
				h.ServeHTTP(w, r)
				answers <- w.Code
			}()
		}
		most := int32(0)
		for range sent {
			require.Equal(t, http.StatusOK, <-answers)
			most = max(most, <-seen)
		}
		require.EqualValues(t, largeLooked, most)
	})
}

// The operator's large bodies do not wait for the answers to subscribers. One that comes with a
// request that reads is not looked at, and keeps nobody waiting.
func TestLargeBodiesOfSubscribers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := bounded(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if !callerOf(r.Context()).operator() {
				time.Sleep(30 * time.Second) // as an answer of the feed is held open
			}
		}), 20*time.Second, newLargeBodies())
		large := `"` + strings.Repeat("x", largeBody) + `"`
		ask := func(id, method string) int {
			w := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(context.WithValue(t.Context(), callerKey{}, caller{id: id}), method, "/events", strings.NewReader(large))
			h.ServeHTTP(w, r)
			return w.Code
		}
		answers := make(chan int, 2*largeLooked)
		for i := range largeLooked {
			go func() { answers <- ask(fmt.Sprint("reads ", i), http.MethodGet) }()
		}
		synctest.Wait()
		for i := range largeLooked {
			go func() { answers <- ask(fmt.Sprint("writes ", i), http.MethodPost) }()
		}
		synctest.Wait()
		began := time.Now()
		require.Equal(t, http.StatusOK, ask(sender.Operator, http.MethodPost))
		require.Zero(t, time.Since(began))

		answered := map[int]int{}
		for range 2 * largeLooked {
			answered[<-answers]++
		}
		require.Equal(t, map[int]int{http.StatusOK: 2*largeLooked - largeKept, http.StatusServiceUnavailable: largeKept}, answered)
	})
}
