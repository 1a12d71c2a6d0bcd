package sendertest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/sendertest"
)

// outcome is a client's result of a step.
type outcome struct {
	status int
	header http.Header
	body   string
	err    error // of the round trip or of reading the body
}

func post(ctx context.Context, rt http.RoundTripper, url, body string) outcome {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, io.NopCloser(strings.NewReader(body)))
	if err != nil {
		return outcome{err: err}
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return outcome{err: err}
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	return outcome{resp.StatusCode, resp.Header, string(got), err}
}

// both runs a check with the steps on a connection, over TLS and in process.
func both(t *testing.T, step sendertest.Step, check func(t *testing.T, got outcome)) {
	t.Helper()
	t.Run("connection", func(t *testing.T) {
		ep := sendertest.NewEndpoint(t, step)
		check(t, post(t.Context(), ep.Client().Transport, ep.URL()+"/hooks", "hello"))
		require.Len(t, ep.Requests(), 1)
	})
	t.Run("tls", func(t *testing.T) {
		ep := sendertest.NewTLSEndpoint(t, step)
		require.True(t, strings.HasPrefix(ep.URL(), "https://"), ep.URL())
		check(t, post(t.Context(), ep.Client().Transport, ep.URL()+"/hooks", "hello"))
		require.Len(t, ep.Requests(), 1)
	})
	t.Run("in process", func(t *testing.T) {
		rt := sendertest.NewRoundTripper(step)
		check(t, post(t.Context(), rt, "http://receiver.test/hooks", "hello"))
		require.Len(t, rt.Requests(), 1)
	})
}

func TestStepsThatAnswer(t *testing.T) {
	echo := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", r.Method+" "+r.RequestURI)
		w.Header().Set("X-Host", r.Host)
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write(append([]byte("got "), body...))
	}
	tests := []struct {
		name  string
		step  sendertest.Step
		check func(t *testing.T, got outcome)
	}{
		{"status", sendertest.Status(503), func(t *testing.T, got outcome) {
			require.Equal(t, 503, got.status)
			require.Empty(t, got.body)
		}},
		{"no content", sendertest.Answer(204, nil, "x"), func(t *testing.T, got outcome) {
			require.Equal(t, 204, got.status)
			require.NotContains(t, got.header, "Content-Length")
			require.Empty(t, got.body)
		}},
		{"answer", sendertest.Answer(429, http.Header{"Retry-After": {"120"}}, "slow down"), func(t *testing.T, got outcome) {
			require.Equal(t, 429, got.status)
			require.Equal(t, []string{"120"}, got.header["Retry-After"])
			require.Equal(t, "slow down", got.body)
		}},
		{"redirect", sendertest.Redirect(307, "http://elsewhere.test/"), func(t *testing.T, got outcome) {
			require.Equal(t, 307, got.status)
			require.Equal(t, "http://elsewhere.test/", got.header.Get("Location"))
		}},
		{"func", sendertest.Func(echo), func(t *testing.T, got outcome) {
			require.Equal(t, 202, got.status)
			require.Equal(t, "POST /hooks", got.header.Get("X-Seen"))
			require.NotEmpty(t, got.header.Get("X-Host"))
			require.Equal(t, "got hello", got.body)
		}},
		{"drip", sendertest.Drip(time.Microsecond, 5), func(t *testing.T, got outcome) {
			require.Equal(t, 200, got.status)
			require.Equal(t, "5", got.header.Get("Content-Length"))
			require.Len(t, got.body, 5)
		}},
		{"endless", sendertest.Endless(), func(t *testing.T, got outcome) {
			require.Equal(t, 200, got.status)
			require.Len(t, got.body, 64<<10, "as much as the client reads")
		}},
		{"huge headers", sendertest.HugeHeaders(256 << 10), func(t *testing.T, got outcome) {
			require.Equal(t, 200, got.status)
			size := 0
			for _, values := range got.header {
				size += len(values[0])
			}
			require.GreaterOrEqual(t, size, 256<<10)
		}},
		{"slow headers", sendertest.SlowHeaders(time.Microsecond), func(t *testing.T, got outcome) {
			require.Equal(t, 200, got.status)
			require.Empty(t, got.body)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			both(t, test.step, func(t *testing.T, got outcome) {
				require.NoError(t, got.err)
				test.check(t, got)
			})
		})
	}
}

