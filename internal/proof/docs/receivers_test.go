//go:build linux

package docs_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/surehook/surehook/internal/servertest"
	"github.com/surehook/surehook/receiver/receivertest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/challenge"
	"github.com/surehook/surehook/signing"
)

const withoutGo = "docs/receiving-without-go.md"

// receivers are the programs of the page, by the file's name, and how each is started.
// PHP displays errors here whatever this machine's php.ini says, as it does without one.
var receivers = map[string]struct {
	interpreter string
	args        func(s *servertest.Server, file string, port int) []string
}{
	"receiver.mjs": {interpreter: "node", args: func(_ *servertest.Server, file string, _ int) []string { return []string{file} }},
	"express.mjs":  {"node", func(_ *servertest.Server, file string, _ int) []string { return []string{file} }},
	"receiver.py":  {"python3", func(_ *servertest.Server, file string, _ int) []string { return []string{"-u", file} }},
	"webhooks.php": {"php", func(_ *servertest.Server, file string, port int) []string {
		return []string{"-d", "display_errors=1", "-S", fmt.Sprintf("127.0.0.1:%d", port), file}
	}},
	"config.ru": {"ruby", func(s *servertest.Server, file string, _ int) []string {
		return []string{s.Write("rack.rb", rack, nil), file}
	}},
}

// rack stands in for Puma: it serves a Rack application, in one process or in WORKERS, each
// of which takes one request at a time. No file may have more than LARGEST_FILE bytes.
const rack = `
require 'socket'
require 'stringio'
def run(app) = $app = app
load ARGV.fetch(0)
server = TCPServer.new('127.0.0.1', Integer(ENV.fetch('PORT')))
if ENV['LARGEST_FILE']
  trap('XFSZ', 'IGNORE')
  Process.setrlimit(:FSIZE, Integer(ENV['LARGEST_FILE']))
end
(Integer(ENV.fetch('WORKERS', '1')) - 1).times { fork or break }
loop do
  client = server.accept
  line = client.gets or next client.close
  method, path = line.split
  env = { 'REQUEST_METHOD' => method, 'PATH_INFO' => path }
  while (line = client.gets.chomp) != ''
    name, value = line.split(': ', 2)
    env['HTTP_' + name.upcase.tr('-', '_')] = value
  end
  env['rack.input'] = StringIO.new(client.read(env.fetch('HTTP_CONTENT_LENGTH', '0').to_i))
  status, headers, body = begin
    $app.call(env)
  rescue => e
    warn e.full_message
    [500, {}, ['failed']]
  end
  body = body.join
  client.write("HTTP/1.1 #{status} x\r\n", headers.map { |n, v| "#{n}: #{v}\r\n" }.join, "Content-Length: #{body.bytesize}\r\nConnection: close\r\n\r\n", body)
  client.close
end
`

// express stands in for Express 4, which heeds no promise that a handler returns. The rest
// of the program is the page's one for Node.
const express = `
const express = { raw: () => async (req, res, next) => {
  const parts = []
  for await (const part of req) parts.push(part)
  req.body = Buffer.concat(parts)
  res.status = status => { res.statusCode = status; return res }
  res.send = body => res.end(typeof body === 'string' ? body : JSON.stringify(body))
  if (req.body.length > maxBody) return res.status(413).send('too large')
  next()
} }
const app = { post: (path, first, second) => createServer((req, res) => first(req, res, () => second(req, res))).listen(Number(process.env.PORT), '127.0.0.1') }
`

// programText returns the text of a receiver's file.
func programText(t *testing.T, file string) string {
	t.Helper()
	text := named(t, withoutGo, "run", file).text
	if file == "express.mjs" {
		parts, _, found := strings.Cut(named(t, withoutGo, "run", "receiver.mjs").text, "createServer(async")
		require.True(t, found)
		text = parts + express + text
	}
	return text
}

// foreign is a running receiver of the page.
type foreign struct {
	t   *testing.T
	url string
}

func startReceiver(t *testing.T, file string, secrets ...signing.Secret) *foreign {
	t.Helper()
	var texts []string
	for _, secret := range secrets {
		texts = append(texts, secret.Reveal())
	}
	t.Setenv("WEBHOOK_SECRETS", strings.Join(texts, " "))
	s, port, args := prepared(t, file)
	s.Start(args...)
	return &foreign{t, fmt.Sprintf("http://127.0.0.1:%d/webhooks", port)}
}

