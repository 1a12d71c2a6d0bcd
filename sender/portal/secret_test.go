package portal_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/canarytest"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/portal"
	"github.com/surehook/surehook/signing"
)

// During a rotation the customer sees if the receiver knows the new secret, and can take
// longer.
func TestNewSecretIsTested(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := b.visit("sub_ada")
	require.NotContains(t, v.get("/secret").text, "secret/test")
	require.Equal(t, http.StatusUnprocessableEntity, v.withSecrets("/secret/extend").status, "nothing ends")
	p := v.withSecrets("/secret/rotate", "overlap", "7")
	p.has(t, "It gets one event that is signed with the new secret alone", `value="`+b.ada.good+`"`)
	require.NotContains(t, p.text, `value="`+b.ada.held+`"`, "it gets nothing now")
	require.NotContains(t, p.text, "data-refresh")
	require.Equal(t, http.StatusUnprocessableEntity, v.post("/secret/test").status)
	require.Equal(t, http.StatusConflict, v.post("/secret/test", "endpoint", b.ada.held).status)
	require.Equal(t, http.StatusNotFound, v.post("/secret/test", "endpoint", b.bob.good).status)
	v.done(v.post("/secret/test", "endpoint", b.ada.good), "/secret", "A test was sent")
	v.done(v.post("/secret/test", "endpoint", b.ada.bad), "/secret", "A test was sent")
	b.run()
	list, err := b.reg.Secrets(t.Context(), "sub_ada")
	require.NoError(t, err)
	tests := b.deliveries(b.ada.good, sender.StatusDelivered)
	require.Equal(t, list[0].ID, sender.TestedSecret(&tests[0].Event))
	p = v.get("/secret")
	p.has(t, "Tests of the new secret", "deliveries/"+tests[0].ID, "data-refresh")
	require.Equal(t, 2, strings.Count(p.text, "<tr data-row"))
	p.has(t, `<span class="sub"><bdi>good.ada.example.com<span class="path">`)
	v.get("/deliveries/"+tests[0].ID).has(t, "so your receiver knows that one")
	v.get("/deliveries/"+b.deliveries(b.ada.bad, sender.StatusAwaitingRetry)[0].ID).has(t, "it does not know that one yet")

	for days := range 23 {
		ends := list[1].ValidUntil.AddDate(0, 0, days)
		v.get("/secret").has(t, `It ends by itself on <time datetime="`+ends.Format(time.RFC3339))
		v.done(v.withSecrets("/secret/extend", "until", v.until()), "/secret", "The old secret lasts longer")
	}
	require.NotContains(t, v.get("/secret").text, "24 hours more", "an overlap lasts for 30 days at most")
	p = v.withSecrets("/secret/extend", "until", list[1].LatestEnd.Add(time.Hour).Format(time.RFC3339Nano))
	require.Equal(t, http.StatusUnprocessableEntity, p.status)
	p.has(t, "at most 720h")
}

// withSecrets sends a form of the page of the secrets as it is now.
func (v *visitor) withSecrets(path string, pairs ...string) page {
	v.t.Helper()
	return v.post(path, append(pairs, "newest", v.newest())...)
}

func (v *visitor) newest() string {
	v.t.Helper()
	return regexp.MustCompile(`name="newest" value="([^"]+)"`).FindStringSubmatch(v.get("/secret").text)[1]
}

// until is up to when the form for it has the old secret last.
func (v *visitor) until() string {
	v.t.Helper()
	return regexp.MustCompile(`name="until" value="([^"]+)"`).FindStringSubmatch(v.get("/secret").text)[1]
}

// A form that is sent twice makes one secret, and one of a page from before a change neither ends
// nor makes any.
func TestFormOfOtherSecrets(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := b.visit("sub_ada")
	secrets := func() (all []string) {
		list, err := b.reg.Secrets(t.Context(), "sub_ada")
		require.NoError(t, err)
		for _, s := range list {
			all = append(all, fmt.Sprint(s.ID, s.State, s.SignsFrom, s.ValidUntil))
		}
		return all
	}
	old := v.newest()
	made := regexp.MustCompile(`<code id="new"[^>]*>(whsec_[^<]+)</code>`)
	first := v.post("/secret/rotate", "overlap", "7", "newest", old)
	require.Equal(t, http.StatusOK, first.status)
	during := secrets()
	require.Len(t, during, 2)
	again := v.post("/secret/rotate", "overlap", "1", "newest", old)
	require.Equal(t, http.StatusOK, again.status)
	again.has(t, "The new secret was made already", "Step 2 of 3")
	require.Equal(t, made.FindStringSubmatch(first.text)[1], made.FindStringSubmatch(again.text)[1], "a browser shows the last answer alone")
	require.Contains(t, b.logged(), `action="show the new secret"`)
	for _, path := range []string{"/secret/rotate", "/secret/activate", "/secret/extend", "/secret/retire"} {
		for _, newest := range []string{old, "", "x"} {
			if path == "/secret/rotate" && newest == old {
				continue
			}
			p := v.post(path, "overlap", "7", "newest", newest)
			require.Equal(t, http.StatusConflict, p.status, path)
			p.has(t, "The secrets have changed since that page was loaded", "Step 2 of 3")
			require.NotRegexp(t, made, p.text)
		}
	}
	require.Equal(t, during, secrets())
	require.Equal(t, http.StatusUnprocessableEntity, v.withSecrets("/secret/extend", "until", "tomorrow").status)
	until := v.until()
	v.done(v.withSecrets("/secret/extend", "until", until), "/secret", "The old secret lasts longer")
	extended := secrets()
	require.NotEqual(t, during, extended)
	v.done(v.withSecrets("/secret/extend", "until", until), "/secret", "The old secret lasts longer")
	require.Equal(t, extended, secrets(), "it is put off once")
	for range 2 {
		v.done(v.withSecrets("/secret/retire"), "/secret", "The old secret has ended")
		require.Len(t, secrets(), 1)
	}
}

