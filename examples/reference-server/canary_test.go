package main_test

import (
	"bytes"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"html"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/canarytest"
	"github.com/surehook/surehook/internal/pgtest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/postgres"
	"github.com/surehook/surehook/sender/sqlite"
	"github.com/surehook/surehook/sender/storetest"
)

// visit is a server whose secrets are canaries, and what it has said.
type visit struct {
	*process
	t       *testing.T
	cage    canarytest.Cage
	token   string       // the operator's
	answers bytes.Buffer // but those that are to show a secret
	refused bytes.Buffer
}

// said keeps an answer, headers and all.
func (v *visit) said(r *reply) *reply {
	text := []byte(r.text)
	for name, values := range r.header {
		text = append(text, name+": "+strings.Join(values, ", ")+"\n"...)
	}
	v.answers.Write(text)
	if r.status >= 400 {
		v.refused.Write(text)
	}
	return r
}

// shown takes a secret from an answer that is to show it, once.
func (v *visit) shown(r *reply, fields ...string) object {
	v.t.Helper()
	require.Less(v.t, r.status, 300, "%s", r.text)
	for _, field := range fields {
		text := r.body[field].(string)
		v.cage.Add(field, []byte(text))
		if key, ok := strings.CutPrefix(text, "whsec_"); ok {
			raw, err := base64.StdEncoding.DecodeString(key)
			require.NoError(v.t, err)
			v.cage.Add(field+", its bytes", raw)
		}
	}
	return r.body
}

// The server as it is built meets what goes right and what goes wrong, and none of its
// secrets is in what it logs and answers, nor in the database.
func TestNoSecretLeavesTheServer(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		sealing := make([]byte, 32)
		_, _ = rand.Read(sealing)
		v := &visit{t: t, token: rand.Text()}
		header, query, payload := rand.Text(), rand.Text(), rand.Text()
		v.cage.Add("the sealing key", sealing)
		v.cage.Add("the operator's token", []byte(v.token))
		v.cage.Add("a header's value", []byte(header))
		v.cage.Add("a callback URL's query", []byte(query))
		v.cage.Add("an event's data", []byte(payload))
		v.process = start(t, p, "-operator-token", v.token, "-secret-key", base64.StdEncoding.EncodeToString(sealing),
			"-log-level", "debug", "-schedule", "10ms", "-jitter", "0", "-horizon", "30ms", "-timeout", "2s")

		// Customers and their secrets, each of which is shown once; the answer to a
		// repeated request is kept.
		made := v.shown(v.post(v.token, "/subscribers", object{"id": "sub_a", "name": "A"}, "Idempotency-Key", "1"), "token", "signing_secret")
		v.shown(v.post(v.token, "/subscribers/sub_a/secret/rotate", object{"overlap_seconds": 3600}, "Idempotency-Key", "2"), "signing_secret")
		v.shown(v.get(v.token, "/subscribers/sub_operator/secret"), "signing_secret")
		mine := v.shown(v.post(made["token"].(string), "/subscribers/sub_a/token/rotate", nil, "Idempotency-Key", "3"), "token")["token"].(string)

		failing := newEndpoint(t)
		failing.answers(http.StatusInternalServerError)
		good := newEndpoint(t)
		var subscriptions []string
		for _, to := range []string{good.URL, failing.URL, "http://127.0.0.1:1", "http://nothing.invalid"} {
			r := v.post(mine, "/subscriptions", object{"url": to + "/?token=" + query, "event_types": []string{"order.*"}})
			subscriptions = append(subscriptions, r.is(http.StatusCreated)["id"].(string))
		}
		v.giveHeader(p, sealing, header, subscriptions)
		event := v.said(v.post(v.token, "/events", object{"type": "order.paid", "object": object{"type": "order", "id": "1"}, "data": object{"pan": payload}})).is(http.StatusCreated)
		for _, got := range good.wait(t, 1) {
			require.Equal(t, "Bearer "+header, got.header.Get("Authorization"), "it is sent")
			require.Contains(t, string(got.body), payload)
		}
		v.ended(len(subscriptions))

		v.refusals(mine, header, payload)
		deliveries := v.said(v.get(v.token, "/deliveries")).data()
		paths := []string{
			"/subscribers/sub_a", "/subscriptions", "/events", "/events/" + event["id"].(string), "/deliveries", "/notices", "/jobs", "/healthz", "/openapi.json",
		}
		for _, id := range subscriptions {
			paths = append(paths, "/subscriptions/"+id)
		}
		for _, d := range deliveries {
			paths = append(paths, "/deliveries/"+d["id"].(string))
		}
		for _, path := range paths {
			for _, token := range []string{v.token, mine, "", "wrong"} {
				v.said(v.get(token, path))
			}
		}
		v.said(v.post(mine, "/deliveries/"+deliveries[0]["id"].(string)+"/redeliver", nil))
		v.said(v.patch(mine, "/subscriptions/"+subscriptions[0], object{"description": "new"}))
		pages := v.console()

		// A URL is its owner's to read, and an event is what is asked for.
		v.cage.RequireNone(t, "an answer", v.answers.Bytes(), "a callback URL's query", "an event's data")
		v.cage.RequireNone(t, "a refusal", v.refused.Bytes())
		v.cage.RequireNone(t, "the console", pages, "a callback URL's query", "an event's data")
		metrics := v.get(v.token, "/metrics").text
		require.Contains(t, metrics, `outcome="dead_lettered"`)
		v.cage.RequireNone(t, "the metrics", []byte(metrics))

		kept := p.files(t)
		v.cage.RequireNone(t, "the database", kept, "a callback URL's query", "an event's data")
		found := strings.Join(v.cage.Find(kept), "\n")
		require.Contains(t, found, "an event's data", "the database was not read")
		require.Contains(t, found, "a callback URL's query", "the database was not read")
		v.stop()
		require.Contains(t, v.logged(), "it is not attempted any more")
		v.cage.RequireNone(t, "the log", []byte(v.logged()))
	})
}

