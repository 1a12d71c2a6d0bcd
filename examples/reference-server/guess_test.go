package main_test

import (
	"net/http"
	"net/url"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// A visitor who tries tokens at the page for signing in is slowed down, and nobody else is.
func TestGuessingIsSlow(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-workers=false")
		v := s.visitor()
		guess := func(token, from string) (*http.Response, string) {
			return v.ask(http.MethodPost, "/console/login", url.Values{"token": {token}}, "X-Forwarded-For", "203.0.113.1, "+from)
		}
		eventually(t, "too many", func() int {
			res, page := guess("wrong-token-of-somebody", "198.51.100.7")
			if res.StatusCode == http.StatusTooManyRequests {
				require.Contains(t, page, "Too many wrong tokens")
				after, err := strconv.Atoi(res.Header.Get("Retry-After"))
				require.NoError(t, err)
				require.Positive(t, after)
			}
			return res.StatusCode
		}, func(status int) bool { return status == http.StatusTooManyRequests })
		// Not even the right one is looked at now, from there.
		for _, from := range []string{"198.51.100.8", "2001:db8::1", "nonsense"} {
			res, _ := guess(operatorToken, from)
			require.Equal(t, http.StatusOK, res.StatusCode, "who has the token is let in from elsewhere")
		}
		for range 20 {
			res, _ := guess(operatorToken, "198.51.100.9")
			require.Equal(t, http.StatusOK, res.StatusCode, "right ones do not count")
		}
	})
}

// The console refuses whatever it cannot take as text, and changes nothing.
func TestConsoleRefusesNUL(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-workers=false")
		c := s.customer("c")
		id := s.subscribe(c.token, "https://hooks.example.com/")
		v := s.visitor()
		v.signIn("")
		before := dump(t, p)
		for path, form := range map[string]url.Values{
			"/console/subscriptions/" + id + "/disable": {"reason": {"a\x00b"}}, "/console/replays": {"status": {"dead_lettered"}, "reason": {"a\x00b"}},
		} {
			res, page := v.ask(http.MethodPost, path, form)
			require.Equal(t, http.StatusUnprocessableEntity, res.StatusCode, path)
			require.Contains(t, page, "NUL")
		}
		res, _ := v.ask(http.MethodGet, "/console/deliveries?event=a%00b", nil)
		require.Equal(t, http.StatusBadRequest, res.StatusCode)
		require.Equal(t, before, dump(t, p))
	})
}
