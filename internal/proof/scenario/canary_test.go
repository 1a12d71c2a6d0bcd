package scenario_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/canarytest"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/challenge"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/history"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/sendertest"
	"github.com/surehook/surehook/sender/sqlite"
	"github.com/surehook/surehook/sender/storetest"
	"github.com/surehook/surehook/signing"
)

// flight is a run with canaries in the places of secrets.
type flight struct {
	t    *testing.T
	cage canarytest.Cage

	sealing     []byte
	secret      signing.Secret
	header      string // a value of a subscription's settings
	query       string // in a callback URL
	password    string // of a proxy
	payload     string // in an event's data
	certificate *sender.ClientCertificate

	mu      sync.Mutex
	seen    bytes.Buffer // logs and errors
	printed bytes.Buffer // the printed forms of values
}

// The database has the callback URLs and the events in clear, as SECURITY.md says.
var inDatabase = []string{"a callback URL's query", "an event's data"}

func newFlight(t *testing.T) *flight {
	f := &flight{t: t, sealing: make([]byte, 32), header: "Bearer " + rand.Text(), query: rand.Text(), password: rand.Text(), payload: rand.Text()}
	_, _ = rand.Read(f.sealing)
	raw := make([]byte, 32)
	_, _ = rand.Read(raw)
	var err error
	f.secret, err = signing.ParseSecret("whsec_" + base64.StdEncoding.EncodeToString(raw))
	require.NoError(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "client"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	f.certificate = &sender.ClientCertificate{
		CertificatePEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), KeyPEM: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}
	scalar, err := key.Bytes()
	require.NoError(t, err)
	f.cage.Add("the sealing key", f.sealing)
	f.cage.Add("the signing secret", raw)
	f.cage.Add("a client certificate's key", scalar)
	f.cage.Add("a client certificate's key, as text", bytes.Split(f.certificate.KeyPEM, []byte("\n"))[1])
	f.cage.Add("a header's value", []byte(f.header[7:]))
	f.cage.Add("a callback URL's query", []byte(f.query))
	f.cage.Add("a proxy's password", []byte(f.password))
	f.cage.Add("an event's data", []byte(f.payload))
	return f
}

// Write keeps the log.
func (f *flight) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen.Write(p)
}

// logger writes all records as text and as JSON.
func (f *flight) logger() *slog.Logger {
	all := &slog.HandlerOptions{Level: slog.LevelDebug - 4, AddSource: true}
	return slog.New(slog.NewMultiHandler(slog.NewTextHandler(f, all), slog.NewJSONHandler(f, all)))
}

// failed keeps all forms of an error, which must not be nil.
func (f *flight) failed(err error) {
	f.t.Helper()
	require.Error(f.t, err)
	f.mu.Lock()
	f.seen.Write(canarytest.Printed(err))
	f.mu.Unlock()
	f.logger().Error("failed", "error", err)
	for e := err; e != nil; e = errors.Unwrap(e) {
		_, _ = f.Write([]byte(e.Error()))
	}
}

// print prints values, and logs them.
func (f *flight) print(values ...any) {
	all := &slog.HandlerOptions{}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.printed.Write(canarytest.Printed(values...))
	for _, v := range values {
		slog.New(slog.NewMultiHandler(slog.NewTextHandler(&f.printed, all), slog.NewJSONHandler(&f.printed, all))).Info("printed", "value", v)
	}
}

// encode keeps the JSON of values.
func (f *flight) encode(values ...any) {
	for _, v := range values {
		text, err := json.Marshal(v)
		require.NoError(f.t, err)
		f.mu.Lock()
		f.printed.Write(text)
		f.mu.Unlock()
	}
}

