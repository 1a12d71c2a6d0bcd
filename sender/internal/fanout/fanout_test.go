package fanout_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/dispatch"
	"github.com/surehook/surehook/sender/internal/fanout"
)

// event is a candidate about an object.
func event(count int, about string) *fanout.Candidate {
	return &fanout.Candidate{Count: count, All: true, Object: func() (sender.Object, error) { return sender.Object{ID: about}, nil }}
}

func planned(t *testing.T, p dispatch.ExpandParams, all ...*fanout.Candidate) *fanout.Plan {
	t.Helper()
	plan := fanout.New(p)
	for _, c := range all {
		full, err := plan.Add(c)
		require.NoError(t, err)
		if full {
			break
		}
	}
	plan.Share()
	return plan
}

func TestPlan(t *testing.T) {
	p := dispatch.ExpandParams{Events: 10, Deliveries: 20, Whole: 5, Part: 8}
	type makes = []fanout.Make
	for name, c := range map[string]struct {
		p       dispatch.ExpandParams
		all     []*fanout.Candidate
		want    makes
		waiting int
		more    bool
	}{
		"nothing":    {p: p},
		"small ones": {p: p, all: []*fanout.Candidate{event(5, "a"), event(0, "a"), event(1, "b")}, want: makes{{0, 5}, {1, 0}, {2, 1}}},
		"as many as there is room for": {p: p, more: true, want: makes{{0, 5}, {1, 5}, {2, 5}, {3, 5}},
			all: []*fanout.Candidate{event(5, "a"), event(5, "a"), event(5, "a"), event(5, "a"), event(1, "a")}},
		"events are bounded":  {p: dispatch.ExpandParams{Events: 1, Deliveries: 20}, all: []*fanout.Candidate{event(1, "a"), event(1, "b")}, want: makes{{0, 1}}, more: true},
		"a large one":         {p: p, all: []*fanout.Candidate{event(100, "a")}, want: makes{{0, 8}}, more: true},
		"beside small ones":   {p: p, all: []*fanout.Candidate{event(100, "a"), event(3, "b"), event(1, "c")}, want: makes{{0, 4}, {1, 3}, {2, 1}}, more: true},
		"at least a quarter":  {p: p, all: []*fanout.Candidate{event(5, "b"), event(5, "c"), event(100, "a")}, want: makes{{0, 5}, {1, 5}, {2, 2}}, more: true},
		"a quarter, rounded":  {p: dispatch.ExpandParams{Events: 10, Deliveries: 20, Whole: 5, Part: 5}, all: []*fanout.Candidate{event(5, "b"), event(100, "a")}, want: makes{{0, 5}, {1, 2}}, more: true},
		"the same object":     {p: p, all: []*fanout.Candidate{event(100, "a"), event(1, "a"), event(1, "b")}, want: makes{{0, 7}, {2, 1}}, waiting: 1, more: true},
		"a share each":        {p: p, all: []*fanout.Candidate{event(6, "a"), event(100, "b"), event(100, "a")}, want: makes{{0, 4}, {1, 4}}, waiting: 1, more: true},
		"what one leaves":     {p: dispatch.ExpandParams{Deliveries: 20, Events: 9, Whole: 1, Part: 8}, all: []*fanout.Candidate{event(2, "a"), event(100, "b")}, want: makes{{0, 2}, {1, 6}}, more: true},
		"no share":            {p: dispatch.ExpandParams{Deliveries: 20, Events: 9, Whole: 1, Part: 1}, all: []*fanout.Candidate{event(9, "a"), event(9, "b")}, want: makes{{0, 1}}, waiting: 1, more: true},
		"nothing said":        {p: dispatch.ExpandParams{Deliveries: 3, Events: 9}, all: []*fanout.Candidate{event(2, "a"), event(9, "b")}, want: makes{{0, 2}, {1, 1}}, more: true},
		"more than a call":    {p: dispatch.ExpandParams{Deliveries: 3, Events: 9, Whole: 9, Part: 9}, all: []*fanout.Candidate{event(7, "a"), event(1, "b")}, want: makes{{0, 7}}, more: true},
		"not all of it known": {p: p, all: []*fanout.Candidate{{Count: 3}}, want: makes{{0, 3}}, more: true},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planned(t, c.p, c.all...)
			require.Equal(t, c.want, plan.Makes)
			require.Equal(t, c.waiting, plan.Waiting)
			require.Equal(t, c.more, plan.More)
		})
	}
}

// To tell a large event, and to make a part of it, one more than either must be known.
func TestLook(t *testing.T) {
	for _, p := range []dispatch.ExpandParams{{Whole: 5, Part: 8}, {Whole: 8, Part: 5}, {Deliveries: 8}} {
		require.Equal(t, 9, fanout.New(p).Look())
	}
}

// A few large events are expanded side by side, and the others wait.
func TestFewAreBegun(t *testing.T) {
	var all []*fanout.Candidate
	for i := range 2 * fanout.Begun {
		all = append(all, event(1000, string(rune('a'+i))))
	}
	plan := planned(t, dispatch.ExpandParams{Events: 100, Deliveries: 1000, Whole: 10, Part: 100}, all...)
	require.Len(t, plan.Makes, fanout.Begun)
	require.Equal(t, fanout.Begun, plan.Waiting)
}

// A plan asks for objects only if an event is large. An error of Object ends it.
func TestObjects(t *testing.T) {
	asked, failed := 0, errors.New("failed")
	c := &fanout.Candidate{Count: 1, All: true, Object: func() (sender.Object, error) {
		asked++
		return sender.Object{}, failed
	}}
	plan := planned(t, dispatch.ExpandParams{Events: 10, Deliveries: 10}, c, c)
	require.Zero(t, asked)
	_, err := plan.Add(event(100, "a"))
	require.NoError(t, err)
	_, err = plan.Add(c)
	require.ErrorIs(t, err, failed)
}
