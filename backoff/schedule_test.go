package backoff_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/backoff"
)

func TestFixed(t *testing.T) {
	t.Parallel()
	delays := []time.Duration{0, time.Second, time.Minute}
	s, err := backoff.Fixed(delays...)
	require.NoError(t, err)
	delays[2] = time.Hour // the schedule has its own copy
	for attempt, want := range map[int]time.Duration{
		math.MinInt: 0, 0: 0, 1: 0, 2: time.Second, 3: time.Minute, 4: time.Minute, math.MaxInt: time.Minute,
	} {
		require.Equal(t, want, s.Delay(attempt), "attempt %d", attempt)
	}
}

func TestFixedRefuses(t *testing.T) {
	t.Parallel()
	for want, delays := range map[string][]time.Duration{
		"is empty":                               {},
		"delay 1 of the fixed schedule is -1ns":  {-1, time.Second},
		"delay 2 of the fixed schedule is -1s":   {time.Second, -time.Second},
		"the last delay of the fixed schedule":   {time.Second, 0},
		"delay 1 of the fixed schedule is -2ns:": {-2, 0},
	} {
		s, err := backoff.Fixed(delays...)
		require.ErrorContains(t, err, want)
		require.Nil(t, s)
	}
	_, err := backoff.Fixed(-1, -2, 0)
	require.ErrorContains(t, err, "delay 1")
	require.ErrorContains(t, err, "delay 2")
	require.ErrorContains(t, err, "the last delay")
}

func TestExponential(t *testing.T) {
	t.Parallel()
	const most = time.Duration(math.MaxInt64)
	tests := map[string]struct {
		e       backoff.Exponential
		attempt int
		want    time.Duration
	}{
		"default base":        {backoff.Exponential{}, 1, time.Minute},
		"default factor":      {backoff.Exponential{}, 4, 8 * time.Minute},
		"default cap":         {backoff.Exponential{}, 100, 12 * time.Hour},
		"long base":           {backoff.Exponential{Base: 24 * time.Hour}, 1, 24 * time.Hour},
		"long base stays":     {backoff.Exponential{Base: 24 * time.Hour}, 9, 24 * time.Hour},
		"own":                 {backoff.Exponential{Base: time.Second, Factor: 3, Max: time.Minute}, 3, 9 * time.Second},
		"own cap":             {backoff.Exponential{Base: time.Second, Factor: 3, Max: time.Minute}, 5, time.Minute},
		"attempt 0":           {backoff.Exponential{}, 0, time.Minute},
		"negative attempt":    {backoff.Exponential{}, math.MinInt, time.Minute},
		"largest attempt":     {backoff.Exponential{}, math.MaxInt, 12 * time.Hour},
		"factor 1":            {backoff.Exponential{Factor: 1}, math.MaxInt, time.Minute},
		"huge factor":         {backoff.Exponential{Factor: math.MaxFloat64}, 2, 12 * time.Hour},
		"huge factor, first":  {backoff.Exponential{Factor: math.MaxFloat64}, 1, time.Minute},
		"no overflow":         {backoff.Exponential{Base: most, Factor: math.MaxFloat64, Max: most}, math.MaxInt, most},
		"longest base":        {backoff.Exponential{Base: most, Max: most}, 1, most},
		"NaN as the default":  {backoff.Exponential{Factor: math.NaN()}, 2, 2 * time.Minute},
		"+Inf as the default": {backoff.Exponential{Factor: math.Inf(1)}, 2, 2 * time.Minute},
		"-Inf as the default": {backoff.Exponential{Factor: math.Inf(-1)}, 2, 2 * time.Minute},
		"0.5 as the default":  {backoff.Exponential{Factor: 0.5}, 2, 2 * time.Minute},
		"negative base":       {backoff.Exponential{Base: -1}, 1, time.Minute},
		"negative cap":        {backoff.Exponential{Max: math.MinInt64}, 100, 12 * time.Hour},
		"cap below base":      {backoff.Exponential{Base: time.Hour, Max: time.Minute}, 1, time.Minute},
	}
	for name, tt := range tests {
		require.Equal(t, tt.want, tt.e.Delay(tt.attempt), name)
	}
}

