package receiver_test

import (
	"bufio"
	"bytes"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver"
	"github.com/surehook/surehook/receiver/receivertest"
)

// postStalling posts a body whose rest never comes, until the test ends.
func postStalling(t *testing.T, url string, req *receivertest.Request) *http.Response {
	t.Helper()
	m := req.Message()
	body, stall := io.Pipe()
	t.Cleanup(func() { _ = stall.Close() })
	go func() { _, _ = stall.Write(m.Body[:10]) }()
	r, err := http.NewRequest("POST", url, body)
	require.NoError(t, err)
	r.Header, r.ContentLength = m.Header, int64(len(m.Body))
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return res
}

// On a real connection a body that stalls is cut off by the deadline, and the
// answer still comes.
func TestStalledBody(t *testing.T) {
	b, _ := onSQLite(t)
	srv := httptest.NewServer(b.receiver(t, &receiver.Config{Timeout: 50 * time.Millisecond}).Handler(receiver.State(b.effect)))
	t.Cleanup(srv.Close)
	require.Equal(t, 408, postStalling(t, srv.URL, newSender(t).Request(newEvent(1))).StatusCode)
	require.Zero(t, b.rows(t))
}

// A request that is refused for its header alone is answered at once, however slow the
// body, and does not keep the connection for longer than the body's time. So is a handshake,
// which anybody can post.
func TestStalledBodyOfARefusedRequest(t *testing.T) {
	b, _ := onSQLite(t)
	hands := &receiver.Handshake{ValidationToken: true}
	srv := httptest.NewServer(b.receiver(t, &receiver.Config{Timeout: time.Hour, Handshake: hands}).Handler(receiver.State(b.effect)))
	t.Cleanup(srv.Close)
	require.Equal(t, 401, postStalling(t, srv.URL, newSender(t).Request(newEvent(1)).Skewed(time.Hour)).StatusCode)
	require.Equal(t, 200, postStalling(t, srv.URL+"?validationToken=a", newSender(t).Request(newEvent(1))).StatusCode)

	for target, status := range map[string]int{"/": 415, "/?validationToken=a": 200, "/?validationToken=%3C": 401} {
		closed := make(chan struct{})
		srv = httptest.NewUnstartedServer(b.receiver(t, &receiver.Config{Timeout: 50 * time.Millisecond, Handshake: hands}).Handler(receiver.State(b.effect)))
		srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateClosed {
				close(closed)
			}
		}
		srv.Start()
		t.Cleanup(srv.Close)
		// The request is written by hand, because an http.Client would close the connection
		// itself.
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, "POST "+target+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
		require.NoError(t, err)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		require.Equal(t, status, res.StatusCode)
		<-closed
	}
}

// A request that is refused for its header is refused without reading the body.
func TestHeaderBeforeBody(t *testing.T) {
	b, _ := onSQLite(t)
	h := b.receiver(t, &receiver.Config{MaxBodyBytes: 1000}).Handler(receiver.State(b.effect))
	unread := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = unreadable{t}
		h.ServeHTTP(w, r)
	})
	snd := newSender(t)
	for status, req := range map[int]*receivertest.Request{
		400: snd.Request(newEvent(1)).Without("Webhook-Timestamp"),
		401: snd.Request(newEvent(1)).Skewed(-time.Hour),
		405: snd.Request(newEvent(1)).Method("GET"),
		413: snd.Request(newEvent(1)).Padded(1001),
		415: snd.Request(newEvent(1)).Header("Content-Encoding", "gzip"),
	} {
		require.Equal(t, status, req.Serve(unread).Status)
	}
}

type unreadable struct{ t *testing.T }

func (u unreadable) Close() error { return nil }

func (u unreadable) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

