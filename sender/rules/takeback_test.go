package rules_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/rules"
)

func TestTakeBack(t *testing.T) {
	claimed, created, earlier, later := now.Add(-time.Second), now.Add(-2*time.Second), now.Add(-time.Minute), now.Add(time.Minute)
	for name, c := range map[string]struct {
		given   dispatch.Live
		lost    bool // the event
		resumed bool
		due     time.Time
		want    dispatch.Live
		at      time.Time
	}{
		"the first attempt": {
			given: dispatch.Live{Number: 1, Tries: 1, First: claimed},
			at:    created,
		},
		"the first attempt, of no event": {
			given: dispatch.Live{Number: 1, Tries: 1, First: claimed}, lost: true,
			at: claimed,
		},
		"the first attempt, put off": {
			given: dispatch.Live{Number: 1, Tries: 1, First: claimed}, due: later,
			at: later,
		},
		"the first attempt, due before": {
			given: dispatch.Live{Number: 1, Tries: 1, First: claimed}, due: earlier,
			at: now,
		},
		"a later one": {
			given: dispatch.Live{Number: 3, Tries: 3, First: earlier, Stood: time.Second, Spared: true, Single: true},
			want:  dispatch.Live{Number: 2, Tries: 2, First: earlier, Stood: time.Second, Spared: true, Single: true},
			at:    now,
		},
		"a later one, put off": {
			given: dispatch.Live{Number: 3, Tries: 3, First: earlier, Stood: time.Second}, due: later,
			want: dispatch.Live{Number: 2, Tries: 2, First: earlier, Stood: 62 * time.Second},
			at:   later,
		},
		"a later one, put off until a time that has passed": {
			given: dispatch.Live{Number: 3, Tries: 3, First: earlier, Stood: time.Second}, due: earlier,
			want: dispatch.Live{Number: 2, Tries: 2, First: earlier, Stood: time.Second},
			at:   now,
		},
		"the first of a schedule that began anew": {
			given: dispatch.Live{Number: 5, Tries: 1, First: claimed},
			want:  dispatch.Live{Number: 4},
			at:    now,
		},
		"one before it was found lost at the claim, and was the first": {
			given: dispatch.Live{Number: 5, Tries: 2, First: claimed},
			want:  dispatch.Live{Number: 4, Tries: 1, First: claimed},
			at:    now,
		},
		"one before it did not count": {
			given: dispatch.Live{Number: 2, Tries: 1, First: earlier, Stood: time.Second},
			want:  dispatch.Live{Number: 1, First: earlier, Stood: time.Second},
			at:    now,
		},
		"resumed since": {
			given: dispatch.Live{Number: 5, Tries: 4, First: earlier, Stood: time.Second, Spared: true}, resumed: true,
			want: dispatch.Live{Number: 4},
			at:   now,
		},
	} {
		of := created
		if c.lost {
			of = time.Time{}
		}
		got, at := rules.TakeBack(c.given, claimed, of, c.resumed, c.due, now)
		require.Empty(t, cmp.Diff(c.want, got), name)
		require.Equal(t, c.at, at, name)
	}
}