func TestStepsThatBreak(t *testing.T) {
	tests := []struct {
		name string
		step sendertest.Step
		is   error
		text string
	}{
		{"reset", sendertest.Reset(), syscall.ECONNRESET, ""},
		{"delayed reset", sendertest.Delay(time.Millisecond, sendertest.Reset()), syscall.ECONNRESET, ""},
		{"close", sendertest.CloseWithoutAnswer(), io.EOF, ""},
		{"garbage", sendertest.Garbage(), nil, "malformed HTTP"},
		{"func that aborts", sendertest.Func(func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}), io.EOF, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			both(t, test.step, func(t *testing.T, got outcome) {
				require.Error(t, got.err)
				require.Zero(t, got.status)
				if test.is != nil {
					require.ErrorIs(t, got.err, test.is)
				}
				require.ErrorContains(t, got.err, test.text)
			})
		})
	}
}

func TestResetEarlyLeavesTheBodyUnread(t *testing.T) {
	ep := sendertest.NewEndpoint(t, sendertest.ResetEarly())
	got := post(t.Context(), ep.Client().Transport, ep.URL(), strings.Repeat("b", 8<<20))
	require.Error(t, got.err)
	require.Len(t, ep.Requests(), 1)
	require.Empty(t, ep.Requests()[0].Body)

	rt := sendertest.NewRoundTripper(sendertest.ResetEarly())
	body := &tracked{Reader: strings.NewReader("body")}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://receiver.test", body)
	require.NoError(t, err)
	_, err = rt.RoundTrip(req)
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.Equal(t, 4, body.Len(), "nothing was read")
	require.True(t, body.closed)
}

type tracked struct {
	*strings.Reader
	closed bool
}

func (b *tracked) Close() error { b.closed = true; return nil }

func TestHeadersBeyondTheTransportsLimitAreRefused(t *testing.T) {
	ep := sendertest.NewEndpoint(t, sendertest.HugeHeaders(128<<10))
	transport := ep.Client().Transport.(*http.Transport)
	transport.MaxResponseHeaderBytes = 64 << 10
	got := post(t.Context(), transport, ep.URL(), "hello")
	require.ErrorContains(t, got.err, "headers exceeded")
}

// Each of these would go on for ever: it ends when the endpoint is closed, or when the
// client leaves.
func lasting() map[string]sendertest.Step {
	return map[string]sendertest.Step{
		"hang":         sendertest.Hang(),
		"delay":        sendertest.Delay(time.Hour, sendertest.Status(200)),
		"drip":         sendertest.Drip(time.Hour, 2),
		"endless":      sendertest.Endless(),
		"slow headers": sendertest.SlowHeaders(time.Hour),
		"func": sendertest.Func(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}),
	}
}

func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	for name, step := range lasting() {
		t.Run(name, func(t *testing.T) {
			ep := sendertest.NewEndpoint(t, step)
			ended := make(chan outcome, 1)
			go func() {
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, ep.URL(), http.NoBody)
				resp, err := ep.Client().Transport.RoundTrip(req)
				if err == nil { // the head came; the body must break off
					defer resp.Body.Close()
					_, err = io.Copy(io.Discard, resp.Body)
				}
				ended <- outcome{err: err}
			}()
			_, err := ep.WaitFor(t.Context(), 1)
			require.NoError(t, err)

			ep.Close()
			requireGone(t, "sendertest.(*Endpoint)", "net/http.(*conn).serve")
			require.Error(t, (<-ended).err)
			require.ErrorIs(t, post(t.Context(), http.DefaultTransport, ep.URL(), "").err, syscall.ECONNREFUSED, "a closed endpoint refuses")
			ep.Close() // harmless
		})
	}
}

// Many endpoints are closed. Then the test asks for enough new ports that it would get
// some of theirs.
func TestClosedEndpointLeavesItsPortToNobody(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("only Linux lets a port be kept")
		return
	}
	closed := map[string]bool{}
	for range 300 {
		ep := sendertest.NewEndpoint(t)
		ep.Close()
		closed[ep.URL()] = true
	}
	for range 2000 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		require.NoError(t, l.Close())
		require.False(t, closed["http://"+l.Addr().String()], l.Addr())
	}
}

