//go:build linux

package main_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/servertest"
)

// deploy/nginx.conf, with other ports and certificates, stands before the server as it is.
func TestBehindNginx(t *testing.T) {
	t.Parallel()
	s := start(t, place{flag: filepath.Join(t.TempDir(), "test.db")})
	web := servertest.New(t, "nginx")
	authority := servertest.NewAuthority(t)
	certificate, key := authority.Issue()
	clear, secure := web.Port(), web.Port()
	text, err := os.ReadFile("deploy/nginx.conf")
	require.NoError(t, err)
	conf := string(text)
	for _, change := range [][2]string{
		{"127.0.0.1:8080", strings.TrimPrefix(s.base, "http://")}, {"listen 80;", fmt.Sprintf("listen 127.0.0.1:%d;", clear)},
		{"listen 443 ssl", fmt.Sprintf("listen 127.0.0.1:%d ssl", secure)},
		{"/etc/ssl/hooks.example.com.pem", web.Write("server.pem", certificate, nil)}, {"/etc/ssl/hooks.example.com.key", web.Write("server.key", key, nil)},
	} {
		require.Equal(t, 1, strings.Count(conf, change[0]), change[0])
		conf = strings.Replace(conf, change[0], change[1], 1)
	}
	web.Write("surehook.conf", conf, nil)
	web.Write("nginx.conf", `error_log error.log; pid nginx.pid; events {}
http {
	access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
	include surehook.conf;
}`, nil)
	web.Start("-p", web.Folder, "-c", "nginx.conf", "-e", "error.log", "-g", "daemon off;")

	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority.Pool()}, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	to := &process{t: t, client: client, base: fmt.Sprintf("https://127.0.0.1:%d", secure)}
	moved := (&process{t: t, client: client, base: fmt.Sprintf("http://127.0.0.1:%d", clear)}).get("", "/healthz?x=1")
	require.Equal(t, http.StatusPermanentRedirect, moved.status)
	require.Equal(t, "https://127.0.0.1/healthz?x=1", moved.header.Get("Location"))

	to.get("", "/healthz").is(http.StatusOK)
	require.NotEmpty(t, to.get("", "/healthz").header.Get("Strict-Transport-Security"))
	for _, inside := range []string{"/metrics", "/readyz"} {
		require.Equal(t, http.StatusNotFound, to.get(operatorToken, inside).status)
	}
	c := to.customer("c")
	to.post(c.token, "/subscriptions", `{"url":"`+strings.Repeat("x", 2<<20)+`"}`).refused(http.StatusRequestEntityTooLarge)

	// An answer that is held open comes through.
	cursor := to.get(operatorToken, "/events?limit=200").is(http.StatusOK)["next_cursor"].(string)
	held := make(chan *reply, 1)
	go func() {
		held <- to.get(operatorToken, "/events?wait=30&after="+url.QueryEscape(cursor))
	}()
	to.patch(operatorToken, "/subscribers/"+c.id, object{"name": "d"}).is(http.StatusOK)
	require.NotEmpty(t, (<-held).is(http.StatusOK)["data"])

	// The server knows that it was https, and nobody says who they are.
	v := to.visitor()
	v.client.Transport = client.Transport
	v.client.CheckRedirect = client.CheckRedirect
	res, _ := v.signIn("")
	require.Equal(t, http.StatusSeeOther, res.StatusCode)
	require.Contains(t, res.Header.Get("Set-Cookie"), "; Secure")
	n := 0
	eventually(t, "too many wrong tokens", func() int {
		n++
		res, _ := v.ask(http.MethodPost, "/console/login", url.Values{"token": {"wrong-token-of-somebody"}}, "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", n%250))
		return res.StatusCode
	}, func(status int) bool { return status == http.StatusTooManyRequests })
}