// giveHeader gives subscriptions a header, which the server has no request for.
func (v *visit) giveHeader(p place, sealing []byte, value string, ids []string) {
	v.t.Helper()
	keys, err := sender.NewKeys(sender.SealingKey{ID: v.sealedWith(p), Key: sealing})
	require.NoError(v.t, err)
	var store storetest.Store[*sql.Tx]
	if p.driver == "pgx" {
		pool, err := pgxpool.New(v.t.Context(), p.url)
		require.NoError(v.t, err)
		defer pool.Close()
		store, err = postgres.NewSQL(pool, nil)
		require.NoError(v.t, err)
	} else {
		db, err := sql.Open("sqlite", p.url+"&_pragma=synchronous(full)&_txlock=immediate")
		require.NoError(v.t, err)
		defer db.Close()
		store, err = sqlite.New(db, nil)
		require.NoError(v.t, err)
	}
	reg, err := sender.NewRegistry(store, keys, &sender.RegistryConfig{Network: sender.Network{AllowPrivateNetworks: true}})
	require.NoError(v.t, err)
	for _, id := range ids {
		_, err := reg.Update(v.t.Context(), id, sender.SubscriptionChange{Settings: &sender.Settings{Headers: map[string]string{"Authorization": "Bearer " + value}}})
		require.NoError(v.t, err)
	}
}

// sealedWith is the id that the server gives its sealing key.
func (v *visit) sealedWith(p place) string {
	v.t.Helper()
	ids := each(v.t, p.open(v.t), "SELECT DISTINCT sealing_key FROM surehook_secrets")
	require.Len(v.t, ids, 1)
	id, _, _ := strings.Cut(ids[0], "|")
	return id
}

// ended waits until no delivery is live.
func (v *visit) ended(n int) {
	v.t.Helper()
	eventually(v.t, "all have ended", func() []object { return v.get(v.token, "/deliveries").data() }, func(all []object) bool {
		return len(all) == n && !slices.ContainsFunc(all, func(d object) bool { return d["status"] != "delivered" && d["status"] != "dead_lettered" })
	})
}