// prepared returns the folder of a receiver that is not started yet, and its arguments.
func prepared(t *testing.T, file string) (s *servertest.Server, port int, args []string) {
	t.Helper()
	how := receivers[file]
	s = servertest.New(t, how.interpreter)
	if how.interpreter == "php" && !phpHasSQLite(t) {
		const missing = "php lacks pdo_sqlite (on Debian: apt-get install php-sqlite3)"
		if slices.Contains(strings.Split(os.Getenv("SUREHOOK_REQUIRE"), ","), "php") {
			t.Fatal(missing)
		}
		t.Skip("NOT TESTED with php: " + missing)
	}
	port = s.Port()
	t.Setenv("PORT", strconv.Itoa(port))
	return s, port, how.args(s, s.Write(file, programText(t, file), nil), port)
}

func phpHasSQLite(t *testing.T) bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), servertest.Find(t, "php"), "-m").CombinedOutput()
	require.NoError(t, err, string(out))
	return strings.Contains(string(out), "pdo_sqlite")
}

// post signs a body under an id with all of the secrets, changes the request, and posts it.
func (f *foreign) post(id string, body []byte, at time.Time, change func(http.Header, []byte) []byte, secrets ...signing.Secret) (int, string) {
	f.t.Helper()
	h := f.signed(id, body, at, secrets...)
	if change != nil {
		body = change(h, body)
	}
	status, text, err := f.send(h, body)
	require.NoError(f.t, err)
	return status, text
}

// tooLarge posts a body that is refused before it is read. Its sender may see the closed
// connection rather than the answer.
func (f *foreign) tooLarge(id string, body []byte, at time.Time, secret signing.Secret) {
	f.t.Helper()
	status, _, err := f.send(f.signed(id, body, at, secret), body)
	if err == nil {
		require.Equal(f.t, http.StatusRequestEntityTooLarge, status)
	}
}

func (f *foreign) signed(id string, body []byte, at time.Time, secrets ...signing.Secret) http.Header {
	f.t.Helper()
	var keys []signing.Key
	for _, s := range secrets {
		keys = append(keys, signing.Key{Secret: s})
	}
	ring, err := signing.NewKeyring(keys...)
	require.NoError(f.t, err)
	h := http.Header{"Content-Type": {"application/json"}, "Webhook-Attempt": {"1"}}
	require.NoError(f.t, signing.Sign(h, signing.DefaultSchemes(), id, at, body, ring))
	return h
}

func (f *foreign) send(h http.Header, body []byte) (status int, text string, err error) {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, f.url, bytes.NewReader(body))
	require.NoError(f.t, err)
	req.Header = h
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	read, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(read), err
}

func invoice(version int64) (id string, body []byte) {
	ev := receivertest.NewEvent("invoice", "in_1", version)
	body, _ = json.Marshal(map[string]any{
		"id": ev.ID, "type": "invoice.updated", "occurred_at": ev.OccurredAt, "object": map[string]string{"type": "invoice", "id": "in_1"},
		"version": version, "data": map[string]any{"state": "paid", "payer": "Zoë & Søn <€>"},
	})
	return ev.ID, body
}

// padded adds spaces to a JSON body, up to n bytes.
func padded(body []byte, n int) []byte {
	return append(body, bytes.Repeat([]byte(" "), n-len(body))...)
}

func TestReceiversWithoutGo(t *testing.T) {
	for file := range receivers {
		t.Run(file, func(t *testing.T) {
			a, b, c := signing.GenerateSecret(), signing.GenerateSecret(), signing.GenerateSecret()
			f := startReceiver(t, file, a, b, signing.Secret{}) // a space at the end is no secret
			now := time.Now()
			is := func(status int, text string) func(int, string) {
				return func(gotStatus int, gotText string) {
					t.Helper()
					require.Equal(t, status, gotStatus, gotText)
					require.Equal(t, text, strings.TrimSpace(gotText))
				}
			}
			refused := is(http.StatusUnauthorized, "not verified")

			id, body := invoice(2)
			tampered := func(_ http.Header, body []byte) []byte { return bytes.Replace(body, []byte("paid"), []byte("sent"), 1) }
			refused(f.post(id, body, now, tampered, a))
			refused(f.post(id, body, now, func(h http.Header, b []byte) []byte { h.Set("Webhook-Id", id+"1"); return b }, a))
			refused(f.post(id, body, now, func(h http.Header, b []byte) []byte { h.Set("Webhook-Timestamp", "now"); return b }, a))
			for _, name := range []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"} {
				refused(f.post(id, body, now, func(h http.Header, b []byte) []byte { h.Del(name); return b }, a))
			}
			refused(f.post(id, body, now.Add(-310*time.Second), nil, a))
			refused(f.post(id, body, now.Add(310*time.Second), nil, a))
			refused(f.post(id, body, now, nil, c))
			refused(f.post(id, body, now, emptyKey, a))

			is(http.StatusOK, "applied")(f.post(id, body, now.Add(-250*time.Second), nil, a))
			is(http.StatusOK, "duplicate")(f.post(id, body, now.Add(time.Second), nil, a))
			id, body = invoice(1)
			is(http.StatusOK, "stale")(f.post(id, body, now, nil, a))
			is(http.StatusOK, "duplicate")(f.post(id, body, now, nil, a))

			for i, secrets := range [][]signing.Secret{{b}, {a, b}, {b, a}, {c, a}, {b, c}} {
				id, body = invoice(int64(3 + i))
				is(http.StatusOK, "applied")(f.post(id, body, now, nil, secrets...))
			}
			id, body = invoice(20)
			is(http.StatusOK, "applied")(f.post(id, padded(body, 1<<20), now, nil, a))
			id, body = invoice(21)
			f.tooLarge(id, padded(body, 1<<20+1), now, a)
			body = bytes.Replace(body, []byte("invoice.updated"), []byte("invoice.printed"), 1)
			is(http.StatusOK, "ignored")(f.post(id, body, now, nil, a))
			f.challenged(a, b)
			f.fails(a)
		})
	}
}

