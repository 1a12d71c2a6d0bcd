package main_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSubscriberLifecycle(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		e := newEndpoint(t)
		s.subscribe(operatorToken, e.URL)

		r := s.post(operatorToken, "/subscribers", object{"id": "sub_ada", "name": "Ada", "attributes": object{"plan": "pro"}})
		made := r.is(http.StatusCreated)
		require.Equal(t, "sub_ada", made["id"])
		require.Equal(t, object{"plan": "pro"}, made["attributes"])
		require.InDelta(t, 1, made["version"], 0)
		require.True(t, strings.HasPrefix(made["signing_secret"].(string), "whsec_"))
		require.NotEmpty(t, made["token"])
		require.Equal(t, "/subscribers/sub_ada", r.header.Get("Location"))
		for _, field := range []string{"created_at", "updated_at"} {
			at, err := time.Parse(time.RFC3339, made[field].(string))
			require.NoError(t, err)
			require.Equal(t, time.UTC, at.Location())
		}

		read := s.get(operatorToken, "/subscribers/sub_ada")
		require.NotContains(t, read.is(http.StatusOK), "token", "it is shown once")
		require.NotContains(t, read.body, "signing_secret", "it is shown once")
		tag := read.header.Get("ETag")
		require.NotEmpty(t, tag)
		require.Equal(t, http.StatusNotModified, s.get(operatorToken, "/subscribers/sub_ada", "If-None-Match", tag).status)
		require.Equal(t, http.StatusNotModified, s.get(operatorToken, "/subscribers/sub_ada", "If-None-Match", `"7", W/`+tag).status)
		require.Equal(t, http.StatusOK, s.get(operatorToken, "/subscribers/sub_ada", "If-None-Match", `W/"7"`).status)

		// Attributes are replaced whole; what is not named stays.
		changed := s.patch(operatorToken, "/subscribers/sub_ada", object{"attributes": object{"seats": 3}}, "If-Match", tag)
		require.Equal(t, object{"seats": float64(3)}, changed.is(http.StatusOK)["attributes"])
		require.Equal(t, "Ada", changed.body["name"])
		require.InDelta(t, 2, changed.body["version"], 0)
		require.NotEqual(t, tag, changed.header.Get("ETag"))
		s.patch(operatorToken, "/subscribers/sub_ada", object{"name": "B"}, "If-Match", tag).refused(http.StatusPreconditionFailed)
		s.patch(operatorToken, "/subscribers/sub_ada", object{"name": "Ada L."}, "If-Match", `"7", `+changed.header.Get("ETag")).is(http.StatusOK)
		require.InDelta(t, 4, s.patch(operatorToken, "/subscribers/sub_ada", object{}, "If-Match", "*").is(http.StatusOK)["version"], 0)

		// Both conditions hold for each method, and what is refused is not done (RFC 9110,
		// sections 13.1.1 and 13.1.2).
		now := s.get(operatorToken, "/subscribers/sub_ada", "If-Match", `"4"`)
		require.InDelta(t, 4, now.is(http.StatusOK)["version"], 0)
		for _, other := range []string{tag, `W/"4"`} {
			s.get(operatorToken, "/subscribers/sub_ada", "If-Match", other).refused(http.StatusPreconditionFailed, "header.If-Match")
		}
		require.Equal(t, http.StatusPreconditionFailed, s.get(operatorToken, "/subscribers/sub_ada", "If-Match", tag, "If-None-Match", `"4"`).status)
		for _, present := range []string{"*", `"4"`, `"7", W/"4"`} {
			s.patch(operatorToken, "/subscribers/sub_ada", object{"name": "B"}, "If-None-Match", present).refused(http.StatusPreconditionFailed, "header.If-None-Match")
			s.remove(operatorToken, "/subscribers/sub_ada", "If-None-Match", present).refused(http.StatusPreconditionFailed, "header.If-None-Match")
		}
		require.Equal(t, now.text, s.get(operatorToken, "/subscribers/sub_ada").text)
		s.patch(operatorToken, "/subscribers/sub_ada", object{}, "If-None-Match", tag, "If-Match", `"4"`).is(http.StatusOK)

		// Its own subscription still gets what was committed until then, the deletion
		// included.
		own := newEndpoint(t)
		s.subscribe(made["token"].(string), own.URL)
		require.Equal(t, http.StatusNoContent, s.remove(operatorToken, "/subscribers/sub_ada").status)
		s.get(operatorToken, "/subscribers/sub_ada").refused(http.StatusNotFound)
		s.remove(operatorToken, "/subscribers/sub_ada").refused(http.StatusNotFound)
		s.patch(operatorToken, "/subscribers/sub_ada", object{}).refused(http.StatusNotFound)
		s.get(made["token"].(string), "/subscribers/sub_ada").refused(http.StatusUnauthorized)
		require.Contains(t, string(own.wait(t, 1)[0].body), `"type":"subscriber.deleted"`)
		s.post(operatorToken, "/subscribers", object{"id": "sub_ada", "name": "again"}).refused(http.StatusConflict, "body.id")

		// Every change has its event, with the version of the state.
		var told []string
		for _, one := range e.wait(t, 6) {
			told = append(told, typeAndVersion(t, one.body))
		}
		require.ElementsMatch(t, []string{
			"subscriber.created 1", "subscriber.updated 2", "subscriber.updated 3", "subscriber.updated 4", "subscriber.updated 5", "subscriber.deleted 6",
		}, told)
	})
}

