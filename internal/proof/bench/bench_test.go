package main

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A ratio of a figure that is not measured would be 0, or infinite.
func TestScenarios(t *testing.T) {
	names := map[string]bool{}
	for _, s := range scenarios() {
		require.False(t, names[s.name], "%s is there twice", s.name)
		names[s.name] = true
		require.NotEmpty(t, s.ratios, s.name)
		for _, r := range s.ratios {
			require.Contains(t, s.columns, r.figure, s.name)
			if r.least != 0 && r.aim != 0 {
				require.Equal(t, r.smallerBetter, r.aim < r.least, "%s aims at less than it asks for", s.name)
			}
		}
	}
}

func TestChoose(t *testing.T) {
	chosen := func(only string) (names []string) {
		all, err := choose(only)
		require.NoError(t, err)
		for _, s := range all {
			names = append(names, s.name)
		}
		return names
	}
	require.Equal(t, []string{"many-postgres", "many-sqlite", "receive-postgres"}, chosen("many,receive"))
	require.Equal(t, []string{"receive-sqlite"}, chosen("receive-sqlite"))
	require.NotContains(t, chosen(""), "receive-sqlite")
	require.Contains(t, chosen(""), "path-sqlite")
	_, err := choose("path,nothing")
	require.ErrorContains(t, err, `"nothing"`)
}

func TestQuantile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[len(hundred)-1-i] = float64(i + 1)
	}
	require.Equal(t, []float64{1, 50, 99, 100}, []float64{quantile(hundred, 0), median(hundred), quantile(hundred, 0.99), quantile(hundred, 1)})
	require.Equal(t, 2.0, median([]float64{3, 1, 2}))
	require.Zero(t, median(nil))
}

func TestCompare(t *testing.T) {
	round := func(a, b, c float64) []sample {
		return slices.Concat(one("a", map[string]float64{"x/s": a}), one("b", map[string]float64{"x/s": b}), one("c", map[string]float64{"x/s": c}))
	}
	rounds := [][]sample{round(10, 5, 20), round(10, 40, 20), round(30, 10, 20)}
	c := ratio{figure: "x/s", of: "a", over: []string{"b", "c"}, least: 0.4, aim: 1}.compare(rounds)
	require.Equal(t, []float64{0.5, 0.25, 1.5}, []float64{c.Median, c.Lowest, c.Highest}, "the better one of each round counts")
	require.Equal(t, "reached", c.verdict())
	c = ratio{figure: "x/s", of: "a", over: []string{"b", "c"}, least: 1.2, smallerBetter: true}.compare(rounds)
	require.Equal(t, []float64{2, 0.5, 3}, []float64{c.Median, c.Lowest, c.Highest}, "less is better")
	require.Equal(t, "missed", c.verdict())
	c = ratio{figure: "x/s", of: "a"}.compare(rounds)
	require.Equal(t, 10.0, c.Median)

	var out bytes.Buffer
	r := result{Name: "n", Question: "q", columns: []string{"x/s", "y"}, Medians: medians(rounds), Ratios: []compared{c}}
	r.print(&out)
	require.Equal(t, `
## n
q

| | x/s | y |
| --- | --- | --- |
| a | 10.0 | |
| b | 10.0 | |
| c | 20.0 | |

| ratio | median | from – to | asked for | aim | |
| --- | --- | --- | --- | --- | --- |
| a: x/s | 10.00 | 10.00 – 30.00 |  |  |  |
`, out.String())
}
