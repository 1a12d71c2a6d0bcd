package catchup_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/receiver/catchup"
)

const goodPage = `{"data":[ {"id":"evt_1", "data":{ "a":"<b>" }} ],"next_cursor":"c2"}`

func newClient(t *testing.T, h http.HandlerFunc, cfg catchup.ClientConfig) *catchup.Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	cfg.AllowUnencrypted = true
	c, err := catchup.NewClient(server.URL+"/events?tenant=a", &cfg)
	require.NoError(t, err)
	return c
}

func answer(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestClientAsks(t *testing.T) {
	tokens := []string{"first", "second"}
	var asked []string
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String()+" "+r.Header.Get("Authorization")+" "+r.Header.Get("Accept-Encoding"))
		answer(200, "application/json; charset=utf-8", goodPage)(w, r)
	}, catchup.ClientConfig{Token: func(context.Context) (token string, err error) {
		token, tokens = tokens[0], tokens[1:]
		return token, nil
	}})
	p, err := c.Page(t.Context(), "", 7, 0)
	require.NoError(t, err)
	require.Equal(t, "c2", p.Next)
	require.Len(t, p.Events, 1)
	require.Equal(t, `{"id":"evt_1", "data":{ "a":"<b>" }}`, string(p.Events[0]), "the bytes as they are")
	_, err = c.Page(t.Context(), "c&1=", 200, 1500*time.Millisecond)
	require.NoError(t, err)
	require.Equal(t, []string{
		"GET /events?limit=7&tenant=a Bearer first identity",
		"GET /events?after=c%261%3D&limit=200&tenant=a&wait=1 Bearer second identity",
	}, asked)
}

func TestClientRefuses(t *testing.T) {
	gzipped := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, goodPage)
		_ = z.Close()
	}
	redirect := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			answer(200, "application/json", goodPage)(w, r)
			return
		}
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}
	brokenOff := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, goodPage)
	}
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		says   string
	}{
		{"compressed", gzipped, "compressed"},
		{"a redirect", redirect, "302"},
		{"broken off", brokenOff, "reading the answer"},
		{"HTML", answer(200, "text/html", "<html>"), "no JSON"},
		{"no JSON", answer(200, "application/json", "{"), "no page"},
		{"no data", answer(200, "application/json", `{"next_cursor":"c"}`), "no page"},
		{"null data", answer(200, "application/json", `{"data":null,"next_cursor":"c"}`), "no page"},
		{"no cursor", answer(200, "application/json", `{"data":[]}`), "no page"},
		{"two values", answer(200, "application/json", goodPage+goodPage), "no page"},
		{"another 410", answer(410, "application/problem+json", `{"type":"gone","detail":"for ever"}`), "410: for ever"},
		{"a long detail", answer(500, "application/problem+json", `{"detail":"`+strings.Repeat("é", 5000)+`"}`), "500: é"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := newClient(t, c.answer, catchup.ClientConfig{}).Page(t.Context(), "", 1, 0)
			require.ErrorContains(t, err, c.says)
			require.Less(t, len(err.Error()), 300)
			require.NotErrorIs(t, err, catchup.ErrExpired)
		})
	}
}

func TestClientReadsRefusals(t *testing.T) {
	c := newClient(t, answer(410, "application/problem+json", `{"type":"https://x/cursor-expired","next_cursor":"c9"}`), catchup.ClientConfig{})
	_, err := c.Page(t.Context(), "c1", 1, 0)
	var expired *catchup.ExpiredError
	require.ErrorAs(t, err, &expired)
	require.ErrorIs(t, err, catchup.ErrExpired)
	require.Equal(t, "c9", expired.Next)

	c = newClient(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		answer(503, "text/plain", "away")(w, r)
	}, catchup.ClientConfig{})
	_, err = c.Page(t.Context(), "", 1, 0)
	var status *catchup.StatusError
	require.ErrorAs(t, err, &status)
	require.Equal(t, catchup.StatusError{Status: 503, RetryAfter: 7 * time.Second}, *status)

	c = newClient(t, answer(200, "application/json", goodPage), catchup.ClientConfig{MaxPageBytes: int64(len(goodPage)) - 1})
	_, err = c.Page(t.Context(), "", 1, 0)
	require.ErrorIs(t, err, catchup.ErrPageTooLarge)
	c = newClient(t, answer(200, "application/json", goodPage), catchup.ClientConfig{MaxPageBytes: int64(len(goodPage))})
	_, err = c.Page(t.Context(), "", 1, 0)
	require.NoError(t, err)
}

