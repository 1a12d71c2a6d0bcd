package main_test

import (
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// tooMany ends the test unless the answer says that it is one too many, and when there
// may be room.
func (r *reply) tooMany() {
	r.t.Helper()
	r.refused(http.StatusTooManyRequests)
	after, err := strconv.Atoi(r.header.Get("Retry-After"))
	require.NoError(r.t, err)
	require.Positive(r.t, after)
}

// A subscriber may have so much, and no more, however many requests come at a time. The
// operator may have what it likes.
func TestLimits(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-workers=false", "-max-subscriptions", "3", "-max-jobs", "2", "-max-requests", "0")
		c, other := s.customer("c"), s.customer("other")
		atOnce := func(n int, ask func(i int) *reply) map[int]int {
			var mu sync.Mutex
			var wg sync.WaitGroup
			got := map[int]int{}
			for i := range n {
				wg.Go(func() {
					r := ask(i)
					mu.Lock()
					defer mu.Unlock()
					if got[r.status]++; r.status == http.StatusTooManyRequests {
						r.tooMany()
					}
				})
			}
			wg.Wait()
			return got
		}
		require.Equal(t, map[int]int{http.StatusCreated: 3, http.StatusTooManyRequests: 5}, atOnce(8, func(int) *reply {
			return s.post(c.token, "/subscriptions", object{"url": "https://hooks.example.com/"})
		}))
		list := s.get(c.token, "/subscriptions").data()
		require.Len(t, list, 3)
		s.subscribe(other.token, "https://hooks.example.com/")
		for range 4 {
			s.subscribe(operatorToken, "https://hooks.example.com/")
		}
		s.post(operatorToken, "/subscriptions", object{"url": "https://hooks.example.com/", "subscriber_id": c.id}).is(http.StatusCreated)
		s.remove(c.token, "/subscriptions/"+list[0]["id"].(string)).is(http.StatusNoContent)
		s.remove(c.token, "/subscriptions/"+list[1]["id"].(string)).is(http.StatusNoContent)
		first := s.post(c.token, "/subscriptions", object{"url": "https://hooks.example.com/"}, "Idempotency-Key", "1").is(http.StatusCreated)
		s.post(c.token, "/subscriptions", object{"url": "https://hooks.example.com/"}).tooMany()
		require.Equal(t, first, s.post(c.token, "/subscriptions", object{"url": "https://hooks.example.com/"}, "Idempotency-Key", "1").is(http.StatusCreated), "a repeat has the first one's answer")

		job := object{"kind": "export_events", "input": object{}}
		require.Equal(t, map[int]int{http.StatusAccepted: 2, http.StatusTooManyRequests: 4}, atOnce(6, func(int) *reply { return s.post(c.token, "/jobs", job) }))
		s.post(other.token, "/jobs", job).is(http.StatusAccepted)
		for range 3 {
			s.post(operatorToken, "/jobs", job).is(http.StatusAccepted)
		}
		// A job that has ended makes room. Each origin of callback URLs stays behind.
		for _, origin := range []string{"a", "b", "c", "d"} {
			for _, j := range s.get(c.token, "/jobs").data() {
				if j["status"] == "queued" {
					s.post(c.token, "/jobs/"+j["id"].(string)+"/cancel", nil).is(http.StatusAccepted)
				}
			}
			with := object{"kind": "export_events", "input": object{}, "callback_url": "https://" + origin + ".example.com/"}
			if origin == "d" {
				s.post(c.token, "/jobs", with).tooMany()
				break
			}
			s.post(c.token, "/jobs", with).is(http.StatusAccepted)
		}
		require.Len(t, s.get(c.token, "/subscriptions?implicit=true").data(), 3+3)
	})
}

// A subscriber that asks too often is told so, and nobody else is.
func TestRequestsASecond(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		s := start(t, p, "-workers=false", "-max-requests", "2")
		c, other := s.customer("c"), s.customer("other")
		refused := eventually(t, "one is too many", func() *reply { return s.get(c.token, "/subscribers/"+c.id) }, func(r *reply) bool { return r.status != http.StatusOK })
		refused.tooMany()
		require.Equal(t, "1", refused.header.Get("Retry-After"))
		s.get(other.token, "/subscribers/"+other.id).is(http.StatusOK)
		for range 10 {
			s.get(operatorToken, "/subscribers/"+c.id).is(http.StatusOK)
		}
		eventually(t, "there is room again", func() int { return s.get(c.token, "/subscribers/"+c.id).status }, func(status int) bool { return status == http.StatusOK })
	})
}