// A change and its event are one: of many changes at a time each has a version and
// an event of its own.
func TestConcurrentChanges(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		c := s.customer("busy")
		e := newEndpoint(t)
		s.subscribe(c.token, e.URL, "subscriber.*")
		const n = 20
		versions := make(chan float64, n)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				versions <- s.patch(operatorToken, "/subscribers/"+c.id, object{"name": fmt.Sprint(i)}).is(http.StatusOK)["version"].(float64)
			})
		}
		wg.Wait()
		close(versions)
		seen := map[string]bool{}
		for v := range versions {
			seen[fmt.Sprintf("subscriber.updated %.0f", v)] = true
		}
		require.Len(t, seen, n)
		for _, one := range e.wait(t, n) {
			delete(seen, typeAndVersion(t, one.body))
		}
		require.Empty(t, seen)
		require.InDelta(t, n+1, s.get(c.token, "/subscribers/"+c.id).is(http.StatusOK)["version"], 0)
	})
}

func TestTokens(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		a, b := s.customer("a"), s.customer("b")

		s.get(a.token, "/subscribers/"+a.id).is(http.StatusOK)
		s.get(a.token, "/subscribers/"+b.id).refused(http.StatusNotFound)

		fresh := s.post(a.token, "/subscribers/"+a.id+"/token/rotate", nil).is(http.StatusOK)["token"].(string)
		s.get(a.token, "/subscribers/"+a.id).refused(http.StatusUnauthorized)
		s.get(fresh, "/subscribers/"+a.id).is(http.StatusOK)
		byOperator := s.post(operatorToken, "/subscribers/"+a.id+"/token/rotate", nil).is(http.StatusOK)["token"].(string)
		s.get(fresh, "/subscribers/"+a.id).refused(http.StatusUnauthorized)
		s.get(byOperator, "/subscribers/"+a.id).is(http.StatusOK)

		// Tokens are stored as hashes.
		var stored string
		require.NoError(t, p.open(t).QueryRowContext(t.Context(), "SELECT token_hash FROM server_subscribers WHERE id = '"+a.id+"'").Scan(&stored))
		require.Len(t, stored, 64)
		require.NotContains(t, stored, byOperator)
	})
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		c := s.customer("c")
		e := newEndpoint(t)
		s.subscribe(c.token, e.URL)

		began := time.Now()
		rotated := s.post(c.token, "/subscribers/"+c.id+"/secret/rotate", nil).is(http.StatusOK)
		second := rotated["signing_secret"].(string)
		require.NotEqual(t, c.secret, second)
		until, err := time.Parse(time.RFC3339, rotated["previous_valid_until"].(string))
		require.NoError(t, err)
		require.WithinDuration(t, began.Add(24*time.Hour), until, time.Minute)

		s.patch(operatorToken, "/subscribers/"+c.id, object{"name": "new"}).is(http.StatusOK)
		verifies(t, e.wait(t, 1)[0], second, c.secret)

		require.Equal(t, http.StatusNoContent, s.post(c.token, "/subscribers/"+c.id+"/secret/retire", nil).status)
		s.patch(operatorToken, "/subscribers/"+c.id, object{"name": "newer"}).is(http.StatusOK)
		verifies(t, e.wait(t, 2)[1], second)

		third := s.post(operatorToken, "/subscribers/"+c.id+"/secret/rotate", object{"overlap_seconds": 0}).is(http.StatusOK)["signing_secret"].(string)
		s.patch(operatorToken, "/subscribers/"+c.id, object{"name": "newest"}).is(http.StatusOK)
		verifies(t, e.wait(t, 3)[2], third)

		// The operator's own is shown to it alone, the newest one, also after a rotation.
		mine := newEndpoint(t)
		s.subscribe(operatorToken, mine.URL)
		shown := s.get(operatorToken, "/subscribers/sub_operator/secret").is(http.StatusOK)["signing_secret"].(string)
		s.post(operatorToken, "/subscribers/sub_operator/secret/rotate", nil).is(http.StatusOK)
		now := s.get(operatorToken, "/subscribers/sub_operator/secret").is(http.StatusOK)["signing_secret"].(string)
		require.NotEqual(t, shown, now)
		s.patch(operatorToken, "/subscribers/"+c.id, object{"name": "last"}).is(http.StatusOK)
		verifies(t, mine.wait(t, 1)[0], now, shown)
		s.get(c.token, "/subscribers/sub_operator/secret").refused(http.StatusNotFound)
		s.get(operatorToken, "/subscribers/"+c.id+"/secret").refused(http.StatusNotFound)

		// At rest they are sealed.
		for _, row := range dump(t, p) {
			for _, secret := range []string{c.secret, second, third, shown, now} {
				require.NotContains(t, row, secret)
				require.NotContains(t, row, strings.TrimPrefix(secret, "whsec_"))
			}
		}
	})
}