func TestClientThatLeavesEndsTheStep(t *testing.T) {
	for name, step := range lasting() {
		if name == "slow headers" {
			// It learns that the client has left when it writes its next byte.
			step = sendertest.SlowHeaders(time.Millisecond)
		}
		t.Run(name, func(t *testing.T) {
			ep := sendertest.NewEndpoint(t, step)
			ctx, leave := context.WithCancel(t.Context())
			go func() {
				_, _ = ep.WaitFor(ctx, 1)
				leave()
			}()
			_ = post(ctx, ep.Client().Transport, ep.URL(), "hello")
			requireGone(t, "sendertest.(*Endpoint).serve")
		})
	}
}

func TestCloseEndsAStepThatHasTakenTheConnectionOver(t *testing.T) {
	ep := sendertest.NewEndpoint(t, sendertest.SlowHeaders(time.Hour))
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(ep.URL(), "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
	require.NoError(t, err)
	first := make([]byte, 1)
	_, err = io.ReadFull(conn, first)
	require.NoError(t, err)
	require.Equal(t, "H", string(first))

	ep.Close()
	rest, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Empty(t, rest)
}

// requireGone waits for the last goroutine that runs any of the functions.
func requireGone(t *testing.T, functions ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		buf := make([]byte, 1<<20)
		stacks := string(buf[:runtime.Stack(buf, true)])
		return !slices.ContainsFunc(functions, func(f string) bool { return strings.Contains(stacks, f) })
	}, 10*time.Second, time.Millisecond, "still running: %v", functions)
}

func TestScript(t *testing.T) {
	rt := sendertest.NewRoundTripper()
	next := func() int { return post(t.Context(), rt, "http://receiver.test", "").status }

	require.Equal(t, []int{200, 200}, []int{next(), next()}, "without a step")
	rt.Append(sendertest.Status(500), sendertest.Status(201))
	require.Equal(t, []int{500, 201, 201}, []int{next(), next(), next()}, "in order, and the last repeats")
	rt.Append(sendertest.Status(400), sendertest.Status(410))
	require.Equal(t, []int{400}, []int{next()}, "a repeated step gives way")
	rt.Append(sendertest.Status(202))
	require.Equal(t, []int{410, 202}, []int{next(), next()}, "steps not played come first")
	rt.Set(sendertest.Status(503))
	require.Equal(t, []int{503, 503}, []int{next(), next()})
	rt.Set()
	require.Equal(t, []int{200}, []int{next()})
}

func TestRequestsAreRecordedAndCopied(t *testing.T) {
	before := time.Now()
	ep := sendertest.NewEndpoint(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, ep.URL()+"/hooks/a%20b?x=1", strings.NewReader("payload"))
	require.NoError(t, err)
	req.Header["X-Twice"] = []string{"one", "two"}
	resp, err := ep.Client().Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())

	got := ep.Requests()[0]
	require.Equal(t, "PUT", got.Method)
	require.Equal(t, ep.URL()+"/hooks/a%20b?x=1", got.URL.String())
	require.Equal(t, "/hooks/a b", got.URL.Path)
	require.Equal(t, []string{"one", "two"}, got.Header["X-Twice"])
	require.Equal(t, "payload", string(got.Body))
	require.WithinRange(t, got.ReceivedAt, before, time.Now())

	got.Body[0], got.Header["X-Twice"][0], got.URL.Path = '!', "changed", "/"
	require.Equal(t, "payload", string(ep.Requests()[0].Body))
	require.Equal(t, "one", ep.Requests()[0].Header["X-Twice"][0])
	require.Equal(t, "/hooks/a b", ep.Requests()[0].URL.Path)
}

func TestWaitForSaysHowManyCame(t *testing.T) {
	ep := sendertest.NewEndpoint(t)
	require.NoError(t, post(t.Context(), ep.Client().Transport, ep.URL(), "").err)
	why := errors.New("enough waited")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(why)
	got, err := ep.WaitFor(ctx, 3)
	require.ErrorIs(t, err, why)
	require.ErrorContains(t, err, "1 of 3 requests")
	require.Len(t, got, 1)
}

