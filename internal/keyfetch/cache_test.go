package keyfetch_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/keyfetch"
)

var errAway = errors.New("away")

// source counts what is fetched. Its values are the numbers of the fetches.
type source struct {
	clock time.Time
	until time.Time
	err   error
	asked []string
}

func (s *source) fetch(_ context.Context, name string) (int, time.Time, error) {
	s.asked = append(s.asked, name)
	return len(s.asked), s.until, s.err
}

func (s *source) cache(cfg keyfetch.CacheConfig) *keyfetch.Cache[int] {
	s.clock = time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	cfg.Now = func() time.Time { return s.clock }
	return keyfetch.NewCache(s.fetch, &cfg)
}

func want(t *testing.T, value int, wanted error) func(int, error) {
	t.Helper()
	return func(got int, err error) {
		t.Helper()
		require.ErrorIs(t, err, wanted)
		require.Equal(t, value, got)
	}
}

func TestCacheKeepsWhatItHas(t *testing.T) {
	var s source
	c := s.cache(keyfetch.CacheConfig{KeepFor: time.Hour})
	want(t, 1, nil)(c.Get("a"))
	s.clock = s.clock.Add(time.Hour - 1)
	want(t, 1, nil)(c.Get("a"))
	s.clock = s.clock.Add(1)
	want(t, 2, nil)(c.Get("a"))
	s.until = s.clock.Add(time.Minute)
	want(t, 3, nil)(c.Get("b"))
	s.clock = s.until.Add(-1)
	want(t, 3, nil)(c.Get("b"))
	s.clock = s.until
	want(t, 0, keyfetch.ErrOver)(c.Get("b"))
}

func TestCacheRemembersFailures(t *testing.T) {
	s := source{err: errAway}
	c := s.cache(keyfetch.CacheConfig{})
	want(t, 0, errAway)(c.Get("a"))
	s.err = nil
	s.clock = s.clock.Add(10*time.Second - 1)
	want(t, 0, errAway)(c.Get("a"))
	want(t, 0, errAway)(c.Renew("a"))
	s.clock = s.clock.Add(1)
	want(t, 2, nil)(c.Get("a"))
}

// While the host is away, what is there is used for as long as StaleFor says, and the host
// is asked at intervals.
func TestCacheUsesWhatIsStale(t *testing.T) {
	var s source
	c := s.cache(keyfetch.CacheConfig{KeepFor: time.Hour, StaleFor: time.Hour})
	want(t, 1, nil)(c.Get("a"))
	s.err = errAway
	s.clock = s.clock.Add(time.Hour)
	for range 3 {
		want(t, 1, nil)(c.Get("a"))
	}
	require.Len(t, s.asked, 2)
	s.clock = s.clock.Add(time.Hour - 1)
	want(t, 1, nil)(c.Get("a"))
	s.clock = s.clock.Add(1)
	want(t, 0, errAway)(c.Get("a"))
	s.err = nil
	s.clock = s.clock.Add(10 * time.Second)
	want(t, 4, nil)(c.Get("a"))
}

// A request for keys that are not there has them fetched anew at intervals alone, and takes
// nothing away that is kept.
func TestCacheRenewsAtIntervals(t *testing.T) {
	var s source
	c := s.cache(keyfetch.CacheConfig{})
	want(t, 1, nil)(c.Renew("a"))
	s.clock = s.clock.Add(30*time.Second - 1)
	for range 100 {
		want(t, 1, nil)(c.Renew("a"))
	}
	s.clock = s.clock.Add(1)
	want(t, 2, nil)(c.Renew("a"))
	s.err = errAway
	s.clock = s.clock.Add(30 * time.Second)
	for range 100 {
		want(t, 0, errAway)(c.Renew("a"))
		want(t, 2, nil)(c.Get("a"))
	}
	require.Len(t, s.asked, 3)
}

func TestCacheBoundsFetches(t *testing.T) {
	var s source
	c := s.cache(keyfetch.CacheConfig{AtOnce: 8, FetchEvery: 10 * time.Second, StaleFor: time.Hour})
	want(t, 1, nil)(c.Get("kept"))
	s.err = errAway
	for i := range 100 {
		_, err := c.Get(fmt.Sprint(i))
		require.Error(t, err)
	}
	require.Len(t, s.asked, 8)
	want(t, 0, keyfetch.ErrTooMany)(c.Get("other"))
	want(t, 1, nil)(c.Get("kept"))
	s.clock = s.clock.Add(10 * time.Second)
	want(t, 0, errAway)(c.Get("other"))
	want(t, 0, keyfetch.ErrTooMany)(c.Get("another"))
	for range 10 * 8 { // strangers take every fetch for hours
		s.clock = s.clock.Add(time.Minute)
		for i := range 20 {
			_, _ = c.Get(fmt.Sprint("x", i))
		}
		want(t, 1, nil)(c.Get("kept"))
	}
}

// Strangers who take every fetch keep nothing from being fetched again that was there, even if
// nobody has asked for it since it ended.
func TestCacheRenewsWhateverStrangersAskFor(t *testing.T) {
	var s source
	c := s.cache(keyfetch.CacheConfig{})
	want(t, 1, nil)(c.Get("kept"))
	for range 3 {
		s.err = errAway
		s.clock = s.clock.Add(time.Hour)
		for range 20 {
			s.clock = s.clock.Add(10 * time.Second)
			for i := range 20 {
				_, err := c.Get(fmt.Sprint("x", i))
				require.Error(t, err)
			}
		}
		want(t, 0, keyfetch.ErrTooMany)(c.Get("new"))
		want(t, 0, errAway)(c.Get("kept"))
		asked := len(s.asked)
		for range 100 {
			want(t, 0, errAway)(c.Get("kept"))
		}
		require.Len(t, s.asked, asked, "a failure is remembered")
		s.err = nil
		s.clock = s.clock.Add(10*time.Second - 1) // no fetch for strangers yet
		want(t, 0, errAway)(c.Get("kept"))
		s.clock = s.clock.Add(1)
		want(t, asked+1, nil)(c.Get("stranger"))
		want(t, asked+2, nil)(c.Get("kept"))
	}
}

func TestCacheForgetsFailuresFirst(t *testing.T) {
	var s source
	c := s.cache(keyfetch.CacheConfig{MaxKept: 3, AtOnce: 1000})
	want(t, 1, nil)(c.Get("a"))
	s.clock = s.clock.Add(time.Second)
	want(t, 2, nil)(c.Get("b"))
	s.err = errAway
	for i := range 10 {
		want(t, 0, errAway)(c.Get(fmt.Sprint(i)))
	}
	s.err = nil
	want(t, 13, nil)(c.Get("c"))
	want(t, 1, nil)(c.Get("a"))
	want(t, 2, nil)(c.Get("b"))
	want(t, 14, nil)(c.Get("d"))
	want(t, 2, nil)(c.Get("b"))
	want(t, 15, nil)(c.Get("a"))
}

func TestCacheSharesAFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fetches := 0
		c := keyfetch.NewCache(func(context.Context, string) (int, time.Time, error) {
			fetches++
			time.Sleep(time.Second) // of the bubble's clock
			return 1, time.Time{}, nil
		}, nil)
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { want(t, 1, nil)(c.Get("a")) })
			all.Go(func() { want(t, 1, nil)(c.Renew("a")) })
		}
		all.Wait()
		require.Equal(t, 1, fetches)
	})
}