// meeting has both of two requests read the secrets before either of them changes one.
type meeting struct {
	portal.Registry
	read sync.WaitGroup
}

func (m *meeting) RotateSecret(ctx context.Context, subscriber string, r *sender.Rotation) (signing.Secret, time.Time, error) {
	m.read.Done()
	m.read.Wait()
	return m.Registry.RotateSecret(ctx, subscriber, r)
}

func (m *meeting) ExtendSecret(ctx context.Context, subscriber string, until time.Time) (time.Time, error) {
	m.read.Done()
	m.read.Wait()
	return m.Registry.ExtendSecret(ctx, subscriber, until)
}

// Forms that are sent at the same instant, such as by two clicks without a script, make one
// secret, and both answers show it. They put off the end of the old one once.
func TestSecretFormsTwiceAtOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	met := &meeting{Registry: b.reg}
	met.read.Add(2)
	backend := b.backend()
	backend.Registry = met
	var err error
	b.portal, err = portal.New(backend, [][]byte{portalKey}, b.config())
	require.NoError(t, err)
	b.server = httptest.NewServer(http.StripPrefix(prefix, b.portal))
	t.Cleanup(b.server.Close)
	v := b.visit("sub_ada")
	twice := func(path string, pairs ...string) (pages [2]page) {
		pairs = slices.Clip(append(pairs, "newest", v.newest())) // both append to it
		var both sync.WaitGroup
		for i := range pages {
			both.Go(func() { pages[i] = v.post(path, pairs...) })
		}
		both.Wait()
		return pages
	}
	pages := twice("/secret/rotate", "overlap", "7")
	list, err := b.reg.Secrets(t.Context(), "sub_ada")
	require.NoError(t, err)
	require.Len(t, list, 2)
	for _, p := range pages {
		require.Equal(t, http.StatusOK, p.status)
		p.has(t, list[0].Secret.Reveal())
	}
	require.Equal(t, 1, strings.Count(pages[0].text+pages[1].text, "The new secret was made already"))

	met.read.Add(2)
	for _, p := range twice("/secret/extend", "until", v.until()) {
		v.done(p, "/secret", "The old secret lasts longer")
	}
	extended, err := b.reg.Secrets(t.Context(), "sub_ada")
	require.NoError(t, err)
	require.Equal(t, list[1].ValidUntil.Add(24*time.Hour), extended[1].ValidUntil)
}

// A rotation shows the new secret once, signs with the old one until the customer
// switches, and ends the old one.
func TestRotate(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	v := b.visit("sub_ada")
	require.Equal(t, http.StatusUnprocessableEntity, v.withSecrets("/secret/rotate", "overlap", "0").status)
	shown := v.post("/secret/show")
	shown.has(t, b.secrets[0])
	require.Equal(t, "no-store", shown.header.Get("Cache-Control"))
	require.NotContains(t, html.UnescapeString(v.get("/secret").text), b.secrets[0])

	p := v.withSecrets("/secret/rotate", "overlap", "1")
	require.Equal(t, http.StatusOK, p.status)
	require.Equal(t, "no-store", p.header.Get("Cache-Control"))
	fresh := regexp.MustCompile(`<code id="new"[^>]*>(whsec_[^<]+)</code>`).FindStringSubmatch(p.text)
	require.NotNil(t, fresh)
	require.NotContains(t, html.UnescapeString(p.text), b.secrets[0])
	signs, err := b.reg.SigningSecret(t.Context(), "sub_ada")
	require.NoError(t, err)
	require.Equal(t, b.secrets[0], signs.Reveal(), "the old one signs until it is told otherwise")
	b.pass(3 * time.Hour)
	v = b.visit("sub_ada")
	p = v.get("/secret")
	p.has(t, "Step 2 of 3", "The new one signs in", ">9 h 00 min<", ">75 %<")
	v.done(v.withSecrets("/secret/activate"), "/secret", "The new secret signs")
	signs, err = b.reg.SigningSecret(t.Context(), "sub_ada")
	require.NoError(t, err)
	require.Equal(t, html.UnescapeString(fresh[1]), signs.Reveal())
	v.get("/secret").has(t, "Step 3 of 3", "The old one ends in", ">21 h 00 min<")
	v.done(v.withSecrets("/secret/retire"), "/secret", "The old secret has ended")
	secrets, err := b.reg.Secrets(t.Context(), "sub_ada")
	require.NoError(t, err)
	require.Len(t, secrets, 1)
	v.get("/secret").has(t, "Make a new secret")

	var cage canarytest.Cage
	for _, s := range append(b.secrets, html.UnescapeString(fresh[1])) {
		cage.Add("a signing secret", []byte(s))
	}
	for _, path := range []string{"/", "/secret", "/secret?lang=py", "/deliveries", "/endpoints/" + b.ada.good} {
		p := v.get(path)
		cage.RequireNone(t, path, []byte(html.UnescapeString(p.text)))
	}
	cage.RequireNone(t, "the log", []byte(b.logged()))
}
