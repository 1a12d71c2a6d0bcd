package main_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/porttest"
	"github.com/surehook/surehook/signing"
)

// verified ends the test unless a receiver takes the request.
func verified(t *testing.T, text string, r received) {
	t.Helper()
	s, err := signing.ParseSecret(text)
	require.NoError(t, err)
	keys, err := signing.NewKeyring(signing.Key{Secret: s})
	require.NoError(t, err)
	v, err := signing.NewVerifier(keys, nil)
	require.NoError(t, err)
	_, err = v.Verify(signing.Message{Method: http.MethodPost, URL: "/", Header: r.header, Body: r.body})
	require.NoError(t, err)
}

// types are the types of the events that an endpoint got.
func (e *endpoint) types(t *testing.T) (all []string) {
	t.Helper()
	for _, r := range e.received() {
		var event struct{ Type string }
		require.NoError(t, json.Unmarshal(r.body, &event))
		all = append(all, event.Type)
	}
	return all
}

var cursorLine = regexp.MustCompile(`-from (\S+)\n`)

// The feed is read through the server, or on its database; from now on, from where the run
// before has ended, or from the beginning.
func TestListen(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		u := operator(t, p)
		u.does("trigger", "order.created")
		for name, source := range map[string][]string{"server": nil, "database": {"-database", p.flag}} {
			t.Run(name, func(t *testing.T) {
				u := &user{t, u.dir, u.env}
				e := newEndpoint(t, http.StatusServiceUnavailable)
				listen := append([]string{"listen", "-to", e.URL, "-types", "invoice.*,customer.updated"}, source...)

				l := launch(t, u.command(listen...))
				l.says(t, "Ctrl-C ends\n")
				u.does("trigger", "invoice.paid")
				u.does("trigger", "order.created")
				u.does("trigger", "customer.updated")
				l.says(t, "customer.updated customer/cus_1")
				said, code := l.interrupt(t)
				require.Zero(t, code, said)
				require.Equal(t, []string{"invoice.paid", "invoice.paid", "customer.updated"}, e.types(t))
				require.Contains(t, said, "→ 503 in")
				require.Contains(t, said, "(attempt 1, again in 1s)")
				require.Contains(t, said, "(attempt 2)\n")
				require.Contains(t, said, "ended: 2 delivered, 0 passed over\n")
				made := regexp.MustCompile(`whsec_\S+`).FindString(said)
				for i, r := range e.received() {
					verified(t, made, r)
					require.Equal(t, []string{"1", "2", "1"}[i], r.header.Get("Webhook-Attempt"))
				}
				cursor := cursorLine.FindStringSubmatch(said)[1]

				u.does("trigger", "invoice.payment_failed")
				again := newEndpoint(t)
				u.env = append(u.env, "WEBHOOK_SECRET="+secret)
				l = launch(t, u.command(append(listen, "-to", again.URL, "-from", cursor)...))
				said = l.says(t, "invoice.payment_failed")
				require.Contains(t, said, "signed with the secret of WEBHOOK_SECRET\n")
				require.NotContains(t, said, secret)
				require.Equal(t, []string{"invoice.payment_failed"}, again.types(t))
				verified(t, secret, again.received()[0])
				l.interrupt(t)

				all := newEndpoint(t)
				l = launch(t, u.command(append(listen, "-to", all.URL, "-types", "*", "-from", "beginning")...))
				l.says(t, "invoice.payment_failed")
				require.Equal(t, "order.created", all.types(t)[0])
				l.interrupt(t)
			})
		}
	})
}

// Names under localhost are this machine, for any resolver and any proxy.
func TestListenToNamesUnderLocalhost(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	u := operator(t, place{flag: path})
	u.does("trigger", "invoice.paid")
	e := newEndpoint(t)
	named := func(url, name string) string { return strings.Replace(url, "127.0.0.1", name+".localhost", 1) }
	u.env = append(u.env, named(u.env[0], "sender"), "HTTP_PROXY=http://"+porttest.Refusing(t))

	l := launch(t, u.command("listen", "-from", "beginning", "-to", named(e.URL, "app")))
	l.says(t, "→ 200 in")
	l.interrupt(t)
	require.Equal(t, []string{"invoice.paid"}, e.types(t))
}

// An event that an interruption leaves undone comes again, and none before it.
func TestListenIsInterruptedWithinAPage(t *testing.T) {
	t.Parallel()
	u := operator(t, place{flag: t.TempDir() + "/test.db"})
	for _, one := range []string{"invoice.paid", "order.created", "customer.updated"} {
		u.does("trigger", one)
	}
	e := newEndpoint(t, 200, 500)
	l := launch(t, u.command("listen", "-to", e.URL, "-from", "beginning", "-json"))
	l.says(t, `"attempt":1,"status_code":500`)
	said, code := l.interrupt(t)
	require.Zero(t, code, said)
	lines := strings.Split(strings.TrimSpace(said), "\n")
	var end struct {
		Kind, Cursor string
		Delivered    int
	}
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &end))
	require.Equal(t, "end", end.Kind)
	require.Equal(t, 1, end.Delivered)

	rest := newEndpoint(t)
	l = launch(t, u.command("listen", "-to", rest.URL, "-from", end.Cursor))
	l.says(t, "customer.updated")
	l.interrupt(t)
	require.Equal(t, []string{"order.created", "customer.updated"}, rest.types(t))
}

