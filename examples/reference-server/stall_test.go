package main_test

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A body that nobody asks for holds nothing up, however slowly it comes: the answer does not wait
// for it, and the connection ends.
func TestBodyThatNobodyAsksFor(t *testing.T) {
	t.Parallel()
	s := start(t, place{flag: filepath.Join(t.TempDir(), "test.db")}, "-workers=false")
	for request, status := range map[string]int{
		"GET /healthz": http.StatusOK, "GET /readyz": http.StatusOK, "GET /openapi.json": http.StatusOK, "HEAD /healthz": http.StatusOK,
		"GET /console/": http.StatusUnauthorized, "GET /console/style.css": http.StatusOK, "POST /console/login": http.StatusUnauthorized,
		"GET /portal/": http.StatusOK, "GET /jobs": http.StatusUnauthorized,
	} {
		t.Run(request, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
			require.NoError(t, err)
			t.Cleanup(func() { _ = conn.Close() })
			require.NoError(t, conn.SetDeadline(time.Now().Add(60*time.Second)))
			_, err = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\n{", request)
			require.NoError(t, err)
			res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: strings.Fields(request)[0]})
			require.NoError(t, err)
			defer res.Body.Close()
			require.Equal(t, status, res.StatusCode)
			require.True(t, res.Close)
		})
	}
}

// A path can be longer than an index of PostgreSQL takes, and leads to nothing.
func TestLongPaths(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-workers=false")
		c := s.customer("c")
		long := "" // an index keeps what repeats itself in less room
		for i := range 100 {
			sum := sha256.Sum256(fmt.Append(nil, i))
			long += hex(sum[:])
		}
		for _, path := range []string{"/jobs/job_" + long + "/cancel", "/deliveries/dlv_" + long + "/redeliver", "/notices/ntc_" + long + "/acknowledge", "/subscriptions/wsub_" + long + "/test"} {
			s.post(c.token, path, nil).refused(http.StatusNotFound)
			s.post(c.token, path, nil, "Idempotency-Key", "k").refused(http.StatusNotFound)
		}
		s.patch(operatorToken, "/subscribers/sub_"+long, object{}, "Idempotency-Key", "k").refused(http.StatusNotFound)
		s.remove(operatorToken, "/subscribers/sub_"+long, "Idempotency-Key", "k").refused(http.StatusNotFound)
		s.get(c.token, "/jobs/job_"+long).refused(http.StatusNotFound)
	})
}