// The server's own, shorter limit stays in force.
func TestServersReadTimeoutStays(t *testing.T) {
	b, _ := onSQLite(t)
	srv := httptest.NewUnstartedServer(b.receiver(t, &receiver.Config{Timeout: time.Hour}).Handler(receiver.State(b.effect)))
	srv.Config.ReadTimeout = 50 * time.Millisecond
	srv.Config.ReadHeaderTimeout = time.Minute // otherwise the former ends a header that comes late, too
	srv.Start()
	defer srv.Close()
	a, err := newSender(t).Request(newEvent(1)).Slow(5*time.Millisecond).Post(t.Context(), srv.URL)
	require.NoError(t, err)
	require.Equal(t, 408, a.Status)
}

// No deadline outlives the body, with any ResponseWriter.
func TestDeadlineIsTakenBack(t *testing.T) {
	b, _ := onSQLite(t)
	h := b.receiver(t, nil).Handler(receiver.State(b.effect))
	var set []time.Time
	start := time.Now()
	recording := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(deadlines{w, &set}, r)
	})
	require.Equal(t, 200, newSender(t).Request(newEvent(1)).Serve(recording).Status)
	require.Len(t, set, 2)
	require.WithinRange(t, set[0], start.Add(8*time.Second), time.Now().Add(8*time.Second))
	require.Zero(t, set[1])
}

type deadlines struct {
	http.ResponseWriter
	set *[]time.Time
}

func (d deadlines) SetReadDeadline(at time.Time) error {
	*d.set = append(*d.set, at)
	return nil
}

// Without a connection's deadline the clock is looked at between reads.
func TestSlowBodyWithoutDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := onMemory()
		log := new(buffer)
		h := b.receiver(t, &receiver.Config{Logger: log.logger()}).Handler(receiver.State(b.effect))
		opaque := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(struct{ http.ResponseWriter }{w}, r)
		})
		start := time.Now()
		require.Equal(t, 408, newSender(t).Request(newEvent(1)).Slow(time.Second).Serve(opaque).Status)
		require.Equal(t, 8*time.Second, time.Since(start))
		require.Equal(t, 408, newSender(t).Request(newEvent(1)).Slow(time.Second).Serve(opaque).Status)
		require.Equal(t, 1, strings.Count(log.String(), "read deadline cannot be set"))
	})
}

// If something in front of the handler has read the body, the mistake is our own, and the
// log says so.
func TestBodyConsumed(t *testing.T) {
	b, _ := onSQLite(t)
	log := new(buffer)
	h := b.receiver(t, &receiver.Config{Logger: log.logger()}).Handler(receiver.State(b.effect))
	for _, closeIt := range []bool{false, true} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.ReadAll(r.Body)
			if closeIt {
				_ = r.Body.Close()
			}
			h.ServeHTTP(w, r)
		}))
		a, err := newSender(t).Request(newEvent(1)).Post(t.Context(), srv.URL)
		srv.Close()
		require.NoError(t, err)
		require.Equal(t, 500, a.Status)
	}
	require.Equal(t, 2, strings.Count(log.String(), "reason=body_consumed"))
	require.Zero(t, b.rows(t))
}

// The log does not take a body that a middleware has read in part, or replaced, for a wrong
// secret.
func TestBodyChangedOnTheWay(t *testing.T) {
	b := onMemory()
	for name, change := range map[string]func(io.ReadCloser) io.Reader{
		"read in part": func(body io.ReadCloser) io.Reader {
			_, _ = io.CopyN(io.Discard, body, 10)
			return body
		},
		"replaced": func(io.ReadCloser) io.Reader { return strings.NewReader(`{"id":"evt_1"}`) },
	} {
		log := new(buffer)
		h := b.receiver(t, &receiver.Config{Logger: log.logger()}).Handler(receiver.State(b.effect))
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Body = io.NopCloser(change(r.Body))
			h.ServeHTTP(w, r)
		}))
		a, err := newSender(t).Raw("evt_1", []byte(`{"id":"evt_1","note":"long enough"}`)).Post(t.Context(), srv.URL)
		srv.Close()
		require.NoError(t, err)
		require.Equal(t, 401, a.Status, name)
		require.Contains(t, log.String(), "the request declares a body of 35 bytes, and ", name)
		require.NotContains(t, log.String(), "compare the fingerprints", name)
	}
}