// emptyKey signs a request as anybody can.
func emptyKey(h http.Header, body []byte) []byte {
	mac := hmac.New(sha256.New, nil)
	fmt.Fprintf(mac, "%s.%s.%s", h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"), body)
	h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return body
}

// fails posts an event whose change fails, twice: the second is no duplicate.
func (f *foreign) fails(secret signing.Secret) {
	f.t.Helper()
	id, body := invoice(30)
	body = bytes.Replace(body, []byte(`"object":`), []byte(`"thing":`), 1)
	for range 2 {
		status, text, err := f.send(f.signed(id, body, time.Now(), secret), body)
		if err == nil { // the program in Python closes the connection
			require.Equal(f.t, http.StatusInternalServerError, status, text)
		}
	}
}

// A receiver without a whole secret would take what anybody has signed, or refuse every
// event until the sender has given it up. PHP has no start to refuse: it answers with 500.
func TestReceiversRefuseToStart(t *testing.T) {
	whole := signing.GenerateSecret()
	for file := range receivers {
		for name, secrets := range map[string]string{
			"empty": "", "spaces": "  ", "no prefix": strings.TrimPrefix(whole.Reveal(), "whsec_"), "the prefix alone": "whsec_",
			"short": whole.Reveal()[:len("whsec_")+30], "one of two": whole.Reveal() + " whsec_", "unset": "unset",
		} {
			t.Run(file+"/"+name, func(t *testing.T) {
				t.Setenv("WEBHOOK_SECRETS", secrets)
				if secrets == "unset" {
					require.NoError(t, os.Unsetenv("WEBHOOK_SECRETS"))
				}
				s, port, args := prepared(t, file)
				if file == "webhooks.php" {
					s.Start(args...)
					f := &foreign{t, fmt.Sprintf("http://127.0.0.1:%d/webhooks", port)}
					id, body := invoice(1)
					status, text := f.post(id, body, time.Now(), nil, whole)
					require.Equal(t, http.StatusInternalServerError, status, text)
					require.Contains(t, text, "WEBHOOK_SECRETS must have a whole secret")
					return
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				c := exec.CommandContext(ctx, servertest.Find(t, receivers[file].interpreter), args...)
				c.Dir = s.Folder
				out, err := c.CombinedOutput()
				require.Error(t, err)
				require.NoError(t, ctx.Err(), "it has started")
				require.Contains(t, string(out), "WEBHOOK_SECRETS must have a whole secret")
			})
		}
	}
}

// A full disk fails the event that finds it, and leaves those before it.
func TestRubyReceiverOnAFullDisk(t *testing.T) {
	t.Setenv("LARGEST_FILE", "4096")
	secret := signing.GenerateSecret()
	f := startReceiver(t, "config.ru", secret)
	first, firstBody := invoice(1)
	status, text := f.post(first, firstBody, time.Now(), nil, secret)
	require.Equal(t, http.StatusOK, status, text)
	for version := int64(2); status == http.StatusOK; version++ {
		require.Less(t, version, int64(1000), "the disk is not full")
		id, body := invoice(version)
		status, text = f.post(id, body, time.Now(), nil, secret)
	}
	require.Equal(t, http.StatusInternalServerError, status, text)
	status, text = f.post(first, firstBody, time.Now(), nil, secret)
	require.Equal(t, http.StatusOK, status, text)
	require.Equal(t, "duplicate", text)
}

// Several processes, as Puma's workers are, take one event after the other.
func TestRubyReceiverInSeveralProcesses(t *testing.T) {
	t.Setenv("WORKERS", "4")
	secret := signing.GenerateSecret()
	f := startReceiver(t, "config.ru", secret)
	type event struct {
		id   string
		body []byte
	}
	var events []event
	for version := range int64(200) {
		id, body := invoice(version + 1)
		events = append(events, event{id, body})
	}
	for _, results := range [][]string{{"applied", "stale"}, {"duplicate"}} {
		var all errgroup.Group
		all.SetLimit(8)
		for _, ev := range events {
			headers := f.signed(ev.id, ev.body, time.Now(), secret)
			all.Go(func() error {
				_, text, err := f.send(headers, ev.body)
				if err == nil && !slices.Contains(results, text) {
					err = fmt.Errorf("%q is none of %q", text, results)
				}
				return err
			})
		}
		require.NoError(t, all.Wait())
	}
}

// challenged has the receiver asked as a subscription's URL is.
func (f *foreign) challenged(secrets ...signing.Secret) {
	f.t.Helper()
	for _, s := range secrets {
		ring, err := signing.NewKeyring(signing.Key{Secret: s})
		require.NoError(f.t, err)
		asks, err := challenge.New(&challenge.Config{Network: sender.Network{AllowPrivateNetworks: true}})
		require.NoError(f.t, err)
		require.NoError(f.t, asks.Challenge(f.t.Context(), sender.Challenge{Subscriber: "sub_1", Subscription: "wsub_1", URL: f.url, Keyring: ring}))
	}
}

// The vector on the page is signed as it says, and is what this module takes.
func TestVector(t *testing.T) {
	var request block
	for _, b := range blocks(t) {
		if b.page == withoutGo && b.lang == "http" {
			request = b
		}
	}
	text := strings.TrimSuffix(request.text, "\n")
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	require.NoError(t, err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(text, "\n"+string(body)), "Content-Length is the body's")
	require.True(t, json.Valid(body))

	const secret = "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA="
	page := ""
	for _, b := range blocks(t) {
		page += b.text
	}
	require.Contains(t, page, secret)
	mac := func(key []byte, text string) []byte {
		m := hmac.New(sha256.New, key)
		m.Write([]byte(text))
		return m.Sum(nil)
	}
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	require.NoError(t, err)
	id, at := r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp")
	require.Equal(t, hex.EncodeToString(mac([]byte(secret), at+"."+string(body))), r.Header.Get("Webhook-Hmac-Sha256"))
	require.Equal(t, "v1,"+base64.StdEncoding.EncodeToString(mac(decoded, id+"."+at+"."+string(body))), r.Header.Get("Webhook-Signature"))

	parsed, err := signing.ParseSecret(secret)
	require.NoError(t, err)
	ring, err := signing.NewKeyring(signing.Key{Secret: parsed})
	require.NoError(t, err)
	unix, err := strconv.ParseInt(at, 10, 64)
	require.NoError(t, err)
	for _, scheme := range []signing.Scheme{signing.TimestampBody{}, signing.StandardWebhooks{}} {
		v, err := signing.NewVerifier(ring, &signing.VerifierConfig{Schemes: []signing.Scheme{scheme}, Now: func() time.Time { return time.Unix(unix, 0) }})
		require.NoError(t, err)
		_, err = v.Verify(signing.Message{Header: r.Header, Body: body})
		require.NoError(t, err, scheme.Name())
	}
}

// The page's programs compute what the page says.
func TestVectorProgram(t *testing.T) {
	python := servertest.Find(t, "python3")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, python, "-c", named(t, withoutGo, "run", "vector.py").text).CombinedOutput()
	require.NoError(t, err, string(out))
	prints := named(t, withoutGo, "prints", "vector.py").text
	require.Equal(t, prints, string(out))

	servertest.Find(t, "openssl")
	out, err = exec.CommandContext(ctx, "sh", "-c", named(t, withoutGo, "run", "vector.sh").text).CombinedOutput()
	require.NoError(t, err, string(out))
	lines := strings.Split(prints, "\n")
	hexed, based := strings.TrimPrefix(lines[0], "Webhook-Hmac-Sha256: "), strings.TrimPrefix(lines[1], "Webhook-Signature: v1,")
	require.Equal(t, hexed+" *stdin\n"+based, string(out))
}