func TestNoSecretLeavesASender(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "sender.db")
		db, err := sql.Open("sqlite", crashDSN(path))
		require.NoError(t, err)
		t.Cleanup(func() { _ = db.Close() })
		store, err := sqlite.New(db, nil)
		require.NoError(t, err)
		require.NoError(t, store.Migrate(t.Context()))
		flySender(t, store, func() []byte {
			var files []byte // while the database is open, so that its write-ahead log is there
			for _, suffix := range []string{"", "-wal", "-shm"} {
				text, err := os.ReadFile(path + suffix)
				require.NoError(t, err)
				files = append(files, text...)
			}
			return files
		}, func() { _ = db.Close() })
	})
	t.Run("postgres", func(t *testing.T) {
		dsn := pgtest.DSN(t)
		db, err := sql.Open("pgx", dsn)
		require.NoError(t, err)
		t.Cleanup(func() { _ = db.Close() })
		schema := pgtest.Schema(t, db)
		pool, err := pgxpool.New(t.Context(), dsn)
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		store, err := postgres.New(pool, &postgres.Config{Schema: schema})
		require.NoError(t, err)
		require.NoError(t, store.Migrate(t.Context()))
		flySender(t, store, func() []byte { return dumpSchema(t, db, schema) }, pool.Close)
	})
}

// dumpSchema returns every row of every table as JSON, with bytes in hex.
func dumpSchema(t *testing.T, db *sql.DB, schema string) (all []byte) {
	rows, err := db.QueryContext(t.Context(), "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = $1", schema)
	require.NoError(t, err)
	defer rows.Close()
	tables := 0
	for rows.Next() {
		var table string
		require.NoError(t, rows.Scan(&table))
		var text sql.NullString
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT string_agg(to_jsonb(x)::text, E'\\n') FROM "+table+" x").Scan(&text))
		all = append(all, text.String...)
		tables++
	}
	require.NoError(t, rows.Err())
	require.Greater(t, tables, 5)
	return all
}

// run runs a dispatcher until it has logged something.
func (f *flight) run(store dispatch.Store, keys *sender.Keys, cfg dispatch.Config, until string) {
	f.t.Helper()
	d, err := dispatch.New(store, keys, &cfg)
	require.NoError(f.t, err)
	ctx, cancel := context.WithCancel(f.t.Context())
	ran := make(chan error, 1)
	go func() { ran <- d.Run(ctx) }()
	require.Eventually(f.t, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return bytes.Contains(f.seen.Bytes(), []byte(until))
	}, time.Minute, time.Millisecond, until)
	cancel()
	if err := <-ran; err != nil {
		f.failed(err)
	}
}

