package rules_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/replay"
	"github.com/surehook/surehook/sender/rules"
)

func TestPreviewNamesTheLargestParts(t *testing.T) {
	var s rules.Survey
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	require.Zero(t, s.Preview())
	require.NoError(t, s.Within(at), "nothing is not too old")
	for i := range 12 {
		for range i + 1 {
			s.Add(replay.Candidate{Subscription: string(rune('a' + i)), Published: at.Add(time.Duration(i%5) * time.Hour)})
		}
	}
	p := s.Preview()
	require.EqualValues(t, 78, p.Count)
	require.Equal(t, at, p.Oldest)
	require.Equal(t, at.Add(4*time.Hour), p.Newest)
	require.Len(t, p.Subscriptions, 10)
	require.Equal(t, replay.Share{Subscription: "l", Count: 12}, p.Subscriptions[0])
	require.Equal(t, replay.Share{Subscription: "c", Count: 3}, p.Subscriptions[9])
	require.NoError(t, s.Within(at))
	require.NoError(t, s.Within(time.Time{}))
	require.ErrorIs(t, s.Within(at.Add(1)), sender.ErrRetention)
}

// A survey goes round the parts of a set, looks at no more than it may, and at each delivery
// once. It says that there may be more, unless it has met the end of every part.
func TestPropertySurveyGoesRound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 3000), 0, 60).Draw(t, "sizes")
		most := rapid.IntRange(0, 20_000).Draw(t, "most")
		at := make([]int, len(sizes))
		parts := make([]*int, len(sizes))
		for i := range parts {
			parts[i] = &i
		}
		looked := 0
		s, err := rules.TakeSurvey(parts, most, func(some []*int, each int, s *rules.Survey) (n []int, err error) {
			sum := 0
			for _, part := range some {
				next := min(each, sizes[*part]-at[*part])
				at[*part] += next
				for range next {
					s.Add(replay.Candidate{Subscription: string(rune('a' + *part))})
				}
				n, sum = append(n, next), sum+next
			}
			require.LessOrEqual(t, sum, 1000, "looked at in one go")
			looked += sum
			return n, nil
		})
		require.NoError(t, err)
		if most > 0 {
			require.LessOrEqual(t, looked, most)
		}
		p := s.Preview()
		require.EqualValues(t, looked, p.Count)
		if whole := slices.Equal(at, sizes); !whole {
			require.True(t, p.More)
			require.Equal(t, most, looked)
		} else if most == 0 || looked < most {
			require.False(t, p.More)
		}
	})
}

func TestSurveyThatCannotRead(t *testing.T) {
	away := errors.New("the database is away")
	part := 3
	_, err := rules.TakeSurvey([]*int{&part}, 0, func([]*int, int, *rules.Survey) ([]int, error) { return nil, away })
	require.ErrorIs(t, err, away)
}

func TestSurveyOfWhatIsTooOld(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	of := func(n, most int) rules.Survey {
		part := n
		s, err := rules.TakeSurvey([]*int{&part}, most, func(some []*int, each int, s *rules.Survey) ([]int, error) {
			next := min(each, *some[0])
			*some[0] -= next
			return []int{next}, nil
		})
		require.NoError(t, err)
		return s
	}
	whole, part := of(3, 4), of(5, 4)
	require.False(t, whole.Preview().More)
	require.True(t, part.Preview().More)
	for _, c := range []struct {
		name      string
		survey    *rules.Survey
		f         replay.Filter
		notBefore time.Time
		until     time.Time // zero: nothing must be surveyed apart
	}{
		{"all was looked at", &whole, replay.Filter{}, at, time.Time{}},
		{"of any age", &part, replay.Filter{}, time.Time{}, time.Time{}},
		{"of any age, until", &part, replay.Filter{Until: at}, time.Time{}, time.Time{}},
		{"since then", &part, replay.Filter{Since: at}, at, time.Time{}},
		{"a part", &part, replay.Filter{}, at, at},
		{"until earlier", &part, replay.Filter{Until: at.Add(-1)}, at, at.Add(-1)},
		{"until later", &part, replay.Filter{Until: at.Add(1)}, at, at},
	} {
		f, must := c.survey.Aged(c.f, c.notBefore)
		require.Equal(t, !c.until.IsZero(), must, c.name)
		if must {
			require.Equal(t, c.until, f.Until, c.name)
		}
	}
	require.NoError(t, whole.NoneAged(at), "all were looked at")
	var refused *sender.RetentionError
	require.ErrorAs(t, part.NoneAged(at), &refused)
	require.Equal(t, sender.RetentionError{NotBefore: at}, *refused)
	require.ErrorIs(t, refused, sender.ErrRetention)
	require.ErrorContains(t, refused, "Since")
	part.Add(replay.Candidate{Published: at.Add(-time.Hour)})
	require.ErrorAs(t, part.NoneAged(at), &refused)
	require.Equal(t, at.Add(-time.Hour), refused.Published)
}