// refusals sends what is refused, with secrets where they do not belong.
func (v *visit) refusals(mine, header, payload string) {
	v.t.Helper()
	for _, r := range []*reply{
		v.get(v.token+"x", "/deliveries"), v.get("", "/deliveries?token="+v.token), v.get(mine, "/deliveries?cursor="+header), v.get(mine, "/subscribers/"+header), v.get(mine, "/metrics"),
		v.post(v.token, "/subscriptions", object{"url": "https://user:" + header + "@example.com/"}), v.post(v.token, "/subscriptions", object{"url": "ftp://example.com/" + header}),
		v.post(v.token, "/subscriptions", object{"url": "https://example.com/", "secret": header}), v.post(v.token, "/subscriptions", `{"url": "`+header),
		v.post(v.token, "/events", object{"type": "a b", "object": object{"type": "t", "id": "1"}, "data": payload}), v.post(v.token, "/events", `{"type":"a.b","data":{"pan":"`+payload+`"`),
		v.post(mine, "/events", object{"type": "a.b", "object": object{"type": "t", "id": "1"}, "data": payload}), v.post(v.token, "/jobs", object{"kind": "replay", "input": object{"pan": payload}}),
		v.post(v.token, "/subscribers", object{"id": "sub_a", "name": "again"}, "Idempotency-Key", "4"), v.post(v.token, "/subscribers", object{"id": "sub_b", "name": "B"}, "Idempotency-Key", "1"),
		v.call(v.token, http.MethodPut, "/events", object{"pan": payload}), v.get(v.token, "/nowhere/"+header),
	} {
		require.GreaterOrEqual(v.t, r.status, 400, "%s", r.text)
		v.said(r)
	}
}

var linkIn = regexp.MustCompile(`href="([^"#]*)"`)

// console reads the console's pages, each that another one leads to.
func (v *visit) console() (pages []byte) {
	v.t.Helper()
	browser := v.visitor()
	_, wrong := browser.ask(http.MethodPost, "/console/login", url.Values{"token": {v.token + "x"}})
	pages = append(pages, wrong...)
	res, _ := browser.ask(http.MethodPost, "/console/login", url.Values{"token": {v.token}, "to": {"/console/"}})
	require.Equal(v.t, http.StatusOK, res.StatusCode)
	seen, next := map[string]bool{}, []string{"/console/"}
	for len(next) > 0 && len(seen) < 60 {
		path := next[0]
		next = next[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		res, page := browser.ask(http.MethodGet, path, nil)
		pages = append(pages, page...)
		for _, link := range linkIn.FindAllStringSubmatch(page, -1) {
			to, err := res.Request.URL.Parse(html.UnescapeString(link[1]))
			require.NoError(v.t, err)
			if v.base == "http://"+to.Host && strings.HasPrefix(to.Path, "/console/") {
				next = append(next, to.RequestURI())
			}
		}
	}
	require.Greater(v.t, len(seen), 10)
	return pages
}

// files returns what anybody has who has the database. Of SQLite these are the files while
// they are open, so that the log that is written ahead is there. Of PostgreSQL it is a
// dump; without the program for it the test fails or says so.
func (p place) files(t *testing.T) (all []byte) {
	t.Helper()
	if p.driver == "sqlite" {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			text, err := os.ReadFile(p.flag + suffix)
			require.NoError(t, err)
			all = append(all, text...)
		}
		return all
	}
	program, err := exec.LookPath("pg_dump")
	if err != nil {
		if slices.Contains(strings.Split(os.Getenv("SUREHOOK_REQUIRE"), ","), "postgres") {
			t.Fatalf("pg_dump is needed: %v", err)
		}
		t.Skipf("NOT TESTED what a dump of PostgreSQL shows: %v", err)
	}
	var schema string
	require.NoError(t, p.open(t).QueryRowContext(t.Context(), "SELECT current_schema()").Scan(&schema))
	var errs bytes.Buffer
	dump := exec.CommandContext(t.Context(), program, "--dbname="+pgtest.DSN(t), `--schema="`+schema+`"`)
	dump.Stderr = &errs
	all, err = dump.Output()
	require.NoError(t, err, "%s", errs.String())
	return all
}