// flySender makes every possible failure happen to a sending service, and searches its
// logs, errors and tables for the canaries.
func flySender[Tx any](t *testing.T, store storetest.Store[Tx], files func() []byte, closeDB func()) {
	f, ctx := newFlight(t), t.Context()
	network := sender.Network{AllowPrivateNetworks: true}
	keys, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: f.sealing})
	require.NoError(t, err)
	_, err = sender.NewKeys(sender.SealingKey{ID: "1", Key: f.sealing[:31]}, sender.SealingKey{ID: "1", Key: f.sealing}, sender.SealingKey{ID: "|", Key: f.sealing})
	f.failed(err)
	reg, err := sender.NewRegistry(store, keys, &sender.RegistryConfig{Network: network, Proxies: []string{"eu"}})
	require.NoError(t, err)
	pub, err := sender.NewPublisher(store, nil)
	require.NoError(t, err)
	past, err := history.New(store, nil)
	require.NoError(t, err)

	// Refusals.
	subscriber, secret, err := reg.CreateSubscriber(ctx, sender.NewSubscriber{ID: "sub_a", Secret: f.secret})
	require.NoError(t, err)
	_, _, err = reg.CreateSubscriber(ctx, sender.NewSubscriber{ID: "sub_a", Secret: f.secret})
	f.failed(err)
	_, err = signing.ParseSecret(f.secret.Reveal() + "=")
	f.failed(err)
	for _, n := range []sender.NewSubscription{
		{URL: "https://user:" + f.query + "@example.com/"}, {URL: "https://example.com/" + f.query + "#"}, {URL: "ftp://example.com/?" + f.query}, {URL: "https://example.com:" + f.query + "/"},
		{URL: "https://example.com/%zz" + f.query}, {URL: f.query},
		{URL: "https://example.com/?" + f.query, Settings: sender.Settings{Headers: map[string]string{"Authorization": f.header + "\n"}}},
		{URL: "https://example.com/?" + f.query, Settings: sender.Settings{Headers: map[string]string{f.header: f.header}}},
		{URL: "https://example.com/?" + f.query, Settings: sender.Settings{Proxy: f.header}},
		{URL: "https://example.com/", ClientCertificate: &sender.ClientCertificate{CertificatePEM: f.certificate.KeyPEM, KeyPEM: f.certificate.CertificatePEM}},
		{URL: "https://example.com/", ClientCertificate: &sender.ClientCertificate{CertificatePEM: f.certificate.CertificatePEM, KeyPEM: f.certificate.KeyPEM[:100]}},
		{URL: "https://example.com/", ClientCertificate: &sender.ClientCertificate{CertificatePEM: f.certificate.CertificatePEM, KeyPEM: bytes.Replace(f.certificate.KeyPEM, []byte("M"), []byte("*"), 1)}},
	} {
		n.Subscriber = "sub_a"
		_, err := reg.Subscribe(ctx, n)
		f.failed(err)
	}
	_, err = pub.Publish(ctx, sender.Event{Type: "a b", Object: sender.Object{Type: "t", ID: "1"}, Data: json.RawMessage(`{"` + f.payload + `"`)})
	f.failed(err)

	// Failures on the wire.
	failing := sendertest.NewEndpoint(t, sendertest.Answer(500, http.Header{"X-Request-Id": {f.header}, "Set-Cookie": {f.header}}, ""), sendertest.Redirect(302, "/"), sendertest.Garbage(), sendertest.Reset(), sendertest.HugeHeaders(1<<20))
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // of the handshakes that fail
	secure.StartTLS()
	t.Cleanup(secure.Close)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }))
	t.Cleanup(proxy.Close)
	proxyURL, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	proxyURL.User = url.UserPassword("operator", f.password)
	var subscriptions []sender.Subscription
	for i, n := range []sender.NewSubscription{
		{URL: failing.URL() + "/?token=" + f.query}, {URL: "http://127.0.0.1:1/?token=" + f.query}, {URL: secure.URL + "/?token=" + f.query, ClientCertificate: f.certificate},
		{URL: "http://nothing.invalid/?token=" + f.query}, {URL: failing.URL() + "/?token=" + f.query, Settings: sender.Settings{Proxy: "eu"}},
	} {
		n.Subscriber, n.Description = "sub_a", fmt.Sprint("number ", i)
		if n.Settings.Headers == nil {
			n.Settings.Headers = map[string]string{"Authorization": f.header}
		}
		s, err := reg.Subscribe(ctx, n)
		require.NoError(t, err)
		subscriptions = append(subscriptions, s)
	}
	publish := func() sender.Ref {
		ref, err := pub.Publish(ctx, sender.Event{Type: "a.b", Object: sender.Object{Type: "t", ID: "1"}, Data: json.RawMessage(`{"pan":"` + f.payload + `"}`)})
		require.NoError(t, err)
		return ref
	}
	cfg := dispatch.Config{
		Headers: dispatch.HeadersOfAll, Network: network, Timeout: 2 * time.Second, Logger: f.logger(), Proxies: map[string]*url.URL{"eu": proxyURL},
		Notifier: func(_ context.Context, n sender.Notice) error {
			f.print(n)
			return errors.New("nobody is told")
		},
		Hooks: dispatch.Hooks{
			AttemptStart: func(_ context.Context, c *dispatch.Claimed) context.Context {
				f.logger().Debug("an attempt", "claimed", c, "target", c.Target)
				panic(c)
			},
			AttemptEnd: func(_ context.Context, c *dispatch.Claimed, _ *dispatch.Result) {
				panic(fmt.Errorf("of %v: %w", c.Target.Settings, errNotApplied))
			},
			Recorded: func(_ context.Context, r *dispatch.Recorded) { f.print(*r, r); f.encode(r.Result) },
			Noticed:  func(_ context.Context, n sender.Notice) { f.print(n); f.encode(n) },
		},
	}
	dispatch := func(keys *sender.Keys) {
		d, err := dispatch.New(store, keys, &cfg)
		require.NoError(t, err)
		_, err = d.RunOnce(ctx)
		if err != nil {
			f.failed(err)
		}
		f.print(d)
	}
	for range 4 {
		publish()
		dispatch(keys)
	}
	// With another key under the same id, and with a key that is missing.
	wrong, err := sender.NewKeys(sender.SealingKey{ID: "1", Key: bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	lost, err := sender.NewKeys(sender.SealingKey{ID: "2", Key: bytes.Repeat([]byte{1}, 32)})
	require.NoError(t, err)
	for _, keys := range []*sender.Keys{wrong, lost} {
		publish()
		dispatch(keys)
		other, err := sender.NewRegistry(store, keys, &sender.RegistryConfig{Network: network})
		require.NoError(t, err)
		_, err = other.Keyring(ctx, "sub_a")
		f.failed(err)
		if _, err = other.Rewrap(ctx); keys == lost {
			f.failed(err)
		}
		f.print(other, keys)
	}
	f.run(store, lost, cfg, "the dispatcher does not run")
	f.run(store, keys, cfg, "the dispatcher has started")

	// Values that hold a secret, printed.
	fresh, _, err := reg.RotateSecret(ctx, "sub_a", nil)
	require.NoError(t, err)
	f.cage.Add("the new signing secret", []byte(fresh.Reveal()[6:]))
	keyring, err := reg.Keyring(ctx, "sub_a")
	require.NoError(t, err)
	stored, err := reg.Subscription(ctx, subscriptions[2].ID)
	require.NoError(t, err)
	challenger, err := challenge.New(&challenge.Config{Network: network, Proxies: cfg.Proxies})
	require.NoError(t, err)
	asked := sender.Challenge{
		Subscriber: "sub_a", Subscription: "wsub_a", URL: failing.URL() + "/?token=" + f.query, Keyring: keyring,
		Settings: sender.Settings{Headers: map[string]string{"Authorization": f.header}}, Header: http.Header{"Authorization": {f.header}},
	}
	f.failed(challenger.Challenge(ctx, asked))
	f.print(asked, &asked)
	f.encode(asked)
	verifier, err := signing.NewVerifier(keyring, nil)
	require.NoError(t, err)
	f.print(subscriber, secret, fresh, keyring, verifier, challenger, keys, *keys, reg, pub, past, stored, &stored, stored.Settings, &stored.Settings, *f.certificate, f.certificate)
	f.print(sender.NewSubscriber{Secret: f.secret}, signing.Key{Secret: f.secret}, sender.SealingKey{ID: "1", Key: f.sealing}, &sender.SealingKey{ID: "1", Key: f.sealing},
		sender.NewSubscription{Settings: sender.Settings{Headers: map[string]string{"Authorization": f.header}}, ClientCertificate: f.certificate})
	f.encode(subscriber, secret, fresh, keyring, verifier, keys, sender.NewSubscriber{Secret: f.secret}, signing.Key{Secret: f.secret})
	list, _, err := past.Deliveries(ctx, history.DeliveryQuery{})
	require.NoError(t, err)
	require.NotEmpty(t, list)
	for _, d := range list {
		whole, err := past.Delivery(ctx, d.ID)
		require.NoError(t, err)
		whole.Body = nil // is the event's data
		f.print(whole)
		f.encode(whole)
	}
	require.NotEmpty(t, list)

	kept := files()
	require.Contains(t, string(kept), "Authorization: redacted", "the headers of attempts were not kept")
	f.cage.RequireNone(t, "the database", kept, inDatabase...)
	found := strings.Join(f.cage.Find(kept), "\n")
	for _, known := range inDatabase {
		require.Contains(t, found, known, "the database was not read")
	}
	closeDB()
	_, err = reg.Keyring(ctx, "sub_a")
	f.failed(err)
	_, err = pub.Publish(ctx, sender.Event{Type: "a.b", Object: sender.Object{Type: "t", ID: "1"}, Data: json.RawMessage(`{"pan":"` + f.payload + `"}`)})
	f.failed(err)
	_, err = reg.Subscribe(ctx, sender.NewSubscription{Subscriber: "sub_a", URL: "https://example.com/?" + f.query, Settings: sender.Settings{Headers: map[string]string{"Authorization": f.header}}})
	f.failed(err)
	dispatch(keys)
	f.cage.RequireNone(t, "logs and errors", f.seen.Bytes())
	// A printed subscription shows its URL.
	f.cage.RequireNone(t, "what was printed", f.printed.Bytes(), "a callback URL's query")
	for _, must := range []string{`level=ERROR`, `"level":"ERROR"`, "panic", "407", "certificate", "AES-256 takes 32"} {
		require.True(t, strings.Contains(f.seen.String()+f.printed.String(), must), "the run went past what it was to meet: %s", must)
	}
}
