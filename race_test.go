//go:build race

package surehook_test

const raceEnabled = true