// The cursor behind an event that is too large is known only if the page is well-formed and
// has only this event.
func TestClientFindsTheWayBehindAnEvent(t *testing.T) {
	long := strings.Repeat(`\\\"\u00e9`, 1000) + strings.Repeat(" ", 10_000)
	for _, c := range []struct{ name, body, next, says string }{
		{"one event", `{"data":[{"id":"evt_1","` + long + `":["` + long + `x", {"n":` + strings.Repeat("1", 9000) + `}]}] , "next_cursor" : "a\u0062"}` + long[len(long)-5000:], "ab", ""},
		{"the cursor first", `{"next_cursor":"c","data":["` + long + `"],"other":[[],{"data":[]}]}`, "c", ""},
		{"two events", `{"data":["` + long + `",2],"next_cursor":"c"}`, "", "2 events"},
		{"no event", `{"data":[],"x":"` + long + `","next_cursor":"c"}`, "", "0 events"},
		{"data twice", `{"data":["` + long + `"],"Data":[1],"next_cursor":"c"}`, "", "another case"},
		{"a cursor that is none", `{"data":["` + long + `"],"next_cursor":7}`, "", "cursor of 0 bytes"},
		{"a cursor that is too long", `{"data":["` + long + `"],"next_cursor":"` + strings.Repeat(`\n`, 5000) + `"}`, "", "4096"},
		{"no end", `{"data":["` + long + `"],"next_cursor":"c"`, "", "EOF"},
		{"the same name twice", `{"data":["` + long + `"],"data":["x"],"next_cursor":"c"}`, "", "twice"},
		{"the cursor twice", `{"next_cursor":"b","data":["` + long + `"],"next_cursor":"c"}`, "", "twice"},
		{"no events at all", `{"next_cursor":"c","other":"` + long + `"}`, "", "0 events"},
		{"more behind it", `{"data":["` + long + `"],"next_cursor":"c"}{}`, "", "something follows"},
		{"no list", `{"data":"` + long + `","next_cursor":"c"}`, "", "no ["},
		{"no JSON", `{"data":[` + long + `],"next_cursor":"c"}`, "", "invalid"},
		{"a list of lists without end", `{"data":[` + strings.Repeat("[", 20_000) + `],"next_cursor":"c"}`, "", "nested"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := newClient(t, answer(200, "application/json", c.body), catchup.ClientConfig{MaxPageBytes: 100})
			_, err := client.Page(t.Context(), "", 1, 0)
			var large *catchup.PageTooLargeError
			require.ErrorAs(t, err, &large)
			require.ErrorIs(t, err, catchup.ErrPageTooLarge)
			require.Equal(t, c.next, large.Next, err)
			require.ErrorContains(t, err, "100 bytes")
			require.ErrorContains(t, err, c.says)
			require.Less(t, len(err.Error()), 300)

			_, err = client.Page(t.Context(), "", 2, 0)
			require.ErrorIs(t, err, catchup.ErrPageTooLarge)
			require.NotErrorAs(t, err, &large, "fewer can be asked for")
		})
	}
}

// Little of an event is ever in memory, however large it is.
func TestClientKeepsNothingOfALargeEvent(t *testing.T) {
	const size = 1 << 20
	for name, filler := range map[string]string{"a string": "x", "white space": " ", "small values": "1,"} {
		head, tail := `{"data":[["`, `"]],"next_cursor":"c"}`
		if name != "a string" {
			head, tail = `{"data":[[`, `1]],"next_cursor":"c"}`
		}
		page := io.MultiReader(strings.NewReader(head), io.LimitReader(repeating(filler), size), strings.NewReader(tail))
		client, err := catchup.NewClient("https://sender.example/events", &catchup.ClientConfig{MaxPageBytes: 100, Transport: answering(func(*http.Request) *http.Response {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(page)}
		})})
		require.NoError(t, err)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		_, err = client.Page(t.Context(), "", 1, 0)
		runtime.ReadMemStats(&after)
		var large *catchup.PageTooLargeError
		require.ErrorAs(t, err, &large)
		require.Equal(t, "c", large.Next, name)
		if name != "small values" { // each read is garbage at once
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(size/4), name)
		}
	}
}

// repeating is an endless text, as long as the size of each read is a multiple of its
// length.
type repeating string

func (r repeating) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r[i%len(r)]
	}
	return len(p), nil
}

func TestClientTellsNoSecret(t *testing.T) {
	c, err := catchup.NewClient("http://127.0.0.1:1/events?key=hidden1", &catchup.ClientConfig{AllowUnencrypted: true, Token: catchup.Token("hidden2")})
	require.NoError(t, err)
	_, err = c.Page(t.Context(), "hidden3", 1, 0)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hidden")
	c, err = catchup.NewClient("http://127.0.0.1:1/events", &catchup.ClientConfig{AllowUnencrypted: true, Token: func(context.Context) (string, error) { return "", errBroken }})
	require.NoError(t, err)
	_, err = c.Page(t.Context(), "", 1, 0)
	require.True(t, errors.Is(err, errBroken))
}

func TestNewClient(t *testing.T) {
	for url, says := range map[string]string{
		"": "absolute", "/events": "absolute", "http://sender.example/events": "https", "ftp://sender.example/": "https",
		"https://a:hidden@sender.example/": "user info", "https://%zz": "absolute",
	} {
		_, err := catchup.NewClient(url, nil)
		require.ErrorContains(t, err, says, url)
		require.NotContains(t, err.Error(), "hidden")
	}
	_, err := catchup.NewClient("x", &catchup.ClientConfig{MaxPageBytes: -1})
	require.ErrorContains(t, err, "absolute")
	require.ErrorContains(t, err, "MaxPageBytes")
	_, err = catchup.NewClient("https://sender.example/events", nil)
	require.NoError(t, err)
}