// An attempt that is on the wire ends, and listen says that it waits for it. One that
// fails is not made again.
func TestListenIsInterruptedWithinAnAttempt(t *testing.T) {
	t.Parallel()
	u := operator(t, place{flag: t.TempDir() + "/test.db"})
	u.does("trigger", "invoice.paid")
	asked, answer := make(chan struct{}, 5), make(chan int)
	e := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // until then nobody looks whether the client is there
		asked <- struct{}{}
		select {
		case status := <-answer:
			w.WriteHeader(status)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(e.Close)
	for status, says := range map[int][]string{200: {"→ 200 in", "ended: 1 delivered, 0 passed over\n"}, 500: {" (attempt 1)\n", "ended: 0 delivered, 0 passed over\n"}} {
		l := launch(t, u.command("listen", "-to", e.URL, "-from", "beginning"))
		<-asked
		require.NoError(t, l.cmd.Process.Signal(syscall.SIGINT))
		l.says(t, "ending: waiting for the endpoint's answer, for up to 10s")
		answer <- status
		<-l.done
		require.Zero(t, l.cmd.ProcessState.ExitCode(), l.text())
		for _, words := range says {
			require.Contains(t, l.text(), words)
		}
	}
}

func TestListenPassesOver(t *testing.T) {
	t.Parallel()
	u := operator(t, place{flag: t.TempDir() + "/test.db"})
	u.does("trigger", "invoice.paid")
	u.does("trigger", "order.created")
	e := newEndpoint(t, 500)
	l := launch(t, u.command("listen", "-to", e.URL, "-from", "beginning", "-attempts", "1"))
	l.says(t, "order.created")
	said, code := l.interrupt(t)
	require.Zero(t, code)
	require.Contains(t, said, "(attempt 1, the last: passed over)\n")
	require.Contains(t, said, "ended: 1 delivered, 1 passed over\n")
}

// A cursor of another database, or of one that was restored, is expired: what follows it
// is not there.
func TestListenWithAnExpiredCursor(t *testing.T) {
	t.Parallel()
	busy, fresh := operator(t, place{flag: t.TempDir() + "/test.db"}), operator(t, place{flag: t.TempDir() + "/test.db"})
	for range 3 {
		busy.does("trigger", "invoice.paid")
	}
	fresh.does("trigger", "order.created")
	e := newEndpoint(t)
	l := launch(t, busy.command("listen", "-to", e.URL, "-from", "beginning"))
	l.says(t, "version 3")
	said, _ := l.interrupt(t)
	cursor := cursorLine.FindStringSubmatch(said)[1]

	a := fresh.run("listen", "-to", e.URL, "-from", cursor, "-stop-if-expired")
	require.Equal(t, 1, a.code)
	require.Contains(t, a.errs, "the cursor has expired: events that follow it are not kept any more")
	a = fresh.run("listen", "-to", e.URL, "-from", cursor, "-stop-if-expired", "-json")
	require.Equal(t, 1, a.code)
	require.Contains(t, a.out, `{"kind":"expired","cursor":"`)
	l = launch(t, fresh.command("listen", "-to", e.URL, "-from", cursor))
	l.says(t, "order.created")
	said, code := l.interrupt(t)
	require.Zero(t, code)
	require.Contains(t, said, "the cursor has expired")
}

func TestListenRefuses(t *testing.T) {
	t.Parallel()
	u := operator(t, place{flag: t.TempDir() + "/test.db"})
	for _, test := range []struct {
		code int
		says string
		args []string
	}{
		{2, "where to?", nil},
		{2, "is not this machine", []string{"-to", "http://example.com/"}},
		{2, "-to must be like", []string{"-to", "localhost:3000", "-any-host"}},
		{2, "-to must be like", []string{"-to", "localhost:3000"}},
		{2, "-from is empty", []string{"-to", "http://localhost/", "-from", ""}},
		{2, "-attempts is -1", []string{"-to", "http://localhost/", "-attempts", "-1"}},
		{2, "-timeout is 0s", []string{"-to", "http://localhost/", "-timeout", "0s"}},
		{2, "-types has", []string{"-to", "http://localhost/", "-types", "a,,b"}},
		{1, "-from must be now, beginning or a cursor", []string{"-to", "http://localhost/", "-from", "yesterday"}},
		{2, "-subscriber is for a -database", []string{"-to", "http://localhost/", "-subscriber", "sub_a"}},
		{2, "refused", []string{"-to", "http://localhost/", "-server", "http://" + porttest.Refusing(t)}},
		{2, "would send the token unencrypted", []string{"-to", "http://localhost/", "-server", "http://example.com"}},
	} {
		a := u.run(append([]string{"listen"}, test.args...)...)
		require.Equal(t, test.code, a.code, "%v: %s", test.args, a.errs)
		require.Contains(t, a.errs, test.says)
		require.Empty(t, a.out)
	}
	u.env[1] = "SUREHOOK_TOKEN=another-token"
	a := u.run("listen", "-to", "http://localhost/")
	require.Equal(t, 1, a.code)
	require.Contains(t, a.errs, "refuses the token")
}