// An adapter that does not know a body's length leaves it 0, as http.NewRequest does. Then a wrong
// secret is not taken for a body that was changed.
func TestBodyOfUnsaidLength(t *testing.T) {
	b := onMemory()
	log := new(buffer)
	h := b.receiver(t, &receiver.Config{Logger: log.logger()}).Handler(receiver.State(b.effect))
	a := newSender(t).Request(newEvent(1)).WrongSecret().Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.ContentLength = 0
		h.ServeHTTP(w, r)
	}))
	require.Equal(t, 401, a.Status)
	require.Contains(t, log.String(), "compare the fingerprints")
}

// A body of unknown length that was read before looks like one that was posted empty. The
// log says that, and does not send anybody to compare secrets.
func TestBodyOfUnknownLengthConsumed(t *testing.T) {
	b := onMemory()
	log := new(buffer)
	h := b.receiver(t, &receiver.Config{Logger: log.logger()}).Handler(receiver.State(b.effect))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		h.ServeHTTP(w, r)
	}))
	defer srv.Close()
	a, err := newSender(t).Request(newEvent(1)).Chunked().Post(t.Context(), srv.URL)
	require.NoError(t, err)
	require.Equal(t, 401, a.Status)
	require.Contains(t, log.String(), "something has read it before it was verified")
	require.NotContains(t, log.String(), "compare the fingerprints")

	closing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.Body.Close()
		h.ServeHTTP(w, r)
	}))
	defer closing.Close()
	a, err = newSender(t).Request(newEvent(1)).Chunked().Post(t.Context(), closing.URL)
	require.NoError(t, err)
	require.Equal(t, 500, a.Status)
	require.Contains(t, log.String(), "the body was read before it came here")
}

// Another bound than MaxBodyBytes is not taken for it.
func TestBodyOverAnotherBound(t *testing.T) {
	b := onMemory()
	log := new(buffer)
	h := b.receiver(t, &receiver.Config{Logger: log.logger()}).Handler(receiver.State(b.effect))
	srv := httptest.NewServer(http.MaxBytesHandler(h, 1000))
	defer srv.Close()
	for _, over := range []int{2000, 2 << 20} {
		a, err := newSender(t).Request(newEvent(1)).Padded(over).Chunked().Post(t.Context(), srv.URL)
		require.NoError(t, err)
		require.Equal(t, 413, a.Status)
	}
	require.Equal(t, 2, strings.Count(log.String(), "a bound in front of the receiver ended the body after 1000 bytes"))
	require.NotContains(t, log.String(), "the most that MaxBodyBytes allows")
}

func TestTruncatedOnTheWire(t *testing.T) {
	b, _ := onSQLite(t)
	srv := httptest.NewServer(b.receiver(t, nil).Handler(receiver.State(b.effect)))
	defer srv.Close()
	for _, req := range []*receivertest.Request{
		newSender(t).Request(newEvent(1)).Truncated(),
		newSender(t).Request(newEvent(1)).Truncated().Chunked(),
	} {
		a, err := req.Post(t.Context(), srv.URL)
		require.NoError(t, err)
		require.Equal(t, 400, a.Status)
	}
	require.Zero(t, b.rows(t))
}

func TestLargestDeclaredSize(t *testing.T) {
	b, _ := onSQLite(t)
	snd := newSender(t)
	m := snd.Request(newEvent(1)).Message()
	req := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(m.Body))
	req.Header, req.ContentLength = m.Header, math.MaxInt64
	w := httptest.NewRecorder()
	b.receiver(t, &receiver.Config{MaxBodyBytes: math.MaxInt64}).Handler(receiver.State(b.effect)).ServeHTTP(w, req)
	require.Equal(t, http.StatusOK, w.Code)
}
