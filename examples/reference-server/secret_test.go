package main_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A rotation without overlap ends every older secret at once, however many there are,
// whoever else asks for one meanwhile, and however often a request is repeated.
func TestRotationWithoutOverlapIsNeverRefused(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		c := s.customer("c")
		e := newEndpoint(t)
		s.subscribe(c.token, e.URL)
		rotate := func(overlap int, headers ...string) *reply {
			return s.post(c.token, "/subscribers/"+c.id+"/secret/rotate", object{"overlap_seconds": overlap}, headers...)
		}
		posts := 0
		next := func() post {
			t.Helper()
			posts++
			s.patch(operatorToken, "/subscribers/"+c.id, object{"name": "x"}).is(http.StatusOK)
			return e.wait(t, posts)[posts-1]
		}
		fill := func() {
			t.Helper()
			for range 3 {
				rotate(3600).is(http.StatusOK)
			}
			full := rotate(3600)
			full.refused(http.StatusUnprocessableEntity, "body.overlap_seconds")
			require.Contains(t, full.body["detail"], "4 secrets")
		}

		fill()
		began := time.Now()
		rotated := rotate(0).is(http.StatusOK)
		until, err := time.Parse(time.RFC3339, rotated["previous_valid_until"].(string))
		require.NoError(t, err)
		require.WithinRange(t, until, began.Add(-time.Microsecond), time.Now())
		verifies(t, next(), rotated["signing_secret"].(string))

		together := func(headers ...string) []string {
			t.Helper()
			fill()
			secrets := make([]string, 6)
			var wg sync.WaitGroup
			for i := range secrets {
				wg.Go(func() { secrets[i], _ = rotate(0, headers...).body["signing_secret"].(string) })
			}
			wg.Wait()
			require.NotContains(t, secrets, "", "one was refused")
			return secrets
		}
		secrets, last := together(), next()
		slices.Sort(secrets)
		require.Len(t, slices.Compact(secrets), 6)
		signing := slices.IndexFunc(secrets, func(secret string) bool {
			mac := hmac.New(sha256.New, []byte(secret))
			mac.Write([]byte(last.header.Get("Webhook-Timestamp") + "." + string(last.body)))
			return hex(mac.Sum(nil)) == last.header.Get("Webhook-Hmac-Sha256")
		})
		require.NotEqual(t, -1, signing, "none of them signs")
		verifies(t, last, secrets[signing])

		secrets = slices.Compact(together("Idempotency-Key", "emergency"))
		require.Len(t, secrets, 1, "one rotation, and the same answer to all")
		verifies(t, next(), secrets[0])
		require.Equal(t, secrets[0], rotate(0, "Idempotency-Key", "emergency").is(http.StatusOK)["signing_secret"])
		verifies(t, next(), secrets[0])
	})
}

// A secret that signs later is shown at once. Until its time, or until it is activated, the
// one before signs where there is one signature.
func TestSecretThatSignsLater(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p)
		c := s.customer("c")
		e := newEndpoint(t)
		s.subscribe(c.token, e.URL)
		posts := 0
		next := func() post {
			t.Helper()
			posts++
			s.patch(operatorToken, "/subscribers/"+c.id, object{"name": "x"}).is(http.StatusOK)
			return e.wait(t, posts)[posts-1]
		}
		rotate := func(body object, headers ...string) *reply {
			return s.post(c.token, "/subscribers/"+c.id+"/secret/rotate", body, headers...)
		}
		at := func(answer object, field string) time.Time {
			t.Helper()
			when, err := time.Parse(time.RFC3339, answer[field].(string))
			require.NoError(t, err)
			return when
		}

		began := time.Now().Truncate(time.Microsecond)
		asked := object{"overlap_seconds": 7200, "sign_after_seconds": 3600}
		rotated := rotate(asked, "Idempotency-Key", "later").is(http.StatusOK)
		require.WithinRange(t, at(rotated, "signs_from"), began.Add(time.Hour), time.Now().Add(time.Hour))
		require.WithinRange(t, at(rotated, "previous_valid_until"), began.Add(2*time.Hour), time.Now().Add(2*time.Hour))
		require.Equal(t, rotated, rotate(asked, "Idempotency-Key", "later").is(http.StatusOK))
		rotate(object{"overlap_seconds": 7200}, "Idempotency-Key", "later").refused(http.StatusConflict)
		second := rotated["signing_secret"].(string)
		verifies(t, next(), c.secret, second)

		require.Equal(t, http.StatusNoContent, s.post(c.token, "/subscribers/"+c.id+"/secret/activate", nil).status)
		verifies(t, next(), second, c.secret)
		require.Equal(t, http.StatusNoContent, s.post(c.token, "/subscribers/"+c.id+"/secret/activate", nil).status, "none waits")

		// Its time comes by itself.
		third := rotate(object{"sign_after_seconds": 1}).is(http.StatusOK)
		time.Sleep(time.Until(at(third, "signs_from")))
		verifies(t, next(), third["signing_secret"].(string), second, c.secret)

		now := rotate(object{}).is(http.StatusOK)
		require.WithinRange(t, at(now, "signs_from"), at(third, "signs_from"), time.Now())
		verifies(t, next(), now["signing_secret"].(string), third["signing_secret"].(string), second, c.secret)

		// To the operator its own is shown that signs.
		shown := func() any {
			return s.get(operatorToken, "/subscribers/sub_operator/secret").is(http.StatusOK)["signing_secret"]
		}
		before := shown()
		own := s.post(operatorToken, "/subscribers/sub_operator/secret/rotate", object{"sign_after_seconds": 3600}).is(http.StatusOK)["signing_secret"]
		require.Equal(t, before, shown())
		require.Equal(t, http.StatusNoContent, s.post(operatorToken, "/subscribers/sub_operator/secret/retire", nil).status)
		require.Equal(t, own, shown())
	})
}