func TestRequestsAtOnce(t *testing.T) {
	ep := sendertest.NewEndpoint(t)
	var clients sync.WaitGroup
	for range 20 {
		clients.Go(func() { post(t.Context(), ep.Client().Transport, ep.URL(), "x") })
	}
	got, err := ep.WaitFor(t.Context(), 20)
	clients.Wait()
	require.NoError(t, err)
	require.Len(t, got, 20)
}

func TestStepsThatCannotBe(t *testing.T) {
	tests := []struct {
		name string
		step sendertest.Step
		says string
	}{
		{"zero", sendertest.Step{}, "zero Step"},
		{"status below", sendertest.Status(199), "from 200 to 599"},
		{"status above", sendertest.Status(600), "from 200 to 599"},
		{"drip", sendertest.Drip(time.Second, -1), "0 or more"},
		{"func", sendertest.Func(nil), "needs a handler"},
		{"delayed", sendertest.Delay(time.Second, sendertest.Status(0)), "from 200 to 599"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rt := sendertest.NewRoundTripper(test.step)
			require.ErrorContains(t, post(t.Context(), rt, "http://receiver.test", "").err, test.says)

			told := &toldTB{TB: t}
			ep := sendertest.NewEndpoint(told, test.step)
			require.Error(t, post(t.Context(), ep.Client().Transport, ep.URL(), "").err)
			ep.Close()
			require.Contains(t, told.errors, test.says)
		})
	}
}

// toldTB keeps the messages with which a test would have failed.
type toldTB struct {
	testing.TB
	errors string
}

func (t *toldTB) Error(args ...any) { t.errors += args[0].(error).Error() }

func TestTimesInABubble(t *testing.T) {
	tests := []struct {
		name  string
		step  sendertest.Step
		takes time.Duration
	}{
		{"delay", sendertest.Delay(time.Hour, sendertest.Delay(time.Minute, sendertest.Status(200))), time.Hour + time.Minute},
		{"drip", sendertest.Drip(time.Minute, 7), 7 * time.Minute},
		{"slow headers", sendertest.SlowHeaders(time.Second), 56 * time.Second},
		{"func", sendertest.Func(func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second) }), time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, rt := time.Now(), sendertest.NewRoundTripper(test.step)
				got := post(t.Context(), rt, "http://receiver.test", "hello")
				require.NoError(t, got.err)
				require.Equal(t, 200, got.status)
				require.Equal(t, test.takes, time.Since(start))
				require.Equal(t, start, rt.Requests()[0].ReceivedAt)
			})
		})
	}
}

func TestDeadlineInABubble(t *testing.T) {
	steps := lasting()
	delete(steps, "endless") // it never waits
	delete(steps, "func")    // a handler's answer, however late, is its own affair
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, rt := time.Now(), sendertest.NewRoundTripper(step)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				got := post(ctx, rt, "http://receiver.test", "hello")
				require.ErrorIs(t, got.err, context.DeadlineExceeded)
				require.Equal(t, 10*time.Second, time.Since(start))
			})
		})
	}
}

func TestWaitForInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := sendertest.NewRoundTripper()
		go func() {
			for range 3 {
				time.Sleep(time.Hour)
				_ = post(t.Context(), rt, "http://receiver.test", "")
			}
		}()
		start := time.Now()
		got, err := rt.WaitFor(t.Context(), 3)
		require.NoError(t, err)
		require.Len(t, got, 3)
		require.Equal(t, 3*time.Hour, time.Since(start))
	})
}

func TestInProcessTripHonoursTheContextOfARequest(t *testing.T) {
	rt := sendertest.NewRoundTripper(sendertest.Answer(200, nil, "body"))
	why := errors.New("given up")
	ctx, stop := context.WithCancelCause(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://receiver.test", http.NoBody)
	require.NoError(t, err)
	resp, err := rt.RoundTrip(req)
	require.NoError(t, err)
	require.Same(t, req, resp.Request)
	stop(why)
	_, err = io.ReadAll(resp.Body)
	require.ErrorIs(t, err, why, "a body cannot be read once the context has ended")
	require.NoError(t, resp.Body.Close())

	_, err = rt.RoundTrip(req)
	require.ErrorIs(t, err, why)
	require.Len(t, rt.Requests(), 1, "a request that was over before it began is not one received")
}
