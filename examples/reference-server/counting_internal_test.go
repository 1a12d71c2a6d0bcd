package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
)

// Of one subscriber, one count is made at a time, and of all callers together, two. The others
// wait in their turn, and some of a subscriber are refused.
func TestCounting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCounting()
		end := make(chan struct{})
		var running []string
		refused := map[string]int{}
		ask := func(ctx context.Context, id string) {
			go func() {
				err := c.do(ctx, caller{id: id}, func() error {
					running = append(running, id) // there is no other at the same moment: see synctest.Wait
					<-end
					i := slices.Index(running, id)
					running = slices.Delete(running, i, i+1)
					return nil
				})
				if p := (*Problem)(nil); errors.As(err, &p) && p.Status == http.StatusTooManyRequests && p.retryAfter > 0 {
					refused[id]++
				} else if err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		for range countsOfOne + 3 {
			ask(t.Context(), "sub_a")
		}
		require.Equal(t, []string{"sub_a"}, running)
		for range countsOfOne + 1 {
			ask(t.Context(), sender.Operator)
		}
		ask(t.Context(), "sub_b")
		require.Equal(t, []string{"sub_a", sender.Operator}, running)
		require.Equal(t, map[string]int{"sub_a": 3}, refused, "the operator waits, however often it asks")
		for range 2*countsOfOne + 2 {
			end <- struct{}{}
			synctest.Wait()
			require.LessOrEqual(t, len(running), countsAtOnce)
			others := slices.DeleteFunc(slices.Sorted(slices.Values(running)), func(id string) bool { return id == sender.Operator })
			require.Len(t, slices.Compact(slices.Clone(others)), len(others), "two of one subscriber: %v", running)
		}
		require.Empty(t, running)
		require.Empty(t, c.of)
		require.Empty(t, c.all)

		// One that nobody waits for any more gives up its turn, and one whose time is over too.
		ask(t.Context(), "sub_a")
		left, leave := context.WithCancel(t.Context())
		leave()
		require.ErrorIs(t, c.do(left, caller{id: "sub_a"}, nil), context.Canceled)
		late, cancel := context.WithTimeout(t.Context(), apart)
		defer cancel()
		var p *Problem
		require.ErrorAs(t, c.do(late, caller{id: "sub_a"}, nil), &p)
		require.Equal(t, []int{http.StatusServiceUnavailable, retryCounts}, []int{p.Status, p.retryAfter})
		require.Equal(t, 1, c.of["sub_a"].n)
		end <- struct{}{}
	})
}

// However many filters a subscriber tries at once, four are answered, each in its turn, and the
// others are refused at once.
func TestPreviewsAreBounded(t *testing.T) {
	t.Parallel()
	s, ask := newTestServer(t)
	ada := newCustomer(t, ask, "ada")
	preview := func(token string) *httptest.ResponseRecorder {
		return ask(token, http.MethodPost, "/subscriptions/preview", `{"filter":{"data.n":1}}`)
	}
	for range countsAtOnce { // nothing is counted meanwhile
		s.counting.all <- struct{}{}
	}
	const asked = 3 * countsOfOne
	answers := make(chan *httptest.ResponseRecorder, asked)
	for range asked {
		go func() { answers <- preview(ada.Token) }()
	}
	for range asked - countsOfOne {
		w := <-answers
		require.Equal(t, http.StatusTooManyRequests, w.Code, w.Body)
		require.Equal(t, "5", w.Header().Get("Retry-After"))
		require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
		require.Contains(t, decoded[Problem](t, w).Detail, "a subscriber may have 4 filters tried at a time")
	}
	for range countsAtOnce {
		<-s.counting.all
	}
	for range countsOfOne {
		w := <-answers
		require.Equal(t, http.StatusOK, w.Code, w.Body)
	}
	require.Equal(t, http.StatusOK, preview(ada.Token).Code, "there is room again")
	require.Equal(t, http.StatusOK, preview(testToken).Code)
}