func TestExponentialValidate(t *testing.T) {
	t.Parallel()
	for _, e := range []backoff.Exponential{
		{}, {Base: time.Second}, {Base: 24 * time.Hour}, {Factor: 1}, {Factor: math.MaxFloat64},
		{Base: time.Second, Max: time.Second}, {Max: time.Minute},
	} {
		require.NoError(t, e.Validate(), "%+v", e)
	}
	for want, e := range map[string]backoff.Exponential{
		"the base of the exponential schedule is -1ns":      {Base: -1},
		"the factor of the exponential schedule is NaN":     {Factor: math.NaN()},
		"the factor of the exponential schedule is +Inf":    {Factor: math.Inf(1)},
		"the factor of the exponential schedule is -Inf":    {Factor: math.Inf(-1)},
		"the factor of the exponential schedule is 0.99":    {Factor: 0.99},
		"the factor of the exponential schedule is -2":      {Factor: -2},
		"the cap of the exponential schedule is -1ns":       {Max: -1},
		"the cap of the exponential schedule is 1s: it":     {Max: time.Second},
		"the cap of the exponential schedule is 1m0s: it m": {Base: time.Hour, Max: time.Minute},
	} {
		require.ErrorContains(t, e.Validate(), want, "%+v", e)
	}
}

func TestJitter(t *testing.T) {
	t.Parallel()
	const most = time.Duration(math.MaxInt64)
	tests := map[string]struct {
		j      backoff.Jitter
		d      time.Duration
		chance float64
		want   time.Duration
	}{
		"none":                    {backoff.None(), time.Hour, 0.9, time.Hour},
		"full, low":               {backoff.Full(), time.Hour, 0, 0},
		"full":                    {backoff.Full(), time.Hour, 0.75, 45 * time.Minute},
		"full, longest":           {backoff.Full(), most, 0.5, 1 << 62},
		"equal, low":              {backoff.Equal(), time.Hour, 0, 30 * time.Minute},
		"equal":                   {backoff.Equal(), time.Hour, 0.5, 45 * time.Minute},
		"proportional, low":       {backoff.Proportional(0.25), time.Hour, 0, 45 * time.Minute},
		"proportional, middle":    {backoff.Proportional(0.25), time.Hour, 0.5, time.Hour},
		"proportional, high":      {backoff.Proportional(0.25), time.Hour, 0.75, 67*time.Minute + 30*time.Second},
		"proportional, 0":         {backoff.Proportional(0), 1<<53 + 1, 0.9, 1<<53 + 1},
		"proportional, 1":         {backoff.Proportional(1), time.Hour, 0, 0},
		"proportional, saturates": {backoff.Proportional(1), most, 0.9, most},
		"proportional, over 1":    {backoff.Proportional(7), time.Hour, 0.75, 90 * time.Minute},
		"proportional, below 0":   {backoff.Proportional(-7), time.Hour, 0.75, time.Hour},
		"proportional, NaN":       {backoff.Proportional(math.NaN()), time.Hour, 0.75, time.Hour},
		"proportional, +Inf":      {backoff.Proportional(math.Inf(1)), time.Hour, 0.75, 90 * time.Minute},
		"reference, low":          {backoff.Jitter{}, time.Hour, 0, 48 * time.Minute},
		"reference, high":         {backoff.Jitter{}, time.Hour, 0.75, 66 * time.Minute},
		"negative delay":          {backoff.None(), -1, 0.5, 0},
		"negative delay, equal":   {backoff.Equal(), math.MinInt64, 0.5, 0},
	}
	for name, tt := range tests {
		require.Equal(t, tt.want, tt.j.Apply(tt.d, tt.chance), name)
	}
	for _, f := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1), math.Inf(-1)} {
		p := backoff.Policy{Jitter: backoff.Proportional(f)}
		require.ErrorContains(t, p.Validate(), "the fraction of the proportional jitter", "%v", f)
		q := p
		require.True(t, p == q, "policies can be compared")
	}
	for _, f := range []float64{0, 0.5, 1} {
		require.NoError(t, backoff.Policy{Jitter: backoff.Proportional(f)}.Validate())
	}
}
