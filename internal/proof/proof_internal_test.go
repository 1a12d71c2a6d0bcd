package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/proof/defect"
)

// A part that fails, or panics, is a failure in the report, with a command to repeat
// it. The others run all the same.
func TestPartsThatFail(t *testing.T) {
	b := &bench{progress: func(line string) { t.Log(line) }}
	r := newReport(t.Context(), options{time: time.Minute, seed: 7})
	for _, p := range []part{
		{"wrong", 1, func(context.Context, *bench, time.Duration, *result) error { return errors.New("no disk") }},
		{"panicking", 1, func(context.Context, *bench, time.Duration, *result) error { panic("help") }},
		{"failing", 1, func(_ context.Context, _ *bench, _ time.Duration, r *result) error {
			r.figure("seeds", 3)
			r.fail("seed 2: I5", "go test -seed 2")
			return nil
		}},
		{"good", 1, func(_ context.Context, _ *bench, during time.Duration, r *result) error {
			r.figure("during", during.String())
			return nil
		}},
	} {
		r.add(p.play(t.Context(), b, time.Second))
	}
	require.True(t, r.Failed)
	for _, text := range []string{
		"**Something failed.**", "seed 7", "- wrong: no disk\n", "- panicking: it panicked: help", "- failing: seed 2: I5 Again: `go test -seed 2`",
		"| failing | seeds | 3 |", "| good | during | 1s |", "| good | failures | 0 |",
	} {
		require.Contains(t, r.table(), text)
	}

	folder := filepath.Join(t.TempDir(), "made")
	require.NoError(t, r.write(folder))
	text, err := os.ReadFile(filepath.Join(folder, "proof.json"))
	require.NoError(t, err)
	var back report
	require.NoError(t, json.Unmarshal(text, &back))
	require.True(t, back.Failed)
	require.Equal(t, "go test -seed 2", back.Parts[2].Failures[0].Repeat)
}

// Parts that end by themselves are not bounded by the time. The others share the rest
// of it, and have their minutes of each hour in any case.
func TestShare(t *testing.T) {
	parts := []part{{"kills", 0, nil}, {"soak", 20, nil}, {"simulation", 10, nil}}
	require.Zero(t, share(parts, time.Hour, time.Hour))
	require.Equal(t, 30*time.Minute, share(parts[1:], 45*time.Minute, time.Hour))
	require.Equal(t, 20*time.Minute, share(parts[1:], 10*time.Minute, time.Hour), "those before were slow")
	require.Equal(t, 10*time.Minute, share(parts[2:], -time.Minute, time.Hour))
	require.Equal(t, 5*time.Minute, share(parts[1:2], 5*time.Minute, 5*time.Minute), "it is alone")
}

// It is a failure if something was done less often than required.
func TestEnough(t *testing.T) {
	r := &result{progress: func(line string) { t.Log(line) }}
	r.enough("kills", 700, 700)
	require.Empty(t, r.Failures)
	r.enough("kills", 699, 700)
	require.Equal(t, "kills: 699 of 700", r.Failures[0].What)
}

func TestNothingFailed(t *testing.T) {
	r := newReport(t.Context(), options{})
	r.add(&result{Part: "good"})
	require.False(t, r.Failed)
	require.Contains(t, r.table(), "Nothing failed.")
	require.NotContains(t, r.table(), "What failed")
}

// The page names for each defect the test that found it.
func TestWhichTestFoundIt(t *testing.T) {
	r := newReport(t.Context(), options{})
	r.add(&result{Part: "defects", Details: []any{
		defect.Outcome{Defect: "a wrong sign", Caught: true, By: []string{"github.com/surehook/surehook/sender TestSign/one"}},
		defect.Outcome{Defect: "of all", Caught: true, By: []string{"github.com/surehook/surehook TestAll"}},
		defect.Outcome{Defect: "no sign"},
	}})
	require.Contains(t, r.table(), "| planted | caught by |\n| --- | --- |\n| a wrong sign | `TestSign/one` sender |\n| of all | `TestAll` |\n| no sign | **nothing** |\n")
}

// This repository's page has the marks, and the text between them is replaced.
func TestIntoPage(t *testing.T) {
	text, err := os.ReadFile("../../TESTING.md")
	require.NoError(t, err)
	page := filepath.Join(t.TempDir(), "TESTING.md")
	require.NoError(t, os.WriteFile(page, text, 0o600))
	for _, seed := range []uint64{11, 22} {
		require.NoError(t, newReport(t.Context(), options{seed: seed}).into(page))
	}
	text, err = os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "seed 22")
	require.NotContains(t, string(text), "seed 11")
	require.Contains(t, string(text), "# How it is tested")
	const verdict = "**The last run failed**"
	require.NotContains(t, string(text), verdict)

	failed := newReport(t.Context(), options{seed: 33})
	failed.add(&result{Part: "bad", Failures: []failure{{What: "it broke"}}})
	require.NoError(t, failed.into(page))
	text, err = os.ReadFile(page)
	require.NoError(t, err)
	require.Less(t, strings.Index(string(text), verdict), 200, "it stands at the top")
	require.Contains(t, string(text), "it broke")

	require.NoError(t, os.WriteFile(page, []byte("nothing"), 0o600))
	require.ErrorContains(t, newReport(t.Context(), options{}).into(page), "it lacks the lines")
}

func TestChooseParts(t *testing.T) {
	parts := all(options{})
	chosen, err := choose(parts, "soak, crashes")
	require.NoError(t, err)
	require.Equal(t, "crashes,soak", names(chosen), "in their own order")
	chosen, err = choose(parts, "")
	require.NoError(t, err)
	require.Len(t, chosen, len(parts))
	_, err = choose(parts, "soak,luck")
	require.ErrorContains(t, err, `there is no part "luck": there are crashes,`)
}
